package mcpconfig

import (
	"encoding/json"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The file of Claude Desktop is in its folder below the user's configuration directory.
// fault F5
func TestClaudeDesktopFile(t *testing.T) {
	dir := t.TempDir()
	below := []string{"Claude", "claude_desktop_config.json"}
	switch runtime.GOOS {
	case "windows":
		t.Setenv("AppData", dir)
	case "darwin":
		t.Setenv("HOME", dir)
		below = append([]string{"Library", "Application Support"}, below...)
	default:
		t.Setenv("XDG_CONFIG_HOME", dir)
	}
	got, err := ClaudeDesktopFile()
	if want := filepath.Join(append([]string{dir}, below...)...); err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

// Without a home there is no such file.
// fault F5
func TestClaudeDesktopFileWithoutAHome(t *testing.T) {
	for _, name := range []string{"XDG_CONFIG_HOME", "HOME", "AppData"} {
		t.Setenv(name, "")
	}
	if got, err := ClaudeDesktopFile(); err == nil || got != "" {
		t.Errorf("got %q, %v; want an error", got, err)
	}
}

// Each key of another host is told of with the key that it means here, however it is written.
// fault F18
func TestForeignKeysNameOurs(t *testing.T) {
	want := map[string]string{
		"serverUrl": "url", "httpUrl": "url", "uri": "url", "endpoint": "url", "baseUrl": "url", "sseUrl": "url", "SSE_URL": "url", "sse-url": "url",
		"transport": "type", "transportType": "type", "kind": "type", "protocol": "type",
		"cmd": "command", "executable": "command", "program": "command", "path": "command",
		"arguments": "args", "argv": "args", "params": "args",
		"environment": "env", "environ": "env", "envs": "env", "envVars": "env",
		"workingDirectory": "cwd", "workdir": "cwd", "dir": "cwd", "directory": "cwd",
		"httpHeaders": "headers", "requestHeaders": "headers", "requestInit": "headers",
		"enabled": "disabled", "disable": "disabled",
		"timeoutMs": "timeout", "callTimeout": "timeout", "toolTimeout": "timeout", "startTimeout": "connectTimeout", "startupTimeout": "connectTimeout",
		"auth": "oauth", "autoApprove": "tools", "alwaysAllow": "tools", "disabledTools": "tools", "permissions": "tools",
	}
	for key, ours := range want {
		members := map[string]any{"command": "x", key: "v"}
		if ours == "command" {
			delete(members, "command") // a key that is there already is not offered
		}
		entry, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		_, problems := Parse([]byte(`{"mcpServers":{"s":`+string(entry)+`}}`), nil)
		found := false
		for _, p := range problems {
			found = found || p.Server == "s" && strings.Contains(p.String(), key) && strings.Contains(p.String(), `write "`+ours+`"`)
		}
		if !found {
			t.Errorf("%s: got %v, want a problem that names %q", key, problems, ours)
		}
	}
	known := map[string]bool{}
	for key := range want {
		known[strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(key))] = true
	}
	for key := range foreignKeys {
		if !known[key] {
			t.Errorf("no case has the key %q", key)
		}
	}
}
