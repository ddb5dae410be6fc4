package mcphost

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// inMemory makes requests to a handler without a network, so that the clock may be a fake one.
type inMemory struct{ http.Handler }

func (h inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	body := []byte(nil)
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body.Close()
	}
	in := r.Clone(r.Context())
	in.Body = io.NopCloser(bytes.NewReader(body))
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, in)
	return rec.Result(), nil
}

// handshakes is when each initialize came.
type handshakes struct {
	mu sync.Mutex
	at []time.Time
}

func (h *handshakes) add() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = append(h.at, time.Now())
}

// most returns the most handshakes in any ten seconds.
func (h *handshakes) most() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	most := 0
	for i, from := range h.at {
		n := 0
		for _, at := range h.at[i:] {
			if at.Sub(from) < 10*time.Second {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// Whatever makes a host connect again and again, there are less than ten handshakes in any ten seconds, one at a time, and
// the status says when the next is due. A server that recovers is used again.
//
// fault B1
func TestHandshakesAreBounded(t *testing.T) {
	forgetful := func() *rawHTTP { return &rawHTTP{} }
	notFound := func(w http.ResponseWriter) { http.Error(w, "no such session", http.StatusNotFound) }
	for name, server := range map[string]func(healthy *atomic.Bool) http.Handler{
		"three nodes behind a balancer": func(healthy *atomic.Bool) http.Handler {
			nodes := []*rawHTTP{forgetful(), forgetful(), forgetful()}
			var n atomic.Int64
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				i := int(n.Add(1)) % 3
				if healthy.Load() {
					i = 0
				}
				nodes[i].ServeHTTP(w, r)
			})
		},
		"forgets the session after each call": func(healthy *atomic.Bool) http.Handler {
			raw := forgetful()
			raw.call = func(w http.ResponseWriter, _ *http.Request, m rawMsg) {
				answerText(w, m.ID, "once")
				if !healthy.Load() {
					raw.forget()
				}
			}
			return raw
		},
		"forgets the session after the list": func(healthy *atomic.Bool) http.Handler {
			raw := forgetful()
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				raw.ServeHTTP(w, r)
				if raw.count("POST tools/list") > 0 && !healthy.Load() {
					raw.forget()
				}
			})
		},
		"refuses the second handshake of two": func(healthy *atomic.Bool) http.Handler {
			raw := forgetful()
			var n atomic.Int64
			raw.before = func(w http.ResponseWriter, _ *http.Request, m rawMsg) bool {
				switch {
				case healthy.Load():
					return false
				case m.Method == "initialize" && n.Add(1)%2 == 0, m.Method == "tools/call":
					notFound(w)
					return true
				}
				return false
			}
			return raw
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var healthy atomic.Bool
				var shakes handshakes
				var open atomic.Int64
				inner := server(&healthy)
				counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					r.Body = io.NopCloser(bytes.NewReader(body))
					if bytes.Contains(body, []byte(`"method":"initialize"`)) {
						shakes.add()
						if open.Add(1) > 1 {
							t.Error("two handshakes at a time")
						}
						defer open.Add(-1)
						time.Sleep(10 * time.Millisecond)
					}
					inner.ServeHTTP(w, r)
				})
				h, err := New(&Options{
					Servers: map[string]ServerConfig{"r": HTTP{URL: "http://server.test/mcp", HTTPClient: &http.Client{Transport: inMemory{counted}}}},
					Dir:     t.TempDir(),
				})
				if err != nil {
					t.Fatal(err)
				}
				h.Start(t.Context())
				defer h.Close()
				said := false // the status said when the next attempt is due
				for range 600 {
					ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
					_, _ = h.CallServer(ctx, "r", "echo", nil, nil)
					<-ctx.Done()
					cancel()
					s := status(t, h, "r")
					said = said || s.Status != StatusConnected && !s.NextAttempt.IsZero()
				}
				if most := shakes.most(); most >= 10 || most < 2 {
					t.Errorf("%d handshakes in ten seconds", most)
				}
				if !said {
					t.Error("the status never said when the next attempt is due")
				}
				healthy.Store(true)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				for ctx.Err() == nil {
					if res, err := h.CallServer(ctx, "r", "echo", nil, nil); err == nil && !res.IsError {
						return
					}
					time.Sleep(time.Second)
				}
				t.Errorf("not recovered: %s", dump(h))
			})
		})
	}
}

// A program that asks for connections again and again gets them within the same bound.
//
// fault B1
func TestReconnectIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shakes handshakes
		raw := &rawHTTP{before: func(_ http.ResponseWriter, _ *http.Request, m rawMsg) bool {
			if m.Method == "initialize" {
				shakes.add()
			}
			return false
		}}
		h, err := New(&Options{Servers: map[string]ServerConfig{"r": HTTP{URL: "http://server.test/mcp", HTTPClient: &http.Client{Transport: inMemory{raw}}}}, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		h.Start(t.Context())
		defer h.Close()
		for range 50 {
			if err := h.Reconnect(t.Context(), "r"); err != nil {
				t.Fatal(err)
			}
		}
		if most := shakes.most(); most >= 10 || len(shakes.at) < 50 {
			t.Errorf("%d handshakes in ten seconds, %d in all", most, len(shakes.at))
		}
	})
}

// A refused notification does not end the session.
//
// fault B1
func TestRefusedNotifications(t *testing.T) {
	for _, code := range []int{400, 401, 403, 404, 410, 500} {
		raw := &rawHTTP{before: func(w http.ResponseWriter, _ *http.Request, m rawMsg) bool {
			if m.ID != nil || m.Method == "" {
				return false
			}
			http.Error(w, "Session not found", code)
			return true
		}}
		h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: serve(t, raw).URL}})
		connected(t, h)
		if got := text(t, h, "mcp__r__echo", `{}`); got != "echo {}" {
			t.Errorf("%d: %q", code, got)
		}
		if raw.inits != 1 || raw.count("POST notifications/initialized") != 1 {
			t.Errorf("%d: %d handshakes", code, raw.inits)
		}
	}
}

// A server that was restarted does not know its sessions, and says so in its own words: it is asked once more for one,
// and the call is served. The same of what else is asked.
//
// fault B2
func TestRestartedServerInItsOwnWords(t *testing.T) {
	const notInitialized = `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}`
	for name, refuse := range map[string]func(w http.ResponseWriter, m rawMsg){
		"400 with an error": func(w http.ResponseWriter, _ rawMsg) { w.WriteHeader(400); _, _ = io.WriteString(w, notInitialized) },
		"400 plain":         func(w http.ResponseWriter, _ rawMsg) { http.Error(w, "call initialize first", 400) },
		"404 plain":         func(w http.ResponseWriter, _ rawMsg) { http.Error(w, "nothing here", 404) },
		"409":               func(w http.ResponseWriter, _ rawMsg) { http.Error(w, "start over", 409) },
		"200 with an error": func(w http.ResponseWriter, m rawMsg) {
			answerError(w, m.ID, -32000, "Bad Request: Server not initialized")
		},
		"invalid request": func(w http.ResponseWriter, m rawMsg) {
			answerError(w, m.ID, -32600, "received before initialization was complete")
		},
		"200 without an id": func(w http.ResponseWriter, _ rawMsg) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, notInitialized)
		},
	} {
		t.Run(name, func(t *testing.T) {
			raw := &rawHTTP{}
			raw.before = func(w http.ResponseWriter, r *http.Request, m rawMsg) bool {
				raw.mu.Lock()
				known := raw.sessions[r.Header.Get(headerSession)]
				raw.mu.Unlock()
				if known || r.Method != http.MethodPost || m.Method == "initialize" || m.Method == "server/discover" {
					return false
				}
				refuse(w, m)
				return true
			}
			h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: serve(t, raw).URL}})
			connected(t, h)
			raw.forget()
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					if res, err := h.Call(soon(t), "mcp__r__echo", nil, nil); err != nil || plainText(res) != "echo {}" {
						t.Errorf("got %v, %v", res, err)
					}
				})
			}
			wg.Wait()
			if raw.inits != 2 {
				t.Errorf("%d handshakes, want 2", raw.inits)
			}
			raw.forget()
			if err := h.SetLogLevel(soon(t), "r", "info"); err == nil || strings.Contains(err.Error(), "not initialized") {
				t.Errorf("another request: %v, want that it reaches the new session, which does not know it", err)
			}
			if raw.inits != 3 {
				t.Errorf("%d handshakes, want 3", raw.inits)
			}
		})
	}
}

// The same words from a server that knows its session well are the call's error: nobody's session ends for them, and
// they are not called twice.
//
// fault B2
func TestRefusedCallsLeaveTheSession(t *testing.T) {
	for name, refuse := range map[string]func(w http.ResponseWriter, m rawMsg){
		"400": func(w http.ResponseWriter, _ rawMsg) { http.Error(w, "the tool does not like it", 400) },
		"404": func(w http.ResponseWriter, m rawMsg) {
			w.WriteHeader(404)
			answerError(w, m.ID, -32601, "no such tool")
		},
		"409":      func(w http.ResponseWriter, _ rawMsg) { http.Error(w, "somebody was faster", 409) },
		"an error": func(w http.ResponseWriter, m rawMsg) { answerError(w, m.ID, -32000, "out of paper") },
	} {
		var calls atomic.Int64
		raw := &rawHTTP{call: func(w http.ResponseWriter, _ *http.Request, m rawMsg) { calls.Add(1); refuse(w, m) }}
		h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: serve(t, raw).URL}})
		connected(t, h)
		var ce *CallError
		for range 4 {
			if _, err := h.Call(soon(t), "mcp__r__echo", nil, nil); !errors.As(err, &ce) || errors.Is(err, errSessionLost) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if raw.inits != 1 || calls.Load() != 4 {
			t.Errorf("%s: %d handshakes, %d calls", name, raw.inits, calls.Load())
		}
	}
}

// A call that may have run is not made again, though everything is refused after it.
//
// fault B2
func TestLostSessionDoesNotRepeatWhatMayHaveRun(t *testing.T) {
	var down atomic.Bool
	var calls atomic.Int64
	raw := &rawHTTP{before: func(w http.ResponseWriter, _ *http.Request, m rawMsg) bool {
		if m.Method == "initialize" {
			down.Store(false)
		}
		if m.Method == "tools/call" && calls.Add(1) == 1 {
			down.Store(true)
		}
		if down.Load() && m.ID != nil {
			answerError(w, m.ID, -32000, "Connection closed")
			return true
		}
		return false
	}}
	h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: serve(t, raw).URL}})
	connected(t, h)
	var ce *CallError
	if _, err := h.Call(soon(t), "mcp__r__echo", nil, nil); !errors.As(err, &ce) || !ce.Sent {
		t.Errorf("the call whose connection was closed: %v", err)
	}
	if got := text(t, h, "mcp__r__echo", `{}`); got != "echo {}" || calls.Load() != 2 || raw.inits != 2 {
		t.Errorf("the next: %q, %d calls, %d handshakes", got, calls.Load(), raw.inits)
	}
}

// A session that is lost while no new one is to be had: that call fails, a later one recovers.
//
// fault B3
func TestNoNewSessionForAWhile(t *testing.T) {
	for _, code := range []int{400, 404, 405, 410, 503} {
		synctest.Test(t, func(t *testing.T) {
			var down atomic.Bool
			raw := &rawHTTP{before: func(w http.ResponseWriter, _ *http.Request, _ rawMsg) bool {
				if down.Load() {
					http.Error(w, "being deployed", code)
				}
				return down.Load()
			}}
			h, err := New(&Options{Servers: map[string]ServerConfig{"r": HTTP{URL: "http://server.test/mcp", HTTPClient: &http.Client{Transport: inMemory{raw}}}}, Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			h.Start(t.Context())
			defer h.Close()
			connected(t, h)
			raw.forget()
			down.Store(true)
			var he *HTTPError
			if _, err := h.Call(t.Context(), "mcp__r__echo", nil, nil); !errors.As(err, &he) || he.Status != code {
				t.Errorf("%d: the call meanwhile: %v", code, err)
			}
			time.Sleep(time.Minute)
			if s := status(t, h, "r"); s.Status != StatusFailed && s.Status != StatusConnected || s.Status == StatusFailed && s.NextAttempt.IsZero() {
				t.Errorf("%d: %s, next attempt %v", code, s.Status, s.NextAttempt)
			}
			down.Store(false)
			if code >= 500 { // a server that fails keeps its session, and 503 says nothing of it
				raw.forget()
			}
			time.Sleep(time.Minute)
			if got, err := h.CallServer(t.Context(), "r", "echo", nil, nil); err != nil || plainText(got) != "echo {}" {
				t.Errorf("%d: the later call: %v, %v; %s", code, got, err, dump(h))
			}
		})
	}
}
