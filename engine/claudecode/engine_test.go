package claudecode

import (
	"context"
	"maps"
	"net/http"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/enginetest"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/modeltest"
)

// exceptions are what the CLI cannot show, each with the reason. docs/engines.md tells users.
var exceptions = []enginetest.Exception{}

// What every engine owes, on the real CLI with the scripted model on loopback.
func TestEngine(t *testing.T) {
	peers.ClaudePath(t) // skips without the CLI
	enginetest.RunEngineTests(t, func(t *testing.T, m *modeltest.Model) agent.Engine {
		return realCLI(t, m)
	}, exceptions...)
}

// realCLI is the engine on the installed CLI, in a network that ends at the model.
func realCLI(t *testing.T, m *modeltest.Model) agent.Engine {
	t.Helper()
	l := peers.NewLoopback(t)
	lis := l.Listen(t)
	server := &http.Server{Handler: m}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(lis) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	env := peers.ClaudeEnv(t, "http://"+lis.Addr().String())
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
