package claudecode

import (
	"context"
	"net/http"
	"os"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/enginetest"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/modeltest"
)

func init() { children["enginetest"] = func() { enginetest.Child(context.Background()) } }

// What every engine owes to configuration files and to servers over HTTP, on the real CLI.
func TestFiles(t *testing.T) {
	peers.ClaudePath(t) // skips without the CLI
	enginetest.RunFileTests(t, func(t *testing.T, m *modeltest.Model) (agent.Engine, enginetest.ServeFunc) {
		l := peers.NewLoopback(t)
		env := peers.ClaudeEnv(t, l.Serve(t, m))
		env["ENABLE_TOOL_SEARCH"] = "false"
		e := New(&Options{Path: l.Executable(t, peers.ClaudePath(t)), Stderr: func(line string) { t.Log("cli: " + line) }})
		return &withEnv{e, env}, func(t *testing.T, h http.Handler) string { return l.Serve(t, h) }
	}, mcphost.Stdio{Command: os.Args[0], Args: []string{"-test.run=none"}, Env: map[string]string{"CLAUDECODE_TEST_CHILD": "enginetest"}})
}
