package claudecode

import (
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/permission"
)

var update = flag.Bool("update", false, "write the golden files anew")

// values are what a field is set to, by the name of the golden file that it leads to. A field
// without any does not reach the command line; silent has what it is set to for the proof.
type values map[string]any

var agentArgv = map[string]values{
	"Model": {"": "m"}, "FallbackModel": {"": "f"}, "MaxTurns": {"": 3}, "Effort": {"": "xhigh"},
	"MaxBudgetUSD": {"": 0.25, "small": 0.000001, "big": 1e21},
	"Thinking": {
		"adaptive": &agent.Thinking{Type: "adaptive", Display: "omitted"}, "enabled": &agent.Thinking{Type: "enabled", BudgetTokens: 2048},
		"between_tools": &agent.Thinking{Type: "between_tools"}, "disabled": &agent.Thinking{Type: "disabled"},
	},
	"SettingSources":     {"all": []agent.SettingSource{agent.SourceUser, agent.SourceProject, agent.SourceLocal}, "none": []agent.SettingSource{}},
	"Settings":           {"": `{"env":{"K":"s3cret"}}`},
	"StrictMCPConfig":    {"": true},
	"ReplayUserMessages": {"": true}, "IncludePartialMessages": {"": true},
	"AdditionalDirectories": {"": []string{"/a", "-b", "c d"}},
	"AllowedTools":          {"": []string{"mcp__a", "mcp__b__*", "-x"}},
	"DisallowedTools":       {"": []string{"mcp__a", "mcp__b__*"}},
	"AskTools":              {"": []string{"mcp__a"}},
	"PermissionMode":        {"plan": permission.ModePlan, "bypass": permission.ModeBypassPermissions},
	"PermissionPromptTool":  {"": "mcp__a__b"},
	"ToolSearch":            {"": agent.ToolSearch("auto")},
	"SessionID":             {"": someID},
	"Resume": {
		"id": agent.Resume{ID: someID}, "latest": agent.Resume{Latest: true},
		"fork": agent.Resume{ID: someID, Fork: true, At: otherID, DropsTurn: someID}, "latest_fork": agent.Resume{Latest: true, Fork: true},
	},
}

var agentSilent = map[string]any{
	"SystemPrompt": "s3cret", "AppendSystemPrompt": "s3cret", "MaxTokens": 100, "Tools": []mcpserver.Definition{{}},
	"MCPServers":         map[string]mcphost.ServerConfig{"s": mcphost.Stdio{Command: "x", Env: map[string]string{"K": "s3cret"}}},
	"Host":               new(mcphost.Host),
	"CanUseTool":         agent.CanUseToolFunc(func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) { return agent.Allow(), nil }),
	"MaxToolConcurrency": 3, "OnElicitation": nil, "Hooks": new(agent.Hooks),
	"TurnTimeout": time.Minute, "MaxQueuedInputs": 3, "HistoryUsage": agent.HistoryUsage{Turns: 1},
	"Env": map[string]string{"K": "s3cret"}, "Dir": "/d", "Logger": slog.New(slog.DiscardHandler), "Stderr": nil,
	"ConfigProblems": []agent.MCPServerError{{Name: "x"}},
	"OutputSchema":   json.RawMessage(`{"type":"object"}`),
	"TrustFile":      func(string, []byte) bool { return true },
	"History":        []agent.Message{&agent.User{}}, // refused by Open
}

var ownArgv = map[string]values{
	"BuiltinTools": {"": []string{"Read", "Bash"}, "default": []string{"default"}},
	"ExtraArgs":    {"": []string{"--k", "v", "--debug=api"}},
	"Agent":        {"": "reviewer"},
	"Skills":       {"some": []string{"pdf", "box:docx"}, "all": []string{"all"}},
	"Settings":     {"": json.RawMessage(`{"env":{"K":"s3cret"}}`)}, "Sandbox": {"": json.RawMessage(`{"enabled":true}`)},
	"ManagedSettings": {"": json.RawMessage(`{"env":{"K":"s3cret"}}`)},
	"AllowBypass":     {"": true}, "NoPrompts": {"": true},
	"AdditionalDirectories": {"": []string{"/a", "-b"}}, "ProjectConfigRoot": {"": "/c"},
	"NoPersistence": {"": true},
	"Mirror":        {"": func(string, []json.RawMessage) {}},
	"TaskBudget":    {"": 5000}, "Betas": {"": []string{"x", "y"}}, "HookEvents": {"": true},
	"Debug": {"": true}, "DebugFile": {"": "/log file"},
}

var ownSilent = map[string]any{
	"Path": "/p", "Launcher": []string{"env"}, "Stderr": func(string) {},
	"Preset": &Preset{ExcludeDynamicSections: true}, "FreshPrompt": true, "PlanInstructions": "s3cret", "VerbatimPrompts": true,
	"Agents":  map[string]AgentDefinition{"a": {Prompt: "s3cret"}},
	"Plugins": []Plugin{{Path: "/p"}}, "ToolAliases": map[string]string{"Bash": "mcp__a__b"},
	"FileCheckpoints": true, "Title": "t", "EventHooks": []EventHook{{Event: "Stop"}},
	"SubagentText": true, "SubagentSummaries": true, "PromptSuggestions": true, "TaskStops": true,
	"OnDialog": nil, "DialogKinds": []string{"x"}, "QuestionPreview": "html",
}

// The whole command line for each option is the one in its golden file; what an option does not
// change there, it leaves as it is. A new option has to be thought of here.
func TestArgvOfEveryOption(t *testing.T) {
	plain := args(&Options{}, &agent.Options{}, false)
	golden(t, "plain", plain)
	seen := map[string]bool{"plain": true}
	of := func(room string, typ reflect.Type, loud map[string]values, silent map[string]any, argv func(field int, v any) []string) {
		for i := range typ.NumField() {
			name := typ.Field(i).Name
			quiet, isSilent := silent[name]
			switch {
			case isSilent == (loud[name] != nil):
				t.Errorf("%s.Options.%s: say either what it does to the command line or that it does nothing", room, name)
			case isSilent && quiet == nil: // a function type that cannot be compared, and is not looked at
			case isSilent:
				if got := argv(i, quiet); !slices.Equal(got, plain) {
					t.Errorf("%s.Options.%s changes the command line: %q", room, name, got)
				}
			}
			for variant, v := range loud[name] {
				file := strings.TrimSuffix(room+"."+name+"."+variant, ".")
				seen[file] = true
				got := argv(i, v)
				if slices.Equal(got, plain) {
					t.Errorf("%s does not reach the command line", file)
				}
				golden(t, file, got)
			}
		}
	}
	of("agent", reflect.TypeFor[agent.Options](), agentArgv, agentSilent, func(i int, v any) []string {
		o := new(agent.Options)
		reflect.ValueOf(o).Elem().Field(i).Set(reflect.ValueOf(v))
		return args(&Options{}, o, o.IncludePartialMessages)
	})
	of("claudecode", reflect.TypeFor[Options](), ownArgv, ownSilent, func(i int, v any) []string {
		e := new(Options)
		reflect.ValueOf(e).Elem().Field(i).Set(reflect.ValueOf(v))
		return args(e, new(agent.Options), false)
	})
	files, err := filepath.Glob("testdata/argv/*.golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !seen[strings.TrimSuffix(filepath.Base(file), ".golden")] {
			t.Errorf("%s belongs to no option", file)
		}
	}
}

// golden compares words with a file that has one a line.
func golden(t *testing.T, name string, words []string) {
	t.Helper()
	for _, word := range words {
		if strings.Contains(word, "s3cret") {
			t.Errorf("%s: %q is on the command line", name, word)
		}
	}
	got := strings.Join(words, "\n") + "\n"
	path := filepath.Join("testdata", "argv", name+".golden")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Errorf("%v; -update writes it", err)
		return
	}
	if got != string(want) {
		t.Errorf("%s: the command line is\n%swant\n%s", name, got, want)
	}
}

// Where the program names no model the CLI is told of none, and its default is its own: the engines differ in
// that, as agent.Options.Model says.
//
// fault D15
func TestModelOfItsOwn(t *testing.T) {
	for _, model := range []string{"", "m"} {
		line := args(&Options{}, &agent.Options{Model: model}, false)
		if slices.ContainsFunc(line, func(word string) bool { return strings.HasPrefix(word, "--model") }) != (model != "") {
			t.Errorf("with the model %q: %q", model, line)
		}
	}
}
