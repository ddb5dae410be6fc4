package claudecode

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

// Every option of package agent has an effect on what the CLI is started with or told, or is
// refused, or is used by this engine itself; a new one has to be thought of here.
func TestEveryOptionIsHonouredOrRefused(t *testing.T) {
	samples := map[string]any{
		"Model": "m", "FallbackModel": "f", "SystemPrompt": "s", "AppendSystemPrompt": "a", "MaxTurns": 2, "MaxTokens": 100,
		"MaxBudgetUSD": 0.5, "Thinking": &agent.Thinking{Type: "adaptive"}, "Effort": "low",
		"MCPServers":     map[string]mcphost.ServerConfig{"s": mcphost.Stdio{Command: "x"}},
		"SettingSources": []agent.SettingSource{agent.SourceUser}, "Settings": `{"model":"x"}`,
		"AdditionalDirectories": []string{"/d"}, "AllowedTools": []string{"mcp__a"}, "DisallowedTools": []string{"mcp__b"}, "AskTools": []string{"mcp__c"},
		"PermissionMode": permission.ModePlan, "PermissionPromptTool": "mcp__a__b", "MaxToolConcurrency": 3, "ToolSearch": agent.ToolSearchOff,
		"OutputSchema": json.RawMessage(`{"type":"object"}`), "Env": map[string]string{"A": "b"}, "SessionID": "7b0f2f4e-2f0c-4b0e-9d53-0c6f6a1b2c3d",
		"Resume": agent.Resume{ID: "7b0f2f4e-2f0c-4b0e-9d53-0c6f6a1b2c3d"}, "ReplayUserMessages": true, "IncludePartialMessages": true,
		"Hooks": &agent.Hooks{Stop: []agent.Hook[agent.Stop, agent.StopOutput]{{
			Func: func(context.Context, *agent.Stop) (*agent.StopOutput, error) { return nil, nil },
		}}},
	}
	// What the CLI is not told of, and which test shows that it is honoured.
	elsewhere := map[string]string{
		"CanUseTool":      "the engine answers the CLI's questions: enginetest Permission",
		"OnElicitation":   "the engine answers the CLI's questions: TestElicitation",
		"StrictMCPConfig": "it is so unless sources are read: TestArgs",
		"Stderr":          "this process runs the servers then: TestServersBeyondTheCLI",
		"Host":            "its servers join those in this process: TestShared",
		"Tools":           "enginetest",
		"TrustFile":       "this engine reads the files: enginetest Checkout",
		"History":         "refused: TestHistoryIsRefused",
		"HistoryUsage":    "refused: TestHistoryIsRefused",
		"TurnTimeout":     "enginetest Inputs/TurnTimeout",
		"MaxQueuedInputs": "enginetest Inputs/TooMany",
		"Dir":             "the CLI's working directory", "Logger": "this engine's", "ConfigProblems": "TestConfigProblems of enginetest; in the init message",
	}
	plain := saidOf(t, &agent.Options{})
	for i := range reflect.TypeFor[agent.Options]().NumField() {
		name := reflect.TypeFor[agent.Options]().Field(i).Name
		sample, ok := samples[name]
		if !ok {
			if elsewhere[name] == "" {
				t.Errorf("Options.%s is neither told to the CLI nor accounted for", name)
			}
			continue
		}
		o := &agent.Options{}
		reflect.ValueOf(o).Elem().Field(i).Set(reflect.ValueOf(sample))
		if slices.Equal(saidOf(t, o), plain) {
			t.Errorf("Options.%s has no effect on the CLI", name)
		}
	}
}

// A conversation that the program keeps is not begun anew in silence, and the error says what there is instead.
func TestHistoryIsRefused(t *testing.T) {
	o := &agent.Options{History: []agent.Message{&agent.User{Message: agent.UserMessage{Content: agent.TextContent("hello")}}}}
	_, ofEngine := agent.Open(t.Context(), New(nil), o)
	_, ofPool := NewPool(t.Context(), New(nil), o, nil)
	for _, err := range []error{ofEngine, ofPool} {
		var ue *agent.UnsupportedError
		if !errors.As(err, &ue) || len(ue.Fields) != 1 || ue.Fields[0] != "History" || !strings.Contains(err.Error(), "Options.Resume") {
			t.Errorf("got %v, want an UnsupportedError that names History and Resume", err)
		}
	}
	for field, o := range map[string]*agent.Options{
		"HistoryUsage": {HistoryUsage: agent.HistoryUsage{CostUSD: 1}},
	} {
		var ue *agent.UnsupportedError
		if _, err := agent.Open(t.Context(), New(nil), o); !errors.As(err, &ue) || len(ue.Fields) != 1 || ue.Fields[0] != field {
			t.Errorf("with %s: got %v", field, err)
		}
	}
}

// saidOf is all that the CLI is started with and told, and what is refused.
func saidOf(t *testing.T, o *agent.Options) []string {
	t.Helper()
	return saidBy(t, New(nil), o)
}

func saidBy(t *testing.T, e *Engine, o *agent.Options) []string {
	t.Helper()
	if o.MaxToolConcurrency == 0 {
		o.MaxToolConcurrency = agent.DefaultMaxToolConcurrency
	}
	o.Logger = nil
	s := connected(t, e, o)
	defer s.ch.end(io.EOF)
	defer s.servers.close()
	configs, err := s.servers.connect(t.Context(), o.MCPServers)
	if err != nil {
		t.Fatal(err)
	}
	request, err := s.initRequest(configs)
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	all := append(args(&e.opts, o, o.IncludePartialMessages), childEnv(&e.opts, o)...)
	return append(all, string(line))
}

// A server in this process asks the user through the program, as on the native engine.
func TestElicitation(t *testing.T) {
	s := mcpserver.New("s", nil)
	err := s.AddTool(&mcpserver.Tool{Name: "ask", InputSchema: json.RawMessage(`{"type":"object"}`)}, mcpserver.RawHandler(func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
		res, err := mcpserver.RequestFrom(ctx).Elicit(ctx, &mcp.ElicitParams{Message: "which?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"colour":{"type":"string"}}}`)})
		if err != nil {
			return nil, err
		}
		return mcpserver.Text(res.Action + " " + res.Content["colour"].(string)), nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	m := modeltest.New(t, modeltest.ToolUseID("toolu_1", "mcp__s__ask", `{}`), modeltest.Text("done"))
	var asked string
	_, err = ask(t, realCLI(t, m), &agent.Options{
		MCPServers:   map[string]mcphost.ServerConfig{"s": mcphost.InProcess(s)},
		AllowedTools: []string{"mcp__s"},
		OnElicitation: func(_ context.Context, server string, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			asked = server + ": " + p.Message
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"colour": "blue"}}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := m.Last().ToolResult("toolu_1")
	if asked != "s: which?" || len(got.Content) == 0 || got.Content[0].Text != "accept blue" && got.Content[0].Text != "accept blue\n" {
		t.Errorf("asked %q, the model was sent %s", asked, got.Raw)
	}
}

// A server that is configured to be off is not connected until it is switched on.
func TestDisabledServer(t *testing.T) {
	m := modeltest.New(t, modeltest.Text("one"))
	c, err := agent.Open(t.Context(), realCLI(t, m), &agent.Options{
		MCPServers: map[string]mcphost.ServerConfig{"mine": mcphost.InProcessServer{Provider: echo(t), Common: mcphost.Common{Disabled: true}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, want := range []mcphost.Status{mcphost.StatusDisabled, mcphost.StatusConnected} {
		status, err := c.MCPStatus(t.Context())
		if err != nil || len(status) != 1 || status[0].Status != want {
			t.Errorf("status %+v, %v, want %s", status, err, want)
		}
		if err := c.SetMCPServerEnabled(t.Context(), "mine", true); err != nil {
			t.Fatal(err)
		}
	}
}
