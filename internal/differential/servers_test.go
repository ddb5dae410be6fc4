package differential

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/claudecode"
	"github.com/tenon-sdk/tenon/engine/native"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/modeltest"
)

// What docs/engines.md says of servers, and of what is told before the first turn, is what the engines do. That a
// server dies while nothing is called is tested where D111 is named.
// fault I11
func TestServersOnBothEngines(t *testing.T) {
	path := peers.ClaudePath(t)
	locked := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/mcp") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		http.NotFound(w, r) // no authorization server is found
	})
	m := modeltest.New(t, modeltest.Text("done"), modeltest.Text("done"))
	t.Run("native", func(t *testing.T) {
		srv := httptest.NewServer(locked)
		defer srv.Close()
		e := native.New(&native.Options{APIKey: "test", BaseURL: "http://model.test", HTTPClient: m.Client()})
		seesServers(t, e, nil, srv.URL, "needs-auth")
	})
	t.Run("CLI", func(t *testing.T) {
		l := peers.NewLoopback(t)
		env := peers.ClaudeEnv(t, l.Serve(t, m))
		e := claudecode.New(&claudecode.Options{Path: l.Executable(t, path)})
		seesServers(t, e, env, l.Serve(t, locked), "failed")
	})
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "engines.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		"| a server over HTTP that dies while nothing is called |", "| a variable in an entry that is not set |",
		"| a server that answers 401, without a token |", "| what is told before the first turn |",
	} {
		if !strings.Contains(string(text), "\n"+row) {
			t.Errorf("docs/engines.md has no row %q", row)
		}
	}
}

// seesServers asks one question with a server that wants a login, one of the project whose variable is not set, and a
// faulty rule.
func seesServers(t *testing.T, e agent.Engine, env map[string]string, url, locked string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".mcp.json"), []byte(`{"mcpServers": {"unset": {"type": "http", "url": "http://127.0.0.1:9/${TENON_TEST_UNSET}"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var first agent.Message
	for msg, err := range agent.Query(t.Context(), e, "go", &agent.Options{
		Dir: dir, Env: env, Model: "claude-sonnet-4-5",
		MCPServers:   map[string]mcphost.ServerConfig{"locked": mcphost.HTTP{URL: url + "/mcp"}},
		AllowedTools: []string{"mcp__locked", "mcp__unset", "mcp__nothing__("},
	}) {
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = msg
		}
	}
	init, ok := first.(*agent.SystemInit)
	if !ok {
		t.Fatalf("the first message is %T", first)
	}
	status := map[string]string{}
	for _, s := range init.MCPServers {
		status[s.Name] = s.Status
	}
	if status["unset"] != "failed" || status["locked"] != locked {
		t.Errorf("the servers are %v, want locked to be %s and unset to be failed", status, locked)
	}
}
