package mcpconfig

import (
	"encoding/json"
	"fmt"
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

// A document of exactly the most bytes that are read is read.
func TestLargestDocument(t *testing.T) {
	text := `{"mcpServers": {"s": {"command": "x"}}}`
	for size, want := range map[int]string{maxBytes: "", maxBytes + 1: "it has more than the 67108864 bytes that are read"} {
		cfg, problems := Parse([]byte(text+strings.Repeat(" ", size-len(text))), &ParseOptions{LookupEnv: env()})
		switch {
		case want == "" && (len(problems) != 0 || len(cfg.Servers) != 1):
			t.Errorf("%d bytes: %d servers, problems %v", size, len(cfg.Servers), problems)
		case want != "" && (len(problems) != 1 || !strings.Contains(problems[0].String(), want)):
			t.Errorf("%d bytes: problems %v, want %q", size, problems, want)
		}
	}
}

func init() {
	full := func(size int) func() {
		return func() { fmt.Printf(`{"A": "%s"}`, strings.Repeat("x", size-len(`{"A": ""}`))) }
	}
	helpers["most"], helpers["over"] = full(helperBytes), full(helperBytes+1)
}

// A helper may print exactly its limit.
func TestLongestOutputOfAHelper(t *testing.T) {
	if h, err := headers(t.Context(), t, "most"); err != nil || len(h["A"]) != 1<<20-9 {
		t.Errorf("%d bytes, %v", len(h["A"]), err)
	}
	if _, err := headers(t.Context(), t, "over"); err == nil || !strings.Contains(err.Error(), "printed more than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
}

// A cwd stays as it is written where it is absolute, or begins with ~, or where
// there is nothing that it could be relative to.
func TestDirectoriesOfServers(t *testing.T) {
	for _, tt := range []struct{ base, cwd, want string }{
		{"", "./sub", "./sub"}, {"/srv", "./sub", "/srv/sub"}, {"/srv", "/opt//x", "/opt//x"}, {"/srv", "~/x", "~/x"}, {"/srv", "", ""}, {"x", "sub", "x/sub"},
	} {
		if got := (ParseOptions{Dir: tt.base}).resolve(tt.cwd); got != tt.want {
			t.Errorf("cwd %q in %q is %q, want %q", tt.cwd, tt.base, got, tt.want)
		}
	}
}
