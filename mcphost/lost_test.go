package mcphost

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenon-sdk/tenon/internal/memhttp"
	"github.com/tenon-sdk/tenon/mcphost/internal/transport"
)

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
		"409":               func(w http.ResponseWriter, _ rawMsg) { http.Error(w, "start over", http.StatusConflict) },
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
		"409":      func(w http.ResponseWriter, _ rawMsg) { http.Error(w, "somebody was faster", http.StatusConflict) },
		"an error": func(w http.ResponseWriter, m rawMsg) { answerError(w, m.ID, -32000, "out of paper") },
	} {
		var calls atomic.Int64
		raw := &rawHTTP{call: func(w http.ResponseWriter, _ *http.Request, m rawMsg) { calls.Add(1); refuse(w, m) }}
		h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: serve(t, raw).URL}})
		connected(t, h)
		var ce *CallError
		for range 4 {
			if _, err := h.Call(soon(t), "mcp__r__echo", nil, nil); !errors.As(err, &ce) || errors.Is(err, transport.ErrSessionLost) {
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
	if _, err := h.Call(soon(t), "mcp__r__echo", nil, nil); !errors.As(err, &ce) || !ce.Sent || !strings.HasSuffix(err.Error(), "; the tool may have run") {
		t.Errorf("the call whose connection was closed: %v", err)
	}
	if got := text(t, h, "mcp__r__echo", `{}`); got != "echo {}" || calls.Load() != 2 || raw.inits != 2 {
		t.Errorf("the next: %q, %d calls, %d handshakes", got, calls.Load(), raw.inits)
	}
}

// A call of a read-only tool whose response broke off with the server, and with it the session, is made again in a new
// session. If none is to be had, its error says that the tool may have run the first time.
//
// fault B2
// fault G5
func TestResponseAndSessionLost(t *testing.T) {
	for _, back := range []bool{true, false} {
		var calls atomic.Int64
		var down atomic.Bool
		raw := &rawHTTP{tools: `[{"name":"look","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}]`}
		raw.before = func(w http.ResponseWriter, _ *http.Request, m rawMsg) bool {
			if down.Load() && m.Method == "initialize" {
				http.Error(w, "being deployed", http.StatusServiceUnavailable)
				return true
			}
			return false
		}
		raw.call = func(w http.ResponseWriter, _ *http.Request, m rawMsg) {
			if calls.Add(1) == 1 {
				down.Store(!back)
				raw.forget()
				panic(http.ErrAbortHandler)
			}
			answer(w, m.ID, `{"content":[{"type":"text","text":"seen"}]}`)
		}
		h := newHost(t, map[string]ServerConfig{"r": HTTP{URL: serve(t, raw).URL}})
		connected(t, h)
		res, err := h.Call(soon(t), "mcp__r__look", nil, nil)
		if back {
			if err != nil || plainText(res) != "seen" || calls.Load() != 2 || raw.inits != 2 {
				t.Errorf("got %v, %v after %d calls and %d handshakes", res, err, calls.Load(), raw.inits)
			}
			continue
		}
		var ce *CallError
		if !errors.As(err, &ce) || !ce.Sent || !strings.Contains(err.Error(), "being deployed") || !strings.HasSuffix(err.Error(), "; the tool may have run") || calls.Load() != 1 {
			t.Errorf("with no new session: %v after %d calls", err, calls.Load())
		}
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
			h, err := New(&Options{Servers: map[string]ServerConfig{"r": HTTP{URL: "http://server.test/mcp", HTTPClient: &http.Client{Transport: &memhttp.Transport{Handler: raw}}}}, Dir: t.TempDir()})
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

// A list of tools that cannot be had when the server is connected, or when it says that they changed, is asked for again
// after pauses that grow; a server that refuses everything because it lost the session at once is connected anew.
//
// fault B3
func TestListThatCannotBeHad(t *testing.T) {
	for name, tt := range map[string]struct {
		refuse func(w http.ResponseWriter, m rawMsg) // of tools/list
		all    bool                                  // refuses pings as well
		inits  int
	}{
		"an error":          {func(w http.ResponseWriter, m rawMsg) { answerError(w, m.ID, -32603, "still reading them") }, false, 1},
		"a server's error":  {func(w http.ResponseWriter, m rawMsg) { answerError(w, m.ID, -32000, "still reading them") }, false, 1},
		"nonsense":          {func(w http.ResponseWriter, m rawMsg) { answer(w, m.ID, `{"tools":"soon"}`) }, false, 1},
		"no such session":   {func(w http.ResponseWriter, m rawMsg) { answerError(w, m.ID, -32000, "Server not initialized") }, true, 2},
		"another's session": {func(w http.ResponseWriter, _ rawMsg) { http.Error(w, "call initialize first", 400) }, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				raw := &rawHTTP{}
				lists := 0
				raw.before = func(w http.ResponseWriter, _ *http.Request, m rawMsg) bool {
					bad := time.Since(began) < time.Minute
					if tt.all {
						raw.mu.Lock()
						bad = raw.inits == 1
						raw.mu.Unlock()
					}
					switch {
					case m.Method == "tools/list" && bad:
						lists++
						tt.refuse(w, m)
					case m.Method == "ping" && bad && tt.all:
						tt.refuse(w, m)
					case m.Method == "ping":
						answer(w, m.ID, `{}`)
					default:
						return false
					}
					return true
				}
				h, err := New(&Options{Servers: map[string]ServerConfig{"r": HTTP{URL: "http://server.test/mcp", HTTPClient: &http.Client{Transport: &memhttp.Transport{Handler: raw}}}}, Dir: t.TempDir()})
				if err != nil {
					t.Fatal(err)
				}
				h.Start(t.Context())
				defer h.Close()
				time.Sleep(10 * time.Second)
				if s := status(t, h, "r"); !tt.all && (s.Status != StatusConnected || s.Error == "") {
					t.Errorf("meanwhile: %s, %q", s.Status, s.Error)
				}
				time.Sleep(3 * time.Minute)
				if got, err := h.CallServer(t.Context(), "r", "echo", nil, nil); err != nil || plainText(got) != "echo {}" {
					t.Errorf("%v, %v: %s", got, err, dump(h))
				}
				if s := status(t, h, "r"); s.Error != "" {
					t.Errorf("afterwards: %q", s.Error)
				}
				if raw.inits != tt.inits || lists > 5*(len(listPauses)+1) {
					t.Errorf("%d handshakes, want %d; %d requests for the list", raw.inits, tt.inits, lists)
				}
			})
		})
	}
}
