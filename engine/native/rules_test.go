package native

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

// ruleWarnings are the warnings about rules.
func ruleWarnings(msgs []agent.Message) []string {
	var found []string
	for _, m := range msgs {
		var i informational
		if s, ok := m.(*agent.System); ok && s.Subtype == "informational" && s.Decode(&i) == nil && i.Tag == "permission_rule" {
			found = append(found, strings.TrimPrefix(i.Content, "Permission rule: "))
		}
	}
	return found
}

// A misspelt rule is reported with the nearest name, once the servers are there that show it to be one: those of the
// first turn, those that come up later, those that are set later; and once only. So is one that a verdict adds.
//
// fault D10
func TestMisspeltRules(t *testing.T) {
	slow := &slowProvider{Server: serverWith(t, "read", echoArgs), release: make(chan struct{})}
	o := &agent.Options{
		MCPServers: map[string]mcphost.ServerConfig{
			"everything": mcphost.InProcess(serverWith(t, "echo", echoArgs)), "weather": mcphost.InProcess(serverWith(t, "now", echoArgs)),
		},
		AllowedTools:    []string{"mcp__wether", "mcp__slow__reed", "mcp__late__lokup", "mcp__everything__echo", "ToolSearch"},
		DisallowedTools: []string{"mcp__everything__ecko", "mcp__weather__delete*", "Bash"},
		CanUseTool: func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) {
			return &permission.PromptResult{Behavior: permission.Allow, UpdatedPermissions: []permission.Update{{
				Type: "addRules", Destination: "session", Behavior: permission.Allow, Rules: []permission.UpdateRule{{ToolName: "mcp__weather__noww"}},
			}}}, nil
		},
	}
	host, err := mcphost.New(&mcphost.Options{Servers: map[string]mcphost.ServerConfig{"slow": mcphost.InProcess(slow)}})
	if err != nil {
		t.Fatal(err)
	}
	host.Start(t.Context())
	t.Cleanup(func() { _ = host.Close() })
	o.Host = host
	model := modeltest.New(t, modeltest.Func(func(r *modeltest.Request) modeltest.Turn {
		if r.LastUserText() == "call" && len(r.ToolResults()) == 0 {
			return modeltest.ToolUse("mcp__weather__now", `{}`)
		}
		return modeltest.Text("x")
	}))
	c := open(t, model, o)
	turn := func(text string, want ...string) {
		t.Helper()
		_, msgs := say(t, c, text)
		if got := ruleWarnings(msgs); !slices.Equal(got, want) {
			t.Errorf("%s: told\n%s", text, strings.Join(got, "\n"))
		}
	}
	turn("first",
		`deny rule "mcp__everything__ecko": covers no tool that server "everything" has; write mcp__everything__echo`,
		`allow rule "mcp__wether": names no server that there is; write mcp__weather__*`)
	turn("second")
	close(slow.release)
	if err := host.Ready(t.Context(), "slow"); err != nil {
		t.Fatal(err)
	}
	turn("came up", `allow rule "mcp__slow__reed": covers no tool that server "slow" has; write mcp__slow__read`)
	o.MCPServers["late"] = mcphost.InProcess(serverWith(t, "lookup", echoArgs))
	if _, err := c.SetMCPServers(t.Context(), o.MCPServers); err != nil {
		t.Fatal(err)
	}
	turn("set", `allow rule "mcp__late__lokup": covers no tool that server "late" has; write mcp__late__lookup`)
	turn("call", `allow rule "mcp__weather__noww": covers no tool that server "weather" has; write mcp__weather__now`)
	if _, err := c.SetMCPServers(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.SetMCPServers(t.Context(), o.MCPServers); err != nil {
		t.Fatal(err)
	}
	turn("again")
}

// A rule about a tool that its server has and that is kept from the model is no mistake.
func TestRulesAboutToolsLeftOut(t *testing.T) {
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	o.DisallowedTools, o.AskTools = []string{"mcp__s__w", readTool, outputTool}, []string{"mcp__s__w"}
	if _, msgs := answered(t, modeltest.New(t, modeltest.Text("x")), o); len(ruleWarnings(msgs)) != 0 {
		t.Errorf("told %q", ruleWarnings(msgs))
	}
}

// The program has the message with a call before it, or a hook, is asked about the call. Here neither answers
// before the message was received.
//
// fault D13
func TestCallIsHeardBeforeTheQuestion(t *testing.T) {
	for range 200 {
		heard := make(chan struct{})
		wait := func(ctx context.Context) error {
			select {
			case <-heard:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
		o.AllowedTools = nil
		o.CanUseTool = func(ctx context.Context, _ *agent.ToolRequest) (*permission.PromptResult, error) {
			return &permission.PromptResult{Behavior: permission.Allow}, wait(ctx)
		}
		o.Hooks = &agent.Hooks{PreToolUse: []agent.Hook[agent.PreToolUse, agent.PreToolUseOutput]{{
			Func: func(ctx context.Context, _ *agent.PreToolUse) (*agent.PreToolUseOutput, error) { return nil, wait(ctx) },
		}}}
		model := modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{}`), modeltest.Text("x"))
		var got []agent.Message
		for m, err := range agent.Query(t.Context(), testEngine(model), "x", o) {
			if err != nil {
				t.Fatal(err)
			}
			if a, ok := m.(*agent.Assistant); ok && len(a.ToolUses()) == 1 {
				close(heard)
			}
			got = append(got, m)
		}
		if r := results(got); len(r) != 1 || r[0].IsError {
			t.Fatalf("results %+v", r)
		}
	}
}
