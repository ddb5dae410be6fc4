package native

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

// references are the tools that a result refers to.
func references(c modeltest.Content) []string {
	var names []string
	for _, b := range c.Content {
		if b.Type == "tool_reference" {
			names = append(names, b.ToolName)
		}
	}
	return names
}

func TestParseToolSearch(t *testing.T) { // D20
	tests := map[string]toolset.SearchMode{
		"": {Tokens: agent.ToolSearchTokens + 1}, "true": {}, "1": {}, "TRUE": {}, "auto:0": {}, "garbage": {}, "auto:x": {}, "auto:-3": {},
		"false": {Off: true}, "0": {Off: true}, "False": {Off: true}, "auto:100": {Off: true}, "auto:250": {Off: true},
		"auto": {Percent: 10}, "auto:1": {Percent: 1}, "auto:99": {Percent: 99}, " auto:5 ": {Percent: 5},
	}
	for v, want := range tests {
		if got := toolset.ParseToolSearch(v); got != want {
			t.Errorf("%q: got %+v, want %+v", v, got, want)
		}
	}
}

func TestModelsWithoutReferences(t *testing.T) {
	for model, want := range map[string]bool{
		"claude-3-5-haiku-20241022": false, "claude-3-haiku": false, "claude-2.1": false, "claude-instant-1.2": false,
		"us.anthropic.claude-3-7-sonnet-20250219-v1:0": false,
		"claude-haiku-4-5": true, "claude-sonnet-5-5": true, "claude-opus-4-1": true, "my-model": true, "claude-30": true,
	} {
		if got := toolset.KnowsReferences(model); got != want {
			t.Errorf("%s: %v", model, got)
		}
	}
}

// Definitions are withheld, and a search brings those that are needed.
//
// D57
func TestToolSearch(t *testing.T) {
	o := withTools(t, echoArgs,
		&mcpserver.Tool{Name: "create_issue", Description: "Opens a bug report"},
		&mcpserver.Tool{Name: "send_mail", Description: "Sends a letter"})
	o.ToolSearch = agent.ToolSearchOn
	model := modeltest.New(t,
		modeltest.ToolUseID("toolu_1", toolset.SearchTool, `{"query":"bug report","max_results":1}`),
		modeltest.ToolUseID("toolu_2", "mcp__s__create_issue", `{"a":1}`),
		modeltest.Text("done"))
	_, msgs := answered(t, model, o)
	first, second, third := model.Requests()[0], model.Requests()[1], model.Requests()[2]
	if diff := cmp.Diff([]string{toolset.SearchTool, "DeferredToolPlaceholder"}, first.ToolNames()); diff != "" {
		t.Errorf("tools of the first request: %s", diff)
	}
	for _, name := range []string{"mcp__s__create_issue", "mcp__s__send_mail"} {
		if !strings.Contains(first.SystemText(), "\n"+name) {
			t.Errorf("the system prompt does not name %s: %s", name, first.SystemText())
		}
	}
	result, _ := second.ToolResult("toolu_1")
	if diff := cmp.Diff([]string{"mcp__s__create_issue"}, references(result)); diff != "" || result.IsError {
		t.Errorf("the search found: %s", diff)
	}
	if tool, ok := second.Tool("mcp__s__create_issue"); !ok || !tool.DeferLoading || tool.Description != "Opens a bug report" {
		t.Errorf("the second request has %+v", tool)
	}
	if _, ok := second.Tool("mcp__s__send_mail"); ok {
		t.Error("a tool was loaded that nobody asked for")
	}
	if text := second.LastUserText(); !strings.Contains(text, "Tool loaded.") {
		t.Errorf("beside the result stands %q", text)
	}
	if got, _ := third.ToolResult("toolu_2"); got.IsError || got.PlainText() != `{"a":1}` {
		t.Errorf("the call: %+v", got)
	}
	if !bytes.Equal(second.Field("tools"), third.Field("tools")) || !bytes.Equal(first.Field("system"), third.Field("system")) {
		t.Error("the prompt changed from one turn to the next")
	}
	heard := results(msgs)[0]
	if len(heard.Content) != 1 || string(transcript.Encode(heard.Content[0])) != `{"type":"tool_reference","tool_name":"mcp__s__create_issue"}` {
		t.Errorf("the program heard %s", transcript.Encode(heard))
	}
	var outcome searchOutcome
	if err := json.Unmarshal(toolUseResults(msgs)[0], &outcome); err != nil || outcome.Total != 2 || outcome.Query != "bug report" || !slices.Equal(outcome.Matches, []string{"mcp__s__create_issue"}) {
		t.Errorf("tool_use_result %+v, %v", outcome, err)
	}
}

// toolUseResults are the tools' own results, in order.
func toolUseResults(msgs []agent.Message) []json.RawMessage {
	var all []json.RawMessage
	for _, m := range msgs {
		if u, ok := m.(*agent.User); ok && len(u.ToolResults()) > 0 {
			all = append(all, u.ToolUseResult)
		}
	}
	return all
}

// What was cached stays cached when a tool is loaded.
func TestLoadingKeepsTheCache(t *testing.T) {
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "a"}, &mcpserver.Tool{Name: "b"})
	o.SystemPrompt = strings.Repeat("Be kind. ", 500)
	model := modeltest.New(t,
		modeltest.ToolUse(toolset.SearchTool, `{"query":"select:mcp__s__a"}`),
		modeltest.ToolUse(toolset.SearchTool, `{"query":"select:mcp__s__b"}`),
		modeltest.ToolUse("mcp__s__a", `{}`), modeltest.Text("x"))
	_, msgs := answered(t, model, o)
	var read []int64
	for _, m := range msgs {
		if a, ok := m.(*agent.Assistant); ok {
			read = append(read, a.Message.Usage.CacheReadInputTokens)
		}
	}
	for i := 1; i < len(read); i++ {
		if read[i] < 1000 || i > 1 && read[i] <= read[i-1] {
			t.Errorf("tokens read from the cache: %v, want more with each request", read)
			break
		}
	}
}

// The switch: the option wins over the variable, and denying ToolSearch is a switch as well.
//
// D20
func TestToolSearchSwitch(t *testing.T) {
	tests := []struct {
		name   string
		set    func(o *agent.Options)
		search bool
	}{
		{"unset, few tools", func(*agent.Options) {}, false},
		{"variable on", func(o *agent.Options) { o.Env["ENABLE_TOOL_SEARCH"] = "true" }, true},
		{"variable off", func(o *agent.Options) { o.Env["ENABLE_TOOL_SEARCH"] = "false" }, false},
		{"variable auto:100", func(o *agent.Options) { o.Env["ENABLE_TOOL_SEARCH"] = "auto:100" }, false},
		{"variable auto, few tools", func(o *agent.Options) { o.Env["ENABLE_TOOL_SEARCH"] = "auto" }, false},
		{"auto:1, few tools", func(o *agent.Options) { o.ToolSearch = agent.ToolSearchAbove(1) }, false},
		{"option wins on", func(o *agent.Options) { o.Env["ENABLE_TOOL_SEARCH"], o.ToolSearch = "false", agent.ToolSearchOn }, true},
		{"option wins off", func(o *agent.Options) { o.Env["ENABLE_TOOL_SEARCH"], o.ToolSearch = "true", agent.ToolSearchOff }, false},
		{"denied", func(o *agent.Options) { o.DisallowedTools = []string{toolset.SearchTool} }, false},
		{"model without", func(o *agent.Options) { o.Model = "claude-3-5-haiku-20241022" }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := withTools(t, echoArgs, &mcpserver.Tool{Name: "a"})
			o.Env = map[string]string{}
			tt.set(o)
			model := modeltest.New(t, modeltest.Text("x"))
			answered(t, model, o)
			_, search := model.Last().Tool(toolset.SearchTool)
			_, shown := model.Last().Tool("mcp__s__a")
			if search != tt.search || shown == tt.search {
				t.Errorf("tools %q, want a search: %v", model.Last().ToolNames(), tt.search)
			}
		})
	}
	bad := agent.Options{ToolSearch: "sometimes"}
	if _, err := agent.Open(t.Context(), testEngine(modeltest.New(t)), &bad); err == nil || !strings.Contains(err.Error(), "ToolSearch") {
		t.Errorf("a setting that is none: %v", err)
	}
}

// Where nothing is set, the definitions of a few tools are in the prompt, and the search begins above the
// threshold.
//
// fault D14
func TestToolSearchThreshold(t *testing.T) {
	const most = toolset.CharsPerToken*(agent.ToolSearchTokens+1) - 1 // bytes that are so many tokens
	unset := toolset.ParseToolSearch("")
	for bytes, want := range map[int]bool{0: false, 1: false, most: false, most + 1: true} {
		if got := unset.Searches(bytes, DefaultModel); got != want {
			t.Errorf("with %d bytes of definitions: %v", bytes, got)
		}
	}
	offered := func(n int) []string {
		var tools []*mcpserver.Tool
		for i := range n {
			tools = append(tools, &mcpserver.Tool{Name: fmt.Sprintf("t%02d", i), Description: strings.Repeat("long ", 100)})
		}
		model := modeltest.New(t, modeltest.Text("x"))
		answered(t, model, withTools(t, echoArgs, tools...))
		return model.Last().ToolNames()
	}
	if diff := cmp.Diff([]string{"mcp__s__t00", "mcp__s__t01"}, offered(2)); diff != "" {
		t.Errorf("two tools: %s", diff)
	}
	if diff := cmp.Diff([]string{toolset.SearchTool, "DeferredToolPlaceholder"}, offered(60)); diff != "" {
		t.Errorf("sixty tools: %s", diff)
	}
}

// auto searches once the definitions take more than their share of the context window.
func TestToolSearchAuto(t *testing.T) {
	var tools []*mcpserver.Tool
	for i := range 120 {
		tools = append(tools, &mcpserver.Tool{Name: fmt.Sprintf("t%03d", i), Description: strings.Repeat("long ", 100)})
	}
	o := withTools(t, echoArgs, tools...)
	o.Model, o.ToolSearch = "claude-haiku-4-5", agent.ToolSearchAbove(5) // 15 of 10 thousand tokens
	model := modeltest.New(t, modeltest.Text("x"))
	answered(t, model, o)
	if _, ok := model.Last().Tool(toolset.SearchTool); !ok {
		t.Errorf("%d tools were all sent", len(model.Last().Tools))
	}
	o.ToolSearch = agent.ToolSearchAuto // 15 of 20 thousand
	model.Add(modeltest.Text("x"))
	answered(t, model, o)
	if len(model.Last().Tools) != 120 {
		t.Errorf("%d tools were sent, want all 120", len(model.Last().Tools))
	}
}

// A server and a tool can keep definitions in the prompt; the tool has the last word.
//
// D34
func TestAlwaysLoad(t *testing.T) {
	yes, no := true, false
	s, p := mcpserver.New("s", nil), mcpserver.New("p", nil)
	for _, add := range []struct {
		to   *mcpserver.Server
		tool mcpserver.Tool
	}{{s, mcpserver.Tool{Name: "own", AlwaysLoad: &yes}}, {s, mcpserver.Tool{Name: "other"}}, {p, mcpserver.Tool{Name: "all"}}, {p, mcpserver.Tool{Name: "not", AlwaysLoad: &no}}} {
		add.tool.InputSchema = json.RawMessage(`{"type":"object"}`)
		if err := add.to.AddTool(&add.tool, echoArgs); err != nil {
			t.Fatal(err)
		}
	}
	always := mcphost.InProcess(p).(mcphost.InProcessServer)
	always.AlwaysLoad = true
	o := &agent.Options{MCPServers: map[string]mcphost.ServerConfig{"s": mcphost.InProcess(s), "p": always}}
	o.ToolSearch = agent.ToolSearchOn
	model := modeltest.New(t, modeltest.Text("x"))
	answered(t, model, o)
	if diff := cmp.Diff([]string{"mcp__p__all", "mcp__s__own", toolset.SearchTool, "DeferredToolPlaceholder"}, model.Last().ToolNames()); diff != "" {
		t.Error(diff)
	}
}

// The forms of a search: several phrasings, a server, required words, names, names that there are not.
func TestSearchForms(t *testing.T) {
	yes := true
	tools := []*mcpserver.Tool{
		{Name: "create_issue", Description: "Opens a bug report"},
		{Name: "list_issues", Description: "Lists bug reports"},
		{Name: "send_mail", Description: "Sends a letter"},
		{Name: "ping", Description: "Says pong", AlwaysLoad: &yes},
	}
	tests := map[string]struct {
		input string
		want  []string
		note  string
	}{
		"phrasings":  {`{"query":["letter","write an email"],"max_results":1}`, []string{"mcp__s__send_mail"}, "Tool loaded."},
		"queries":    {`{"queries":["letter"],"max_results":1}`, []string{"mcp__s__send_mail"}, ""},
		"required":   {`{"query":"+create bug report"}`, []string{"mcp__s__create_issue"}, ""},
		"server":     {`{"query":"mcp__s"}`, []string{"mcp__s__create_issue", "mcp__s__list_issues", "mcp__s__send_mail"}, "Tools loaded."},
		"names":      {`{"query":"select:send_mail,mcp__s__list_issues,nope"}`, []string{"mcp__s__send_mail", "mcp__s__list_issues"}, "No tool has the name: nope."},
		"shown":      {`{"query":"select:mcp__s__ping,mcp__s__send_mail"}`, []string{"mcp__s__send_mail"}, "Loaded already: mcp__s__ping."},
		"full name":  {`{"query":"mcp__s__send_mail"}`, []string{"mcp__s__send_mail"}, ""},
		"nothing":    {`{"query":"zzz qqq"}`, nil, "No matching deferred tools found"},
		"no query":   {`{}`, nil, "query is missing"},
		"bad query":  {`{"query":7}`, nil, "must be a string or an array"},
		"bad number": {`{"query":"letter","max_results":-4.5}`, []string{"mcp__s__send_mail"}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			model := modeltest.New(t, modeltest.ToolUseID("toolu_1", toolset.SearchTool, tt.input), modeltest.Text("x"))
			o := withTools(t, echoArgs, tools...)
			o.ToolSearch = agent.ToolSearchOn
			answered(t, model, o)
			got, _ := model.Last().ToolResult("toolu_1")
			if diff := cmp.Diff(tt.want, references(got)); diff != "" {
				t.Error(diff)
			}
			if text := got.PlainText() + model.Last().LastUserText(); !strings.Contains(text, tt.note) {
				t.Errorf("the note is %q, want %q in it", text, tt.note)
			}
		})
	}
}

// A tool that is denied is not found, named, or loaded: not even when it is denied after the list was made.
func TestDeniedToolsAreNotFound(t *testing.T) {
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "secret"}, &mcpserver.Tool{Name: "open"})
	o.ToolSearch = agent.ToolSearchOn
	o.DisallowedTools = []string{"mcp__s__secret"}
	model := modeltest.New(t, modeltest.ToolUseID("toolu_1", toolset.SearchTool, `{"query":["select:mcp__s__secret","secret","mcp__s"]}`), modeltest.Text("x"))
	_, msgs := answered(t, model, o)
	got, _ := model.Last().ToolResult("toolu_1")
	if diff := cmp.Diff([]string{"mcp__s__open"}, references(got)); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(model.Requests()[0].SystemText(), "secret") || slices.Contains(last[*agent.SystemInit](msgs).Tools, "mcp__s__secret") {
		t.Error("the denied tool is named")
	}
}

// A call that fails because its tool was not loaded brings the schema; a name that nobody has points at the search.
func TestCallOfAnUnreadTool(t *testing.T) {
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "a", InputSchema: json.RawMessage(`{"type":"object","properties":{"sku":{"type":"string"}},"required":["sku"]}`)})
	o.ToolSearch = agent.ToolSearchOn
	model := modeltest.New(t,
		modeltest.Say(modeltest.ToolUseID("toolu_1", "mcp__s__a", `{"n":1}`), modeltest.ToolUseID("toolu_2", "mcp__s__zzz", `{}`)),
		modeltest.ToolUseID("toolu_3", "mcp__s__a", `{"sku":"x"}`), modeltest.Text("x"))
	answered(t, model, o)
	for id, want := range map[string]string{"toolu_1": `"required":["sku"]`, "toolu_2": toolset.SearchTool} {
		if got, _ := model.Last().ToolResult(id); !got.IsError || !strings.Contains(got.PlainText(), want) {
			t.Errorf("%s: %s", id, got.PlainText())
		}
	}
	if got, _ := model.Last().ToolResult("toolu_3"); got.IsError {
		t.Errorf("a right call: %s", got.PlainText())
	}
}

// A call that fails with arguments that its schema takes failed for another reason: the model reads that
// reason alone.
//
// fault D11
func TestFailureOfAnUnreadTool(t *testing.T) {
	fail := func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		return nil, errors.New("out of stock")
	}
	o := withTools(t, fail, &mcpserver.Tool{Name: "a", InputSchema: json.RawMessage(`{"type":"object","properties":{"sku":{"type":"string"}},"required":["sku"]}`)})
	o.ToolSearch = agent.ToolSearchOn
	model := modeltest.New(t, modeltest.ToolUseID("toolu_1", "mcp__s__a", `{"sku":"x"}`), modeltest.Text("x"))
	answered(t, model, o)
	if got, _ := model.Last().ToolResult("toolu_1"); !got.IsError || got.PlainText() != "out of stock" {
		t.Errorf("the result is %q", got.PlainText())
	}
}

// A gateway that knows no tool references is met with words, after one refusal, by every session of the engine.
func TestGatewayWithoutReferences(t *testing.T) {
	model := modeltest.NewModel(&modeltest.Options{TB: t, NoToolReferences: true})
	e := testEngine(model)
	run := func() (*agent.Result, []agent.Message) {
		o := withTools(t, echoArgs, &mcpserver.Tool{Name: "a", Description: "Finds a thing"}, &mcpserver.Tool{Name: "b"})
		o.ToolSearch = agent.ToolSearchOn
		model.Add(modeltest.ToolUseID("toolu_1", toolset.SearchTool, `{"query":"select:mcp__s__a"}`), modeltest.ToolUseID("toolu_2", "mcp__s__a", `{"n":1}`), modeltest.Text("done"))
		msgs, err := collect(t, t.Context(), e, "x", o)
		if err != nil {
			t.Fatal(err)
		}
		return last[*agent.Result](msgs), msgs
	}
	r, msgs := run()
	if r.Result != "done" || len(model.Requests()) != 4 {
		t.Errorf("%q after %d requests, want done after 4", r.Result, len(model.Requests()))
	}
	if diff := cmp.Diff([]string{"tool_references"}, tags(msgs)); diff != "" {
		t.Error(diff)
	}
	got, _ := model.Last().ToolResult("toolu_1")
	if text := got.PlainText(); !strings.Contains(text, "mcp__s__a: Finds a thing") {
		t.Errorf("the search says %q", text)
	}
	if diff := cmp.Diff([]string{toolset.SearchTool, "mcp__s__a"}, model.Last().ToolNames()); diff != "" {
		t.Error(diff)
	}
	before := len(model.Requests())
	if r, msgs = run(); r.Result != "done" || len(model.Requests())-before != 3 || len(tags(msgs)) != 0 {
		t.Errorf("the second session: %q after %d requests, %q", r.Result, len(model.Requests())-before, tags(msgs))
	}
}

// With the option, no request has what such a gateway does not know. A model that does not know references gets words, too.
func TestDisableToolReferences(t *testing.T) {
	model := modeltest.NewModel(&modeltest.Options{TB: t})
	model.Add(modeltest.ToolUseID("toolu_1", toolset.SearchTool, `{"query":"select:mcp__s__a"}`), modeltest.Text("x"))
	e := New(&Options{APIKey: "test", HTTPClient: model.Client(), DisableToolReferences: true})
	if _, err := collect(t, t.Context(), e, "x", withTools(t, echoArgs, &mcpserver.Tool{Name: "a"})); err != nil {
		t.Fatal(err)
	}
	for _, r := range model.Requests() {
		if bytes.Contains(r.Body, []byte("defer_loading")) || bytes.Contains(r.Body, []byte("tool_reference")) {
			t.Errorf("request %d: %s", r.Number(), r.Body)
		}
	}
}

// A tool that the conversation refers to stays defined when its server goes, or the API takes it no more.
func TestReferencesSurvive(t *testing.T) {
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "a"}, &mcpserver.Tool{Name: "b"})
	o.ToolSearch = agent.ToolSearchOn
	model := modeltest.New(t,
		modeltest.ToolUse(toolset.SearchTool, `{"query":"select:a,b"}`), modeltest.Text("loaded"),
		modeltest.ToolUseID("toolu_gone", "mcp__s__a", `{}`), modeltest.Text("gone"),
		modeltest.ToolUseID("toolu_back", "mcp__s__a", `{}`), modeltest.Text("back"),
		modeltest.Fail(400, "invalid_request_error", "tools.3.custom.input_schema: JSON schema is invalid"), modeltest.Text("quarantined"))
	c := open(t, model, o)
	say(t, c, "one")
	before := model.Last().Field("tools")
	if err := c.SetMCPServerEnabled(t.Context(), "s", false); err != nil {
		t.Fatal(err)
	}
	say(t, c, "two")
	if got, _ := model.Last().ToolResult("toolu_gone"); !got.IsError {
		t.Errorf("a call of what is gone: %+v", got)
	}
	if !strings.Contains(model.Requests()[2].LastUserText(), "no longer available: mcp__s__a, mcp__s__b") {
		t.Errorf("the model was told %q", model.Requests()[2].LastUserText())
	}
	if err := c.SetMCPServerEnabled(t.Context(), "s", true); err != nil {
		t.Fatal(err)
	}
	say(t, c, "three")
	if got, _ := model.Last().ToolResult("toolu_back"); got.IsError {
		t.Errorf("a call of what is back: %s", got.PlainText())
	}
	if !bytes.Equal(before, model.Last().Field("tools")) {
		t.Errorf("the tools changed across the reconnect:\n%s\n%s", before, model.Last().Field("tools"))
	}
	if r, _ := say(t, c, "four"); r.Result != "quarantined" {
		t.Errorf("after the refusal: %+v", r)
	}
	if tool, ok := model.Last().Tool("mcp__s__b"); !ok || tool.Description != "This tool is not available." {
		t.Errorf("the refused tool is %+v", tool)
	}
}

// A search waits for servers that are connecting, within bounds, and says which it did not search.
func TestSearchWaits(t *testing.T) {
	for _, comes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := &slowProvider{serverWith(t, "late_tool", echoArgs), make(chan struct{})}
			h, err := mcphost.New(&mcphost.Options{Servers: map[string]mcphost.ServerConfig{"late": mcphost.InProcess(p)}})
			if err != nil {
				t.Fatal(err)
			}
			h.Start(t.Context())
			o := withTools(t, echoArgs, &mcpserver.Tool{Name: "a"})
			o.Host = h
			model := modeltest.New(t,
				modeltest.ToolUseID("toolu_0", toolset.SearchTool, `{"query":"select:mcp__s__a"}`),
				modeltest.ToolUseID("toolu_1", toolset.SearchTool, `{"query":"late tool"}`), modeltest.Text("x"))
			if comes {
				timer := time.AfterFunc(searchWait/2, func() { close(p.release) })
				defer timer.Stop()
			}
			began := time.Now()
			answered(t, model, o)
			waited := time.Since(began)
			got, _ := model.Last().ToolResult("toolu_1")
			text := got.PlainText() + model.Last().LastUserText()
			switch {
			case comes && (waited != searchWait/2 || !slices.Equal(references(got), []string{"mcp__late__late_tool"}) || strings.Contains(text, "Not searched")):
				t.Errorf("after %v: %q, %q", waited, references(got), text)
			case !comes && (waited != searchWait || len(references(got)) != 0 || !strings.Contains(text, "still connecting: late")):
				t.Errorf("after %v: %q, %q", waited, references(got), text)
			}
			if !strings.Contains(model.Requests()[0].LastUserText(), "still connecting: late") {
				t.Errorf("the model was not told: %q", model.Requests()[0].LastUserText())
			}
			if !comes {
				close(p.release)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Of ten thousand tools the prompt has no more than 4 KB, a search stays quick, and a turn sends few bytes.
func TestTenThousandTools(t *testing.T) {
	servers := map[string]mcphost.ServerConfig{}
	for i := range 100 {
		s := mcpserver.New("s", nil)
		for j := range 100 {
			tool := &mcpserver.Tool{Name: fmt.Sprintf("do_thing_%d_%d", i, j), Description: "Does a thing with a widget", InputSchema: json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"}}}`)}
			if err := s.AddTool(tool, echoArgs); err != nil {
				t.Fatal(err)
			}
		}
		servers[fmt.Sprintf("server_%d", i)] = mcphost.InProcess(s)
	}
	model := modeltest.New(t, modeltest.ToolUseID("toolu_1", toolset.SearchTool, `{"query":"select:mcp__server_7__do_thing_7_42"}`), modeltest.ToolUse("mcp__server_7__do_thing_7_42", `{}`), modeltest.Text("x"))
	answered(t, model, &agent.Options{MCPServers: servers, AllowedTools: []string{"mcp__server_7"}})
	if got, _ := model.Last().ToolResult("toolu_1"); !slices.Equal(references(got), []string{"mcp__server_7__do_thing_7_42"}) {
		t.Errorf("found %q", references(got))
	}
	if n := len(model.Requests()[0].SystemText()); n > maxNames+len(namesIntro) {
		t.Errorf("the names take %d bytes", n)
	}
	if n := len(model.Last().Body); n > 16<<10 {
		t.Errorf("a request has %d bytes", n)
	}
}

// What a search loads is bounded by its size.
func TestLoadIsBounded(t *testing.T) {
	var tools []*mcpserver.Tool
	for i := range 20 {
		tools = append(tools, &mcpserver.Tool{
			Name: fmt.Sprintf("w%02d", i), Description: "Works",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","description":"` + strings.Repeat("long ", 800) + `"},"b":{"type":"string","description":"` + strings.Repeat("long ", 800) + `"}}}`),
		})
	}
	model := modeltest.New(t, modeltest.ToolUseID("toolu_1", toolset.SearchTool, `{"query":"works","max_results":20}`), modeltest.Text("x"))
	answered(t, model, withTools(t, echoArgs, tools...))
	got, _ := model.Last().ToolResult("toolu_1")
	if n := len(references(got)); n == 0 || n == 20 || len(model.Last().Field("tools")) > maxLoadBytes+20_000 {
		t.Errorf("%d tools of %d bytes were loaded", n, len(model.Last().Field("tools")))
	}
	if !strings.Contains(model.Last().LastUserText(), "too long to load all at once: ") {
		t.Errorf("the rest is not told of: %q", model.Last().LastUserText())
	}
}

// A tool that comes between turns is announced and can be found.
func TestNewToolsAreAnnounced(t *testing.T) {
	s := serverWith(t, "a", echoArgs)
	o := &agent.Options{MCPServers: map[string]mcphost.ServerConfig{"s": mcphost.InProcess(s)}, AllowedTools: []string{"mcp__s"}}
	o.ToolSearch = agent.ToolSearchOn
	model := modeltest.New(t, modeltest.Text("one"), modeltest.ToolUseID("toolu_1", toolset.SearchTool, `{"query":"select:fresh"}`), modeltest.Text("two"))
	e := testEngine(model)
	c, err := agent.Open(t.Context(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	say(t, c, "x")
	if err := s.AddTool(&mcpserver.Tool{Name: "fresh", InputSchema: json.RawMessage(`{"type":"object"}`)}, echoArgs); err != nil {
		t.Fatal(err)
	}
	waitForTool(t, c, "fresh")
	say(t, c, "y")
	if text := model.Requests()[1].LastUserText(); !strings.Contains(text, "1 more tools can be loaded with ToolSearch now:\nmcp__s__fresh") {
		t.Errorf("the model was told %q", text)
	}
	if got, _ := model.Last().ToolResult("toolu_1"); !slices.Equal(references(got), []string{"mcp__s__fresh"}) {
		t.Errorf("found %q", references(got))
	}
	if !bytes.Equal(model.Requests()[0].Field("system"), model.Last().Field("system")) {
		t.Error("the system prompt changed")
	}
}

// waitForTool waits until a session's only server lists a tool.
func waitForTool(t *testing.T, c *agent.Client, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		status, err := c.MCPStatus(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(status[0].Tools, func(tl mcphost.Tool) bool { return tl.Name == name }) {
			return
		}
	}
	t.Fatalf("tool %q did not come", name)
}

// The offline model calls withheld tools by all the names that it takes, also where the prompt has no room for them.
func TestOfflineModelAndTheSearch(t *testing.T) {
	for _, n := range []int{3, 400} {
		var tools []*mcpserver.Tool
		for i := range n {
			tools = append(tools, &mcpserver.Tool{Name: fmt.Sprintf("do_thing_%03d", i)})
		}
		prompts := []string{`@mcp__s__do_thing_002 {"n":1}`}
		if n < 10 {
			prompts = append(prompts, `@do_thing_002 {"n":1}`)
		}
		for _, prompt := range prompts {
			msgs, err := collect(t, t.Context(), testEngine(modeltest.Offline()), prompt, withTools(t, echoArgs, tools...))
			if got := results(msgs); err != nil || len(got) != 1 || got[0].Text() != `{"n":1}` {
				t.Errorf("%d tools, %s: %+v, %v", n, prompt, got, err)
			}
		}
	}
}
