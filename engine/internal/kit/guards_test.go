package kit

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcpconfig"
)

// A checkout does not answer in the place of a server that a hook of the user's or the program's calls, also where that
// server is not configured.
// fault A2
func TestCheckoutIsNoGuard(t *testing.T) {
	const hook = `{"hooks": {"PermissionRequest": [{"hooks": [{"type": "mcp_tool", "server": "my guard", "tool": "ask"}]}]}}`
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".claude", "settings.json"), []byte(hook), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	dir := project(t, map[string]string{".mcp.json": `{"mcpServers": {"my_guard": {"command": "x", "tools": [{"name": "a", "permission_policy": "always_ask"}]}, "free": {"command": "x"}}}`})
	no := func(string, []byte) bool { return false }
	for _, tt := range []struct {
		name string
		o    agent.Options
		used bool
	}{
		{"the user's hook", agent.Options{SettingSources: []agent.SettingSource{agent.SourceUser, agent.SourceProject}, TrustFile: no}, false},
		{"the program's settings", agent.Options{Settings: hook}, false},
		{"the tool that is asked", agent.Options{PermissionPromptTool: "mcp__my_guard__ask"}, false},
		{"no hook", agent.Options{}, true},
		{"with trust", agent.Options{SettingSources: []agent.SettingSource{agent.SourceUser, agent.SourceProject}}, true},
	} {
		tt.o.Dir = dir
		f, err := ReadFiles(&tt.o)
		if err != nil {
			t.Fatal(err)
		}
		_, used := f.Servers["my_guard"]
		reported := slices.ContainsFunc(f.Problems, func(p mcpconfig.Problem) bool {
			return p.Level == mcpconfig.LevelUntrusted && p.Server == "my_guard" && p.Line == 1 && strings.Contains(p.Message, " of that name")
		})
		if used != tt.used || reported == used || f.Servers["free"] == nil || (f.Policies["my_guard"] != nil) != used {
			t.Errorf("%s: servers %q, policies %v, problems %v", tt.name, slices.Sorted(maps.Keys(f.Servers)), f.Policies, f.Problems)
		}
		if tt.used {
			continue
		}
		if f, _, err = ReadForCLI(&tt.o); err != nil || f.Servers["my_guard"] != nil {
			t.Errorf("%s, for the CLI: servers %v, %v", tt.name, f.Servers, err)
		}
	}
}
