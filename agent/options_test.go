package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/permission"
)

func TestDefaults(t *testing.T) {
	for _, o := range []*Options{nil, {}} {
		got, err := o.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		if got.MaxToolConcurrency != DefaultMaxToolConcurrency || got.Logger == nil || len(got.SessionID) != 36 || got.MaxTurns != 0 {
			t.Errorf("got %+v", got)
		}
	}
}

func TestOptionsAreCopied(t *testing.T) {
	o := &Options{
		AllowedTools: []string{"a"}, Env: map[string]string{"A": "1"}, Thinking: &Thinking{Type: "adaptive"},
		Hooks: &Hooks{Stop: []Hook[Stop, StopOutput]{{Func: func(context.Context, *Stop) (*StopOutput, error) { return nil, nil }}}},
	}
	got, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	o.AllowedTools[0], o.Env["A"], o.Thinking.Type = "b", "2", "disabled"
	o.Hooks.Stop[0].Func = nil
	if got.AllowedTools[0] != "a" || got.Env["A"] != "1" || got.Thinking.Type != "adaptive" || got.Hooks.Stop[0].Func == nil {
		t.Errorf("changes of the caller reach the run: %+v", got)
	}
}

// Every error names the field and what to do.
func TestOptionErrors(t *testing.T) {
	ask := func(context.Context, *ToolRequest) (*permission.PromptResult, error) { return nil, nil }
	tests := map[string]Options{
		"MaxTurns":       {MaxTurns: -1},
		"SettingSources": {SettingSources: []SettingSource{"project", "global"}},
		"Tools[1]":       {Tools: []mcpserver.Definition{mcpserver.DefineRaw(&mcpserver.Tool{Name: "a"}, nil), {}}},
		`MCPServers["tools"]`: {
			Tools:      []mcpserver.Definition{mcpserver.DefineRaw(&mcpserver.Tool{Name: "a"}, nil)},
			MCPServers: map[string]mcphost.ServerConfig{"tools": mcphost.Stdio{Command: "x"}},
		},
		"MaxTokens":                {MaxTokens: -1},
		"MaxToolConcurrency":       {MaxToolConcurrency: -2},
		"MaxBudgetUSD":             {MaxBudgetUSD: -0.5},
		"FallbackModel":            {Model: "a", FallbackModel: "a"},
		"Effort":                   {Effort: "huge"},
		"Thinking.Type":            {Thinking: &Thinking{}},
		"Thinking.BudgetTokens":    {Thinking: &Thinking{Type: "enabled", BudgetTokens: 5}},
		"Thinking.Display":         {Thinking: &Thinking{Type: "adaptive", Display: "loud"}},
		"OutputSchema":             {OutputSchema: json.RawMessage(`{"type":"array"}`)},
		"PermissionMode":           {PermissionMode: "yolo"},
		"PermissionPromptTool":     {PermissionPromptTool: "ask"},
		"PermissionPromptTool ":    {PermissionPromptTool: "mcp__a__b", CanUseTool: ask},
		"SessionID":                {SessionID: "seven"},
		"History[1]":               {History: []Message{&User{}, nil}},
		"History[0]":               {History: []Message{(*Assistant)(nil)}},
		"History":                  {History: []Message{&User{}}, Resume: Resume{Latest: true}},
		`MCPServers["x"]`:          {MCPServers: map[string]mcphost.ServerConfig{"x": nil}},
		"Hooks.Stop[0].Func":       {Hooks: &Hooks{Stop: []Hook[Stop, StopOutput]{{}}}},
		"Hooks.PreToolUse[0].Matc": {Hooks: &Hooks{PreToolUse: []Hook[PreToolUse, PreToolUseOutput]{{Matcher: "(", Func: func(context.Context, *PreToolUse) (*PreToolUseOutput, error) { return nil, nil }}}}},
		"Hooks.PostToolBatch[0].T": {Hooks: &Hooks{PostToolBatch: []Hook[PostToolBatch, HookOutput]{{Timeout: -time.Second, Func: func(context.Context, *PostToolBatch) (*HookOutput, error) { return nil, nil }}}}},
	}
	for field, o := range tests {
		_, err := o.withDefaults()
		oe := (*OptionError)(nil)
		if !errors.As(err, &oe) {
			t.Errorf("%s: got %v, want an OptionError", field, err)
			continue
		}
		if !strings.HasPrefix(oe.Field, strings.TrimSpace(field)) || oe.Remedy == "" || !strings.Contains(err.Error(), oe.Remedy) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestMatchTool(t *testing.T) {
	tests := []struct {
		matcher, tool string
		want          bool
	}{
		{"", "mcp__a__b", true},
		{"*", "mcp__a__b", true},
		{"mcp__a__.*", "mcp__a__b", true},
		{"mcp__a", "mcp__a__b", false},
		{"mcp__a__b|mcp__a__c", "mcp__a__c", true},
		{"mcp__a__b|mcp__a__c", "mcp__a__cd", false},
		{"(", "(", false},
	}
	for _, tt := range tests {
		if got := MatchTool(tt.matcher, tt.tool); got != tt.want {
			t.Errorf("%q on %q: got %v, want %v", tt.matcher, tt.tool, got, tt.want)
		}
	}
}

func TestUnsupportedError(t *testing.T) {
	err := &UnsupportedError{Engine: "native", Fields: []string{"A", "B"}}
	if want := `agent: engine "native" cannot honour Options.A, Options.B: leave it unset or use another engine`; err.Error() != want {
		t.Errorf("got %s", err)
	}
}

// A tool that cannot be registered is left out and told of; the others stay.
func TestToolsBecomeAServer(t *testing.T) {
	h := func(context.Context, json.RawMessage) (*mcpserver.Result, error) { return mcpserver.Text("ok"), nil }
	o := &Options{Tools: []mcpserver.Definition{
		mcpserver.DefineRaw(&mcpserver.Tool{Name: "good"}, h),
		mcpserver.DefineRaw(&mcpserver.Tool{Name: "bad", InputSchema: json.RawMessage(`7`)}, h),
		mcpserver.DefineRaw(&mcpserver.Tool{Name: "good"}, h),
	}}
	got, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	srv, ok := got.MCPServers[ToolsServer].(mcphost.InProcessServer)
	if !ok || o.MCPServers != nil {
		t.Fatalf("got the servers %v", got.MCPServers)
	}
	if tools := srv.Provider.(*mcpserver.Server).ListTools(); len(tools) != 1 || tools[0].Name != "good" {
		t.Errorf("got %d tools", len(tools))
	}
	if p := got.ConfigProblems; len(p) != 2 || p[0].Name != ToolsServer || p[0].Type != "tool_left_out" || !strings.Contains(p[0].Message, `"bad"`) || !strings.Contains(p[1].Message, `"good"`) {
		t.Errorf("problems %+v", p)
	}
}

func TestContextUsageForms(t *testing.T) {
	const form = `{"model":"m","totalTokens":3,"maxTokens":10,"percentage":30,"categories":[{"id":"messages","name":"Messages","tokens":3,"kind":"used","color":"x"}],` +
		`"mcpTools":[{"name":"mcp__s__a","serverName":"s","tokens":2,"isLoaded":true},{"name":"mcp__s__b","serverName":"s","tokens":5,"isLoaded":false}],"gridRows":[]}`
	var u ContextUsage
	if err := json.Unmarshal([]byte(form), &u); err != nil {
		t.Fatal(err)
	}
	if back, err := json.Marshal(u); err != nil || string(back) != form {
		t.Errorf("%s\n%v", back, err)
	}
	if got := u.ServerTokens()["s"]; got != 2 {
		t.Errorf("the loaded tools of s take %d", got)
	}
	var plain ContextTool
	if err := json.Unmarshal([]byte(`{"name":"a","serverName":"s","tokens":2}`), &plain); err != nil || !plain.IsLoaded {
		t.Errorf("got %+v, %v", plain, err)
	}
}
