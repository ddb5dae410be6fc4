package mcphost

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/memhttp"
	"github.com/tenon-sdk/tenon/mcphost/internal/transport"
)

// handshakes is when each handshake came, by what began it.
type handshakes struct {
	mu sync.Mutex
	at map[string][]time.Time
}

func (h *handshakes) add(kind string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at == nil {
		h.at = map[string][]time.Time{}
	}
	h.at[kind] = append(h.at[kind], time.Now())
}

// most returns the most handshakes of one kind in any ten seconds, and how many of any kind there were.
func (h *handshakes) most() (most, all int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, times := range h.at {
		for i, from := range times {
			n := 0
			for _, at := range times[i:] {
				if at.Sub(from) < 10*time.Second {
					n++
				}
			}
			most = max(most, n)
		}
		all += len(times)
	}
	return most, all
}

// counted counts the handshakes with a server, and takes note of two at a time.
func (h *handshakes) counted(t *testing.T, server http.Handler) http.Handler {
	var mu sync.Mutex
	var open []context.Context // of handshakes; one that the host has given up is done
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch {
		case bytes.Contains(body, []byte(`"method":"initialize"`)):
			h.add("initialize")
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			mu.Lock()
			if slices.ContainsFunc(open, func(ctx context.Context) bool { return ctx.Err() == nil }) {
				t.Error("two handshakes at a time")
			}
			open = append(open, ctx)
			mu.Unlock()
			time.Sleep(10 * time.Millisecond)
		case bytes.Contains(body, []byte(`"method":"server/discover"`)):
			h.add("server/discover")
		case r.Method == http.MethodGet && r.URL.Path == "/sse":
			h.add("stream")
		}
		server.ServeHTTP(w, r)
	})
}

// A restless server gives a host reasons to connect anew until it is well.
type restless struct {
	sse     bool
	headers func(context.Context) (map[string]string, error)
	server  func(well *atomic.Bool) http.Handler
}

func restlessServers() map[string]restless {
	notFound := func(w http.ResponseWriter) { http.Error(w, "no such session", http.StatusNotFound) }
	return map[string]restless{
		"three nodes behind a balancer": {server: func(well *atomic.Bool) http.Handler {
			nodes := []*rawHTTP{{}, {next: 1000}, {next: 2000}} // they name their sessions differently
			var n atomic.Int64
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				i := int(n.Add(1)) % 3
				if well.Load() {
					i = 0
				}
				nodes[i].ServeHTTP(w, r)
			})
		}},
		"forgets the session after each call": {server: func(well *atomic.Bool) http.Handler {
			raw := &rawHTTP{}
			raw.call = func(w http.ResponseWriter, _ *http.Request, m rawMsg) {
				answerText(w, m.ID, "once")
				if !well.Load() {
					raw.forget()
				}
			}
			return raw
		}},
		"forgets the session after the list": {server: func(well *atomic.Bool) http.Handler {
			raw := &rawHTTP{}
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				raw.ServeHTTP(w, r)
				if raw.count("POST tools/list") > 0 && !well.Load() {
					raw.forget()
				}
			})
		}},
		"refuses the second handshake of two": {server: func(well *atomic.Bool) http.Handler {
			var n atomic.Int64
			return &rawHTTP{before: func(w http.ResponseWriter, _ *http.Request, m rawMsg) bool {
				switch {
				case well.Load():
					return false
				case m.Method == "initialize" && n.Add(1)%2 == 0, m.Method == "tools/call":
					notFound(w)
					return true
				}
				return false
			}}
		}},
		"wants another login for each call": {
			headers: func(context.Context) (map[string]string, error) { return map[string]string{"X-Token": "t"}, nil },
			server: func(well *atomic.Bool) http.Handler {
				return &rawHTTP{before: func(w http.ResponseWriter, _ *http.Request, m rawMsg) bool {
					if well.Load() || m.Method != "tools/call" {
						return false
					}
					w.WriteHeader(http.StatusUnauthorized)
					return true
				}}
			},
		},
		"speaks another protocol each time": {server: func(well *atomic.Bool) http.Handler {
			var n atomic.Int64
			raw := &rawHTTP{}
			raw.before = func(w http.ResponseWriter, r *http.Request, m rawMsg) bool {
				modern := r.Header.Get(headerVersion) >= transport.V20260728
				switch {
				case well.Load():
					return false
				case m.Method == "server/discover" && n.Add(1)%2 == 0:
					answer(w, m.ID, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`)
				case m.Method == "tools/list" && modern:
					answer(w, m.ID, `{"tools":[`+echoTool+`]}`)
				case m.Method == "tools/call" || m.Method == "tools/list" && raw.count("POST tools/list")%3 == 0:
					w.WriteHeader(http.StatusBadRequest)
					answerError(w, m.ID, -32022, "Unsupported protocol version")
				default:
					return false
				}
				return true
			}
			return raw
		}},
		"tells of changes without end and loses the session": {server: func(well *atomic.Bool) http.Handler {
			var n atomic.Int64
			raw := &rawHTTP{}
			raw.before = func(w http.ResponseWriter, _ *http.Request, m rawMsg) bool {
				switch {
				case well.Load():
					return false
				case m.Method == "initialize":
					raw.mu.Lock()
					raw.sessions = map[string]bool{"s": true}
					raw.mu.Unlock()
					w.Header().Set(headerSession, "s")
					answer(w, m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"raw","version":"1"}}`)
					return true
				case m.Method == "tools/list" && n.Add(1)%2 == 0:
					raw.forget()
				}
				return false
			}
			raw.get = func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for r.Context().Err() == nil {
					if _, err := io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"); err != nil || !transport.Sleep(r.Context(), 20*time.Millisecond) {
						return
					}
				}
			}
			return raw
		}},
		"ends its stream of events after each answer": {sse: true, server: func(well *atomic.Bool) http.Handler {
			return sseEcho(func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
				if r.Method == http.MethodGet && !well.Load() {
					ctx, end := context.WithCancel(r.Context())
					defer end()
					inner.ServeHTTP(&closing{ResponseWriter: w, events: 4, end: end}, r.WithContext(ctx))
					return
				}
				inner.ServeHTTP(w, r)
			})
		}},
		"moves its address for messages": {sse: true, server: func(well *atomic.Bool) http.Handler {
			return sseEcho(func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(body))
				if bytes.Contains(body, []byte("tools/call")) && !well.Load() {
					notFound(w)
					return
				}
				inner.ServeHTTP(w, r)
			})
		}},
	}
}

// sseEcho is a server of the library over HTTP+SSE, with something before it.
func sseEcho(before func(w http.ResponseWriter, r *http.Request, inner http.Handler)) http.Handler {
	s := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "echo {}"}}}, nil, nil
	})
	inner := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { before(w, r, inner) })
}

// A closing response ends after a number of events.
type closing struct {
	http.ResponseWriter
	events int
	end    func()
}

// Flush implements [http.Flusher].
func (c *closing) Flush() {}

func (c *closing) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	if c.events -= bytes.Count(b, []byte("\n\n")); c.events <= 0 {
		c.end()
	}
	return n, err
}

// Whatever makes a host connect again and again, there are less than ten handshakes in any ten seconds, one at a time, and
// the status says when the next is due. A server that recovers is used again.
//
// fault B1
func TestHandshakesAreBounded(t *testing.T) {
	for name, server := range restlessServers() {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { keepCalling(t, server) }) })
	}
}

func keepCalling(t *testing.T, server restless) {
	var well atomic.Bool
	var shakes handshakes
	line := &memhttp.Transport{Handler: shakes.counted(t, server.server(&well))}
	defer line.Wait()
	var config ServerConfig = HTTP{URL: "http://server.test/mcp", HTTPClient: &http.Client{Transport: line}, HeadersFunc: server.headers}
	if server.sse {
		config = SSE{URL: "http://server.test/sse", HTTPClient: &http.Client{Transport: line}}
	}
	h, err := New(&Options{Servers: map[string]ServerConfig{"r": config}, Dir: t.TempDir()})
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
	if most, all := shakes.most(); most >= 10 || all < 6 {
		t.Errorf("%d handshakes in ten seconds, %d in all", most, all)
	}
	if !said {
		t.Error("the status never said when the next attempt is due")
	}
	well.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if res, err := h.CallServer(ctx, "r", "echo", nil, nil); err == nil && !res.IsError {
			return
		}
		time.Sleep(time.Second)
	}
	t.Errorf("not recovered: %s", dump(h))
}

// A program that asks for connections again and again, one after the other or many at once, gets them within the same
// bound: each is made, and the status says when.
//
// fault B1
func TestReconnectIsBounded(t *testing.T) {
	for name, ask := range map[string]func(h *Host, ctx context.Context) error{
		"Reconnect": func(h *Host, ctx context.Context) error { return h.Reconnect(ctx, "r") },
		"SetEnabled": func(h *Host, ctx context.Context) error {
			return errors.Join(h.SetEnabled(ctx, "r", false), h.SetEnabled(ctx, "r", true))
		},
		"Reconnect by many": func(h *Host, ctx context.Context) error {
			var wg sync.WaitGroup
			errs := make([]error, 5)
			for i := range errs {
				wg.Go(func() { errs[i] = h.Reconnect(ctx, "r") })
			}
			wg.Wait()
			return errors.Join(errs...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var shakes handshakes
				line := &memhttp.Transport{Handler: shakes.counted(t, &rawHTTP{})}
				h, err := New(&Options{Servers: map[string]ServerConfig{"r": HTTP{URL: "http://server.test/mcp", HTTPClient: &http.Client{Transport: line}}}, Dir: t.TempDir()})
				if err != nil {
					t.Fatal(err)
				}
				h.Start(t.Context())
				defer h.Close()
				for range 50 {
					if err := ask(h, t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if most, all := shakes.most(); most >= 10 || all < 50 {
					t.Errorf("%d handshakes in ten seconds, %d in all", most, all)
				}
			})
		})
	}
}

// A program that ends on the first message is started twice for one attempt to connect: both starts count.
//
// fault B1
func TestStartsAreBounded(t *testing.T) {
	var starts atomic.Int64
	h := newHost(t, map[string]ServerConfig{"s": child("exit3")}, func(o *Options) {
		o.OnStderr = func(_, line string) {
			if strings.HasPrefix(line, "missing KEY") {
				starts.Add(1)
			}
		}
	})
	ready(t, h)
	c, err := h.conn("s")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(soon(t))
	defer cancel()
	asked := make(chan error)
	go func() { // ends with ctx
		for {
			err := h.Reconnect(ctx, "s")
			select {
			case asked <- err:
			case <-ctx.Done():
				close(asked)
				return
			}
		}
	}()
	postponed := make(chan error, 1)
	go func() { // ends with ctx
		postponed <- c.await(ctx, func() bool { return c.state.phase == phaseBackoff })
	}()
	for attempts := 0; ; attempts++ {
		select {
		case err := <-asked:
			if err == nil {
				t.Fatal("connected")
			}
			continue
		case err := <-postponed:
			if err != nil {
				t.Fatal(err)
			}
		}
		break
	}
	if n := starts.Load(); n < maxAttempts || n >= 10 {
		t.Errorf("%d starts before the pause", n)
	}
	cancel()
	for range asked { // the last one
	}
}
