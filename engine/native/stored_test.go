package native

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/toolresult"
)

var savedPath = regexp.MustCompile(`saved to:? (\S+?)\.?\s`)

// pathIn is the path that a result says it was saved to.
func pathIn(t *testing.T, text string) string {
	t.Helper()
	m := savedPath.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no path in %.300q", text)
	}
	return m[1]
}

// returning is a tool that returns a text.
func returning(text string) handlerFunc {
	return func(context.Context, json.RawMessage) (*mcpserver.Result, error) { return mcpserver.Text(text), nil }
}

// A result of 20 MB is bounded, stored for this user only, previewed, searched and read back in parts; at the end it is gone.
//
// D94
func TestHugeResultIsStored(t *testing.T) {
	var b strings.Builder
	for i := 0; b.Len() < 20<<20; i++ {
		fmt.Fprintf(&b, "line %d of the log, with some words in it to fill it up\n", i)
	}
	text := strings.TrimSuffix(b.String(), "\n")
	lines := strings.Count(text, "\n") + 1
	var path string
	read := func(id, rest string) modeltest.Turn {
		return modeltest.Func(func(r *modeltest.Request) modeltest.Turn {
			if _, done := r.ToolResult(id); done {
				return nil
			}
			got, _ := r.ToolResult("toolu_1")
			path = pathIn(t, got.PlainText())
			return modeltest.ToolUseID(id, readTool, `{"path":`+string(transcript.Encode(path))+rest+`}`)
		})
	}
	model := modeltest.New(t, modeltest.ToolUseID("toolu_1", "mcp__s__w", `{}`),
		read("toolu_2", `,"pattern":"line 123456 "`), read("toolu_3", fmt.Sprintf(`,"offset":%d,"limit":2`, lines-1)), modeltest.Text("x"))
	c := open(t, model, withTools(t, returning(text), &mcpserver.Tool{Name: "w"}))
	say(t, c, "x")
	last := model.Last()
	got, _ := last.ToolResult("toolu_1")
	said := got.PlainText()
	if got.IsError || len(said) > 4<<10 || !strings.HasPrefix(said, "Error: result (") || !strings.Contains(said, readTool) || !strings.Contains(said, "line 1 of the log") {
		t.Errorf("error %v, %d bytes: %.600s", got.IsError, len(said), said)
	}
	for id, want := range map[string]string{
		"toolu_2": "123457: line 123456 of the log, with some words in it to fill it up\n",
		"toolu_3": fmt.Sprintf("%d: line %d of the log, with some words in it to fill it up\n", lines, lines-1),
	} {
		if got, _ := last.ToolResult(id); !strings.Contains(got.PlainText()+"\n", want) {
			t.Errorf("%s: %.300s", id, got.PlainText())
		}
	}
	whole, err := os.ReadFile(path)
	if err != nil || string(whole) != text {
		t.Errorf("the file has %d bytes, %v", len(whole), err)
	}
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if n := len(last.Body); n > 64<<10 {
		t.Errorf("the request has %d bytes", n)
	}
	if _, early := model.Requests()[0].Tool(readTool); early {
		t.Error("there was a tool for stored results before there was one")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
		t.Errorf("after Close: %v", err)
	}
}

// The boundaries of the limits, and what changes them.
func TestOutputLimits(t *testing.T) {
	tests := []struct {
		name  string
		chars int
		tool  mcpserver.Tool
		env   string
		want  string // the beginning; empty for the result as it is
	}{
		{"50,000 are kept", 50_000, mcpserver.Tool{}, "", ""},                                                  // D96
		{"50,001 are not", 50_001, mcpserver.Tool{}, "", "<persisted-output>"},                                 // D96
		{"too many tokens", 110_000, mcpserver.Tool{}, "", "Error: result (110,000 characters"},                // D94
		{"fewer tokens", 9_000, mcpserver.Tool{}, "2000", "Error: result (9,000 characters"},                   // D95
		{"within fewer tokens", 3_000, mcpserver.Tool{}, "2000", ""},                                           // D95
		{"more tokens", 110_000, mcpserver.Tool{}, "100000", "<persisted-output>"},                             // D95 D96
		{"a declared limit", 200_000, mcpserver.Tool{MaxResultSize: 200_000}, "", ""},                          // D96
		{"beyond a declared limit", 200_001, mcpserver.Tool{MaxResultSize: 200_000}, "", "<persisted-output>"}, // D96
		{"a lower declared limit", 1_001, mcpserver.Tool{MaxResultSize: 1_000}, "", "<persisted-output>"},      // D96
		{"a declared limit wins over tokens", 100_000, mcpserver.Tool{MaxResultSize: 150_000}, "1000", ""},     // D96
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.tool.Name = "w"
			text := strings.Repeat("é", tt.chars)
			o := withTools(t, returning(text), &tt.tool)
			o.Env = map[string]string{"MAX_MCP_OUTPUT_TOKENS": tt.env}
			model := modeltest.NewModel(&modeltest.Options{TB: t, CountTokens: func(r *modeltest.Request) int { return len([]rune(string(r.Body))) / 4 }})
			model.Add(modeltest.ToolUseID("toolu_1", "mcp__s__w", `{}`), modeltest.Text("x"))
			answered(t, model, o)
			got, _ := model.Last().ToolResult("toolu_1")
			switch said := got.PlainText(); {
			case got.IsError:
				t.Error("is_error is set")
			case tt.want == "" && said != text:
				t.Errorf("not the whole result: %.200s", said)
			case !strings.HasPrefix(said, tt.want):
				t.Errorf("got %.200s", said)
			}
		})
	}
}

// Near the limit the API counts; a server that cannot is asked once.
func TestTokensAreCounted(t *testing.T) {
	for _, tt := range []struct {
		count  int // what the API says; negative if it does not know how
		stored string
		asked  int
	}{{20_000, "<persisted-output>", 2}, {30_000, "Error: result", 2}, {-1, "<persisted-output>", 1}} {
		asked := 0
		model := modeltest.NewModel(&modeltest.Options{TB: t, CountTokens: func(*modeltest.Request) int { return max(tt.count, 0) }})
		client := &http.Client{Transport: roundTripFunc(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/count_tokens") {
				asked++
				if tt.count < 0 {
					res, err := answering("application/json", `{"type":"error","error":{"type":"not_found_error","message":"no such path"}}`).Do(r)
					if err == nil {
						res.StatusCode = http.StatusNotFound
					}
					return res, err
				}
			}
			return model.RoundTrip(r)
		})}
		for range 2 {
			model.Add(modeltest.ToolUse("mcp__s__w", `{}`))
		}
		model.Add(modeltest.Text("x"))
		e := New(&Options{APIKey: "test", BaseURL: "http://model.test", HTTPClient: client})
		msgs, err := collect(t, t.Context(), e, "x", withTools(t, returning(strings.Repeat("word ", 16_000)), &mcpserver.Tool{Name: "w"}))
		if err != nil {
			t.Fatal(err)
		}
		if got := results(msgs)[1].Text(); !strings.HasPrefix(got, tt.stored) || asked != tt.asked {
			t.Errorf("count %d: asked %d times, %.100s", tt.count, asked, got)
		}
	}
}

// Results in a folder of the program's own stay there.
func TestResultsDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	model := modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{}`), modeltest.Text("x"))
	e := New(&Options{APIKey: "test", HTTPClient: model.Client(), ResultsDir: dir})
	if _, err := collect(t, t.Context(), e, "x", withTools(t, returning(strings.Repeat("word ", 20_000)), &mcpserver.Tool{Name: "w"})); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 || !strings.HasPrefix(files[0].Name(), "mcp-s-w-") {
		t.Errorf("the folder has %v, %v", files, err)
	}
}

// The tool for stored results reads nothing else, and says what is wrong.
func TestReadToolReadsResultsOnly(t *testing.T) {
	inputs := map[string]string{`{"path":"/etc/passwd"}`: "no stored result", `{"path":"../x"}`: "no stored result", `{}`: "path is missing", `{"path":7}`: "cannot be read"}
	for input, want := range inputs {
		model := modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{}`), modeltest.ToolUseID("toolu_2", readTool, input), modeltest.Text("x"))
		answered(t, model, withTools(t, returning(strings.Repeat("word ", 20_000)), &mcpserver.Tool{Name: "w"}))
		if got, _ := model.Last().ToolResult("toolu_2"); !got.IsError || !strings.Contains(got.PlainText(), want) {
			t.Errorf("%s: %s", input, got.PlainText())
		}
	}
}

// What a model cannot read goes to a file, and the model is told which.
func TestBinaryContentIsSaved(t *testing.T) {
	audio := []byte("RIFF....WAVE")
	o := withTools(t, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		return mcpserver.Audio(audio, &mcpserver.MediaOptions{MIMEType: "audio/wav"}), nil
	}, &mcpserver.Tool{Name: "w"})
	model := modeltest.New(t, modeltest.ToolUseID("toolu_1", "mcp__s__w", `{}`), modeltest.Text("x"))
	c := open(t, model, o)
	say(t, c, "x")
	got, _ := model.Last().ToolResult("toolu_1")
	data, err := os.ReadFile(pathIn(t, got.PlainText()+"\n"))
	if err != nil || !bytes.Equal(data, audio) {
		t.Errorf("%v: %s", err, got.PlainText())
	}
}

// What hooks put in a result's place has the same limits.
func TestHookOutputIsBounded(t *testing.T) {
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	o.Hooks = &agent.Hooks{PostToolUse: []agent.Hook[agent.PostToolUse, agent.PostToolUseOutput]{{
		Func: func(context.Context, *agent.PostToolUse) (*agent.PostToolUseOutput, error) {
			return &agent.PostToolUseOutput{UpdatedOutput: agent.TextContent(strings.Repeat("word ", 11_000))}, nil
		},
	}}}
	model := modeltest.New(t, modeltest.ToolUseID("toolu_1", "mcp__s__w", `{}`), modeltest.Text("x"))
	answered(t, model, o)
	if got, _ := model.Last().ToolResult("toolu_1"); !strings.HasPrefix(got.PlainText(), "<persisted-output>") {
		t.Errorf("%.200s", got.PlainText())
	}
}

func TestCutError(t *testing.T) {
	if got := cutError(strings.Repeat("é", maxErrorChars)); strings.Contains(got, "truncated") {
		t.Error("10,000 characters were cut")
	}
	got := cutError("begin" + strings.Repeat("é", maxErrorChars) + "end")
	if !strings.HasPrefix(got, "begin") || !strings.HasSuffix(got, "end") || !strings.Contains(got, "[8 characters truncated]") {
		t.Errorf("got %d bytes", len(got))
	}
}

// What a hook puts in the place of a result keeps its images, however long its text is.
//
// fault I10
func TestLongHookOutputKeepsItsImages(t *testing.T) {
	img := imageOf("image/png", picture(10, 10))
	for _, n := range []int{100, 60_000, 600_000} {
		o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
		o.Hooks = &agent.Hooks{PostToolUse: []agent.Hook[agent.PostToolUse, agent.PostToolUseOutput]{{Func: func(context.Context, *agent.PostToolUse) (*agent.PostToolUseOutput, error) {
			return &agent.PostToolUseOutput{UpdatedOutput: agent.Content{&agent.TextBlock{Text: strings.Repeat("word ", n/5)}, nil, img, (*agent.TextBlock)(nil)}}, nil
		}}}}
		_, msgs := answered(t, modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{}`), modeltest.Text("x")), o)
		got := results(msgs)[0].Content
		if len(got) < 2 || !bytes.Equal(transcript.Encode(got[1]), transcript.Encode(img)) {
			t.Errorf("%d characters: %d blocks, %.300s", n, len(got), transcript.Encode(got))
		}
		if n := len(got.Text()); n > toolresult.MaxDeclaredChars+1000 {
			t.Errorf("%d bytes of text", n)
		}
	}
}
