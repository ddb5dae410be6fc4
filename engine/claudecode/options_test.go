package claudecode

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
)

const someID, otherID = "3f0c1f6e-8f4b-4a53-9a0e-1d1f6f0c9f10", "b7c1f6e0-8f4b-4a53-9a0e-1d1f6f0c9f11"

// Every option has its place on the command line, one word a flag.
func TestOwnArgs(t *testing.T) {
	tests := []struct {
		name string
		e    Options
		o    agent.Options
		want []string
		not  string // a word's beginning that must not be there
	}{
		{"new session", Options{}, agent.Options{SessionID: someID}, []string{"--session-id=" + someID}, "--resume"},
		{"resumed", Options{}, agent.Options{SessionID: someID, Resume: agent.Resume{ID: someID}}, []string{"--resume=" + someID}, "--session-id"},
		{"latest", Options{}, agent.Options{Resume: agent.Resume{Latest: true}}, []string{"--continue"}, "--session-id"},
		{"forked", Options{}, agent.Options{SessionID: otherID, Resume: agent.Resume{ID: someID, Fork: true, At: otherID, DropsTurn: someID}}, []string{"--resume=" + someID, "--fork-session", "--session-id=" + otherID, "--resume-session-at=" + otherID, "--resume-drops-turn=" + someID}, ""},
		{"skills", Options{Skills: []string{"pdf", "box:docx"}}, agent.Options{AllowedTools: []string{"a"}}, []string{"--allowedTools=a,Skill(pdf),Skill(box:docx)"}, ""},
		{"all skills", Options{Skills: []string{"all"}}, agent.Options{}, []string{"--allowedTools=Skill"}, ""},
		{"agent", Options{Agent: "reviewer"}, agent.Options{}, []string{"--agent=reviewer"}, ""},
		{"folders", Options{AdditionalDirectories: []string{"/a", "/b"}, ProjectConfigRoot: "/c"}, agent.Options{}, []string{"--add-dir=/a", "--add-dir=/b", "--project-config-root=/c"}, ""},
		{"model", Options{TaskBudget: 5000, Betas: []string{"x", "y"}}, agent.Options{}, []string{"--task-budget=5000", "--betas=x,y"}, ""},
		{"permission", Options{AllowBypass: true, NoPrompts: true}, agent.Options{}, []string{"--allow-dangerously-skip-permissions", "--permission-prompts=none"}, ""},
		{"storage", Options{NoPersistence: true}, agent.Options{}, []string{"--no-session-persistence"}, "--session-mirror"},
		{"mirror", Options{Mirror: func(string, []json.RawMessage) {}}, agent.Options{}, []string{"--session-mirror"}, ""},
		{"events", Options{HookEvents: true}, agent.Options{}, []string{"--include-hook-events"}, ""},
		{"debug", Options{Debug: true}, agent.Options{}, []string{"--debug-to-stderr"}, ""},
		{"debug file", Options{Debug: true, DebugFile: "/log"}, agent.Options{}, []string{"--debug-file=/log"}, "--debug-to-stderr"},
		{"secrets", Options{Settings: json.RawMessage(`{"env":{"K":"s3cret"}}`), ManagedSettings: json.RawMessage(`{"a":"s3cret"}`)}, agent.Options{}, []string{"--initialize-fields=settings", "--managed-settings-in-initialize"}, "--settings"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := args(&tt.e, &tt.o, tt.o.IncludePartialMessages)
			for _, want := range tt.want {
				if !slices.Contains(got, want) {
					t.Errorf("no %q in %q", want, got)
				}
			}
			for _, word := range got {
				if tt.not != "" && strings.HasPrefix(word, tt.not) || strings.Contains(word, "s3cret") {
					t.Errorf("%q is there", word)
				}
			}
		})
	}
}

// What no flag carries is in the first line that the CLI gets.
func TestHelloCarriesTheOptions(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Options, *agent.Options)
		want   string // a member of initialize
	}{
		{"aliases", func(e *Options, _ *agent.Options) { e.ToolAliases = map[string]string{"Bash": "mcp__a__b"} }, `"toolAliases":{"Bash":"mcp__a__b"}`},
		{"agents", func(e *Options, _ *agent.Options) {
			e.Agents = map[string]AgentDefinition{"r": {Description: "d", Prompt: "p"}}
		}, `"agents":{"r":{"description":"d","prompt":"p"}}`},
		{"skills", func(e *Options, _ *agent.Options) { e.Skills = []string{"pdf"} }, `"skills":["pdf"]`},
		{"plugins", func(e *Options, _ *agent.Options) { e.Plugins = []Plugin{{Path: "/p", SkipMCP: true}} }, `"plugins":[{"type":"local","path":"/p","skipMcpDiscovery":true}]`},
		{"preset", func(e *Options, o *agent.Options) {
			e.Preset, o.AppendSystemPrompt = &Preset{ExcludeDynamicSections: true}, "more"
		}, `"appendSystemPrompt":"more","excludeDynamicSections":true`},
		{"no prompt", func(*Options, *agent.Options) {}, `"systemPrompt":[""]`},
		{"prompt in two parts", func(_ *Options, o *agent.Options) { o.SystemPrompt = "all\n" + PromptBoundary + "\none" }, `"systemPrompt":["all","` + PromptBoundary + `","one"]`},
		{"fresh prompt", func(e *Options, _ *agent.Options) { e.FreshPrompt = true }, `"systemPromptSnapshot":false`},
		{"plan", func(e *Options, _ *agent.Options) { e.PlanInstructions = "x" }, `"planModeInstructions":"x"`},
		{"title", func(e *Options, _ *agent.Options) { e.Title = "x" }, `"title":"x"`},
		{"reports", func(e *Options, _ *agent.Options) {
			e.PromptSuggestions, e.SubagentSummaries, e.SubagentText, e.TaskStops = true, true, true, true
		}, `"promptSuggestions":true,"agentProgressSummaries":true,"forwardSubagentText":true,"perTaskStopAffordance":true`},
		{"managed", func(e *Options, _ *agent.Options) { e.ManagedSettings = json.RawMessage(`{"a":1}`) }, `"managedSettings":{"a":1}`},
		{"settings with rules and a sandbox", func(e *Options, o *agent.Options) {
			e.Settings = json.RawMessage(`{"permissions":{"ask":["x"],"deny":["z"]},"sandbox":{"enabled":false,"network":{"a":1}}}`)
			e.Sandbox, o.AskTools = json.RawMessage(`{"enabled":true,"network":{"b":2}}`), []string{"x", "y"}
		}, `"settings":{"permissions":{"ask":["x","y"],"deny":["z"]},"sandbox":{"enabled":true,"network":{"a":1,"b":2}}}`},
		{"hooks", func(e *Options, _ *agent.Options) {
			e.EventHooks = []EventHook{{Event: "PreCompact", Func: func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }}}
		}, `"hooks":{"PreCompact":[{"matcher":null,"hookCallbackIds":["PreCompact-0"],"timeout":60,"onFailure":"continue"}],"UserPromptSubmit":[{"matcher":null,"hookCallbackIds":["UserPromptSubmit-0"],"timeout":60,"onFailure":"continue"}]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, o := fake("polite")
			tt.change(&e.opts, o)
			msgs, err := ask(t, e, o)
			if err != nil {
				t.Fatal(err)
			}
			r, ok := msgs[len(msgs)-1].(*agent.Result)
			if !ok || !canonicalContains(t, r.Result, tt.want) {
				t.Errorf("initialize was\n%s\nwithout %s", r.Result, tt.want)
			}
		})
	}
}

// canonicalContains reports whether the object in line has the members in want.
func canonicalContains(t *testing.T, line, want string) bool {
	t.Helper()
	var all, some map[string]json.RawMessage
	if err := json.Unmarshal([]byte(line), &all); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte("{"+want+"}"), &some); err != nil {
		t.Fatal(err)
	}
	for name, value := range some {
		if string(all[name]) != string(value) {
			return false
		}
	}
	return true
}

func TestOptionsThatContradict(t *testing.T) {
	tests := []struct {
		field string
		e     Options
		o     agent.Options
	}{
		{"Settings", Options{Settings: json.RawMessage(`[1]`)}, agent.Options{}},
		{"Sandbox", Options{Sandbox: json.RawMessage(`null`)}, agent.Options{}},
		{"ManagedSettings", Options{ManagedSettings: json.RawMessage(`{`)}, agent.Options{}},
		{"Launcher", Options{Launcher: []string{"x"}}, agent.Options{}},
		{"Preset", Options{Preset: &Preset{}}, agent.Options{SystemPrompt: "x"}},
		{"DialogKinds", Options{DialogKinds: []string{"x"}}, agent.Options{}},
		{"Mirror", Options{NoPersistence: true, Mirror: func(string, []json.RawMessage) {}}, agent.Options{}},
		{"TaskBudget", Options{TaskBudget: -1}, agent.Options{}},
		{"QuestionPreview", Options{QuestionPreview: "pdf"}, agent.Options{}},
		{"BuiltinTools", Options{BuiltinTools: []string{"Read,Bash"}}, agent.Options{}},
		{"EventHooks[0]", Options{EventHooks: []EventHook{{Event: "Stop"}}}, agent.Options{}},
	}
	for _, tt := range tests {
		t.Run(tt.field, func(t *testing.T) {
			_, err := agent.Open(t.Context(), New(&tt.e), &tt.o)
			var oe *OptionError
			if !errors.As(err, &oe) || oe.Field != tt.field {
				t.Errorf("got %v, want an OptionError about %s", err, tt.field)
			}
		})
	}
}

// The CLI can be started by another program, which gets the CLI's path and arguments.
func TestLauncher(t *testing.T) {
	e, o := fake("polite")
	e.opts.Launcher = []string{"env", "LAUNCHED=yes"}
	if _, err := ask(t, e, o); err != nil {
		t.Fatal(err)
	}
	e.opts.Launcher = []string{"/nothing/here"}
	_, err := ask(t, e, o)
	var pe *ProcessError
	if !errors.As(err, &pe) {
		t.Errorf("got %v, want a ProcessError", err)
	}
}
