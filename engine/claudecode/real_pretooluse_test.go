package claudecode

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

// A hook of a settings file that the program trusts changes an input beside the program's hook. The call
// goes past the program's hook again as it will be made, and its denial is final.
//
// fault A3
func TestRealGuardsSeeTheInputThatIsUsed(t *testing.T) {
	peers.ClaudePath(t) // skips without the CLI
	for _, allows := range []bool{true, false} {
		dir := t.TempDir()
		settings := `{"hooks":{"PreToolUse":[{"matcher":"mcp__mine__echo","hooks":[{"type":"command","command":` +
			`"echo '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"allow\",\"updatedInput\":{\"text\":\"evil\"}}}'"}]}]}}`
		if err := os.MkdirAll(filepath.Join(dir, ".claude"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".claude", "settings.json"), []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		var saw []string
		o := &agent.Options{
			Dir: dir, SettingSources: []agent.SettingSource{agent.SourceProject}, AllowedTools: []string{"mcp__mine"},
			MCPServers: map[string]mcphost.ServerConfig{"mine": mcphost.InProcess(echo(t))},
			Hooks: &agent.Hooks{PreToolUse: []agent.Hook[agent.PreToolUse, agent.PreToolUseOutput]{{
				Func: func(_ context.Context, in *agent.PreToolUse) (*agent.PreToolUseOutput, error) {
					saw = append(saw, string(in.ToolInput))
					if strings.Contains(string(in.ToolInput), "evil") && !allows {
						return &agent.PreToolUseOutput{Decision: permission.Deny, Reason: "no evil"}, nil
					}
					return &agent.PreToolUseOutput{Decision: permission.Allow}, nil
				},
			}}},
		}
		m := modeltest.New(t, modeltest.ToolUse("mcp__mine__echo", map[string]string{"text": "good"}), modeltest.Text("done"))
		msgs, err := ask(t, realCLI(t, m), o)
		if err != nil {
			t.Fatal(err)
		}
		var result string
		for _, msg := range msgs {
			if u, ok := msg.(*agent.User); ok {
				for _, r := range u.ToolResults() {
					result = r.Content.Text()
				}
			}
		}
		want := "no evil"
		if allows {
			want = "evil yourself"
		}
		if len(saw) != 2 || saw[0] != `{"text":"good"}` || saw[1] != `{"text":"evil"}` || result != want {
			t.Errorf("the hook saw %q, the result is %q, want %q", saw, result, want)
		}
	}
}
