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
	"testing"
	"time"

	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// The servers of the shared host, with the version of the protocol that they speak.
const (
	inProcess = "mem"   // none
	spare     = "spare" // none; SetServers replaces and removes it
	oldStdio  = "old"   // 2025-06-18
	newStdio  = "new"   // 2026-07-28
	oldWeb    = "web25" // 2025-11-25, with sessions
	newWeb    = "web26" // 2026-07-28
)

var serverNames = []string{inProcess, spare, oldStdio, newStdio, oldWeb, newWeb}

// hangLimit is the host's limit for calls of the tool hang, which never answers.
const hangLimit = 200 * time.Millisecond

// A work is the arguments of the tools. The token belongs to one call alone and begins with the tool's name.
type work struct {
	Token  string `json:"token"`
	Millis int    `json:"millis"` // how long it takes
	Chars  int    `json:"chars"`  // how much is added to the answer
}

// answer is what a tool that ran to its end says.
func (w work) answer() string { return "done " + w.Token + strings.Repeat(" .", w.Chars/2) }

// A ledger is a file in which servers write what they did, children too: it survives their death.
type ledger string

// note writes a line at once, so that it is there even if the process is killed next.
func note[T any](file, what string, value T) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%s %v\n", what, value); err != nil {
		panic(err)
	}
}

// read counts the calls that ran, by token, and the processes that were started.
func (l ledger) read(t *testing.T) (ran, pids map[string]int) {
	data, err := os.ReadFile(string(l))
	if err != nil {
		t.Fatal(err)
	}
	ran, pids = map[string]int{}, map[string]int{}
	for line := range strings.Lines(string(data)) {
		what, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		map[string]map[string]int{"ran": ran, "pid": pids}[what][value]++
	}
	return ran, pids
}

// toolServer is a server with three tools: once must not run twice, look may, and hang never answers.
// The channel began gets the tokens of calls that are victims of a fault, once they run.
func toolServer(name string, l ledger, began chan<- string) *mcpserver.Server {
	s := mcpserver.New(name, &mcpserver.Options{Logger: slog.New(slog.DiscardHandler)})
	run := func(ctx context.Context, w work) (string, error) {
		note(string(l), "ran", w.Token)
		if strings.Contains(w.Token, victim) {
			began <- w.Token
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("%s was stopped and may have run", w.Token)
		case <-time.After(time.Duration(w.Millis) * time.Millisecond):
		}
		return w.answer(), nil
	}
	hang := func(ctx context.Context, w work) (string, error) {
		note(string(l), "ran", w.Token)
		<-ctx.Done()
		return "", ctx.Err()
	}
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "once", Description: "Does one piece of work."}, run)
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "look", Description: "Looks at one piece of work.", ReadOnly: true}, run)
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "hang", Description: "Never answers."}, hang)
	return s
}

// common is what the configurations of all servers have.
func common() mcphost.Common {
	return mcphost.Common{ToolTimeouts: map[string]time.Duration{"hang": hangLimit}}
}

func local(s *mcpserver.Server) mcphost.ServerConfig {
	return mcphost.InProcessServer{Provider: s, Common: common()}
}

func stdio(child string, l ledger) mcphost.ServerConfig {
	return mcphost.Stdio{
		Command: os.Args[0], Args: []string{"-test.run=^$"},
		Env: map[string]string{"SOAK_TEST_CHILD": child, "SOAK_LEDGER": string(l)}, Common: common(),
	}
}

func newChild() {
	if err := mcpbridge.ServeStdio(context.Background(), toolServer(newStdio, ledger(os.Getenv("SOAK_LEDGER")), nil), nil); err != nil {
		os.Exit(1)
	}
}

// oldChild is a server that knows one version of the protocol, and none of the methods of later ones.
func oldChild() {
	const (
		hello = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"old","version":"1"}}`
		tool  = `{"name":"%s","annotations":{"readOnlyHint":%t},"inputSchema":{"type":"object","properties":{"token":{"type":"string"},"millis":{"type":"integer"},"chars":{"type":"integer"}}}}`
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
				Arguments work
			}
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		switch m.Method {
		case "initialize":
			answer(m.ID, "result", hello)
		case "ping":
			answer(m.ID, "result", "{}")
		case "tools/list":
			tools := []string{fmt.Sprintf(tool, "once", false), fmt.Sprintf(tool, "look", true), fmt.Sprintf(tool, "hang", false)}
			answer(m.ID, "result", `{"tools":[`+strings.Join(tools, ",")+`]}`)
		case "tools/call":
			w := m.Params.Arguments
			note(os.Getenv("SOAK_LEDGER"), "ran", w.Token)
			if m.Params.Name != "hang" {
				time.AfterFunc(time.Duration(w.Millis)*time.Millisecond, func() {
					answer(m.ID, "result", fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, w.answer()))
				})
			}
		default:
			answer(m.ID, "error", `{"code":-32601,"message":"Method not found"}`)
		}
	}
}

// A web is a server over HTTP that can be restarted, can break off all that it says, and can hang.
type web struct {
	name   string
	tools  *mcpserver.Server
	server *httptest.Server

	mu      sync.Mutex // guards the rest
	handler *mcpserver.HTTPHandler
	breaks  context.Context // ends when the requests that run are broken off
	breakUp context.CancelFunc
	hung    chan struct{} // closed when it goes on; nil unless it hangs
}

func serveWeb(name string, tools *mcpserver.Server) *web {
	w := &web{name: name, tools: tools, handler: mcpserver.NewHTTPHandler(tools, nil)}
	w.breaks, w.breakUp = context.WithCancel(context.Background())
	w.server = httptest.NewUnstartedServer(w)
	w.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	w.server.Start()
	return w
}

// ServeHTTP serves what the newest handler answers, until that is broken off. A server of the old kind refuses the new version.
func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	handler, breaks, hung := w.handler, w.breaks, w.hung
	w.mu.Unlock()
	if hung != nil {
		select {
		case <-hung:
		case <-r.Context().Done():
			return
		}
	}
	if w.name == oldWeb && (r.Header.Get("Mcp-Method") == "server/discover" || r.Header.Get("Mcp-Protocol-Version") >= "2026") {
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(rw, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found"}}`)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer context.AfterFunc(breaks, cancel)()
	handler.ServeHTTP(&breakingWriter{rw, breaks}, r.WithContext(ctx))
	if breaks.Err() != nil {
		panic(http.ErrAbortHandler) // the response has no end
	}
}

// A breakingWriter writes nothing once its context has ended, as if the connection were gone.
type breakingWriter struct {
	http.ResponseWriter
	breaks context.Context
}

func (w *breakingWriter) Write(p []byte) (int, error) {
	if w.breaks.Err() != nil {
		return 0, http.ErrAbortHandler
	}
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (w *breakingWriter) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok && w.breaks.Err() == nil {
		f.Flush()
	}
}

// cut breaks off the responses that are under way. Sessions stay.
func (w *web) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.breakUp()
	w.breaks, w.breakUp = context.WithCancel(context.Background())
}

// restart is like cut, closes the idle connections too, and forgets the sessions.
func (w *web) restart() {
	w.mu.Lock()
	old := w.handler
	w.handler = mcpserver.NewHTTPHandler(w.tools, nil)
	w.mu.Unlock()
	w.cut()
	w.server.CloseClientConnections()
	shutdown(old)
}

// hang makes it answer nothing until the result is called.
func (w *web) hang() (goOn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	hung := make(chan struct{})
	w.hung = hung
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.hung = nil
		close(hung)
	}
}

func (w *web) close() {
	w.cut()
	shutdown(w.handler)
	w.server.CloseClientConnections()
	w.server.Close()
}

// shutdown ends a handler without waiting for its calls.
func shutdown(h *mcpserver.HTTPHandler) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = h.Shutdown(ctx) // it says that it did not wait
}
