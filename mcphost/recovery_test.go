package mcphost

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveAt serves on an address of its own choice, or on the one given, as a
// server that was restarted does.
func serveAt(t *testing.T, addr string, h http.Handler) *httptest.Server {
	t.Helper()
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	srv.Start()
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	return srv
}

// D81: (pain 12) a remote server goes away and comes back at the same address;
// calls fail meanwhile, each for itself, and then work again, unaided.
func TestRemoteServerRestarts(t *testing.T) {
	for _, kind := range []string{TransportHTTP, TransportSSE} {
		lib := libraryServer()
		var handler http.Handler = mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return lib }, nil)
		if kind == TransportHTTP {
			handler = libraryHTTP(t, nil)
		}
		srv := serveAt(t, "", handler)
		addr := srv.Listener.Addr().String()
		var cfg ServerConfig = SSE{URL: srv.URL}
		if kind == TransportHTTP {
			cfg = HTTP{URL: srv.URL}
		}
		h := newHost(t, map[string]ServerConfig{"r": cfg})
		connected(t, h)
		if got := text(t, h, "mcp__r__echo", `{"text":"1"}`); got != "echo: 1" {
			t.Errorf("%s: %q", kind, got)
		}
		_ = srv.Config.Close() // the listener, too: the host comes back at once
		srv.Close()
		// Calls fail, each for itself, until the connection counts as lost.
		c := h.conns["r"]
		for lost := false; !lost; {
			var ce *CallError
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			if _, err := h.Call(ctx, "mcp__r__fail", nil, nil); !errors.As(err, &ce) && ctx.Err() == nil {
				t.Fatalf("%s: a call to a server that is gone: %v", kind, err)
			}
			cancel()
			c.mu.Lock()
			lost = c.state.phase != phaseReady
			c.mu.Unlock()
		}
		if s := status(t, h, "r"); s.Status != StatusPending {
			t.Errorf("%s is %s", kind, s.Status)
		}
		// A call made now waits.
		waiting := make(chan error, 1)
		go func() {
			_, err := h.Call(soon(t), "mcp__r__echo", []byte(`{"text":"late"}`), nil)
			waiting <- err
		}()
		serveAt(t, addr, handler)
		if err := <-waiting; err != nil {
			t.Errorf("%s: the call that waited: %v", kind, err)
		}
		if got := text(t, h, "mcp__r__echo", `{"text":"2"}`); got != "echo: 2" {
			t.Errorf("%s: %q", kind, got)
		}
		if s := status(t, h, "r"); s.Status != StatusConnected {
			t.Errorf("%s is %s: %v", kind, s.Status, s.Err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A fault that may pass is tried again before the server counts as failed.
func TestTransientFaultAtTheStart(t *testing.T) {
	var n atomic.Int64
	raw := &rawHTTP{before: func(w http.ResponseWriter, _ *http.Request, _ rawMsg) bool {
		if n.Add(1) <= 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	}}
	h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: serve(t, raw).URL}})
	connected(t, h)
}

// D81 D82 D83 with a clock: five attempts, the pauses between them, failed, and
// connected again in the background. A server in this process stands for a
// remote one; what the host knows of it is the same.
func TestRecoveryTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		up := true
		var at []time.Duration
		began := time.Now()
		attempts := func() []time.Duration { mu.Lock(); defer mu.Unlock(); return slices.Clone(at) }
		p := opensAfter(0)
		open := p.open
		p.open = func(ctx context.Context) error {
			mu.Lock()
			at = append(at, time.Since(began))
			ok := up
			mu.Unlock()
			if !ok {
				return &HTTPError{Status: 503}
			}
			return open(ctx)
		}
		h, err := New(&Options{Servers: map[string]ServerConfig{"p": InProcess(p)}, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		c := h.conns["p"]
		c.remote = true
		h.Start(t.Context())
		if err := h.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(stableAfter)
		mu.Lock()
		up, at, began = false, nil, time.Now()
		mu.Unlock()
		c.mu.Lock()
		l := c.rec.link.link
		c.mu.Unlock()
		if err := l.close(); err != nil { // the connection breaks
			t.Fatal(err)
		}
		synctest.Wait()
		if s := status(t, h, "p"); s.Status != StatusPending || s.ToolCount != 1 {
			t.Errorf("right after the loss: %s, %d tools", s.Status, s.ToolCount)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if s := status(t, h, "p"); s.Status != StatusFailed || s.ToolCount != 0 || len(h.Tools()) != 0 || s.NextAttempt.IsZero() {
			t.Errorf("after five attempts: %s, next %v", s.Status, s.NextAttempt)
		}
		got := attempts()
		if len(got) != 5 {
			t.Fatalf("attempts at %v, want five", got)
		}
		for i, least := range []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second} {
			pause := got[i]
			if i > 0 {
				pause -= got[i-1]
			}
			if pause < least || pause > least*5/4+time.Millisecond {
				t.Errorf("pause before attempt %d is %v, want %v and a little", i+1, pause, least)
			}
		}
		time.Sleep(40 * time.Second)
		synctest.Wait()
		if s := status(t, h, "p"); s.Status != StatusFailed || len(attempts()) != 6 {
			t.Errorf("in the background: %s, attempts at %v", s.Status, attempts())
		}
		mu.Lock()
		up = true
		mu.Unlock()
		time.Sleep(40 * time.Second)
		synctest.Wait()
		if s := status(t, h, "p"); s.Status != StatusConnected || s.ToolCount != 1 {
			t.Errorf("back again: %s", s.Status)
		}
		h.Close()
	})
}

// D11 D12: the first attempts have the limit for connecting together; then the server is failed, and tried again in
// the background. D83
func TestFirstAttemptsEndAtTheLimit(t *testing.T) {
	refuses := func(context.Context) error { return &HTTPError{Status: 503} }
	hangs := func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	for _, tt := range []struct {
		name   string
		open   []func(context.Context) error // the last one again and again
		limit  time.Duration
		want   int           // attempts
		within time.Duration // when it is failed
		cause  error         // of the failure; nil for that of refuses
	}{
		{"never answers", []func(context.Context) error{hangs}, 10 * time.Second, 1, 10 * time.Second, ErrTimeout},
		{"refuses, then never answers", []func(context.Context) error{refuses, refuses, hangs}, 10 * time.Second, 3, 10 * time.Second, ErrTimeout},
		{"refuses, and there is time", []func(context.Context) error{refuses}, 10 * time.Second, 4, 5 * time.Second, nil},
		{"refuses, and there is no time for another", []func(context.Context) error{refuses}, time.Second, 2, time.Second, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			attempts := 0
			p := opensAfter(0)
			p.open = func(ctx context.Context) error {
				mu.Lock()
				open := tt.open[min(attempts, len(tt.open)-1)]
				attempts++
				mu.Unlock()
				return open(ctx)
			}
			h, err := New(&Options{Servers: map[string]ServerConfig{"p": InProcess(p)}, Dir: t.TempDir(), ConnectTimeout: tt.limit})
			if err != nil {
				t.Fatal(err)
			}
			h.conns["p"].remote = true // what the host knows of a remote one is the same
			h.Start(t.Context())
			defer h.Close()
			began := time.Now()
			if err := h.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			var he *HTTPError
			s := status(t, h, "p")
			if took := time.Since(began); s.Status != StatusFailed || took > tt.within || s.NextAttempt.IsZero() {
				t.Errorf("%s: %s after %v, next attempt %v", tt.name, s.Status, took, s.NextAttempt)
			}
			if tt.cause != nil && !errors.Is(s.Err, tt.cause) || tt.cause == nil && !errors.As(s.Err, &he) {
				t.Errorf("%s: failed with %v", tt.name, s.Err)
			}
			if attempts != tt.want {
				t.Errorf("%s: %d attempts, want %d", tt.name, attempts, tt.want)
			}
		})
	}
}

// A login that ends in use shows in the status; headers that are computed are
// computed anew, and the call that was refused is made again with them.
func TestLoginEnds(t *testing.T) {
	var valid atomic.Value
	valid.Store("one-token")
	raw := &rawHTTP{before: func(w http.ResponseWriter, r *http.Request, _ rawMsg) bool {
		if r.Header.Get("Authorization") != "Bearer "+valid.Load().(string) && r.Header.Get("X-Key") != valid.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		return false
	}}
	url := serve(t, raw).URL
	var calls atomic.Int64
	h := newHost(t, map[string]ServerConfig{
		"static": HTTP{URL: url, Headers: map[string]string{"X-Key": "one-token"}},
		"computed": HTTP{URL: url, HeadersFunc: func(context.Context) (map[string]string, error) {
			calls.Add(1)
			return map[string]string{"Authorization": "Bearer " + valid.Load().(string)}, nil
		}},
	})
	connected(t, h)
	valid.Store("two-token")
	if got := text(t, h, "mcp__computed__echo", `{}`); got != "echo {}" || calls.Load() != 2 {
		t.Errorf("computed headers: %q, computed %d times", got, calls.Load())
	}
	var he *HTTPError
	if _, err := h.Call(soon(t), "mcp__static__echo", nil, nil); !errors.As(err, &he) || he.Status != http.StatusUnauthorized {
		t.Errorf("static headers: %v", err)
	}
	c := h.conns["static"]
	if err := c.await(soon(t), func() bool { return c.state.phase == phaseNeedsAuth }); err != nil {
		t.Fatalf("%v; %s", err, dump(h))
	}
	valid.Store("one-token")
	if err := h.Reconnect(soon(t), "static"); err != nil {
		t.Error(err)
	}
}
