package claudecode

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

// realWith is the engine on the installed CLI with options of the test's own.
func realWith(t *testing.T, m *modeltest.Model, o *Options) (*withEnv, map[string]string) {
	t.Helper()
	e, ok := realCLI(t, m).(*withEnv)
	if !ok {
		t.Fatal("realCLI has another form")
	}
	inner, ok := e.Engine.(*Engine)
	if !ok {
		t.Fatal("realCLI has another form")
	}
	c := *o
	c.Path, c.Stderr = inner.opts.Path, inner.opts.Stderr
	e.Engine = New(&c)
	return e, e.env
}

// The real CLI takes what travels in its first line: rules of the settings, agents, plugins, a title,
// its own prompt, and the mirror of what it writes.
func TestRealCLITakesItsOptions(t *testing.T) {
	peers.ClaudePath(t)
	m := modeltest.New(t, modeltest.ToolUse("mcp__mine__echo", map[string]string{"text": "hello"}), modeltest.Text("done"))
	plugin := t.TempDir()
	for name, text := range map[string]string{
		".claude-plugin/plugin.json": `{"name":"box","version":"1.0.0"}`,
		"commands/pack.md":           "---\ndescription: Pack it\n---\nPack it.",
	} {
		path := filepath.Join(plugin, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	mirrored := map[string]int{}
	var events []string
	e, _ := realWith(t, m, &Options{
		Preset:     &Preset{},
		Agents:     map[string]AgentDefinition{"reviewer": {Description: "Reviews", Prompt: "You review."}},
		Plugins:    []Plugin{{Path: plugin}},
		Settings:   json.RawMessage(`{"permissions":{"ask":["mcp__mine__echo"]}}`),
		Title:      "A title of ours",
		TaskBudget: 50_000,
		Mirror: func(path string, entries []json.RawMessage) {
			mu.Lock()
			defer mu.Unlock()
			mirrored[filepath.Base(path)] += len(entries)
		},
		EventHooks: []EventHook{{Event: "UserPromptSubmit", Func: func(_ context.Context, in json.RawMessage) (json.RawMessage, error) {
			mu.Lock()
			defer mu.Unlock()
			events = append(events, string(in))
			return nil, nil
		}}},
	})
	asked := 0
	msgs, err := ask(t, e, &agent.Options{
		AppendSystemPrompt: "Speak like a pirate.",
		SessionID:          someID,
		MCPServers:         map[string]mcphost.ServerConfig{"mine": mcphost.InProcess(echo(t))},
		AllowedTools:       []string{"mcp__mine"},
		CanUseTool: func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) {
			asked++
			return agent.Allow(), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, msg := range msgs {
		if init, ok := msg.(*agent.SystemInit); ok {
			if !slices.Contains(init.Agents, "reviewer") || !slices.ContainsFunc(init.SlashCommands, func(c string) bool { return strings.Contains(c, "pack") }) {
				t.Errorf("agents %q, commands %q", init.Agents, init.SlashCommands)
			}
			if init.SessionID != someID {
				t.Errorf("session %q", init.SessionID)
			}
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times, want once: the settings have a rule that asks", asked)
	}
	request := string(m.Requests()[0].Body)
	for _, want := range []string{"Speak like a pirate.", "Claude Code"} {
		if !strings.Contains(request, want) {
			t.Errorf("%q is not in the model's prompt", want)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if mirrored[someID+".jsonl"] == 0 {
		t.Errorf("mirrored %v", slices.Collect(maps.Keys(mirrored)))
	}
	if len(events) != 1 || !strings.Contains(events[0], `"prompt":"hi"`) {
		t.Errorf("events %q", events)
	}
}
