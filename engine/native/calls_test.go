package native

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

type handlerFunc = func(ctx context.Context, args json.RawMessage) (*mcpserver.Result, error)

// withTools are options with a server s that has these tools, all allowed.
func withTools(t *testing.T, h handlerFunc, tools ...*mcpserver.Tool) *agent.Options {
	t.Helper()
	srv := mcpserver.New("s", nil)
	for _, tool := range tools {
		if tool.InputSchema == nil {
			tool.InputSchema = json.RawMessage(`{"type":"object"}`)
		}
		if err := srv.AddTool(tool, h); err != nil {
			t.Fatal(err)
		}
	}
	return &agent.Options{
		MCPServers:   map[string]mcphost.ServerConfig{"s": mcphost.InProcess(srv)},
		AllowedTools: []string{"mcp__s__*"},
	}
}

// answered runs a query that must succeed.
func answered(t *testing.T, m *modeltest.Model, o *agent.Options) (*agent.Result, []agent.Message) {
	t.Helper()
	msgs, err := collect(t, t.Context(), testEngine(m), "x", o)
	if err != nil {
		t.Fatal(err)
	}
	return last[*agent.Result](msgs), msgs
}

// results are the tool results that the program heard, in their order.
func results(msgs []agent.Message) []*agent.ToolResultBlock {
	var found []*agent.ToolResultBlock
	for _, m := range msgs {
		if u, ok := m.(*agent.User); ok {
			found = append(found, u.ToolResults()...)
		}
	}
	return found
}

func echoArgs(_ context.Context, args json.RawMessage) (*mcpserver.Result, error) {
	return mcpserver.Text(string(args)), nil
}

// Answers come in the order of the calls, whichever is done first.
func TestAnswersInTheOrderOfTheCalls(t *testing.T) {
	second := make(chan struct{})
	o := withTools(t, func(_ context.Context, args json.RawMessage) (*mcpserver.Result, error) {
		if string(args) == `{"n":1}` {
			<-second
		} else {
			close(second)
		}
		return mcpserver.Text(string(args)), nil
	}, &mcpserver.Tool{Name: "r", ReadOnly: true})
	model := modeltest.New(t, modeltest.Say(modeltest.ToolUse("mcp__s__r", `{"n":1}`), modeltest.ToolUse("mcp__s__r", `{"n":2}`)), modeltest.Text("x"))
	_, msgs := answered(t, model, o)
	var heard, sent []string
	for _, r := range results(msgs) {
		heard = append(heard, r.Text())
	}
	for _, c := range model.Last().ToolResults() {
		sent = append(sent, c.Content[0].Text)
	}
	want := []string{`{"n":1}`, `{"n":2}`}
	if diff := cmp.Diff([][]string{want, want}, [][]string{heard, sent}); diff != "" {
		t.Error(diff)
	}
}

// Read-only calls that follow on each other run together, up to the bound; a call that writes waits
// for all before it, and those after it wait for it.
func TestGroupsOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		var mu sync.Mutex
		var log []string
		o := withTools(t, func(_ context.Context, args json.RawMessage) (*mcpserver.Result, error) {
			n := running.Add(1)
			defer running.Add(-1)
			if n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Second) // fake time
			mu.Lock()
			defer mu.Unlock()
			log = append(log, string(args))
			return mcpserver.Text("ok"), nil
		}, &mcpserver.Tool{Name: "r", ReadOnly: true}, &mcpserver.Tool{Name: "w"}, &mcpserver.Tool{Name: "p", Concurrency: mcpserver.Parallel},
			&mcpserver.Tool{Name: "z", ReadOnly: true, Concurrency: mcpserver.Serial})
		tests := []struct {
			calls   string
			bound   int
			seconds int
			most    int32
		}{
			{"rrr", 0, 1, 3},
			{"rrrrr", 2, 3, 2},
			{"rrwrr", 0, 3, 2},
			{"www", 0, 3, 1},
			{"rpr", 0, 1, 3},
			{"zz", 0, 2, 1},
		}
		for _, tt := range tests {
			var calls []modeltest.Part
			for _, c := range tt.calls {
				calls = append(calls, modeltest.ToolUse("mcp__s__"+string(c), `{}`))
			}
			most.Store(0)
			o.MaxToolConcurrency = tt.bound
			began := time.Now()
			answered(t, modeltest.New(t, modeltest.Say(calls...), modeltest.Text("x")), o)
			if took := time.Since(began); took != time.Duration(tt.seconds)*time.Second || most.Load() != tt.most {
				t.Errorf("%s at most %d: took %v with %d at once, want %d s and %d", tt.calls, tt.bound, took, most.Load(), tt.seconds, tt.most)
			}
		}
	})
}

// F27
func TestInputsThatAreNotRun(t *testing.T) {
	tests := []struct {
		name string
		turn modeltest.Turn
		want string // in the error
	}{
		{"cut off", modeltest.Say(modeltest.RawToolUse("mcp__s__w", `{"text":"half of`)).Stop(modeltest.StopMaxTokens), "max_tokens"},
		{"cut off before it began", modeltest.Say(modeltest.RawToolUse("mcp__s__w")).Stop(modeltest.StopMaxTokens), "max_tokens"},
		{"invalid", modeltest.RawToolUse("mcp__s__w", `{"text":oops}`), "not valid JSON"},
		{"no object", modeltest.RawToolUse("mcp__s__w", `["a"]`), "not a JSON object"},
	}
	for _, tt := range tests {
		ran := false
		o := withTools(t, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
			ran = true
			return mcpserver.Text("ok"), nil
		}, &mcpserver.Tool{Name: "w"})
		r, msgs := answered(t, modeltest.New(t, tt.turn, modeltest.Text("went on")), o)
		got := results(msgs)
		if ran || r.Result != "went on" || len(got) != 1 || !got[0].IsError || !strings.Contains(got[0].Text(), tt.want) {
			t.Errorf("%s: ran %v, result %+v, answer %q", tt.name, ran, got, r.Result)
		}
	}
}

// A call that is whole runs even though the one after it was cut off.
func TestWholeCallBeforeACutOffOne(t *testing.T) {
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	turn := modeltest.Say(modeltest.ToolUse("mcp__s__w", `{"n":1}`), modeltest.RawToolUse("mcp__s__w", `{"n":`)).Stop(modeltest.StopMaxTokens)
	_, msgs := answered(t, modeltest.New(t, turn, modeltest.Text("x")), o)
	if got := results(msgs); len(got) != 2 || got[0].Text() != `{"n":1}` || !got[1].IsError {
		t.Errorf("got %+v", got)
	}
}

func TestEndlessMalformedCalls(t *testing.T) {
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	bad := modeltest.RawToolUse("mcp__s__w", `{`)
	msgs, err := collect(t, t.Context(), testEngine(modeltest.New(t, bad, bad, bad)), "x", o)
	if r := last[*agent.Result](msgs); err == nil || r.TerminalReason != agent.ReasonMalformedToolUse {
		t.Errorf("%+v, %v", r, err)
	}
}

// D86
func TestDenialNamesTheOption(t *testing.T) {
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	o.AllowedTools = nil
	r, msgs := answered(t, modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{}`), modeltest.Text("x")), o)
	text := results(msgs)[0].Text()
	if !strings.Contains(text, "mcp__s__w") || !strings.Contains(text, "allowedTools") || len(r.PermissionDenials) != 1 {
		t.Errorf("text %q, denials %+v", text, r.PermissionDenials)
	}
	var denied bool
	for _, m := range msgs {
		if s, ok := m.(*agent.System); ok && s.Subtype == "permission_denied" {
			denied = true
		}
	}
	if !denied {
		t.Error("no permission_denied message")
	}
}

// D86
func TestHiddenToolNamesTheOptions(t *testing.T) {
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	o.DisallowedTools = []string{"mcp__s__w"}
	_, msgs := answered(t, modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{}`), modeltest.Text("x")), o)
	for _, want := range []string{"No such tool available: mcp__s__w", "disallowedTools", "allowedTools"} {
		if text := results(msgs)[0].Text(); !strings.Contains(text, want) {
			t.Errorf("text %q lacks %q", text, want)
		}
	}
}

// The program hears the tool's own result beside what the model reads.
func TestToolUseResult(t *testing.T) {
	tests := map[string]struct {
		h    handlerFunc
		want string
	}{
		"text": {echoArgs, `[{"type":"text","text":"{}"}]`},
		"structured": {func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
			return mcpserver.Structured(map[string]int{"n": 1}), nil
		}, `"structuredContent":{"n":1}`},
		"error": {func(context.Context, json.RawMessage) (*mcpserver.Result, error) { return nil, errors.New("no") }, `"Error: no"`},
		"metadata": {func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
			r := mcpserver.Text("a < b & c")
			r.Meta = mcp.Meta{"k": "v"}
			return r, nil
		}, `{"content":[{"type":"text","text":"a < b & c"}],"_meta":{"k":"v"}}`},
		"half a surrogate": {func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
			r := mcpserver.Text("x")
			r.StructuredContent = json.RawMessage(`{"half":"\ud800"}`)
			return r, nil
		}, `"structuredContent":{"half":"�"}`},
	}
	for name, tt := range tests {
		o := withTools(t, tt.h, &mcpserver.Tool{Name: "w"})
		_, msgs := answered(t, modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{}`), modeltest.Text("x")), o)
		if got := string(last[*agent.User](msgs).ToolUseResult); !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}

// A tool that the API refuses is left out, and the request is made again without it.
func TestQuarantine(t *testing.T) {
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "a"}, &mcpserver.Tool{Name: "b"}, &mcpserver.Tool{Name: "c"})
	o.ToolSearch = agent.ToolSearchOff
	model := modeltest.New(t,
		modeltest.Fail(400, "invalid_request_error", "tools.1.custom.input_schema: JSON schema is invalid"),
		modeltest.Text("fine"), modeltest.ToolUse("mcp__s__b", `{}`), modeltest.Text("still fine"))
	c := open(t, model, o)
	r, msgs := say(t, c, "x")
	if r.Result != "fine" || r.NumTurns != 1 {
		t.Errorf("got %+v", r)
	}
	if diff := cmp.Diff([]string{"tool_quarantined"}, tags(msgs)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"mcp__s__a", "mcp__s__c"}, model.Last().ToolNames()); diff != "" {
		t.Error(diff)
	}
	_, msgs = say(t, c, "y")
	init := last[*agent.SystemInit](msgs)
	if len(init.MCPServerErrors) != 1 || init.MCPServerErrors[0].Name != "s" || !strings.Contains(init.MCPServerErrors[0].Message, "JSON schema is invalid") {
		t.Errorf("init has the errors %+v", init.MCPServerErrors)
	}
	if got := results(msgs); len(got) != 1 || !got[0].IsError {
		t.Errorf("a call of it: %+v", got)
	}
}

func TestQuarantineEnds(t *testing.T) {
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "a"}, &mcpserver.Tool{Name: "b"})
	o.ToolSearch = agent.ToolSearchOff
	model := modeltest.New(t, modeltest.Func(func(*modeltest.Request) modeltest.Turn {
		return modeltest.Fail(400, "invalid_request_error", "tools.0: refused whatever it is")
	}))
	msgs, err := collect(t, t.Context(), testEngine(model), "x", o)
	if r := last[*agent.Result](msgs); err == nil || r.APIErrorStatus != 400 || len(model.Requests()) != 3 {
		t.Errorf("%d requests, %+v, %v", len(model.Requests()), r, err)
	}
}

// The tools of a request are the same bytes each time, in a fixed order.
func TestToolsAreStable(t *testing.T) {
	model := modeltest.New(t)
	var before []byte
	for range 3 {
		o := withTools(t, echoArgs, &mcpserver.Tool{Name: "Zeta"}, &mcpserver.Tool{Name: "alpha"}, &mcpserver.Tool{Name: "Beta"})
		o.ToolSearch = agent.ToolSearchOff
		model.Add(modeltest.Text("x"))
		answered(t, model, o)
		got := model.Last().Field("tools")
		if before != nil && !bytes.Equal(before, got) {
			t.Errorf("tools changed:\n%s\n%s", before, got)
		}
		before = got
	}
	if diff := cmp.Diff([]string{"mcp__s__alpha", "mcp__s__Beta", "mcp__s__Zeta"}, model.Last().ToolNames()); diff != "" {
		t.Error(diff)
	}
}

// A server that gives IDs twice, or of forbidden characters, does not spoil the conversation.
func TestToolUseIDs(t *testing.T) {
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	call := func(id string) modeltest.Part { return modeltest.ToolUseID(id, "mcp__s__w", `{}`) }
	model := modeltest.New(t, modeltest.Say(call("call_0"), call("call_0")), call("call_0"), call("a.b:c"), modeltest.Text("x"))
	r, msgs := answered(t, model, o)
	ids := map[string]bool{}
	for _, r := range results(msgs) {
		ids[r.ToolUseID] = true
	}
	if len(ids) != 4 || !ids["call_0"] || r.Result != "x" {
		t.Errorf("IDs %v", ids)
	}
}

// The model's own name for a tool is no risk to the conversation.
func TestStrangeToolNames(t *testing.T) {
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	model := modeltest.New(t, modeltest.Say(modeltest.ToolUse("what is this?", `{}`), modeltest.ToolUse(strings.Repeat("long", 60), `{}`)), modeltest.Text("x"))
	if _, msgs := answered(t, model, o); len(results(msgs)) != 2 || !strings.Contains(results(msgs)[0].Text(), "what is this?") {
		t.Errorf("got %+v", results(msgs))
	}
}

// slowProvider is a server that cannot be opened before it is released.
type slowProvider struct {
	*mcpserver.Server
	release chan struct{}
}

func (p *slowProvider) OpenSession(ctx context.Context, o *mcpserver.SessionOptions) (mcpserver.ServerSession, error) {
	select {
	case <-p.release:
		return p.Server.OpenSession(ctx, o)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// sharedHost is a started host with one server.
func sharedHost(t *testing.T, name string, p mcpserver.Provider) *mcphost.Host {
	t.Helper()
	h, err := mcphost.New(&mcphost.Options{Servers: map[string]mcphost.ServerConfig{name: mcphost.InProcess(p)}})
	if err != nil {
		t.Fatal(err)
	}
	h.Start(t.Context())
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func serverWith(t *testing.T, tool string, h handlerFunc) *mcpserver.Server {
	t.Helper()
	srv := mcpserver.New("own name", nil)
	if err := srv.AddTool(&mcpserver.Tool{Name: tool, InputSchema: json.RawMessage(`{"type":"object"}`)}, h); err != nil {
		t.Fatal(err)
	}
	return srv
}

// A call to a tool of a server that is still connecting waits for it; init tells of each server as it
// is at that moment, and lacks the tools of those that are not connected.
//
// D36 D48
func TestCallWaitsForItsServer(t *testing.T) {
	p := &slowProvider{serverWith(t, "w", echoArgs), make(chan struct{})}
	h := sharedHost(t, "slow", p)
	o := &agent.Options{Host: h, AllowedTools: []string{"mcp__slow__*"}}
	// The server comes up while the model makes the call.
	call := modeltest.Say(modeltest.ToolUse("mcp__slow__w", `{"n":1}`), modeltest.Pause(func(context.Context) error {
		close(p.release)
		return nil
	}))
	model := modeltest.New(t, call, modeltest.Text("x"))
	_, msgs := answered(t, model, o)
	if got := results(msgs); len(got) != 1 || got[0].IsError || got[0].Text() != `{"n":1}` {
		t.Errorf("got %+v", got)
	}
	init := last[*agent.SystemInit](msgs)
	if init.MCPServers[0].Status != "pending" || len(init.Tools) != 1 { // ToolSearch, which waits for it
		t.Errorf("init has %+v and %q", init.MCPServers, init.Tools)
	}
	if slices.ContainsFunc(init.Tools, func(name string) bool { return strings.HasPrefix(name, "mcp__") }) {
		t.Errorf("init has the tools %q", init.Tools)
	}
	model.Add(modeltest.Text("y"))
	_, msgs = answered(t, model, o)
	if init := last[*agent.SystemInit](msgs); init.MCPServers[0].Status != "connected" || !slices.Contains(init.Tools, "mcp__slow__w") {
		t.Errorf("the next init has %+v and %q", init.MCPServers, init.Tools)
	}
	if text := model.Requests()[1].LastUserText(); !strings.Contains(text, "mcp__slow__w") {
		t.Errorf("the second request does not tell of the tool: %s", text)
	}
}

// D107
func TestSharedHost(t *testing.T) {
	h := sharedHost(t, "shared", serverWith(t, "w", echoArgs))
	if err := h.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it outlives its runs
		o := &agent.Options{Host: h, AllowedTools: []string{"mcp__shared__*", "mcp__own__*"}}
		o.MCPServers = map[string]mcphost.ServerConfig{"own": mcphost.InProcess(serverWith(t, "w", echoArgs))}
		turn := modeltest.Say(modeltest.ToolUse("mcp__shared__w", `{"n":1}`), modeltest.ToolUse("mcp__own__w", `{"n":2}`))
		_, msgs := answered(t, modeltest.New(t, turn, modeltest.Text("x")), o)
		if got := results(msgs); len(got) != 2 || got[0].Text() != `{"n":1}` || got[1].Text() != `{"n":2}` {
			t.Errorf("got %+v", got)
		}
		if rows := last[*agent.SystemInit](msgs).MCPServers; len(rows) != 2 || rows[0].Name != "own" || rows[1].Name != "shared" {
			t.Errorf("init has %+v", rows)
		}
	}
}

// Where two hosts have a tool under one name, the run's own server has it, and the other is reported.
func TestSharedHostNameTaken(t *testing.T) {
	h := sharedHost(t, "same", serverWith(t, "w", func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		return mcpserver.Text("shared"), nil
	}))
	if err := h.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := &agent.Options{Host: h, AllowedTools: []string{"mcp__same"}, MCPServers: map[string]mcphost.ServerConfig{
		"same": mcphost.InProcess(serverWith(t, "w", func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
			return mcpserver.Text("own"), nil
		})),
	}}
	_, msgs := answered(t, modeltest.New(t, modeltest.ToolUse("mcp__same__w", `{}`), modeltest.Text("x")), o)
	if got := results(msgs); got[0].Text() != "own" {
		t.Errorf("got %+v", got[0])
	}
	if errs := last[*agent.SystemInit](msgs).MCPServerErrors; len(errs) != 1 {
		t.Errorf("init has the errors %+v", errs)
	}
}

// A required server that is not there is an error before the first request. F40
func TestRequiredServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &slowProvider{serverWith(t, "w", echoArgs), make(chan struct{})}
		o := &agent.Options{
			Env:        map[string]string{"MCP_TIMEOUT": "5000"},
			MCPServers: map[string]mcphost.ServerConfig{"slow": mcphost.InProcessServer{Provider: p, Common: mcphost.Common{Required: true}}},
		}
		model := modeltest.New(t)
		msgs, err := collect(t, t.Context(), testEngine(model), "x", o)
		nr := (*mcphost.NotReadyError)(nil)
		if !errors.As(err, &nr) || !strings.Contains(err.Error(), "slow") || len(msgs) != 0 || len(model.Requests()) != 0 {
			t.Errorf("%d messages, %d requests, %v", len(msgs), len(model.Requests()), err)
		}
	})
}

func TestMissingPromptTool(t *testing.T) {
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	o.PermissionPromptTool = "mcp__s__nobody"
	msgs, err := collect(t, t.Context(), testEngine(modeltest.New(t)), "x", o)
	if err == nil || !strings.Contains(err.Error(), "mcp__s__nobody") || len(msgs) != 0 {
		t.Errorf("%d messages, %v", len(msgs), err)
	}
}

func TestFaultyRulesAreReported(t *testing.T) {
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	o.AllowedTools = append(o.AllowedTools, "mcp__*")
	_, msgs := answered(t, modeltest.New(t, modeltest.Text("x")), o)
	if diff := cmp.Diff([]string{"permission_rule"}, tags(msgs)); diff != "" {
		t.Error(diff)
	}
}

func TestConfigProblemsAreShown(t *testing.T) {
	o := &agent.Options{ConfigProblems: []agent.MCPServerError{{Name: "bad", Type: "invalid_config", Message: "no command"}}}
	_, msgs := answered(t, modeltest.New(t, modeltest.Text("x")), o)
	if diff := cmp.Diff(o.ConfigProblems, last[*agent.SystemInit](msgs).MCPServerErrors, cmp.AllowUnexported(agent.MCPServerError{})); diff != "" {
		t.Error(diff)
	}
}

// A variable that cannot be used stands in the init message once, wherever it is set, and the default is used.
func TestFaultyVariablesAreReported(t *testing.T) {
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	o.Env = map[string]string{"MCP_TIMEOUT": "30s", "MAX_STRUCTURED_OUTPUT_RETRIES": "few", "MCP_TOOL_TIMEOUT": "9000"}
	o.Settings = `{"env": {"MAX_MCP_OUTPUT_TOKENS": "25k", "MCP_TOOL_TIMEOUT": "overridden"}}`
	_, msgs := answered(t, modeltest.New(t, modeltest.Text("x")), o)
	var got []string
	for _, e := range last[*agent.SystemInit](msgs).MCPServerErrors {
		name, _, _ := strings.Cut(strings.TrimPrefix(e.Message, "environment variable "), ", want ")
		got = append(got, e.Type+": "+name)
	}
	want := []string{
		`invalid_environment: MCP_TIMEOUT is "30s"`,
		`invalid_environment: MAX_MCP_OUTPUT_TOKENS is "25k"`,
		`invalid_environment: MAX_STRUCTURED_OUTPUT_RETRIES is "few"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// An address that can be none is an error before anything is tried, by the name of what set it; its text is not shown.
func TestFaultyBaseURL(t *testing.T) {
	for _, base := range []string{"garbage", "gateway.example.com", "ftp://x/", "http://", "http://user:sesame@h:port", "localhost:8080"} {
		_, err := New(&Options{APIKey: "test"}).Open(t.Context(), &agent.Options{Env: map[string]string{"ANTHROPIC_BASE_URL": base}})
		if err == nil || !strings.Contains(err.Error(), "ANTHROPIC_BASE_URL is no address") || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v", base, err)
		}
		if _, err := New(&Options{APIKey: "test", BaseURL: base}).Open(t.Context(), &agent.Options{}); err == nil || !strings.Contains(err.Error(), "Options.BaseURL is no address") {
			t.Errorf("%s: %v", base, err)
		}
	}
}

func TestCompactReplacesLoneSurrogates(t *testing.T) {
	for in, want := range map[string]string{
		`"plain"`:                       `"plain"`,
		`"\ud83d\ude00"`:                `"😀"`,
		`"\ud83d"`:                      `"�"`,
		`"\uDE00x"`:                     `"�x"`,
		`"\ud83dx\ude00"`:               `"�x�"`,
		`"\\ud83d"`:                     `"\\ud83d"`,
		`"\\\ud83d"`:                    `"\\�"`,
		`"\ud83d\ud83d\ude00"`:          `"�😀"`,
		`{"\udc00": "\u00e9\n\ud800 "}`: `{"�":"é\n� "}`,
		`"\u12`:                         `"\u12`,
	} {
		if got := string(transcript.Compact(json.RawMessage(in))); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
