package mcphost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcphost/internal/transport"
)

// holdServer is a server with a tool that says that it began and waits for its end, and one that answers at once.
func holdServer(began chan<- string, release <-chan struct{}) *mcp.Server {
	srv := mcp.NewServer(&mcp.Implementation{Name: "hold", Version: "1"}, nil)
	type in struct {
		User string `json:"user"`
	}
	mcp.AddTool(srv, &mcp.Tool{Name: "hold"}, func(ctx context.Context, _ *mcp.CallToolRequest, in in) (*mcp.CallToolResult, any, error) {
		began <- in.User
		select {
		case <-ctx.Done():
		case <-release:
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "held for " + in.User}}}, nil, nil
	})
	mcp.AddTool(srv, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in in) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.User}}}, nil, nil
	})
	return srv
}

// An interrupt of one user, with a cause of its own, is no fault of the network: nobody else's call ends, and the
// connection stays. Over all transports, and both kinds of protocol.
//
// fault G1
func TestInterruptsStayWithTheirUser(t *testing.T) {
	const interrupted = 12
	kinds := map[string]func(t *testing.T, srv *mcp.Server) ServerConfig{
		"http 2025": func(t *testing.T, srv *mcp.Server) ServerConfig {
			return HTTP{URL: serve(t, sessionsOnly(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, nil))).URL}
		},
		"http json": func(t *testing.T, srv *mcp.Server) ServerConfig {
			return HTTP{URL: serve(t, sessionsOnly(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, &mcp.StreamableHTTPOptions{JSONResponse: true}))).URL}
		},
		"http 2026": func(t *testing.T, srv *mcp.Server) ServerConfig {
			return HTTP{URL: serve(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, &mcp.StreamableHTTPOptions{Stateless: true})).URL}
		},
		"sse": func(t *testing.T, srv *mcp.Server) ServerConfig {
			return SSE{URL: serve(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return srv }, nil)).URL}
		},
		"stdio": func(*testing.T, *mcp.Server) ServerConfig { return child("hold") },
	}
	for kind, config := range kinds {
		t.Run(kind, func(t *testing.T) {
			began, release := make(chan string, 2*interrupted), make(chan struct{})
			srv := holdServer(began, release)
			t.Cleanup(func() {
				for s := range srv.Sessions() {
					_ = s.Close()
				}
			})
			h := newHost(t, map[string]ServerConfig{"s": config(t, srv)})
			connected(t, h)
			if v := status(t, h, "s").ProtocolVersion; strings.HasPrefix(kind, "http") && kind != "http json" && !strings.HasPrefix(v, strings.TrimPrefix(kind, "http ")) {
				t.Fatalf("protocol version %s", v)
			}
			since := status(t, h, "s").Since
			hold := func(ctx context.Context, user string) (string, error) {
				args, _ := json.Marshal(map[string]string{"user": user})
				o := &CallOptions{OnProgress: func(Progress) { began <- user }}
				res, err := h.Call(ctx, "mcp__s__hold", args, o)
				if err != nil {
					return "", err
				}
				return plainText(res), nil
			}
			bystander := make(chan error, 1)
			go func() {
				got, err := hold(soon(t), "bystander")
				if err == nil && got != "held for bystander" {
					err = fmt.Errorf("got %q", got)
				}
				bystander <- err
			}()
			<-began
			errInterrupted := errors.New("native: interrupted")
			ctx, interrupt := context.WithCancelCause(soon(t))
			var wg sync.WaitGroup
			for i := range interrupted {
				wg.Go(func() {
					if _, err := hold(ctx, fmt.Sprint(i)); !errors.Is(err, context.Canceled) {
						t.Errorf("an interrupted call: %v", err)
					}
				})
			}
			for range interrupted {
				<-began
			}
			interrupt(errInterrupted)
			wg.Wait()
			if got := text(t, h, "mcp__s__echo", `{"user":"next"}`); got != "next" {
				t.Errorf("the next user's call: %q", got)
			}
			close(release)
			if kind == "stdio" {
				_ = text(t, h, "mcp__s__echo", `{"user":"release"}`)
			}
			if err := <-bystander; err != nil {
				t.Errorf("another user's call: %v", err)
			}
			if s := status(t, h, "s"); s.Status != StatusConnected || s.Since != since || !s.LastError.IsZero() {
				t.Errorf("%s since %v, was since %v: %v", s.Status, s.Since, since, s.Err)
			}
		})
	}
}

// A user whose calls end before they are sent, or cannot be sent, disturbs nobody.
//
// fault G1
func TestCallsNotSentStayWithTheirUser(t *testing.T) {
	var posts atomic.Int64
	raw := &rawHTTP{before: func(_ http.ResponseWriter, _ *http.Request, m rawMsg) bool {
		if m.Method == "tools/call" {
			posts.Add(1)
		}
		return false
	}}
	lib := libraryServer()
	h := newHost(t, map[string]ServerConfig{
		"http": HTTP{URL: serve(t, raw).URL},
		"sse":  SSE{URL: serve(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return lib }, nil)).URL},
	})
	connected(t, h)
	for _, name := range []string{"http", "sse"} {
		for range 2 * 3 {
			var ce *CallError
			_, err := h.Call(soon(t), "mcp__"+name+"__echo", nil, &CallOptions{Headers: map[string]string{"X-Bad": "a\nb"}})
			if !errors.As(err, &ce) || ce.Sent || !strings.Contains(err.Error(), `header "X-Bad"`) {
				t.Errorf("%s: a header that cannot be sent: %v", name, err)
			}
			ctx, cancel := context.WithCancelCause(soon(t))
			cancel(errors.New("gave up"))
			if _, err := h.Call(ctx, "mcp__"+name+"__echo", nil, nil); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: a call that was given up: %v", name, err)
			}
		}
		if s := status(t, h, name); s.Status != StatusConnected || !s.LastError.IsZero() {
			t.Errorf("%s is %s: %v", name, s.Status, s.Err)
		}
	}
	if n := posts.Load(); n != 0 {
		t.Errorf("%d calls reached the server", n)
	}
}

// sessionsOnly hides the stateless protocol of a handler.
func sessionsOnly(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(headerMethod) == "server/discover" || r.Header.Get(headerVersion) >= transport.V20260728 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found"}}`)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func init() {
	// hold is holdServer, which says by progress that a call began, and lets go of all when it is told "release".
	children["hold"] = func() {
		var mu sync.Mutex
		held := map[string]rawMsg{}
		rawChild(`[{"name":"hold","inputSchema":{"type":"object"}},{"name":"echo","inputSchema":{"type":"object"}}]`, func(s *rawServer, m rawMsg) bool {
			if m.Method != "tools/call" {
				return false
			}
			name, args := m.tool()
			var in struct{ User string }
			_ = json.Unmarshal([]byte(args), &in)
			if name == "hold" {
				mu.Lock()
				held[in.User] = m
				mu.Unlock()
				var p struct {
					Meta struct {
						Token json.RawMessage `json:"progressToken"`
					} `json:"_meta"`
				}
				_ = json.Unmarshal(m.Params, &p)
				s.line(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, p.Meta.Token)
				return true
			}
			if in.User == "release" {
				m := held["bystander"]
				s.reply(m.ID, `{"content":[{"type":"text","text":"held for bystander"}]}`)
			}
			s.reply(m.ID, fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, in.User))
			return true
		})
	}
}
