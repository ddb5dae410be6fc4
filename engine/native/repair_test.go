package native

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

// The messages that histories are made of here.

func said(text string) *agent.User {
	return &agent.User{Message: agent.UserMessage{Content: agent.TextContent(text)}}
}

func userSaid(blocks ...agent.Block) *agent.User {
	return &agent.User{Message: agent.UserMessage{Content: blocks}}
}

func answered1(id string, blocks ...agent.Block) *agent.Assistant {
	return &agent.Assistant{Message: agent.APIMessage{ID: id, Role: transcript.RoleAssistant, Model: "claude-sonnet-5-5", Content: blocks}}
}

func text(s string) *agent.TextBlock { return &agent.TextBlock{Text: s} }

func use(id string) *agent.ToolUseBlock {
	return &agent.ToolUseBlock{ID: id, Name: "mcp__s__w", Input: json.RawMessage(`{"n":12345678901234567890}`)}
}

func result(id, s string) *agent.ToolResultBlock {
	return &agent.ToolResultBlock{ToolUseID: id, Content: agent.TextContent(s)}
}

func thought(s string) *agent.ThinkingBlock {
	return &agent.ThinkingBlock{Thinking: s, Signature: modeltest.Signature(s)}
}

func raw(kind, s string) *agent.UnknownBlock {
	return &agent.UnknownBlock{Type: kind, Raw: json.RawMessage(s)}
}

// sentAs is a request's conversation, one block a line.
func sentAs(r *modeltest.Request) []string {
	var lines []string
	for _, m := range r.Messages {
		for _, b := range m.Content {
			line := m.Role + ": " + b.Type
			switch b.Type {
			case "text":
				line = m.Role + ": " + b.Text
			case "tool_use":
				line += " " + b.ID + " " + b.Name + " " + string(b.Input)
			case "tool_result":
				line += " " + b.ToolUseID
				if b.IsError {
					line += " failed"
				}
				for _, c := range b.Content {
					line += " " + c.Type + " " + c.PlainText() + c.ToolName
				}
			case "thinking":
				line += " " + b.Thinking
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// repairsIn are the repairs that a turn reports.
func repairsIn(t *testing.T, msgs []agent.Message) []agent.HistoryRepair {
	t.Helper()
	var all []agent.HistoryRepair
	for _, m := range msgs {
		var note struct {
			Tag     string                `json:"tag"`
			Count   int                   `json:"count"`
			Repairs []agent.HistoryRepair `json:"repairs"`
		}
		if s, ok := m.(*agent.System); ok && s.Decode(&note) == nil && note.Tag == agent.TagHistoryRepaired {
			if note.Count < len(note.Repairs) || note.Count == 0 {
				t.Errorf("%d repairs are counted, %d listed", note.Count, len(note.Repairs))
			}
			all = append(all, note.Repairs...)
		}
	}
	return all
}

// goesOnWith says "next" after a history. It returns what the model was sent, and the repairs as "index kind".
func goesOnWith(t *testing.T, o *agent.Options, history ...agent.Message) (sent, repairs []string) {
	t.Helper()
	model := modeltest.New(t, modeltest.Text("well"))
	opts := agent.Options{}
	if o != nil {
		opts = *o
	}
	opts.History = history
	c := open(t, model, &opts)
	r, msgs := say(t, c, "next")
	if r.IsError || r.Result != "well" {
		t.Errorf("got %+v", r)
	}
	for _, r := range repairsIn(t, msgs) {
		repairs = append(repairs, fmt.Sprintf("%d %s", r.Index, r.Kind))
		if r.Detail == "" {
			t.Errorf("no detail: %+v", r)
		}
	}
	return sentAs(model.Last()), repairs
}

// Whatever is wrong with a history, the request is one that the API takes, as much as can be is kept,
// and what was changed is reported.
func TestHistoryRepair(t *testing.T) {
	const call1 = `assistant: tool_use toolu_1 mcp__s__w {"n":12345678901234567890}`
	const call2 = `assistant: tool_use toolu_2 mcp__s__w {"n":12345678901234567890}`
	const interrupted = "failed text " + transcript.TextUnanswered
	ask, hello := said("hi"), answered1("msg_1", text("hello"))
	tests := []struct {
		name    string
		history []agent.Message
		want    []string // without what is said last
		repairs []string
	}{
		{"nothing", nil, nil, nil},
		{"as it was", []agent.Message{ask, hello}, []string{"user: hi", "assistant: hello"}, nil},
		{
			"one message a block",
			[]agent.Message{ask, answered1("msg_1", thought("hm")), answered1("msg_1", text("a")), answered1("msg_1", use("toolu_1")), userSaid(result("toolu_1", "r"))},
			[]string{"user: hi", "assistant: thinking hm", "assistant: a", call1, "user: tool_result toolu_1 text r"},
			nil,
		},
		{
			"results between the blocks of a response",
			[]agent.Message{ask, answered1("msg_1", use("toolu_1")), userSaid(result("toolu_1", "r")), answered1("msg_1", use("toolu_2")), userSaid(result("toolu_2", "q"))},
			[]string{"user: hi", call1, call2, "user: tool_result toolu_1 text r", "user: tool_result toolu_2 text q"},
			nil,
		},
		{
			"a call without a result",
			[]agent.Message{ask, answered1("msg_1", use("toolu_1")), said("and?"), answered1("msg_2", text("what?"))},
			[]string{"user: hi", call1, "user: tool_result toolu_1 " + interrupted, "user: and?", "assistant: what?"},
			[]string{"1 unanswered_call"},
		},
		{
			"cut after a call",
			[]agent.Message{ask, answered1("msg_1", use("toolu_1"), use("toolu_2")), userSaid(result("toolu_1", "r"))},
			[]string{"user: hi", call1, call2, "user: tool_result toolu_1 text r", "user: tool_result toolu_2 " + interrupted},
			[]string{"1 unanswered_call"},
		},
		{
			"results in another order",
			[]agent.Message{ask, answered1("msg_1", use("toolu_1"), use("toolu_2")), userSaid(result("toolu_2", "q")), userSaid(result("toolu_1", "r"))},
			[]string{"user: hi", call1, call2, "user: tool_result toolu_1 text r", "user: tool_result toolu_2 text q"},
			nil,
		},
		{
			"a late result",
			[]agent.Message{ask, answered1("msg_1", use("toolu_1")), said("and?"), userSaid(result("toolu_1", "r")), answered1("msg_2", text("so"))},
			[]string{"user: hi", call1, "user: tool_result toolu_1 text r", "user: and?", "assistant: so"},
			[]string{"3 moved_result"},
		},
		{
			"a result before its call",
			[]agent.Message{ask, userSaid(result("toolu_1", "r")), answered1("msg_1", use("toolu_1")), answered1("msg_2", text("so"))},
			[]string{"user: hi", call1, "user: tool_result toolu_1 text r", "assistant: so"},
			[]string{"1 moved_result"},
		},
		{
			"a result after other blocks",
			[]agent.Message{ask, answered1("msg_1", use("toolu_1")), userSaid(text("by the way"), result("toolu_1", "r"))},
			[]string{"user: hi", call1, "user: tool_result toolu_1 text r", "user: by the way"},
			nil,
		},
		{"a result of nothing", []agent.Message{ask, hello, userSaid(result("toolu_9", "r"))}, []string{"user: hi", "assistant: hello"}, []string{"2 orphaned_result"}},
		{
			"two results",
			[]agent.Message{ask, answered1("msg_1", use("toolu_1")), userSaid(result("toolu_1", "r"), result("toolu_1", "q"))},
			[]string{"user: hi", call1, "user: tool_result toolu_1 text r"},
			[]string{"2 duplicate"},
		},
		{
			"one ID twice",
			[]agent.Message{ask, answered1("msg_1", use("toolu_1")), userSaid(result("toolu_1", "r")), answered1("msg_2", use("toolu_1")), userSaid(result("toolu_1", "q"))},
			[]string{"user: hi", call1, "user: tool_result toolu_1 text r", strings.Replace(call1, "toolu_1", "toolu_1_2", 1), "user: tool_result toolu_1_2 text q"},
			[]string{"3 renamed"},
		},
		{
			"one ID twice, one result",
			[]agent.Message{ask, answered1("msg_1", use("toolu_1")), said("x"), answered1("msg_2", use("toolu_1")), userSaid(result("toolu_1", "q"))},
			[]string{"user: hi", call1, "user: tool_result toolu_1 " + interrupted, "user: x", strings.Replace(call1, "toolu_1", "toolu_1_2", 1), "user: tool_result toolu_1_2 text q"},
			[]string{"3 renamed", "1 unanswered_call"},
		},
		{
			"IDs and names that are not allowed",
			[]agent.Message{ask, answered1("msg_1", &agent.ToolUseBlock{ID: "call:1", Name: "my tool", Input: json.RawMessage(`{}`)}, &agent.ToolUseBlock{}), userSaid(result("call:1", "r"), result("", "q"))},
			[]string{"user: hi", "assistant: tool_use call_1 my_tool {}", "assistant: tool_use toolu unnamed {}", "user: tool_result call_1 text r", "user: tool_result toolu text q"},
			[]string{"1 renamed", "1 renamed", "1 renamed", "1 renamed"},
		},
		{
			"inputs that are no objects",
			[]agent.Message{
				ask, answered1("msg_1", &agent.ToolUseBlock{ID: "a", Name: "t", Input: json.RawMessage(`[1]`)}, &agent.ToolUseBlock{ID: "b", Name: "t", Input: json.RawMessage(`{"x":`)}),
				userSaid(result("a", "r"), result("b", "q")),
			},
			[]string{"user: hi", "assistant: tool_use a t {}", "assistant: tool_use b t {}", "user: tool_result a text r", "user: tool_result b text q"},
			[]string{"1 malformed", "1 malformed"},
		},
		{
			"empty texts and messages",
			[]agent.Message{said(" \n"), ask, userSaid(), answered1("msg_1", text(""), text("hello"), text(" ")), userSaid(text("\t"))},
			[]string{"user: hi", "assistant: hello"},
			[]string{"0 empty", "2 empty", "3 empty", "3 empty", "4 empty"},
		},
		{"the model first", []agent.Message{hello, said("what?")}, []string{"user: " + transcript.TextNoBeginning, "assistant: hello", "user: what?"}, []string{"0 beginning"}},
		{
			"cut at the beginning",
			[]agent.Message{userSaid(result("toolu_1", "r")), hello, said("so?")},
			[]string{"user: " + transcript.TextNoBeginning, "assistant: hello", "user: so?"},
			[]string{"1 beginning", "0 orphaned_result"},
		},
		{
			"one role after the same",
			[]agent.Message{ask, said("you there?"), hello, answered1("msg_2", text("I am here"))},
			[]string{"user: hi", "user: you there?", "assistant: hello", "assistant: I am here"},
			nil,
		},
		{"thoughts at the end", []agent.Message{ask, answered1("msg_1", text("a"), thought("hm"))}, []string{"user: hi", "assistant: a"}, []string{"1 thought"}},
		{"nothing but thoughts", []agent.Message{ask, answered1("msg_1", thought("hm")), said("and?")}, []string{"user: hi", "user: and?"}, []string{"1 thought"}},
		{"a thought without a signature", []agent.Message{ask, answered1("msg_1", &agent.ThinkingBlock{Thinking: "hm"}, text("a"))}, []string{"user: hi", "assistant: a"}, []string{"1 thought"}},
		{
			"hidden thoughts",
			[]agent.Message{ask, answered1("msg_1", raw("redacted_thinking", `{"type":"redacted_thinking","data":"abc"}`), raw("redacted_thinking", `{"type":"redacted_thinking"}`), text("a"))},
			[]string{"user: hi", "assistant: redacted_thinking", "assistant: a"},
			[]string{"1 malformed"},
		},
		{
			"server tools",
			[]agent.Message{ask, answered1("msg_1", raw("server_tool_use", search), raw("web_search_tool_result", searchResult), text("a"))},
			[]string{"user: hi", "assistant: server_tool_use", "assistant: web_search_tool_result", "assistant: a"},
			nil,
		},
		{
			"half of a server tool",
			[]agent.Message{ask, answered1("msg_1", raw("server_tool_use", search), text("a")), said("b"), answered1("msg_2", raw("web_search_tool_result", searchResult), text("c"))},
			[]string{"user: hi", "assistant: a", "user: b", "assistant: c"},
			[]string{"1 malformed", "3 malformed"},
		},
		{
			"blocks of no kind",
			[]agent.Message{userSaid(text("hi"), raw("hologram", `{"type":"hologram"}`), raw("", `7`), raw("text", `{"type":"text"`), nil, (*agent.TextBlock)(nil)), answered1("msg_1", raw("hologram", `{"type":"hologram"}`), text("a"))},
			[]string{"user: hi", "assistant: a"},
			[]string{"0 malformed", "0 malformed", "0 malformed", "0 malformed", "0 malformed", "1 malformed"},
		},
		{
			"blocks in the wrong place",
			[]agent.Message{userSaid(text("hi"), use("toolu_1"), thought("x")), answered1("msg_1", text("a"), &agent.ImageBlock{})},
			[]string{"user: hi", "assistant: a"},
			[]string{"0 malformed", "0 malformed", "1 malformed"},
		},
		{
			"fields of no meaning",
			[]agent.Message{userSaid(&agent.TextBlock{Text: "hi", Extra: agent.Fields{"cache_control": json.RawMessage(`{"type":"ephemeral"}`), "x": json.RawMessage(`1`)}}), hello},
			[]string{"user: hi", "assistant: hello"},
			[]string{"0 malformed"},
		},
		{
			"messages that could not be read",
			[]agent.Message{ask, &agent.Unknown{Type: "assistant", Raw: json.RawMessage(`{"type":"assistant","message":7}`), Err: fmt.Errorf("message: 7")}, &agent.Unknown{Type: "tool_progress", Raw: json.RawMessage(`{}`)}},
			[]string{"user: hi"},
			[]string{"1 malformed"},
		},
		{
			"an error result with an image",
			[]agent.Message{ask, answered1("msg_1", use("toolu_1")), userSaid(&agent.ToolResultBlock{ToolUseID: "toolu_1", IsError: true, Content: agent.Content{text("no"), pixel()}})},
			[]string{"user: hi", call1, "user: tool_result toolu_1 failed text no"},
			[]string{"2 malformed"},
		},
		{
			"what a subagent said",
			[]agent.Message{ask, &agent.Assistant{ParentToolUseID: "toolu_7", Message: agent.APIMessage{Content: agent.Content{text("hush")}}}, &agent.User{ParentToolUseID: "toolu_7", Message: agent.UserMessage{Content: agent.TextContent("hush")}}, hello},
			[]string{"user: hi", "assistant: hello"},
			nil,
		},
		{
			"a message twice",
			[]agent.Message{ask, &agent.Assistant{UUID: "u1", Message: hello.Message}, &agent.Assistant{UUID: "u1", Message: hello.Message}},
			[]string{"user: hi", "assistant: hello"},
			[]string{"2 duplicate"},
		},
		{
			"an input and its replay",
			[]agent.Message{&agent.User{UUID: "u1", Message: ask.Message}, hello, &agent.User{UUID: "u1", Message: said("hi, in its place").Message, IsReplay: true}},
			[]string{"user: " + transcript.TextNoBeginning, "assistant: hello", "user: hi, in its place"},
			[]string{"1 beginning"},
		},
		{
			"what was superseded",
			[]agent.Message{ask, &agent.Assistant{UUID: "u1", Message: answered1("msg_0", text("half")).Message}, &agent.Assistant{Supersedes: []string{"u1"}, Message: hello.Message}},
			[]string{"user: hi", "assistant: hello"},
			nil,
		},
		{
			"a failed request",
			[]agent.Message{ask, &agent.Assistant{Error: "overloaded", Message: answered1("x", text("API Error")).Message}},
			[]string{"user: hi"},
			nil,
		},
		{
			"a refused input",
			[]agent.Message{ask, hello, said("a bad image"), &agent.Assistant{Error: "invalid_request", Message: answered1("x", text("API Error: 400 image")).Message}},
			[]string{"user: hi", "assistant: hello"},
			nil,
		},
		{
			"a refused result",
			[]agent.Message{
				ask, answered1("msg_1", use("toolu_1")), &agent.User{UUID: "u1", Message: userSaid(result("toolu_1", "bad")).Message},
				&agent.Assistant{Error: "invalid_request", Supersedes: []string{"u1"}, Message: answered1("x", text("API Error: 400 bad")).Message},
			},
			[]string{"user: hi", call1, "user: tool_result toolu_1 failed text " + transcript.DroppedResult("API Error: 400 bad")},
			nil,
		},
		{"text of no encoding", []agent.Message{said("a\xffb"), answered1("msg_1", raw("text", `{"type":"text","text":"x \ud83d y"}`))}, []string{"user: a\uFFFDb", "assistant: x \uFFFD y"}, nil},
	}
	for _, tt := range tests {
		for _, form := range []string{"as it is", "through JSON"} {
			t.Run(tt.name+"/"+form, func(t *testing.T) {
				history := tt.history
				if form != "as it is" {
					history = throughJSON(t, history)
				}
				sent, repairs := goesOnWith(t, nil, history...)
				want := append(slices.Clone(tt.want), "user: next")
				if diff := cmp.Diff(want, sent); diff != "" {
					t.Errorf("the model is sent something else:\n%s", diff)
				}
				slices.Sort(repairs)
				wantRepairs := slices.Clone(tt.repairs)
				slices.Sort(wantRepairs)
				if diff := cmp.Diff(wantRepairs, repairs); diff != "" {
					t.Errorf("repairs:\n%s", diff)
				}
			})
		}
	}
}

// throughJSON writes messages and reads them again. What has no JSON form stays as it is.
func throughJSON(t *testing.T, msgs []agent.Message) []agent.Message {
	t.Helper()
	var out []agent.Message
	for _, m := range msgs {
		line, err := marshal(m)
		if err != nil {
			out = append(out, m)
			continue
		}
		again, err := agent.DecodeMessage(line)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, again)
	}
	return out
}

// marshal is json.Marshal, which does not bear nil blocks.
func marshal(m agent.Message) (line []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return json.Marshal(m)
}

func pixel() *agent.ImageBlock { return imageOf("image/png", picture(1, 1)) }

func imageOf(media string, data []byte) *agent.ImageBlock {
	return &agent.ImageBlock{Source: agent.ImageSource{Type: "base64", MediaType: media, Data: base64.StdEncoding.EncodeToString(data)}}
}

// What is no text is kept as it is if the API takes it, scaled down if it can be, and else told of.
func TestHistoryMedia(t *testing.T) {
	document := func(source string) *agent.UnknownBlock {
		return raw("document", `{"type":"document","source":`+source+`,"title":"T"}`)
	}
	wide := picture(9000, 2)
	broken := pixel()
	broken.Source.Data = broken.Source.Data[:40] + "\n" + broken.Source.Data[40:]
	tests := []struct {
		name    string
		block   agent.Block
		want    string // the kind, or the beginning of the text
		repairs []string
	}{
		{"an image", pixel(), "image", nil},
		{"an image at an address", &agent.ImageBlock{Source: agent.ImageSource{Type: "url", URL: "https://e.test/a.png"}}, "image", nil},
		{"an uploaded image", &agent.ImageBlock{Source: agent.ImageSource{Type: "file", FileID: "file_1"}}, "image", nil},
		{"an image that is too wide", imageOf("image/png", wide), "image", []string{"0 media"}},
		{"an image of another type", imageOf("image/jpeg", picture(1, 1)), "image", []string{"0 media"}},
		{"base64 with line ends", broken, "image", []string{"0 media"}},
		{"no image", imageOf("image/png", []byte("hello")), "[Image from the history, not shown", []string{"0 media"}},
		{"no base64", &agent.ImageBlock{Source: agent.ImageSource{Type: "base64", MediaType: "image/png", Data: "%%%"}}, "[An image was left out", []string{"0 media"}},
		{"nothing at all", &agent.ImageBlock{}, "[An image was left out", []string{"0 media"}},
		{"a text document", document(`{"type":"text","media_type":"text/plain","data":"hello"}`), "document", nil},
		{"a PDF", document(`{"type":"base64","media_type":"application/pdf","data":"` + base64.StdEncoding.EncodeToString([]byte("%PDF-1.7 and so on")) + `"}`), "document", nil},
		{"no PDF", document(`{"type":"base64","media_type":"application/pdf","data":"AAAA"}`), "[A block of the kind document was left out", []string{"0 media"}},
		{"an empty document", document(`{"type":"text","media_type":"text/plain","data":""}`), "[A block of the kind document was left out", []string{"0 media"}},
		{"a document of blocks", document(`{"type":"content","content":[{"type":"text","text":"x"}]}`), "document", nil},
		{"a document with a field of its own", raw("document", `{"type":"document","source":{"type":"url","url":"https://e.test"},"x":1,"cache_control":{"type":"ephemeral"}}`), "document", []string{"0 malformed"}},
		{"a search result", raw("search_result", `{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"x"}]}`), "search_result", nil},
		{"an empty search result", raw("search_result", `{"type":"search_result","source":"s","title":"t","content":[]}`), "[A block of the kind search_result was left out", []string{"0 media"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sent, repairs := goesOnWith(t, nil, throughJSON(t, []agent.Message{userSaid(tt.block), answered1("msg_1", text("I see"))})...)
			if !strings.HasPrefix(sent[0], "user: "+tt.want) {
				t.Errorf("sent %q, want %q", sent, tt.want)
			}
			if diff := cmp.Diff(tt.repairs, repairs); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(tt.name, "image") || tt.want == "document" { // in a result as well
				_, inResult := goesOnWith(t, nil, said("x"), answered1("msg_1", use("toolu_1")), userSaid(&agent.ToolResultBlock{ToolUseID: "toolu_1", Content: agent.Content{tt.block}}))
				if len(inResult) != len(tt.repairs) {
					t.Errorf("in a result: %q", inResult)
				}
			}
		})
	}
}

// Each image fits a request with many images in it, however many there are by now.
func TestHistoryOfManyImages(t *testing.T) {
	var blocks []agent.Block
	for range 21 {
		blocks = append(blocks, imageOf("image/png", picture(transcript.MaxImageSide+1, 1)))
	}
	sent, repairs := goesOnWith(t, nil, userSaid(blocks...), answered1("msg_1", text("I see")))
	if len(repairs) != 21 || sent[0] != "user: image" {
		t.Errorf("%d repairs: %q", len(repairs), sent)
	}
}

// A tool that was loaded is loaded again; a reference to one that is gone stays one that the API takes.
func TestHistoryWithToolReferences(t *testing.T) {
	reference := func(name string) agent.Block {
		return raw("tool_reference", `{"type":"tool_reference","tool_name":"`+name+`"}`)
	}
	history := []agent.Message{
		said("x"), answered1("msg_1", &agent.ToolUseBlock{ID: "toolu_1", Name: toolset.SearchTool, Input: json.RawMessage(`{"query":"w"}`)}),
		userSaid(&agent.ToolResultBlock{ToolUseID: "toolu_1", Content: agent.Content{reference("mcp__s__w"), reference("mcp__gone__v")}}, text("Tools loaded.")),
		answered1("msg_2", text("so")),
	}
	tools := func() *agent.Options {
		return withTools(t, echoArgs, &mcpserver.Tool{Name: "w", Description: "writes"})
	}
	t.Run("search", func(t *testing.T) {
		model := modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{"n":1}`), modeltest.Text("well"))
		o := tools()
		o.History, o.ToolSearch = history, agent.ToolSearchOn
		r, msgs := say(t, open(t, model, o), "next")
		if r.Result != "well" || results(msgs)[0].IsError {
			t.Errorf("got %+v", r)
		}
		names := model.Last().ToolNames()
		if !slices.Contains(names, "mcp__s__w") || !slices.Contains(names, "mcp__gone__v") {
			t.Errorf("the tools are %q", names)
		}
		if got := repairsIn(t, msgs); len(got) != 1 || got[0].Kind != agent.RepairReference || got[0].Index != 2 || !strings.Contains(got[0].Detail, "mcp__gone__v") {
			t.Errorf("repairs %+v", got)
		}
	})
	t.Run("no search", func(t *testing.T) {
		o := tools()
		o.ToolSearch = agent.ToolSearchOff
		sent, repairs := goesOnWith(t, o, history...)
		want := "user: tool_result toolu_1 text These tools are loaded and can be called now:\nmcp__s__w: writes\nmcp__gone__v: " + toolset.Unavailable
		if sent[2] != want || len(repairs) != 1 {
			t.Errorf("sent %q, repairs %q", sent, repairs)
		}
	})
	t.Run("no tools", func(t *testing.T) {
		if sent, _ := goesOnWith(t, &agent.Options{MCPServers: map[string]mcphost.ServerConfig{}}, history...); !strings.Contains(sent[2], "can be called now") {
			t.Errorf("sent %q", sent)
		}
	})
	t.Run("a gateway", func(t *testing.T) {
		model := modeltest.NewModel(&modeltest.Options{TB: t, NoToolReferences: true, Turns: []modeltest.Turn{modeltest.Text("well")}})
		model.AllowViolations()
		o := tools()
		o.History, o.ToolSearch = history, agent.ToolSearchOn
		if r, _ := say(t, open(t, model, o), "next"); r.Result != "well" {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("among other things", func(t *testing.T) {
		mixed := slices.Clone(history)
		mixed[2] = userSaid(&agent.ToolResultBlock{ToolUseID: "toolu_1", Content: agent.Content{reference("mcp__s__w"), text("and more")}})
		sent, repairs := goesOnWith(t, tools(), mixed...)
		if sent[2] != "user: tool_result toolu_1 text [tool mcp__s__w] text and more" || len(repairs) != 1 {
			t.Errorf("sent %q, repairs %q", sent, repairs)
		}
	})
}

// picture is a PNG image.
func picture(w, h int) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		panic(err)
	}
	return b.Bytes()
}
