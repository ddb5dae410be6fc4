package claudecode

import (
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

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
		return &withEnv{e, env}, func(t *testing.T, h http.Handler) string { return serveBoth(t, l, h) }
	}, mcphost.Stdio{Command: os.Args[0], Args: []string{"-test.run=none"}, Env: map[string]string{"CLAUDECODE_TEST_CHILD": "enginetest"}})
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

// What a hostile checkout tries, on the real CLI.
func TestCheckout(t *testing.T) {
	peers.ClaudePath(t) // skips without the CLI
	enginetest.RunCheckoutTests(t, func(t *testing.T, m *modeltest.Model) (agent.Engine, enginetest.ServeFunc) {
		l := peers.NewLoopback(t)
		env := peers.ClaudeEnv(t, l.Serve(t, m))
		env["ENABLE_TOOL_SEARCH"] = "false"
		e := New(&Options{Path: l.Executable(t, peers.ClaudePath(t)), Stderr: func(line string) { t.Log("cli: " + line) }})
		return &withEnv{e, env}, func(t *testing.T, h http.Handler) string { return serveBoth(t, l, h) }
	}, mcphost.Stdio{Command: os.Args[0], Args: []string{"-test.run=none"}, Env: map[string]string{"CLAUDECODE_TEST_CHILD": "enginetest"}},
		enginetest.Exception{Test: "AnswerAQuestion/source named", Reason: "the CLI asks the program and the hooks of files at the same time, and the first answer counts"},
		enginetest.Exception{Test: "AnswerAQuestion/trusted", Reason: "the CLI asks the program and the hooks of files at the same time, and the first answer counts"},
		enginetest.Exception{Test: "RedirectTheModel/trusted", Reason: "the test's engine gives the model's address by Options.Env, which wins over what a file says"},
		enginetest.Exception{Test: "SeeAnotherFolder/source named", Reason: "a server in this process is told of no roots by this engine"},
		enginetest.Exception{Test: "SeeAnotherFolder/trusted", Reason: "a server in this process is told of no roots by this engine"},
	)
}
