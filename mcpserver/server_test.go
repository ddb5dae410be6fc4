package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// R01
func TestAServerHasAName(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New without a name did not panic")
		}
	}()
	New("", nil)
}

// R02 R03 R04 R05 R06
func TestDefaults(t *testing.T) {
	s := New("bare", nil)
	defer s.Close()
	if s.Name() != "bare" || s.Version() != "1.0.0" || s.Instructions() != "" {
		t.Errorf("name %q, version %q, instructions %q", s.Name(), s.Version(), s.Instructions())
	}
	if n := len(s.ListTools()) + len(s.ListResources()) + len(s.ListResourceTemplates()) + len(s.ListPrompts()); n != 0 {
		t.Errorf("a new server has %d features", n)
	}
	c := s.Capabilities()
	if c.Tools == nil || !c.Tools.ListChanged || c.Logging == nil || c.Resources != nil || c.Prompts != nil || c.Completions != nil {
		t.Errorf("capabilities of a new server: %s", jsonOf(t, c))
	}
}

// R06
func TestInfo(t *testing.T) {
	s := newTestServer(t, &Options{
		Version: "2.1.0", Title: "Test", Instructions: "Be kind.", WebsiteURL: "https://x.example",
		Icons: []mcp.Icon{{Source: "data:,"}}, HasResources: true, HasPrompts: true,
	})
	want := `{"name":"test","title":"Test","version":"2.1.0","websiteUrl":"https://x.example","icons":[{"src":"data:,"}]}`
	if got := jsonOf(t, s.Info()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if s.Instructions() != "Be kind." {
		t.Errorf("instructions %q", s.Instructions())
	}
	if c := s.Capabilities(); c.Resources == nil || !c.Resources.Subscribe || c.Prompts == nil {
		t.Errorf("what may come is not announced: %s", jsonOf(t, c))
	}
}

// R22 R24 T17
func TestToolsAreFoundByTheirExactNames(t *testing.T) {
	s := newTestServer(t, nil)
	addRaw(t, s, "add", returns(Text("sum"), nil))
	wantText(t, s, "add", `{}`, "sum", false)
	for _, name := range []string{"Add", "add ", "ad", "", "add\x00"} {
		wantText(t, s, name, `{}`, "Tool '"+name+"' not found", true)
	}
	r, err := s.CallTool(t.Context(), "nobody", nil)
	if err != nil || !r.ToolNotFound() {
		t.Errorf("unknown tool: %+v, %v", r, err)
	}
	r, err = s.CallTool(t.Context(), "add", nil)
	if err != nil || r.ToolNotFound() {
		t.Errorf("known tool: %+v, %v", r, err)
	}
}

// R23
func TestArgumentsReachTheHandlerUnchanged(t *testing.T) {
	s := newTestServer(t, nil)
	var got []string
	addRaw(t, s, "echo", func(_ context.Context, args json.RawMessage) (*Result, error) {
		got = append(got, string(args))
		return Text(""), nil
	})
	sent := []string{`{"b": 1,  "a":[1.0, 12345678901234567890]}`, `{ }`, `{"x":"\u0041"}`}
	for _, args := range sent {
		callText(t, s, "echo", args)
	}
	for _, args := range []string{``, ` `, `null`, ` null `} {
		callText(t, s, "echo", args)
		sent = append(sent, `{}`)
	}
	if strings.Join(got, "|") != strings.Join(sent, "|") {
		t.Errorf("got %q, want %q", got, sent)
	}
}

// R25 R26 T07
func TestAHandlersErrorIsItsBareText(t *testing.T) {
	s := newTestServer(t, nil)
	addRaw(t, s, "fail", returns(nil, errors.New("the shelf is empty")))
	wantText(t, s, "fail", `{}`, "the shelf is empty", true)
	addRaw(t, s, "both", returns(Text("unused"), errors.New("no")))
	wantText(t, s, "both", `{}`, "no", true)
}

type panicky struct{}

func (panicky) Error() string { panic("even the error") }

// R26 R44
func TestPanicsAreContained(t *testing.T) {
	var log logBuffer
	s := newTestServer(t, &Options{Logger: log.logger()})
	addRaw(t, s, "panic", func(context.Context, json.RawMessage) (*Result, error) { panic("secret state 42") })
	addRaw(t, s, "nilpointer", func(context.Context, json.RawMessage) (*Result, error) {
		var p *Tool
		return Text(p.Name), nil
	})
	addRaw(t, s, "odd", returns(nil, panicky{}))
	for _, sc := range []Scheduling{Concurrent, Inline} {
		s.SetDispatch(sc, nil)
		for _, name := range []string{"panic", "nilpointer"} {
			wantText(t, s, name, `{}`, "Tool '"+name+"' failed: internal error", true)
		}
		wantFailure(t, s, "odd", `{}`, "panics")
	}
	if got := log.String(); !strings.Contains(got, "secret state 42") || !strings.Contains(got, "server_test.go") {
		t.Errorf("the log has no panic or no stack: %.500s", got)
	}
}

// R27 R28 R30 B25 B26 B27
func TestResultsOfRawHandlers(t *testing.T) {
	s := newTestServer(t, nil)
	var result string
	if err := s.AddRawTool(&Tool{Name: "raw"}, func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(result), nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, result = range []string{``, `null`, `[]`, `"text"`, `7`, `{`, `{}`, `{"content":null}`, `{"content":"x"}`, `{"contents":[]}`} {
		wantFailure(t, s, "raw", `{}`, "Tool 'raw' must return a JSON object with a content array")
	}
	for _, result = range []string{
		`{"content":[{"text":"x"}]}`, `{"content":[null]}`, `{"content":[7]}`, `{"content":[{"type":""}]}`, `{"content":[{"type":7}]}`,
		`{"content":[{"type":"text"}]}`, `{"content":[{"type":"text","text":{}}]}`, `{"content":[{"type":"resource"}]}`, `{"content":[],"isError":"yes"}`,
	} {
		wantFailure(t, s, "raw", `{}`, "Tool 'raw' returned a malformed result")
	}
	result = `{"content":[{"type":"text","text":3.50},{"type":"text","text":true}],"isError":true}`
	wantText(t, s, "raw", `{}`, "3.50\ntrue", true)

	result = `{"content":[{"type":"text","text":"ok"},{"type":"new_kind","x":[1]}],"structuredContent":{"a":1},"_meta":{"m":1},"isError":false,"extra":{"k":[true]},"other":1}`
	r, err := s.CallTool(t.Context(), "raw", nil)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := errors.Join(json.Unmarshal([]byte(jsonOf(t, r)), &got), json.Unmarshal([]byte(result), &want)); err != nil {
		t.Fatal(err)
	}
	if jsonOf(t, got) != jsonOf(t, want) {
		t.Errorf("got %s, want %s", jsonOf(t, got), jsonOf(t, want))
	}
}

// R27 R30 B24
func TestResultsOfHandlers(t *testing.T) {
	s := newTestServer(t, nil)
	addRaw(t, s, "nil", returns(nil, nil))
	wantFailure(t, s, "nil", `{}`, "Tool 'nil' must return a *mcpserver.Result with content, and its handler returned nil")
	addRaw(t, s, "nilblock", returns(Mixed(&mcp.TextContent{Text: "a"}, nil), nil))
	wantFailure(t, s, "nilblock", `{}`, "block 1 has no type")
	addRaw(t, s, "nilpointer", returns(Mixed((*mcp.TextContent)(nil)), nil))
	wantFailure(t, s, "nilpointer", `{}`, "block 0 has no type")
	addRaw(t, s, "badjson", returns(&Result{StructuredContent: json.RawMessage(`{`)}, nil))
	wantFailure(t, s, "badjson", `{}`, "not valid JSON")

	good := &Result{Content: []mcp.Content{}, Extra: map[string]json.RawMessage{"k": json.RawMessage("1")}, Meta: mcp.Meta{"a": "b"}}
	addRaw(t, s, "good", returns(good, nil))
	r, err := s.CallTool(t.Context(), "good", nil)
	if err != nil || r != good {
		t.Errorf("got %+v, %v, want the handler's own result", r, err)
	}
	if got, want := jsonOf(t, r), `{"content":[],"isError":false,"_meta":{"a":"b"},"k":1}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWhatEndedIsAnError(t *testing.T) {
	s := newTestServer(t, nil)
	addRaw(t, s, "ok", returns(Text("ok"), nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.CallTool(ctx, "ok", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CallTool(t.Context(), "ok", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if _, err := s.OpenSession(t.Context(), nil); !errors.Is(err, ErrClosed) {
		t.Errorf("OpenSession: %v", err)
	}
	if _, err := s.NewSession(nil).CallTool(t.Context(), Call{Name: "ok"}); !errors.Is(err, ErrClosed) {
		t.Errorf("session of a closed server: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

// R08 R57 R58
func TestOneServerHasAllThree(t *testing.T) {
	s := newTestServer(t, nil)
	addRaw(t, s, "tool", returns(Text("t"), nil))
	err := errors.Join(
		s.AddResource(&mcp.Resource{URI: "mem:r"}, func(context.Context) (*mcp.ReadResourceResult, error) {
			return TextResource("mem:r", "text/plain", "r"), nil
		}),
		s.AddPrompt(&mcp.Prompt{Name: "p"}, func(context.Context, map[string]string) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{UserMessage("p")}}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, s, "tool", `{}`, "t", false)
	if r, err := s.ReadResource(t.Context(), "mem:r"); err != nil || r.Contents[0].Text != "r" {
		t.Errorf("resource: %+v, %v", r, err)
	}
	if p, err := s.GetPrompt(t.Context(), "p", nil); err != nil || len(p.Messages) != 1 {
		t.Errorf("prompt: %+v, %v", p, err)
	}
	if c := s.Capabilities(); c.Resources == nil || c.Prompts == nil {
		t.Errorf("capabilities: %s", jsonOf(t, c))
	}
}
