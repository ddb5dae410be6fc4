package claudecode

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/claudecode/event"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

// reviewerPrompt tells the requests of the subagent from those of the main conversation.
const reviewerPrompt = "You are the reviewer."

// reviewing is a model with a script for the main conversation and one for a subagent.
func reviewing(t *testing.T, main, reviewer []modeltest.Turn) *modeltest.Model {
	t.Helper()
	return modeltest.NewModel(&modeltest.Options{
		TB: t,
		Key: func(r *modeltest.Request) string {
			if strings.Contains(r.SystemText(), reviewerPrompt) {
				return "reviewer"
			}
			return "main"
		},
		Script: func(key string) []modeltest.Turn {
			if key == "reviewer" {
				return reviewer
			}
			return main
		},
	})
}

func reviewer() map[string]AgentDefinition {
	return map[string]AgentDefinition{"reviewer": {Description: "Reviews", Prompt: reviewerPrompt}}
}

func callReviewer(id string, background bool) modeltest.Part {
	return modeltest.ToolUseID(id, "Agent", map[string]any{
		"description": "Review it", "prompt": "Look at it.", "subagent_type": "reviewer", "run_in_background": background,
	})
}

// backgroundRun is a run whose subagent, or shell, goes on when the first result is there: it waits
// for the gate. The model hears of its end and says "heard of it".
type backgroundRun struct {
	model   *modeltest.Model
	engine  agent.Engine
	options *agent.Options
	// release lets the work in the background end.
	release func()
}

func backgroundAgent(t *testing.T) *backgroundRun {
	t.Helper()
	gate := modeltest.NewGate()
	m := reviewing(t,
		[]modeltest.Turn{callReviewer("toolu_1", true), modeltest.Text("it is under way"), modeltest.Text("heard of it")},
		[]modeltest.Turn{
			modeltest.Say(modeltest.Hold(gate), modeltest.ToolUseID("toolu_sub", "mcp__mine__echo", map[string]string{"text": "late"})),
			modeltest.Text("reviewed"),
		})
	e, _ := realWith(t, m, &Options{BuiltinTools: []string{"Agent"}, Agents: reviewer()})
	return &backgroundRun{m, e, &agent.Options{
		MCPServers: map[string]mcphost.ServerConfig{"mine": mcphost.InProcess(echo(t))}, AllowedTools: []string{"mcp__mine", "Agent"},
	}, gate.Open}
}

func backgroundShell(t *testing.T) *backgroundRun {
	t.Helper()
	dir := t.TempDir()
	m := modeltest.New(t,
		modeltest.ToolUseID("toolu_1", "Bash", map[string]any{
			"command": "until [ -e released ]; do sleep 0.1; done; echo late", "description": "Waits", "run_in_background": true,
		}),
		modeltest.Text("it is under way"), modeltest.Text("heard of it"))
	e, _ := realWith(t, m, &Options{BuiltinTools: []string{"Bash"}})
	return &backgroundRun{m, e, &agent.Options{Dir: dir, AllowedTools: []string{"Bash"}}, func() {
		if err := os.WriteFile(filepath.Join(dir, "released"), nil, 0o600); err != nil {
			t.Error(err)
		}
	}}
}

// heard is what a program hears of work in the background.
type heard struct {
	results         []string
	started, ended  int
	late            bool // a message of the subagent's call came after the first result
	backgroundEmpty bool
}

// take notes a message, and lets the work in the background end at the first result.
func (h *heard) take(t *testing.T, m agent.Message, release func()) {
	t.Helper()
	switch m := m.(type) {
	case *agent.Result:
		h.results = append(h.results, m.Result)
		if len(h.results) == 1 {
			release()
		}
	case *agent.User:
		for _, r := range m.ToolResults() {
			h.late = h.late || r.ToolUseID == "toolu_sub" && len(h.results) == 1 && r.Content.Text() == "late yourself"
		}
	default:
		e, err := event.Of(m)
		if err != nil {
			t.Error(err)
		}
		switch e := e.(type) {
		case *event.TaskStarted:
			h.started++
		case *event.TaskNotification:
			if e.Status != "completed" || e.ToolUseID != "toolu_1" {
				t.Errorf("the task ended as %+v", e)
			}
			h.ended++
		case *event.BackgroundTasks:
			h.backgroundEmpty = len(e.Tasks) == 0
		}
	}
}

func (h *heard) check(t *testing.T, agents bool) {
	t.Helper()
	if len(h.results) != 2 || h.results[0] != "it is under way" || h.results[1] != "heard of it" {
		t.Errorf("results %q", h.results)
	}
	if h.started != 1 || h.ended != 1 || !h.backgroundEmpty {
		t.Errorf("%d tasks started, %d ended, all gone: %t", h.started, h.ended, h.backgroundEmpty)
	}
	if agents && !h.late {
		t.Error("the subagent's call of a server in this process did not come after the first result")
	}
}

// A result is not the end of a run: what goes on in the background can still call the servers in
// this process, its messages arrive, and the model hears of its end. Single-shot and streaming alike.
func TestRealBackground(t *testing.T) {
	peers.ClaudePath(t)
	for _, kind := range []struct {
		name   string
		start  func(*testing.T) *backgroundRun
		agents bool
	}{{"agent", backgroundAgent, true}, {"shell", backgroundShell, false}} {
		t.Run(kind.name+"/query", func(t *testing.T) {
			run := kind.start(t)
			var h heard
			for m, err := range agent.Query(t.Context(), run.engine, "go", run.options) {
				if err != nil {
					t.Fatal(err)
				}
				h.take(t, m, run.release)
			}
			h.check(t, kind.agents)
		})
		t.Run(kind.name+"/client", func(t *testing.T) {
			run := kind.start(t)
			c, err := agent.Open(t.Context(), run.engine, run.options)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.Send(t.Context(), "go"); err != nil {
				t.Fatal(err)
			}
			var h heard
			for m, err := range c.Messages(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				// Nothing follows after the first result, and still the CLI must not lose its input.
				h.take(t, m, func() {
					if err := c.EndInput(); err != nil {
						t.Error(err)
					}
					run.release()
				})
			}
			h.check(t, kind.agents)
		})
	}
}

// The CLI does not repeat the stream of subagents: their calls with an integer that it may have rounded
// are refused, and made with what the program gives in its place, also once the turn has ended.
func TestRealIntegersOfSubagents(t *testing.T) {
	peers.ClaudePath(t)
	for given, want := range map[string]string{"": "may have lost digits", `{"id":12345678901234567890}`: `got {"id":12345678901234567890}`} {
		m := reviewing(t,
			[]modeltest.Turn{callReviewer("toolu_1", true), modeltest.Text("it is under way"), modeltest.Text("heard of it")},
			[]modeltest.Turn{modeltest.ToolUseID("toolu_sub", "mcp__mine__tool0", `{"id":12345678901234567890}`), modeltest.Text("reviewed")})
		e, _ := realWith(t, m, &Options{BuiltinTools: []string{"Agent"}, Agents: reviewer()})
		first := make(chan struct{})
		o := &agent.Options{
			MCPServers: map[string]mcphost.ServerConfig{"mine": mcphost.InProcess(taking(t, numberTool))}, AllowedTools: []string{"Agent"},
			CanUseTool: func(ctx context.Context, r *agent.ToolRequest) (*permission.PromptResult, error) {
				select {
				case <-first:
				case <-ctx.Done():
				}
				v := agent.Allow()
				if v.UpdatedInput = r.Input; given != "" {
					v.UpdatedInput = json.RawMessage(given)
				}
				return v, nil
			},
		}
		results, got := 0, ""
		for msg, err := range agent.Query(t.Context(), e, "go", o) {
			if err != nil {
				t.Fatal(err)
			}
			switch msg := msg.(type) {
			case *agent.Result:
				if results++; results == 1 {
					close(first)
				}
			case *agent.User:
				for _, r := range msg.ToolResults() {
					if r.ToolUseID == "toolu_sub" {
						got = r.Text()
					}
				}
			}
		}
		if !strings.Contains(got, want) {
			t.Errorf("the program gives %q, the call: %s, want %s", given, got, want)
		}
	}
}
