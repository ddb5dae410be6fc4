package mcpconfig

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tenon-sdk/tenon/permission"
)

// settingsFiles writes files below a new directory, which is the home and holds the project "work".
func settingsFiles(t *testing.T, files map[string]string) *SettingsOptions {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &SettingsOptions{Dir: filepath.Join(root, "work"), LookupEnv: env("HOME", root, "USERPROFILE", root)}
}

func TestLoadSettings(t *testing.T) {
	o := settingsFiles(t, map[string]string{
		".claude/settings.json":            `{"permissions": {"allow": ["u"], "defaultMode": "bypassPermissions"}, "env": {"A": "user", "B": "user", "ANTHROPIC_BASE_URL": "http://gateway"}, "theme": "dark"}`,
		"work/.claude/settings.json":       `{"permissions": {"deny": ["p"], "additionalDirectories": ["../lib"]}, "env": {"B": "project", "N": 7, "F": false}, "model": "opus"}`,
		"work/.claude/settings.local.json": `{"permissions": {"ask": ["l"], "defaultMode": "plan"}, "model": "sonnet", /* a comment */}`,
		"work/more.json":                   `{"permissions": {"allow": ["s"]}, "hooks": {"PreToolUse": [{"matcher": "mcp__a__.*", "hooks": [{"type": "mcp_tool", "server": "g", "tool": "t", "input": {"p": "${tool_input.p}"}, "if": "mcp__a", "timeout": 1.5, "onFailure": "block", "once": true}]}]}}`,
	})
	o.Settings, o.TrustFile = "more.json", trusted
	got, problems := LoadSettings(o)
	for _, p := range problems {
		t.Errorf("problem: %v", p)
	}
	want := &Settings{
		Allow: []string{"u", "s"}, Deny: []string{"p"}, Ask: []string{"l"}, Mode: permission.ModePlan, Directories: []string{"../lib"}, Model: "sonnet",
		Env: map[string]string{"A": "user", "B": "project", "N": "7", "F": "false", "ANTHROPIC_BASE_URL": "http://gateway"},
		Hooks: []ToolHook{{
			Event: "PreToolUse", Matcher: "mcp__a__.*", Server: "g", Tool: "t", Input: json.RawMessage(`{"p":"${tool_input.p}"}`),
			If: "mcp__a", Timeout: 1500 * time.Millisecond, Block: true, Once: true, Line: 1,
		}},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(ToolHook{}, "File"), cmpopts.IgnoreFields(Settings{}, "Trusted")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s := got.Hooks[0].String(); !strings.Contains(s, "PreToolUse") || !strings.Contains(s, "more.json:1") {
		t.Errorf("the hook is called %q", s)
	}
	o.SettingSources, o.Settings = []Scope{ScopeProject}, ""
	if got, _ := LoadSettings(o); len(got.Allow) != 0 || len(got.Deny) != 1 || got.Mode != "" {
		t.Errorf("of the project alone: %+v", got)
	}
	o.SettingSources = []Scope{}
	if got, _ := LoadSettings(o); len(got.Deny) != 0 {
		t.Errorf("of no source: %+v", got)
	}
}

// What is faulty costs itself, and is reported with its place.
func TestFaultySettings(t *testing.T) {
	tests := []struct {
		name, text, want string
		kept             int // rules that hold
	}{
		{"no JSON", `{"permissions":`, "ends too soon", 0},
		{"no object", `[]`, "is a list, want an object", 0},
		{"a rule", `{"permissions": {"allow": ["a", 7, "b"]}}`, "permissions.allow[1]: is a number", 2},
		{"a list", `{"permissions": {"allow": "a"}}`, "permissions.allow: is a string", 0},
		{"permissions", `{"permissions": 1}`, "permissions: is a number", 0},
		{"mode", `{"permissions": {"defaultMode": "yolo", "allow": ["a"]}}`, "defaultMode: is not a permission mode", 1},
		{"variable", `{"env": {"X": [1]}}`, "env.X: is a list", 0},
		{"variables", `{"env": "X=1"}`, "env: is a string", 0},
		{"the user's own files", `{"env": {"Home": "x"}}`, "env.Home: is left out", 0},
		{"model", `{"model": 4}`, "model: is a number", 0},
		{"switch", `{"disableAllHooks": "yes"}`, "disableAllHooks: is a string", 0},
		{"key helper", `{"apiKeyHelper": "x"}`, "apiKeyHelper: does nothing here", 0},
		{"a list of servers", `{"deniedMcpServers": []}`, "deniedMcpServers: does nothing here", 0},
		{"a key of permissions", `{"permissions": {"disableBypassPermissionsMode": "disable", "allow": ["a"]}}`, "permissions.disableBypassPermissionsMode: does nothing here", 1},
		{"hooks", `{"hooks": []}`, "hooks: is a list", 0},
		{"groups", `{"hooks": {"Stop": {}}}`, "hooks.Stop: is an object", 0},
		{"a group", `{"hooks": {"Stop": [{"matcher": "x"}]}}`, "has no list", 0},
		{"matcher", `{"hooks": {"Stop": [{"matcher": "(", "hooks": []}]}}`, "is not a regular expression", 0},
		{"matcher's kind", `{"hooks": {"Stop": [{"matcher": 1, "hooks": []}]}}`, "is a number, want a string", 0},
		{"command", `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}`, `hooks of type "command"`, 0},
		{"no tool", `{"hooks": {"Stop": [{"hooks": [{"type": "mcp_tool", "server": "x"}]}]}}`, `needs "server" and "tool"`, 0},
		{"input", `{"hooks": {"Stop": [{"hooks": [{"type": "mcp_tool", "server": "x", "tool": "y", "input": 1}]}]}}`, "is a number, want an object", 0},
		{"timeout", `{"hooks": {"Stop": [{"hooks": [{"type": "mcp_tool", "server": "x", "tool": "y", "timeout": 0}]}]}}`, "the default holds", 0},
		{"off", `{"disableAllHooks": true, "hooks": {"Stop": [{"hooks": [{"type": "mcp_tool", "server": "x", "tool": "y"}]}]}}`, "1 hooks are not run", 0},
		{"twice", `{"model": "a", "model": "b"}`, "stands twice", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := settingsFiles(t, map[string]string{"work/.claude/settings.json": tt.text})
			o.TrustFile = trusted
			got, problems := LoadSettings(o)
			if len(problems) != 1 || !strings.Contains(problems[0].String(), tt.want) || problems[0].Named {
				t.Errorf("problems %v, want one with %q", problems, tt.want)
			}
			if len(got.Allow) != tt.kept {
				t.Errorf("%d rules hold, want %d", len(got.Allow), tt.kept)
			}
		})
	}
	for _, text := range []string{"absent.json", `{"model":`, `{`, `[]`, `["x"]`, `"x"`, `5`, `true`, `null`} {
		o := settingsFiles(t, map[string]string{"work/x": ""})
		o.Settings = text
		if _, problems := LoadSettings(o); len(problems) != 1 || !problems[0].Named || problems[0].Level != LevelFile || text != "absent.json" && problems[0].File != "--settings" {
			t.Errorf("%s: %v", text, problems)
		}
	}
	o := settingsFiles(t, map[string]string{"work/5": `{"model": "m"}`})
	o.Settings = "5"
	if got, problems := LoadSettings(o); got.Model != "m" || len(problems) > 0 {
		t.Errorf("a file with the name of a number: %v, %v", got, problems)
	}
}
