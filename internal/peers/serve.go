//go:build unix

package peers

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A Server is a peer that listens on a port of 127.0.0.1.
type Server struct {
	*Process
	// URL is the endpoint's, path included.
	URL string

	command Command
	ready   *regexp.Regexp
}

// FreePort returns a port of 127.0.0.1 that nobody listens on. Another process
// may take it before its user does: who starts a program with it has to look
// for that, as [ServeEverything] does.
func FreePort(t testing.TB) int {
	t.Helper()
	// All addresses, since some peers listen on all of them.
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", ":0")
	if err != nil {
		t.Fatalf("peers: %v", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// ServeEverything starts @modelcontextprotocol/server-everything on a free
// port over "sse" or "streamableHttp" and waits until it listens. It is killed
// when the test ends.
func ServeEverything(t testing.TB, transport string) *Server {
	t.Helper()
	path := map[string]string{"sse": "/sse", "streamableHttp": "/mcp"}[transport]
	if path == "" {
		t.Fatalf("peers: server-everything has no transport %q that listens, want sse or streamableHttp", transport)
	}
	return serve(t, path, `(?:listening|running) on port (\d+)\n`, func(port int) Command {
		c := Everything(t, transport)
		c.Env = map[string]string{"PORT": strconv.Itoa(port)}
		return c
	})
}

// ServeDBHub starts @bytebase/dbhub over streamable HTTP on an SQLite file,
// see [SQLite], and waits until it listens. It is killed when the test ends.
func ServeDBHub(t testing.TB, database string) *Server {
	t.Helper()
	return serve(t, "/mcp", `MCP server endpoint at http`, func(port int) Command {
		c := DBHub(t, database)
		for i, arg := range c.Args {
			if arg == "stdio" {
				c.Args[i] = "http"
			}
		}
		c.Args = append(c.Args, "--host", "127.0.0.1", "--port", strconv.Itoa(port))
		return c
	})
}

// serve starts the program on free ports until one is still free when the
// program gets to it.
func serve(t testing.TB, path, ready string, command func(port int) Command) *Server {
	t.Helper()
	re := regexp.MustCompile(ready)
	for attempt := 1; ; attempt++ {
		port := FreePort(t)
		s := &Server{URL: fmt.Sprintf("http://127.0.0.1:%d%s", port, path), command: command(port), ready: re}
		s.Process = Start(t, s.command)
		_, err := s.waitFor(re)
		if err == nil {
			return s
		}
		if attempt == 5 || !strings.Contains(s.Output(), "EADDRINUSE") {
			t.Fatalf("peers: %v", err)
		}
	}
}

// Restart kills the server and starts it again on the same port, with none of
// the sessions it had.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Kill()
	s.Process = Start(t, s.command)
	if _, err := s.waitFor(s.ready); err != nil {
		t.Fatalf("peers: %v", err)
	}
}
