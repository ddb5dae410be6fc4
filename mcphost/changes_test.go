package mcphost

import (
	"context"
	"errors"
	"fmt"
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

// A streamServer is a rawHTTP without a network whose standing stream, or answer to subscriptions/listen, is cut by what
// stands before it.
type streamServer struct {
	raw   rawHTTP
	lasts time.Duration // of a stream

	mu      sync.Mutex
	opened  int
	refuses int // the status that streams are refused with; zero for none
	tools   int
	send    string // what the next stream begins with
}

func (s *streamServer) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *streamServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

func (s *streamServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Header.Get(headerMethod) != methodListen {
		return (&memhttp.Transport{Handler: &s.raw}).RoundTrip(r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: http.NoBody}
	if s.opened++; s.refuses != 0 {
		resp.StatusCode = s.refuses
		return resp, nil
	}
	pr, pw := io.Pipe()
	begin := s.send
	s.send = ""
	lasts := s.lasts
	stop := context.AfterFunc(r.Context(), func() { pw.CloseWithError(r.Context().Err()) })
	go func() { // ends with the stream
		defer stop()
		_, _ = io.WriteString(pw, ": open\n\n"+begin)
		if transport.Sleep(r.Context(), lasts) {
			pw.Close()
		}
	}()
	resp.Body = pr
	return resp, nil
}

// newStreamServer returns a server of one kind of protocol that tells of changes of its tools.
func newStreamServer(version string) *streamServer {
	s := &streamServer{lasts: time.Minute, tools: 1}
	const info = `"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"raw","version":"1"}`
	s.raw.before = func(w http.ResponseWriter, r *http.Request, m rawMsg) bool {
		switch {
		case m.Method == "server/discover" && version >= transport.V20260728:
			answer(w, m.ID, `{"resultType":"complete","supportedVersions":["`+version+`"],`+info+`}`)
		case m.Method == "initialize":
			w.Header().Set(headerSession, "session-1")
			s.raw.mu.Lock()
			s.raw.sessions = map[string]bool{"session-1": true}
			s.raw.mu.Unlock()
			answer(w, m.ID, `{"protocolVersion":"2025-11-25",`+info+`}`)
		case m.Method == "tools/list":
			s.mu.Lock()
			tools := make([]string, s.tools)
			s.mu.Unlock()
			for i := range tools {
				tools[i] = strings.Replace(echoTool, `"echo"`, fmt.Sprintf(`"echo%d"`, i), 1)
			}
			answer(w, m.ID, `{"tools":[`+strings.Join(tools, ",")+`]}`)
		default:
			return false
		}
		return true
	}
	return s
}

// The stream of changes is opened again for as long as the server lives, whatever ends it; a change that was told while
// nobody heard is found, and the status says when changes are not heard.
//
// fault B10
func TestStreamOfChangesIsKeptOpen(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStreamServer(version)
				h, err := New(&Options{Servers: map[string]ServerConfig{"r": HTTP{URL: "http://server.test/mcp", HTTPClient: &http.Client{Transport: s}}}, Dir: t.TempDir()})
				if err != nil {
					t.Fatal(err)
				}
				h.Start(t.Context())
				defer h.Close()
				connected(t, h)
				if v := status(t, h, "r").ProtocolVersion; v != version {
					t.Fatalf("version %s", v)
				}
				time.Sleep(time.Hour)
				if n := s.count(); n < 55 || n > 61 {
					t.Errorf("%d streams of a minute in an hour", n)
				}
				s.set(func() { s.tools = 2 }) // nobody hears of it
				time.Sleep(2 * time.Minute)
				if n := len(h.Tools()); n != 2 {
					t.Errorf("%d tools after a change that was not heard, want 2", n)
				}
				s.set(func() {
					s.tools = 3
					s.send = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"
				})
				time.Sleep(2 * time.Minute)
				if n := len(h.Tools()); n != 3 {
					t.Errorf("%d tools after a change that was told, want 3", n)
				}
				if st := status(t, h, "r"); st.Status != StatusConnected || st.ChangesError != "" {
					t.Errorf("%s, changes: %q", st.Status, st.ChangesError)
				}
				for _, code := range []int{502, 404} { // of a proxy
					s.set(func() { s.refuses, s.opened = code, 0 })
					time.Sleep(30 * time.Minute)
					if st := status(t, h, "r"); st.Status != StatusConnected || !strings.Contains(st.ChangesError, fmt.Sprint("HTTP ", code)) {
						t.Errorf("%d: %s, changes: %q", code, st.Status, st.ChangesError)
					}
					if n := s.count(); n < 25 || n > 60 {
						t.Errorf("%d: asked %d times in half an hour", code, n)
					}
					s.set(func() { s.refuses = 0 })
					time.Sleep(2 * time.Minute)
					if st := status(t, h, "r"); st.ChangesError != "" {
						t.Errorf("%d: changes: %q", code, st.ChangesError)
					}
				}
				s.set(func() { s.lasts, s.opened = 0, 0 })
				time.Sleep(30 * time.Minute)
				if n := s.count(); n < 25 || n > 60 {
					t.Errorf("a stream that ends at once: asked %d times in half an hour", n)
				}
				if s.raw.count("POST initialize") > 1 {
					t.Error("a new handshake for a stream")
				}
			})
		})
	}
}

// A server that tells of changes and has no stream for it is not heard, and the status says so; one that tells of none is
// complete.
//
// fault B10
func TestNoStreamOfChanges(t *testing.T) {
	s := newStreamServer("2025-11-25")
	s.refuses = http.StatusMethodNotAllowed
	h := newHost(t, map[string]ServerConfig{
		"tells": HTTP{URL: "http://server.test/mcp", HTTPClient: &http.Client{Transport: s}},
		"plain": HTTP{URL: serve(t, &rawHTTP{}).URL},
	})
	connected(t, h)
	if st := status(t, h, "tells"); st.ChangesError != "the server has no stream of changes (HTTP 405)" {
		t.Errorf("changes: %q", st.ChangesError)
	}
	if st := status(t, h, "plain"); st.ChangesError != "" {
		t.Errorf("changes of a server that tells of none: %q", st.ChangesError)
	}
}

// A broken answer cannot be resumed in the stateless protocol, nor where the server has no GET: it is an error at once.
//
// fault B15
func TestBrokenAnswerIsAnErrorAtOnce(t *testing.T) {
	for version, gets := range map[string]int64{"2026-07-28": 0, "2025-11-25": 1} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStreamServer(version)
				s.refuses = http.StatusMethodNotAllowed
				inner := s.raw.before
				s.raw.before = func(w http.ResponseWriter, r *http.Request, m rawMsg) bool {
					if m.Method != "tools/call" {
						return inner(w, r, m)
					}
					w.Header().Set("Content-Type", "text/event-stream")
					fmt.Fprint(w, "id: 1\ndata:\n\n")
					return true
				}
				var asked atomic.Int64
				client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
					if r.Method == http.MethodGet {
						asked.Add(1)
					}
					return s.RoundTrip(r)
				})}
				h, err := New(&Options{Servers: map[string]ServerConfig{"r": HTTP{URL: "http://server.test/mcp", HTTPClient: client}}, Dir: t.TempDir()})
				if err != nil {
					t.Fatal(err)
				}
				h.Start(t.Context())
				defer h.Close()
				connected(t, h)
				before, began := asked.Load(), time.Now()
				_, err = h.CallServer(t.Context(), "r", "echo0", nil, nil)
				if !errors.Is(err, ErrConnectionLost) {
					t.Errorf("got %v", err)
				}
				if n, took := asked.Load()-before, time.Since(began); n != gets || took > time.Second {
					t.Errorf("%d requests to resume, want %d, in %v", n, gets, took)
				}
			})
		})
	}
}
