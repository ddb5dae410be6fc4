package mcphost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/callback"
	"github.com/tenon-sdk/tenon/internal/memhttp"
)

// A records collects log records.
type records struct {
	mu  sync.Mutex
	all []map[string]any
}

func (r *records) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := map[string]any{}
	if err := json.Unmarshal(b, &m); err != nil {
		return 0, err
	}
	r.all = append(r.all, m)
	return len(b), nil
}

// logger returns a logger at Info, as an operator has it.
func (r *records) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(r, nil)) }

// with returns the records whose text has all of the words.
func (r *records) with(words ...string) []map[string]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []map[string]any
next:
	for _, m := range r.all {
		text := fmt.Sprint(m)
		for _, w := range words {
			if !strings.Contains(text, w) {
				continue next
			}
		}
		found = append(found, m)
	}
	return found
}

// until waits for an event of a server that a condition takes.
func until(t *testing.T, events <-chan Event, what string, ok func(Event) bool) Event {
	t.Helper()
	timeout := soon(t)
	for {
		select {
		case ev := <-events:
			if ok(ev) {
				return ev
			}
		case <-timeout.Done():
			t.Fatalf("no event: %s", what)
		}
	}
}

// A server over HTTP that dies while nothing is called is pending soon, and connected again when it is back: told by its
// stream of changes, or by a probe where there is none. D111
//
// fault I1
func TestHTTPServerDiesIdle(t *testing.T) {
	withTools := func(o *mcp.StreamableHTTPOptions, wrap func(http.Handler) http.Handler) func(t *testing.T) http.Handler {
		return func(t *testing.T) http.Handler { return wrap(libraryHTTP(t, o)) }
	}
	same := func(h http.Handler) http.Handler { return h }
	for name, handler := range map[string]func(t *testing.T) http.Handler{
		"2025, with a stream":    withTools(nil, sessionsOnly),
		"2025, without a stream": func(*testing.T) http.Handler { return &rawHTTP{} },
		"2026, with a stream":    withTools(&mcp.StreamableHTTPOptions{Stateless: true}, same),
		"2026, without a stream": withTools(&mcp.StreamableHTTPOptions{Stateless: true}, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get(headerMethod) == methodListen {
					w.WriteHeader(http.StatusMethodNotAllowed)
					return
				}
				h.ServeHTTP(w, r)
			})
		}),
	} {
		t.Run(name, func(t *testing.T) {
			srv := serveAt(t, "", handler(t))
			addr := srv.Listener.Addr().String()
			h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: srv.URL}}, func(o *Options) { o.ProbeInterval = 20 * time.Millisecond })
			connected(t, h)
			if v := status(t, h, "r").ProtocolVersion; v[:4] != name[:4] {
				t.Fatalf("protocol version %s", v)
			}
			events := h.Watch(t.Context())
			_ = srv.Config.Close()
			srv.CloseClientConnections()
			srv.Close()
			ev := until(t, events, "pending", func(e Event) bool { return e.Status == StatusPending })
			// A slow receiver gets the event of the next attempt in place of that of the loss.
			if !errors.Is(ev.Err, ErrConnectionLost) && !errors.Is(ev.Err, syscall.ECONNREFUSED) {
				t.Errorf("lost for %v", ev.Err)
			}
			serveAt(t, addr, handler(t))
			until(t, events, "connected", func(e Event) bool { return e.Status == StatusConnected })
		})
	}
}

// A call to an address where nothing listens any more ends the connection at once: calls that may still be answered are.
//
// fault I1
func TestRefusedCallEndsTheConnection(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	raw := &rawHTTP{call: func(w http.ResponseWriter, _ *http.Request, m rawMsg) {
		if _, args := m.tool(); strings.Contains(args, "slow") {
			close(began)
			<-release
		}
		answerText(w, m.ID, "done")
	}}
	srv := serveAt(t, "", raw)
	addr := srv.Listener.Addr().String()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: srv.URL, HTTPClient: client}})
	connected(t, h)
	events := h.Watch(t.Context())
	slow := make(chan error, 1)
	go func() {
		res, err := h.Call(soon(t), "mcp__r__echo", []byte(`{"slow":true}`), nil)
		if err == nil && plainText(res) != "done" {
			err = fmt.Errorf("got %q", plainText(res))
		}
		slow <- err
	}()
	<-began
	srv.Listener.Close() // as a server that shuts down politely
	again := make(chan error, 1)
	go func() {
		_, err := h.Call(soon(t), "mcp__r__echo", nil, nil)
		again <- err
	}()
	until(t, events, "pending", func(e Event) bool { return e.Status == StatusPending })
	close(release)
	if err := <-slow; err != nil {
		t.Errorf("the call under way: %v", err)
	}
	serveAt(t, addr, raw)
	if err := <-again; err != nil {
		t.Errorf("the refused call: %v", err)
	}
}

// Ping finds a server healthy whatever its transport and protocol.
//
// fault G4
func TestPing(t *testing.T) {
	sse := libraryServer()
	h := newHost(t, map[string]ServerConfig{
		"2025":  HTTP{URL: serve(t, sessionsOnly(libraryHTTP(t, nil))).URL},
		"2026":  HTTP{URL: serve(t, libraryHTTP(t, &mcp.StreamableHTTPOptions{Stateless: true})).URL},
		"json":  HTTP{URL: serve(t, libraryHTTP(t, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})).URL},
		"sse":   SSE{URL: serve(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return sse }, nil)).URL},
		"stdio": child("library"),
		"raw":   child("echo"),
	})
	connected(t, h)
	for _, s := range h.Status() {
		if err := h.Ping(soon(t), s.Name); err != nil {
			t.Errorf("%s, %s: %v", s.Name, s.ProtocolVersion, err)
		}
	}
}

// One slow tool is no reason to doubt a server that answers everything else.
//
// fault G9
func TestSlowToolIsNoStoppedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pings atomic.Int64
		raw := &rawHTTP{}
		raw.before = func(_ http.ResponseWriter, r *http.Request, m rawMsg) bool {
			switch m.Method {
			case "tools/call":
				<-r.Context().Done()
				return true
			case "ping":
				pings.Add(1)
			}
			return false
		}
		h, err := New(&Options{
			Servers: map[string]ServerConfig{"r": HTTP{URL: "http://server.test/mcp", HTTPClient: &http.Client{Transport: &memhttp.Transport{Handler: raw}}}},
			Dir:     t.TempDir(), ProbeInterval: NoTimeout,
		})
		if err != nil {
			t.Fatal(err)
		}
		h.Start(t.Context())
		defer h.Close()
		connected(t, h)
		for range 3 * DefaultBreakAfter {
			if _, err := h.CallServer(t.Context(), "r", "echo", nil, &CallOptions{Timeout: time.Second}); !errors.Is(err, ErrTimeout) {
				t.Errorf("got %v", err)
			}
			synctest.Wait()
			if s := status(t, h, "r"); s.Status != StatusConnected {
				t.Errorf("%s: %s", s.Status, s.Error)
			}
		}
		if pings.Load() == 0 {
			t.Error("it was never asked")
		}
	})
}

// A child that is killed, an address that refuses, a program that is not there: one record each at Info, with the server
// and the reason.
//
// fault B23
// fault G6
func TestFailuresAreLogged(t *testing.T) {
	var log records
	marker := filepath.Join(t.TempDir(), "x")
	h := newHost(t, map[string]ServerConfig{
		"killed":  child("echo"),
		"refused": HTTP{URL: "http://127.0.0.1:1/mcp", Common: Common{ConnectTimeout: 200 * time.Millisecond}},
		"missing": Stdio{Command: marker},
	}, func(o *Options) { o.Logger = log.logger() })
	ready(t, h)
	events := h.Watch(t.Context())
	pid := status(t, h, "killed").PID
	kill(t, pid)
	until(t, events, "connected again", func(e Event) bool {
		return e.Server == "killed" && e.Status == StatusConnected && status(t, h, "killed").PID != pid
	})
	for server, reason := range map[string]string{"killed": "killed by signal: killed", "refused": "connection refused", "missing": "no such file"} {
		if got := log.with("server:"+server, reason); len(got) != 1 {
			t.Errorf("%s: %d records: %v", server, len(got), got)
		}
	}
}

// Functions of the program that panic cost their connection or call, and the log has the stack.
//
// fault G3
// fault G6
func TestPanicsAreContained(t *testing.T) {
	var log records
	raw := &rawHTTP{}
	url := serve(t, raw).URL
	var panics atomic.Bool
	client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		if panics.Load() {
			panic("in the transport")
		}
		return http.DefaultTransport.RoundTrip(r)
	})}
	body := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err == nil && panics.Load() {
			resp.Body = panickingBody{}
		}
		return resp, err
	})}
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	h := newHost(t, map[string]ServerConfig{
		"headers": HTTP{URL: url, HeadersFunc: func(context.Context) (map[string]string, error) { panic("in the headers") }},
		"client":  HTTP{URL: url, HTTPClient: client},
		"body":    HTTP{URL: url, HTTPClient: body},
		"stderr":  child("talker"),
	}, func(o *Options) {
		o.Logger = log.logger()
		o.OnStderr = func(string, string) { panic("in stderr") }
	})
	ready(t, h)
	if s := status(t, h, "headers"); s.Status != StatusFailed || !strings.Contains(s.Error, "HeadersFunc: a function of the program panicked") {
		t.Errorf("headers: %s: %s", s.Status, s.Error)
	}
	panics.Store(true)
	var ce *CallError
	for _, name := range []string{"client", "body"} {
		if _, err := h.Call(soon(t), "mcp__"+name+"__echo", nil, nil); !errors.As(err, &ce) || !errors.Is(err, callback.ErrPanicked) {
			t.Errorf("%s: %v", name, err)
		}
	}
	panics.Store(false)
	for _, name := range []string{"client", "body", "stderr"} {
		if got := text(t, h, "mcp__"+name+"__echo", `{}`); got != "echo {}" {
			t.Errorf("%s afterwards: %q", name, got)
		}
	}
	for server, what := range map[string]string{"headers": "in the headers", "client": "in the transport", "body": "in the body", "stderr": "in stderr"} {
		if got := log.with("server:"+server, "panic:"+what, "health_test.go"); len(got) == 0 {
			t.Errorf("%s: no record with the stack: %v", server, log.with("server:"+server))
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type panickingBody struct{}

func (panickingBody) Read([]byte) (int, error) { panic("in the body") }
func (panickingBody) Close() error             { return nil }

// Functions of the program that never return: the attempt ends at its limit, calls at theirs, and Close is bounded.
//
// fault G2
func TestFunctionsThatNeverReturn(t *testing.T) {
	release := make(chan struct{})
	hang := func() { <-release }
	raw := &rawHTTP{}
	url := serve(t, raw).URL
	var hangs atomic.Bool
	var computed atomic.Int64
	h := newHost(t, map[string]ServerConfig{
		"headers": HTTP{URL: url, HeadersFunc: func(context.Context) (map[string]string, error) { computed.Add(1); hang(); return nil, nil }, Common: Common{ConnectTimeout: 100 * time.Millisecond}},
		"sse":     SSE{URL: url, HeadersFunc: func(context.Context) (map[string]string, error) { hang(); return nil, nil }, Common: Common{ConnectTimeout: 100 * time.Millisecond}},
		"client": HTTP{URL: url, HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if hangs.Load() {
				hang()
				return nil, errors.New("late")
			}
			return http.DefaultTransport.RoundTrip(r)
		})}},
	})
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	ready(t, h)
	for _, name := range []string{"headers", "sse"} {
		if s := status(t, h, name); s.Status != StatusFailed || !errors.Is(s.Err, ErrTimeout) {
			t.Errorf("%s: %s: %v", name, s.Status, s.Err)
		}
	}
	if err := h.Reconnect(soon(t), "headers"); !errors.Is(err, ErrTimeout) || computed.Load() != 1 {
		t.Errorf("another attempt: %v; headers computed %d times, want once until that returns", err, computed.Load())
	}
	hangs.Store(true)
	if _, err := h.Call(soon(t), "mcp__client__echo", nil, &CallOptions{Timeout: 50 * time.Millisecond}); !errors.Is(err, ErrTimeout) {
		t.Errorf("a call: %v", err)
	}
	closed := make(chan error, 1)
	go func() { closed <- h.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-soon(t).Done():
		t.Error("Close does not return")
	}
	close(release) // what hangs ends before the process does: the package looks for leaks
}

func init() {
	// talker writes to stderr for each call.
	children["talker"] = func() {
		rawChild("["+echoTool+"]", func(_ *rawServer, m rawMsg) bool {
			fmt.Fprintln(os.Stderr, "said", m.Method)
			return false
		})
	}
}
