package claudecode

import (
	"context"
	"maps"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

// The real CLI with the scripted model on loopback: a server in this process is announced, listed
// and called through the bridge, the program is asked for permission, and a hook sees the call. // B01 B02
func TestRealCLI(t *testing.T) {
	peers.ClaudePath(t) // skips without the CLI
	m := modeltest.New(t,
		modeltest.ToolUse("mcp__mine__echo", map[string]string{"text": "hello"}),
		modeltest.Text("done"))
	var asked agent.ToolRequest
	hooked := 0
	o := &agent.Options{
		MCPServers: map[string]mcphost.ServerConfig{"mine": mcphost.InProcess(echo(t))},
		CanUseTool: func(_ context.Context, r *agent.ToolRequest) (*permission.PromptResult, error) {
			asked = *r
			return agent.Allow(), nil
		},
		Hooks: &agent.Hooks{PreToolUse: []agent.Hook[agent.PreToolUse, agent.PreToolUseOutput]{{
			Matcher: "mcp__mine__.*",
			Func:    func(context.Context, *agent.PreToolUse) (*agent.PreToolUseOutput, error) { hooked++; return nil, nil },
		}}},
	}
	msgs, err := ask(t, realCLI(t, m), o)
	if err != nil {
		t.Fatal(err)
	}
	var result string
	for _, msg := range msgs {
		switch msg := msg.(type) {
		case *agent.SystemInit:
			if len(msg.MCPServers) != 1 || msg.MCPServers[0].Name != "mine" || msg.MCPServers[0].Status != "connected" || msg.MCPServers[0].Source != "sdk" {
				t.Errorf("init says %+v", msg.MCPServers)
			}
		case *agent.User:
			for _, r := range msg.ToolResults() {
				result = r.Content.Text()
			}
		}
	}
	last, ok := msgs[len(msgs)-1].(*agent.Result)
	if !ok || last.Result != "done" {
		t.Errorf("the last message is %+v", msgs[len(msgs)-1])
	}
	if result != "hello yourself" {
		t.Errorf("the tool's result is %q", result)
	}
	if asked.ToolName != "mcp__mine__echo" || asked.Server != "mine" || asked.Tool != "echo" || hooked != 1 {
		t.Errorf("asked about %+v, hooked %d times", asked, hooked)
	}
}

// realCLI is the engine on the installed CLI, in a network that ends at the model.
func realCLI(t *testing.T, m *modeltest.Model) agent.Engine {
	t.Helper()
	l := peers.NewLoopback(t)
	env := peers.ClaudeEnv(t, l.Serve(t, m))
	env["ENABLE_TOOL_SEARCH"] = "false"
	return &withEnv{New(&Options{Path: l.Executable(t, peers.ClaudePath(t)), Stderr: func(line string) { t.Log("cli: " + line) }}), env}
}

// withEnv lays an environment under the one of each run.
type withEnv struct {
	agent.Engine
	env map[string]string
}

func (e *withEnv) Open(ctx context.Context, o *agent.Options) (agent.Session, error) {
	c := *o
	c.Env = maps.Clone(e.env)
	maps.Copy(c.Env, o.Env)
	return e.Engine.Open(ctx, &c)
}
