package native

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

// marked is a text with a breakpoint of the cache.
func marked(text, mark string) *agent.TextBlock {
	return &agent.TextBlock{Text: text, Extra: agent.Fields{transcript.CacheField: json.RawMessage(mark)}}
}

const (
	mark5m = `{"type":"ephemeral"}`
	mark1h = `{"type":"ephemeral","ttl":"1h"}`
)

// Breakpoints of the program's leave a request that the API takes in every turn: four at most with the
// engine's own, and none of an hour after one of five minutes. The newest of the program's is kept.
//
// fault D5
func TestBreakpointsOfTheProgram(t *testing.T) {
	document := &agent.UnknownBlock{Type: "document", Raw: json.RawMessage(`{"type":"document","cache_control":` + mark5m + `,"source":{"type":"content","content":[{"type":"text","text":"a","cache_control":` + mark1h + `},{"type":"text","text":"b","cache_control":` + mark5m + `}]}}`)}
	plain := agent.TextContent("plain")
	tests := map[string]struct {
		turns []agent.Content
		kept  string // what stands in the last request
	}{
		"two in one input":          {[]agent.Content{{marked("a", mark5m), marked("b", mark5m), &agent.TextBlock{Text: "c"}}, plain, plain, plain}, `"b"`},
		"two in each input":         {[]agent.Content{{marked("a", mark5m), marked("b", mark5m)}, {marked("c", mark5m), marked("d", mark5m)}, {marked("e", mark5m), marked("f", mark5m)}}, `"f"`},
		"six in one input":          {[]agent.Content{{marked("a", mark5m), marked("b", mark5m), marked("c", mark5m), marked("d", mark5m), marked("e", mark5m), marked("f", mark5m)}}, `"f"`},
		"an hour at the beginning":  {[]agent.Content{{marked("a", mark1h), &agent.TextBlock{Text: "b"}}, plain, plain}, `"a"`},
		"an hour after a short one": {[]agent.Content{{marked("a", mark5m), &agent.TextBlock{Text: "b"}}, {marked("c", mark1h), marked("d", mark1h)}, plain}, `"d"`},
		"an hour in each":           {[]agent.Content{{marked("a", mark1h)}, {marked("b", mark1h)}, {marked("c", mark1h)}, {marked("d", mark1h)}, {marked("e", mark1h)}}, `"e"`},
		"in a document":             {[]agent.Content{{document, marked("a", mark1h), &agent.TextBlock{Text: "c"}}, plain}, `"a"`},
	}
	for name, tt := range tests {
		for _, prompt := range []string{"", "Be kind."} {
			t.Run(name+" "+prompt, func(t *testing.T) {
				model := modeltest.New(t, modeltest.Func(func(*modeltest.Request) modeltest.Turn { return modeltest.Text("x") })) // strict
				o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
				o.SystemPrompt = prompt
				c := open(t, model, o)
				for _, content := range tt.turns {
					if err := c.SendInput(t.Context(), &agent.Input{Content: content}); err != nil {
						t.Fatal(err)
					}
					if r, _ := hear(t, c); r.IsError {
						t.Fatalf("result %+v", r)
					}
				}
				body := string(model.Last().Body)
				if n := strings.Count(body, `"cache_control"`); n == 0 || n > transcript.MaxBreakpoints {
					t.Errorf("%d breakpoints: %s", n, body)
				}
				if !strings.Contains(body, `"text":`+tt.kept+`,"cache_control":{"type":"ephemeral"`) {
					t.Errorf("the program's on %s is gone: %s", tt.kept, body)
				}
			})
		}
	}
}

// Without breakpoints of the engine's, for gateways that know none, there are none of the program's.
func TestNoBreakpoints(t *testing.T) {
	model := modeltest.New(t, modeltest.Text("x"))
	e := New(&Options{APIKey: "test", HTTPClient: model.Client(), DisablePromptCaching: true})
	for _, err := range agent.QueryInput(t.Context(), e, &agent.Input{Content: agent.Content{marked("a", mark5m)}}, &agent.Options{SystemPrompt: "x"}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if body := model.Last().Body; bytes.Contains(body, []byte(transcript.CacheField)) {
		t.Errorf("sent %s", body)
	}
}

// A large image is brought within the limits when it comes in, from wherever: more than twenty images later
// the API would refuse each request that has it.
//
// fault D6
func TestImagesAreFittedOnEntry(t *testing.T) {
	large := func() *agent.ImageBlock { return imageOf("image/png", picture(2500, 1000)) }
	inDocument := &agent.UnknownBlock{Type: "document", Raw: json.RawMessage(fmt.Sprintf(`{"type":"document","title":"t","source":{"type":"content","content":[%s,{"type":"text","text":"below"}]}}`, transcript.Encode(large())))}
	hook := &agent.Hooks{PostToolUse: []agent.Hook[agent.PostToolUse, agent.PostToolUseOutput]{{Func: func(context.Context, *agent.PostToolUse) (*agent.PostToolUseOutput, error) {
		return &agent.PostToolUseOutput{UpdatedOutput: agent.Content{large()}}, nil
	}}}}
	tests := map[string]struct {
		first agent.Content
		set   func(o *agent.Options)
	}{
		"from the user": {agent.Content{large(), &agent.TextBlock{Text: "look"}}, nil},
		"in a document": {agent.Content{inDocument}, nil},
		"from the history": {agent.TextContent("x"), func(o *agent.Options) {
			o.History = []agent.Message{userSaid(large()), answered1("msg_1", text("I see"))}
		}},
		"from a hook":       {agent.TextContent("call"), func(o *agent.Options) { o.Hooks = hook }},
		"too large in both": {agent.Content{imageOf("image/png", append(picture(2500, 1000), make([]byte, 5<<20)...))}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			model := modeltest.New(t, modeltest.Func(func(r *modeltest.Request) modeltest.Turn {
				if r.LastUserText() == "call" && len(r.Messages) == 1 {
					return modeltest.ToolUse("mcp__s__w", `{}`)
				}
				return modeltest.Text("x")
			}))
			o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
			if tt.set != nil {
				tt.set(o)
			}
			c := open(t, model, o)
			turns := []agent.Content{tt.first}
			for range 21 {
				turns = append(turns, agent.Content{imageOf("image/png", picture(10, 10))})
			}
			for i, content := range turns {
				if err := c.SendInput(t.Context(), &agent.Input{Content: content}); err != nil {
					t.Fatal(err)
				}
				if r, _ := hear(t, c); r.IsError {
					t.Fatalf("turn %d: %+v", i, r)
				}
			}
			if n := strings.Count(string(model.Last().Body), `"image/png"`); n != 22 {
				t.Errorf("the last request has %d images, want 22", n)
			}
		})
	}
}

// The program hears what became of its image; one that is fine stays as it is.
func TestFittedImagesAreToldOf(t *testing.T) {
	small := imageOf("image/png", picture(transcript.MaxImageSide, 1))
	c := open(t, modeltest.New(t, modeltest.Text("x"), modeltest.Text("y")), &agent.Options{ReplayUserMessages: true})
	for want, b := range map[string]agent.Block{"": small, tagImageFitted: imageOf("image/png", picture(transcript.MaxImageSide+1, 1))} {
		if err := c.SendInput(t.Context(), &agent.Input{Content: agent.Content{b}}); err != nil {
			t.Fatal(err)
		}
		_, msgs := hear(t, c)
		if got := strings.Join(tags(msgs), " "); got != want {
			t.Errorf("told %q, want %q", got, want)
		}
		replay := last[*agent.User](msgs)
		if same := bytes.Equal(transcript.EncodeBlock(replay.Message.Content[0]), transcript.EncodeBlock(b)); same != (want == "") {
			t.Errorf("the replay has %.200s", transcript.Encode(replay.Message.Content))
		}
	}
}

// The limits on images are those of the API, to the pixel and to the byte.
//
// fault F19
func TestExactImageLimits(t *testing.T) {
	sized := func(base64Bytes int) []byte {
		data := picture(1, 1)
		return append(data, make([]byte, base64.StdEncoding.DecodedLen(base64Bytes)-len(data))...)
	}
	tests := []struct {
		name string
		data []byte
		fits bool
	}{
		{"as many bytes as are allowed", sized(transcript.MaxImageBase64), true},
		{"four bytes more", sized(transcript.MaxImageBase64 + 4), false},
		{"as wide as is allowed", picture(transcript.MaxImageSide, 1), true},
		{"as high as is allowed", picture(1, transcript.MaxImageSide), true},
		{"one pixel wider", picture(transcript.MaxImageSide+1, 1), false},
		{"one pixel higher", picture(1, transcript.MaxImageSide+1), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := imageOf("image/png", tt.data)
			if got := transcript.FitsAPI(b.Source, tt.data); got != tt.fits {
				t.Errorf("in the history: %v", got)
			}
			if _, note := transcript.FitGivenImage(t.Context(), b); (note == "") != tt.fits {
				t.Errorf("in an input: %q", note)
			}
		})
	}
	long := strings.Repeat("x", 1<<10)
	for _, tt := range []struct {
		source agent.ImageSource
		kept   bool
	}{
		{agent.ImageSource{Type: "url", URL: strings.Repeat("u", transcript.MaxURL)}, true},
		{agent.ImageSource{Type: "url", URL: strings.Repeat("u", transcript.MaxURL+1)}, false},
		{agent.ImageSource{Type: "file", FileID: long}, true},
		{agent.ImageSource{Type: "file", FileID: long + "x"}, false},
	} {
		var l transcript.Loader
		blocks := l.Image(0, &agent.ImageBlock{Source: tt.source})
		if _, ok := blocks[0].(*agent.ImageBlock); ok != tt.kept {
			t.Errorf("an image of type %s and %d bytes: kept %v", tt.source.Type, len(tt.source.URL+tt.source.FileID), ok)
		}
	}
}

// An input that is one plain text is replayed as it was given: a string in JSON, not a list of one block.
//
// fault F11
func TestReplayKeepsThePlainText(t *testing.T) {
	for _, tt := range []struct {
		content agent.Content
		want    string
	}{
		{agent.TextContent("hello"), `"hello"`},
		{agent.Content{&agent.TextBlock{Text: "hello"}}, `[{"type":"text","text":"hello"}]`},
		{agent.Content{&agent.TextBlock{Text: "hello"}, &agent.TextBlock{Text: " "}}, `[{"type":"text","text":"hello"}]`},
	} {
		c := open(t, modeltest.New(t, modeltest.Text("x")), &agent.Options{ReplayUserMessages: true})
		if err := c.SendInput(t.Context(), &agent.Input{Content: tt.content, UUID: "6f1c6a0e-5b1e-4b5b-9a55-0c1f9b1f2a11"}); err != nil {
			t.Fatal(err)
		}
		_, msgs := hear(t, c)
		i := slices.IndexFunc(msgs, func(m agent.Message) bool { u, ok := m.(*agent.User); return ok && u.IsReplay })
		if i < 0 {
			t.Fatal("no replay")
		}
		line, err := json.Marshal(msgs[i])
		if err != nil {
			t.Fatal(err)
		}
		var said struct {
			Message struct{ Content json.RawMessage }
		}
		if err := json.Unmarshal(line, &said); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, string(said.Message.Content)); diff != "" {
			t.Error(diff)
		}
	}
}
