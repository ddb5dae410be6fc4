package mcphost

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// hangingServers are servers of every transport whose tool never answers.
func hangingServers(t *testing.T) map[string]ServerConfig {
	sse := libraryServer()
	t.Cleanup(func() {
		for s := range sse.Sessions() {
			_ = s.Close()
		}
	})
	local := mcpserver.New("local", nil)
	mcpserver.MustAddTool(local, &mcpserver.Tool{Name: "wait"}, func(ctx context.Context, _ struct{}) (string, error) { <-ctx.Done(); return "", ctx.Err() })
	return map[string]ServerConfig{
		"stdio": child("library"),
		"http":  HTTP{URL: serve(t, libraryHTTP(t, nil)).URL},
		"sse":   SSE{URL: serve(t, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return sse }, nil)).URL},
		"local": InProcess(local),
	}
}

// begun starts a call of wait on each server and returns their errors once the calls have been sent.
func begun(t *testing.T, h *Host, servers ...string) map[string]<-chan error {
	t.Helper()
	out := map[string]<-chan error{}
	for _, name := range servers {
		ch := make(chan error, 1)
		out[name] = ch
		go func() {
			_, err := h.CallServer(soon(t), name, "wait", nil, &CallOptions{Timeout: 20 * time.Second})
			ch <- err
		}()
		awaitSent(t, h, name)
	}
	return out
}

// awaitSent waits until a call to a server is on its way.
func awaitSent(t *testing.T, h *Host, name string) {
	t.Helper()
	c, err := h.conn(name)
	if err != nil {
		t.Fatal(err)
	}
	for ctx := soon(t); ; {
		c.mu.Lock()
		l := c.rec.link
		sent := l != nil && l.users > 0
		c.mu.Unlock()
		if r, ok := l.link.(*remoteLink); ok && sent {
			sent = r.InFlight() > 0
		}
		if sent {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("%s was never called", name)
		}
	}
}

// A call that was sent and then cut off says why, and that the tool may have run, over every transport.
// fault G5
func TestCutCallsSayWhy(t *testing.T) {
	t.Parallel()
	names := []string{"stdio", "http", "sse", "local"}
	for _, tt := range []struct {
		name string
		cut  func(t *testing.T, h *Host, name string)
		is   error
		text string
	}{
		{"reconnect", func(t *testing.T, h *Host, name string) {
			if err := h.Reconnect(soon(t), name); err != nil {
				t.Error(err)
			}
		}, ErrReconnected, "cut off: mcphost: connection made anew on request"},
		{"disable", func(t *testing.T, h *Host, name string) {
			if err := h.SetEnabled(soon(t), name, false); err != nil {
				t.Error(err)
			}
		}, ErrDisabled, "cut off: server is disabled"},
		{"remove", func(t *testing.T, h *Host, name string) {
			rest := hangingOnly(h, name)
			if _, err := h.SetServers(soon(t), rest); err != nil {
				t.Error(err)
			}
		}, ErrRemoved, "cut off: mcphost: server removed"},
		{"replace", func(t *testing.T, h *Host, name string) {
			rest := hangingOnly(h, name)
			rest[name] = Stdio{Command: "/none"}
			if _, err := h.SetServers(soon(t), rest); err != nil {
				t.Error(err)
			}
		}, ErrReplaced, "cut off: mcphost: server replaced by another configuration"},
		{"close", func(t *testing.T, h *Host, _ string) {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		}, ErrClosed, "cut off: mcphost: host closed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, hangingServers(t))
			connected(t, h)
			calls := begun(t, h, names...)
			for _, name := range names {
				tt.cut(t, h, name)
			}
			for _, name := range names {
				err := <-calls[name]
				var ce *CallError
				if !errors.As(err, &ce) || !ce.Sent || !errors.Is(err, tt.is) {
					t.Errorf("%s: %v", name, err)
					continue
				}
				if want := `MCP server "` + name + `", tool "wait": ` + tt.text + "; the tool may have run"; err.Error() != want {
					t.Errorf("%s: got %s, want %s", name, err, want)
				}
			}
		})
	}
}

// hangingOnly are the configurations of a host without one.
func hangingOnly(h *Host, without string) map[string]ServerConfig {
	h.mu.Lock()
	defer h.mu.Unlock()
	rest := map[string]ServerConfig{}
	for name, c := range h.conns {
		if name != without {
			rest[name] = c.cfg
		}
	}
	return rest
}

// A call that ran out of time says that the tool may have run, over every transport, and is in the log once, with the
// server, the tool, the model's id of the call and what the context has.
// fault G5
// fault G6
func TestTimedOutCallsSayThatTheToolMayHaveRun(t *testing.T) {
	var log syncBuffer
	servers := hangingServers(t)
	h := newHost(t, servers, func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	})
	connected(t, h)
	for name := range servers {
		ctx := WithLogAttrs(WithLogAttrs(soon(t), slog.String("session", "s-"+name)), slog.Int("turn", 3))
		_, err := h.CallServer(ctx, name, "wait", nil, &CallOptions{Timeout: 150 * time.Millisecond, ToolUseID: "toolu_" + name})
		want := `MCP server "` + name + `", tool "wait": timed out after 150ms; the tool may have run`
		if err == nil || err.Error() != want || !errors.Is(err, ErrTimeout) {
			t.Errorf("got %v, want %s", err, want)
		}
		line := `level=WARN msg="call timed out" server=` + name + ` tool=wait session=s-` + name + ` turn=3 tool_use_id=toolu_` + name + ` error="MCP server`
		if n := strings.Count(log.String(), line); n != 1 {
			t.Errorf("%d records %s in %s", n, line, log.String())
		}
	}
}

// The limits and panics that a server in this process has for itself are in the host's log, too.
// fault G6
func TestFailuresInThisProcessAreLogged(t *testing.T) {
	var log syncBuffer
	s := mcpserver.New("local", &mcpserver.Options{Timeout: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "wait"}, func(ctx context.Context, _ struct{}) (string, error) { <-ctx.Done(); return "", ctx.Err() })
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "panic"}, func(context.Context, struct{}) (string, error) { panic("oh no") })
	h := newHost(t, map[string]ServerConfig{"local": InProcess(s)}, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	connected(t, h)
	ctx := WithLogAttrs(soon(t), slog.String("session", "s1"))
	res, err := h.CallServer(ctx, "local", "wait", nil, &CallOptions{ToolUseID: "toolu_1"})
	if err != nil || !res.IsError || !strings.HasSuffix(plainText(res), "timed out after 50ms; the tool may have run") {
		t.Errorf("got %+v, %v", res, err)
	}
	if _, err := h.CallServer(ctx, "local", "panic", nil, &CallOptions{ToolUseID: "toolu_2"}); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		`level=WARN msg="call timed out in a server of this process" server=local tool=wait session=s1 tool_use_id=toolu_1 limit=50ms`,
		`level=ERROR msg="panic in a server of this process" server=local tool=panic session=s1 tool_use_id=toolu_2 panic="oh no" stack="goroutine`,
	} {
		if n := strings.Count(log.String(), want); n != 1 {
			t.Errorf("%d records %s in %s", n, want, log.String())
		}
	}
}

// ownServer returns a server whose tool wait runs until its context ends, and reports when it runs.
func ownServer(o *mcpserver.Options) (s *mcpserver.Server, running chan struct{}) {
	s, running = mcpserver.New("own", o), make(chan struct{}, 1)
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "wait"}, func(ctx context.Context, _ struct{}) (string, error) {
		running <- struct{}{}
		<-ctx.Done()
		return "", ctx.Err()
	})
	return s, running
}

// overEachTransport connects a host to servers made by own and runs f for each transport.
func overEachTransport(t *testing.T, o *mcpserver.Options, f func(t *testing.T, h *Host, s *mcpserver.Server, running <-chan struct{})) {
	for name, serveIt := range map[string]func(t *testing.T, s *mcpserver.Server) ServerConfig{
		"in process": func(_ *testing.T, s *mcpserver.Server) ServerConfig { return InProcess(s) },
		"http": func(t *testing.T, s *mcpserver.Server) ServerConfig {
			return HTTP{URL: serve(t, mcpserver.NewHTTPHandler(s, nil)).URL}
		},
		"stdio": func(t *testing.T, s *mcpserver.Server) ServerConfig {
			return Custom{Key: "stdio", Open: func(context.Context) (mcp.Transport, error) {
				toServer, fromHost := io.Pipe()
				toHost, fromServer := io.Pipe()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_ = mcpbridge.ServeStdio(t.Context(), s, &mcpbridge.StdioOptions{In: toServer, Out: fromServer})
				}()
				t.Cleanup(func() { _, _ = toServer.Close(), toHost.Close(); <-ended })
				return &mcp.IOTransport{Reader: toHost, Writer: fromHost}, nil
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, running := ownServer(o)
			h := newHost(t, map[string]ServerConfig{"own": serveIt(t, s)})
			connected(t, h)
			f(t, h, s, running)
		})
	}
}

// A call that exceeds the server's own time limit says that the tool may have run, over each transport.
// fault G5
func TestServersOwnTimeLimitSaysThatTheToolMayHaveRun(t *testing.T) {
	t.Parallel()
	overEachTransport(t, &mcpserver.Options{Timeout: 50 * time.Millisecond}, func(t *testing.T, h *Host, _ *mcpserver.Server, _ <-chan struct{}) {
		res, err := h.CallServer(soon(t), "own", "wait", nil, nil)
		if err != nil || !res.IsError || plainText(res) != "Tool 'wait' timed out after 50ms; the tool may have run" {
			t.Errorf("got %+v, %v", res, err)
		}
	})
}

// A call of a server that is closed meanwhile says that the tool may have run, over each transport.
// fault G5
func TestServerClosedInACallSaysThatTheToolMayHaveRun(t *testing.T) {
	t.Parallel()
	overEachTransport(t, nil, func(t *testing.T, h *Host, s *mcpserver.Server, running <-chan struct{}) {
		failed := make(chan error, 1)
		go func() {
			_, err := h.CallServer(soon(t), "own", "wait", nil, nil)
			failed <- err
		}()
		<-running
		_ = s.Close()
		if err := <-failed; err == nil || strings.Count(err.Error(), "the tool may have run") != 1 {
			t.Errorf("got %v", err)
		}
	})
}

// With a grace, calls that run may end before their connection is closed on request; no new ones begin, or they wait
// for the next connection. Without one, and when it is over, they are cut off.
// fault G10
func TestCallGrace(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(ctx context.Context, h *Host) error
		late error // of a call that comes meanwhile; nil if it is served
	}{
		{"close", func(_ context.Context, h *Host) error { return h.Close() }, ErrClosed},
		{"disable", func(ctx context.Context, h *Host) error { return h.SetEnabled(ctx, "p", false) }, ErrDisabled},
		{"reconnect", func(ctx context.Context, h *Host) error { return h.Reconnect(ctx, "p") }, nil},
		{"remove", func(ctx context.Context, h *Host) error { _, err := h.SetServers(ctx, nil); return err }, ErrUnknownServer},
		{"replace", func(ctx context.Context, h *Host) error {
			_, err := h.SetServers(ctx, map[string]ServerConfig{"p": InProcess(timedServer())})
			return err
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHost(t, map[string]ServerConfig{"p": InProcess(timedServer())}, func(o *Options) { o.CallGrace = 10 * time.Second })
				ready(t, h)
				began := time.Now()
				quick, slow, late := make(chan error, 1), make(chan error, 1), make(chan error, 1)
				call := func(arg string, ch chan error) {
					_, err := h.CallServer(t.Context(), "p", "t", []byte(arg), nil)
					ch <- err
				}
				go call(`{"seconds":5}`, quick)
				go call(`{"seconds":60}`, slow)
				synctest.Wait()
				done := make(chan error, 1)
				go func() { done <- tt.do(t.Context(), h) }()
				synctest.Wait()
				go call(`{"seconds":0}`, late)
				synctest.Wait()
				if err := <-quick; err != nil || time.Since(began) != 5*time.Second {
					t.Errorf("within the grace: %v after %v", err, time.Since(began))
				}
				if err := <-slow; err == nil || !strings.HasSuffix(err.Error(), "; the tool may have run") || time.Since(began) != 10*time.Second {
					t.Errorf("beyond the grace: %v after %v", err, time.Since(began))
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
				if err := <-late; !errors.Is(err, tt.late) || tt.late == nil && err != nil {
					t.Errorf("meanwhile: %v, want %v", err, tt.late)
				}
				h.Close()
			})
		})
	}
}

// timedServer has a tool that takes as long as it is told.
func timedServer() mcpserver.Provider {
	s := mcpserver.New("timed", nil)
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "t"}, func(ctx context.Context, in struct {
		Seconds int `json:"seconds"`
	},
	) (string, error) {
		select {
		case <-time.After(time.Duration(in.Seconds) * time.Second):
			return "done", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	return s
}

// A grace ends with the context of whoever asked, and the connection then stays as it was; without calls there is none.
// fault G10
func TestCallGraceIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, map[string]ServerConfig{"p": InProcess(timedServer())}, func(o *Options) { o.CallGrace = time.Hour })
		ready(t, h)
		slow := make(chan error, 1)
		go func() {
			_, err := h.CallServer(t.Context(), "p", "t", []byte(`{"seconds":30}`), nil)
			slow <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.SetEnabled(ctx, "p", false); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if _, err := h.CallServer(t.Context(), "p", "t", nil, nil); err != nil {
			t.Errorf("afterwards: %v", err)
		}
		if err := <-slow; err != nil {
			t.Errorf("the call that ran: %v", err)
		}
		began := time.Now()
		h.Close()
		if took := time.Since(began); took != 0 {
			t.Errorf("closing without calls took %v", took)
		}
	})
}

// Records of calls that timed out, however many, hide none of a call that was cut off.
// fault G6
func TestKindsOfRecordsHaveLimitsOfTheirOwn(t *testing.T) {
	var log syncBuffer
	h := newHost(t, map[string]ServerConfig{"stdio": child("library")}, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	connected(t, h)
	for range logBurst + 1 {
		if _, err := h.CallServer(soon(t), "stdio", "wait", nil, &CallOptions{Timeout: time.Millisecond}); !errors.Is(err, ErrTimeout) {
			t.Errorf("got %v, want a time-out", err)
		}
	}
	calls := begun(t, h, "stdio")
	if err := h.Reconnect(soon(t), "stdio"); err != nil {
		t.Error(err)
	}
	if err := <-calls["stdio"]; !errors.Is(err, ErrReconnected) {
		t.Errorf("got %v, want a call that was cut off", err)
	}
	for msg, want := range map[string]int{"call timed out": logBurst, "call failed": 1} {
		if n := strings.Count(log.String(), `msg="`+msg+`"`); n != want {
			t.Errorf("%d records %q, want %d", n, msg, want)
		}
	}
}
