package enginetest

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/claudecode"
	"github.com/tenon-sdk/tenon/engine/native"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/modeltest"
)

func TestNative(t *testing.T) {
	testBehaviours(t, func(t *testing.T, m *modeltest.Model) agent.Engine {
		engine, _ := newNative(t, m)
		return engine
	})
}

func TestNativeFiles(t *testing.T) { testFiles(t, newNative, child()) }

func TestNativeCheckout(t *testing.T) { testCheckouts(t, newNative, child()) }

func TestClaudeCode(t *testing.T) {
	peers.ClaudePath(t) // skips without the CLI
	testBehaviours(t,
		func(t *testing.T, m *modeltest.Model) agent.Engine {
			engine, _ := newClaudeCode(t, m)
			return engine
		},
		exception{"Context/Resources", "the CLI's tools for resources are tools of its own, which the model gets when BuiltinTools names them"},
		exception{"Context/PromptCommand", "the CLI does not ask servers in this process for prompts"},
	)
}

func TestClaudeCodeFiles(t *testing.T) {
	peers.ClaudePath(t) // skips without the CLI
	testFiles(t, newClaudeCode, child())
}

func TestClaudeCodeCheckout(t *testing.T) {
	peers.ClaudePath(t) // skips without the CLI
	const (
		race  = "the CLI asks the program and the hooks of files at the same time, and uses the first answer"
		roots = "this engine does not announce roots to a server in this process"
	)
	testCheckouts(t, newClaudeCode, child(),
		exception{"AnswerAQuestion/source named", race},
		exception{"AnswerAQuestion/trusted", race},
		exception{"RedirectTheModel/trusted", "the test's engine gives the model's address in Options.Env, which overrides files"},
		exception{"SeeAnotherFolder/source named", roots},
		exception{"SeeAnotherFolder/trusted", roots},
	)
}

// child is the configuration of a server process that runs serveChild.
func child() mcphost.Stdio {
	return mcphost.Stdio{Command: os.Args[0], Args: []string{"-test.run=none"}, Env: map[string]string{childVariable: "1"}}
}

// newNative returns a native engine that sends requests for this machine over TCP and all others to m.
func newNative(_ *testing.T, m *modeltest.Model) (agent.Engine, serveFunc) {
	direct := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{Transport: roundTripFunc(func(r *http.Request) (*http.Response, error) {
		if r.URL.Hostname() == "127.0.0.1" {
			return direct.RoundTrip(r)
		}
		return m.Client().Transport.RoundTrip(r)
	})}
	return native.New(&native.Options{APIKey: "test", HTTPClient: client}), func(t *testing.T, h http.Handler) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s.URL
	}
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// newClaudeCode returns an engine on the real CLI, whose network ends at m and at what the serveFunc serves.
func newClaudeCode(t *testing.T, m *modeltest.Model) (agent.Engine, serveFunc) {
	t.Helper()
	l := peers.NewLoopback(t)
	env := peers.ClaudeEnv(t, l.Serve(t, m))
	env["ENABLE_TOOL_SEARCH"] = "false"
	engine := claudecode.New(&claudecode.Options{
		Path:   l.Executable(t, peers.ClaudePath(t)),
		Stderr: func(line string) { t.Log("cli: " + line) },
	})
	return &withEnv{engine, env}, func(t *testing.T, h http.Handler) string { return serveBoth(t, l, h) }
}

// withEnv adds environment variables to every run. Those of the run override them.
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

// serveBoth serves h at one address in the CLI's network and in this process's, which connects some servers.
func serveBoth(t *testing.T, l *peers.Loopback, h http.Handler) string {
	t.Helper()
	for range 20 {
		address := l.Serve(t, h)
		if !l.Isolated {
			return address
		}
		lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", strings.TrimPrefix(address, "http://"))
		if err != nil {
			continue // somebody has the port here
		}
		server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
		done := make(chan struct{})
		go func() { defer close(done); _ = server.Serve(lis) }()
		t.Cleanup(func() { _ = server.Close(); <-done })
		return address
	}
	t.Fatal("no port is free in both networks")
	return ""
}
