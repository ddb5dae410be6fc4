// Package enginetest holds the tests that every engine passes, so that a program behaves the same
// whichever engine runs it. The model is scripted and strict: a request that the real API would
// refuse fails the test.
package enginetest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

// A newEngineFunc makes an engine whose model is m. The engine's resources are released when the test ends.
type newEngineFunc func(t *testing.T, m *modeltest.Model) agent.Engine

// An exception names a subtest, such as "Tools/Panic", that an engine cannot pass.
type exception struct{ test, reason string }

// A behaviour is one thing that every engine owes.
type behaviour struct {
	name string
	test func(*env)
}

// testBehaviours runs every behaviour as a subtest on a new engine.
func testBehaviours(t *testing.T, newEngine newEngineFunc, except ...exception) {
	groups := []struct {
		name       string
		behaviours []behaviour
	}{
		{"Answers", answerBehaviours},
		{"Tools", toolBehaviours},
		{"Permission", permissionBehaviours},
		{"Limits", limitBehaviours},
		{"Client", clientBehaviours},
		{"Inputs", inputBehaviours},
		{"Init", initBehaviours},
		{"Servers", serverBehaviours},
		{"Hooks", hookBehaviours},
		{"Output", outputBehaviours},
		{"Context", contextBehaviours},
	}
	known := map[string]bool{}
	for _, g := range groups {
		for _, b := range g.behaviours {
			known[g.name+"/"+b.name] = true // also of a group that -run leaves out
		}
		t.Run(g.name, func(t *testing.T) {
			for _, b := range g.behaviours {
				name := g.name + "/" + b.name
				t.Run(b.name, func(t *testing.T) {
					if i := slices.IndexFunc(except, func(e exception) bool { return e.test == name }); i >= 0 {
						t.Skip(except[i].reason)
					}
					b.test(&env{T: t, newEngine: newEngine})
				})
			}
		})
	}
	for _, e := range except {
		if !known[e.test] {
			t.Errorf("exception for %q: there is no such behaviour", e.test)
		}
	}
}

// An env is what a behaviour is tested in.
type env struct {
	*testing.T
	newEngine newEngineFunc
	model     *modeltest.Model
	// Only for the file behaviours:
	serve serveFunc     // of the engine that was made last
	child mcphost.Stdio // runs serveChild
}

// script makes an engine whose model gives these answers.
func (e *env) script(turns ...modeltest.Turn) agent.Engine {
	e.Helper()
	e.model = modeltest.New(e.T, turns...)
	return e.newEngine(e.T, e.model)
}

// A transcript is what a run said.
type transcript struct {
	messages []agent.Message
	err      error // the last value's error
}

// ask runs a query to its end.
func (e *env) ask(engine agent.Engine, prompt string, o *agent.Options) *transcript {
	e.Helper()
	return e.askContext(e.Context(), engine, prompt, o)
}

func (e *env) askContext(ctx context.Context, engine agent.Engine, prompt string, o *agent.Options) *transcript {
	e.Helper()
	tr := &transcript{}
	for m, err := range agent.Query(ctx, engine, prompt, alone(o)) {
		if tr.err != nil {
			e.Fatalf("a value after the error %v: %v, %v", tr.err, m, err)
		}
		if m != nil {
			tr.messages = append(tr.messages, m)
		}
		tr.err = err
	}
	return tr
}

// alone are options that read nothing of the machine, unless they say what.
func alone(o *agent.Options) *agent.Options {
	var own agent.Options
	if o != nil {
		own = *o
	}
	if own.SettingSources == nil {
		own.SettingSources = []agent.SettingSource{}
	}
	return &own
}

// answered is ask for a run that must succeed. It returns the answer as well.
func (e *env) answered(engine agent.Engine, prompt string, o *agent.Options) (*transcript, *agent.Result) {
	e.Helper()
	tr := e.ask(engine, prompt, o)
	if tr.err != nil {
		e.Fatalf("the run ended with %v", tr.err)
	}
	return tr, tr.result(e)
}

// all returns the messages of one kind.
func all[M agent.Message](tr *transcript) []M {
	var found []M
	for _, m := range tr.messages {
		if m, ok := m.(M); ok {
			found = append(found, m)
		}
	}
	return found
}

// result is the run's only result.
func (tr *transcript) result(e *env) *agent.Result {
	e.Helper()
	results := all[*agent.Result](tr)
	if len(results) != 1 {
		e.Fatalf("%d results among %d messages (error %v), want 1", len(results), len(tr.messages), tr.err)
	}
	return results[0]
}

// init is the first init message.
func (tr *transcript) init(e *env) *agent.SystemInit {
	e.Helper()
	inits := all[*agent.SystemInit](tr)
	if len(inits) == 0 {
		e.Fatalf("no init message among %d", len(tr.messages))
	}
	return inits[0]
}

// text is what the assistant said.
func (tr *transcript) text() string {
	var parts []string
	for _, a := range all[*agent.Assistant](tr) {
		if text := a.Text(); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n")
}

// toolResults are the tool results by the IDs of the calls.
func (tr *transcript) toolResults() map[string]*agent.ToolResultBlock {
	found := map[string]*agent.ToolResultBlock{}
	for _, u := range all[*agent.User](tr) {
		for _, r := range u.ToolResults() {
			found[r.ToolUseID] = r
		}
	}
	return found
}

// toolResult is the result of one call.
func (tr *transcript) toolResult(e *env, id string) *agent.ToolResultBlock {
	e.Helper()
	r := tr.toolResults()[id]
	if r == nil {
		e.Fatalf("call %s has no result; there are %d", id, len(tr.toolResults()))
	}
	return r
}

// sent is the result of a call as the model was sent it.
func (e *env) sent(id string) modeltest.Content {
	e.Helper()
	for _, r := range e.model.Requests() {
		if c, ok := r.ToolResult(id); ok {
			return c
		}
	}
	e.Fatalf("the model was never sent a result of call %s", id)
	return modeltest.Content{}
}

// textOf is the text of a content block of a request and of the blocks in it.
func textOf(c modeltest.Content) string {
	parts := []string{c.Text}
	for _, inner := range c.Content {
		parts = append(parts, textOf(inner))
	}
	return strings.Trim(strings.Join(parts, "\n"), "\n")
}

// server makes a server in this process.
func server(name string) *mcpserver.Server { return mcpserver.New(name, nil) }

// handler is a tool's function in the tests.
type handler func(ctx context.Context, args json.RawMessage) (*mcpserver.Result, error)

// add adds a tool that takes any object.
func (e *env) add(s *mcpserver.Server, t *mcpserver.Tool, h handler) {
	e.Helper()
	if t.InputSchema == nil {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	if err := s.AddTool(t, mcpserver.RawHandler(h)); err != nil {
		e.Fatal(err)
	}
}

// echo is a handler that returns its arguments.
func echo(_ context.Context, args json.RawMessage) (*mcpserver.Result, error) {
	return mcpserver.Text(string(args)), nil
}

// toolbox is a server t with one tool, x, and options that allow it.
func (e *env) toolbox(t *mcpserver.Tool, h handler) *agent.Options {
	e.Helper()
	s := server("t")
	if t == nil {
		t = &mcpserver.Tool{}
	}
	t.Name = "x"
	e.add(s, t, h)
	return allowed(s, "t")
}

// allowed are options with one server, all of whose tools may run.
func allowed(s *mcpserver.Server, name string) *agent.Options {
	return &agent.Options{
		MCPServers:   map[string]mcphost.ServerConfig{name: mcphost.InProcess(s)},
		AllowedTools: []string{"mcp__" + name + "__*"},
	}
}

// toolX is the full name of the toolbox's tool.
const toolX = "mcp__t__x"

// callX is a call of it under an ID.
func callX(id, input string) modeltest.Part { return modeltest.ToolUseID(id, toolX, input) }

// open starts a conversation that ends with the test.
func (e *env) open(engine agent.Engine, o *agent.Options) *agent.Client {
	e.Helper()
	c, err := agent.Open(e.Context(), engine, alone(o))
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() {
		if err := c.Close(); err != nil {
			e.Error(err)
		}
	})
	return c
}

// send says something in a conversation.
func (e *env) send(c *agent.Client, text string) {
	e.Helper()
	if err := c.Send(e.Context(), text); err != nil {
		e.Fatal(err)
	}
}

// hear reads the messages of one turn.
func (e *env) hear(c *agent.Client) *transcript {
	e.Helper()
	tr := &transcript{}
	for m, err := range c.Response(e.Context()) {
		if err != nil {
			e.Fatal(err)
		}
		tr.messages = append(tr.messages, m)
	}
	return tr
}
