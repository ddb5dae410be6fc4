package claudecode

import (
	"context"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

// A read of a server's resources follows the rules about the server, by the CLI's own tool, too.
//
// fault A7
func TestRealResourcesFollowTheRulesOfTheirServer(t *testing.T) {
	s := echo(t)
	reads := 0
	err := s.AddResource(&mcp.Resource{URI: "x://secret", Name: "secret"}, func(context.Context) (*mcp.ReadResourceResult, error) {
		reads++
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "x://secret", Text: "the secret"}}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name        string
		set         func(o *agent.Options)
		reads, asks int
	}{
		{"no rule", func(*agent.Options) {}, 1, 0},
		{"a rule for another server", func(o *agent.Options) { o.DisallowedTools = []string{"mcp__other"} }, 1, 0},
		{"denied", func(o *agent.Options) { o.DisallowedTools = []string{"mcp__mine"} }, 0, 0},
		{"asked", func(o *agent.Options) { o.AskTools = []string{"mcp__mine__*"} }, 0, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			reads = 0
			asks := 0
			m := modeltest.New(t, modeltest.ToolUseID("toolu_1", "ReadMcpResourceTool", `{"server":"mine","uri":"x://secret"}`), modeltest.Text("done"))
			e, ok := realCLI(t, m).(*withEnv)
			if !ok {
				t.Fatal("not the CLI")
			}
			own, ok := e.Engine.(*Engine)
			if !ok {
				t.Fatal("not the CLI")
			}
			own.opts.BuiltinTools = []string{"ReadMcpResourceTool"}
			o := &agent.Options{
				MCPServers: map[string]mcphost.ServerConfig{"mine": mcphost.InProcess(s)},
				CanUseTool: func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) {
					asks++
					return agent.Deny("no"), nil
				},
			}
			tt.set(o)
			if _, err := ask(t, e, o); err != nil {
				t.Fatal(err)
			}
			got, _ := m.Last().ToolResult("toolu_1")
			if reads != tt.reads || asks != tt.asks || strings.Contains(string(got.Raw), "the secret") != (tt.reads > 0) {
				t.Errorf("%d reads, %d questions, the model was sent %s", reads, asks, got.Raw)
			}
		})
	}
}
