//go:build unix

package soak

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// The servers of the shared host. The numbers are the years of the versions of the protocol that they speak.
const (
	memory    = "memory" // in this process
	spare     = "spare"  // in this process; SetServers replaces and removes it
	stdio2025 = "stdio2025"
	stdio2026 = "stdio2026"
	http2025  = "http2025"
	http2026  = "http2026"
)

var serverNames = []string{memory, spare, stdio2025, stdio2026, http2025, http2026}

// hangTimeout is the host's limit for calls of the tool hang, which never answers.
const hangTimeout = 200 * time.Millisecond

// The arguments of all tools. The token belongs to one call alone.
type arguments struct {
	Token  string `json:"token"`
	Millis int    `json:"millis"` // how long the call takes
	Chars  int    `json:"chars"`  // how many characters are added to the answer
}

// answer is the result of a call that ran to its end.
func (a arguments) answer() string { return "done " + a.Token + strings.Repeat(" .", a.Chars/2) }

// A ledger is the path of a file in which servers, those in other processes too, write which calls run.
type ledger string

// add writes a line at once, because the process may be killed next.
func (l ledger) add(what string, value any) {
	f, err := os.OpenFile(string(l), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%s %v\n", what, value); err != nil {
		panic(err)
	}
}

// count returns how often each value was added.
func (l ledger) count(what string) map[string]int {
	data, err := os.ReadFile(string(l))
	if err != nil {
		panic(err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, what+" "); ok {
			counts[strings.TrimSpace(value)]++
		}
	}
	return counts
}

// calls returns how often the call with each token was run.
func (l ledger) calls() map[string]int { return l.count("call") }

// newServer returns a server with three tools: write must not be run twice, read may, and hang never answers.
func newServer(name string, l ledger) *mcpserver.Server {
	s := mcpserver.New(name, nil)
	run := func(ctx context.Context, a arguments) (string, error) {
		l.add("call", a.Token)
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(time.Duration(a.Millis) * time.Millisecond):
			return a.answer(), nil
		}
	}
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "write", Description: "Changes something."}, run)
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "read", Description: "Changes nothing.", ReadOnly: true}, run)
	var ownLimit time.Duration // of hang, below that of the host; zero means the default
	if name == spare || name == stdio2026 || name == http2026 {
		ownLimit = hangTimeout / 2
	}
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "hang", Description: "Never answers.", Timeout: ownLimit}, func(ctx context.Context, a arguments) (string, error) {
		l.add("call", a.Token)
		<-ctx.Done()
		return "", ctx.Err()
	})
	return s
}

// common is what the configurations of all servers have.
func common() mcphost.Common {
	return mcphost.Common{ToolTimeouts: map[string]time.Duration{"hang": hangTimeout}}
}

func inProcess(s *mcpserver.Server) mcphost.ServerConfig {
	return mcphost.InProcessServer{Provider: s, Common: common()}
}

func stdio(child string, l ledger) mcphost.ServerConfig {
	return mcphost.Stdio{
		Command: os.Args[0], Args: []string{"-test.run=^$"},
		Env: map[string]string{"SOAK_TEST_CHILD": child, "SOAK_TEST_LEDGER": string(l)}, Common: common(),
	}
}

func serveStdio2026(l ledger) {
	if err := mcpbridge.ServeStdio(context.Background(), newServer(stdio2026, l), nil); err != nil {
		os.Exit(1)
	}
}

// serveStdio2025 is a server that knows one version of the protocol, and none of the methods of later ones.
func serveStdio2025(l ledger) {
	const (
		init = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"stdio2025","version":"1"}}`
		tool = `{"name":"%s","annotations":{"readOnlyHint":%t},"inputSchema":{"type":"object","properties":{"token":{"type":"string"},"millis":{"type":"integer"},"chars":{"type":"integer"}}}}`
	)
	var mu sync.Mutex // guards stdout
	answer := func(id json.RawMessage, key, value string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"%s":%s}`+"\n", id, key, value)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name      string
				Arguments arguments
			}
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		switch m.Method {
		case "initialize":
			answer(m.ID, "result", init)
		case "ping":
			answer(m.ID, "result", "{}")
		case "tools/list":
			tools := []string{fmt.Sprintf(tool, "write", false), fmt.Sprintf(tool, "read", true), fmt.Sprintf(tool, "hang", false)}
			answer(m.ID, "result", `{"tools":[`+strings.Join(tools, ",")+`]}`)
		case "tools/call":
			a := m.Params.Arguments
			l.add("call", a.Token)
			if m.Params.Name != "hang" {
				time.AfterFunc(time.Duration(a.Millis)*time.Millisecond, func() {
					answer(m.ID, "result", fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, a.answer()))
				})
			}
		default:
			answer(m.ID, "error", `{"code":-32601,"message":"Method not found"}`)
		}
	}
}

// An httpServer can be restarted, can lose its connections, and can hang.
type httpServer struct {
	*httptest.Server
	name  string
	tools *mcpserver.Server

	mu      sync.RWMutex // locked while the server hangs; guards the rest
	handler *mcpserver.HTTPHandler
}

func newHTTPServer(name string, l ledger) *httpServer {
	s := &httpServer{name: name, tools: newServer(name, l)}
	s.handler = mcpserver.NewHTTPHandler(s.tools, nil)
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.Start()
	return s
}

// ServeHTTP serves a request. The server of the older protocol refuses the newer one.
func (s *httpServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.RLock()
	handler := s.handler
	s.mu.RUnlock()
	if s.name == http2025 && (r.Header.Get("Mcp-Method") == "server/discover" || r.Header.Get("Mcp-Protocol-Version") >= "2026") {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found"}}`)
		return
	}
	handler.ServeHTTP(w, r)
}

// cut closes all connections, in the middle of what is sent. Sessions stay.
func (s *httpServer) cut() error {
	s.CloseClientConnections()
	return nil
}

// restart closes all connections and forgets the sessions.
func (s *httpServer) restart() error {
	s.mu.Lock()
	old := s.handler
	s.handler = mcpserver.NewHTTPHandler(s.tools, nil)
	s.mu.Unlock()
	s.CloseClientConnections()
	shutdown(old)
	return nil
}

// hang makes the server answer no new request until resume.
func (s *httpServer) hang() { s.mu.Lock() }

func (s *httpServer) resume() { s.mu.Unlock() }

func (s *httpServer) close() {
	shutdown(s.handler)
	s.CloseClientConnections()
	s.Close()
}

// shutdown ends a handler and its calls.
func shutdown(h *mcpserver.HTTPHandler) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = h.Shutdown(ctx) // the error says that calls were ended
}
