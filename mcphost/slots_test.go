package mcphost

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// Calls at once are bounded for each server and for the host, and so are those that wait. What is refused says so, can
// be made later, and was never sent; other servers are not concerned.
// fault G11
func TestCallsAtOnceAreBounded(t *testing.T) {
	for _, tt := range []struct {
		name   string
		o      Options
		who    string // that is busy
		other  bool   // another server has room
		server string
	}{
		{"server", Options{MaxServerCalls: 2, MaxQueuedCalls: 3}, "the server", true, "a"},
		{"host", Options{MaxServerCalls: -1, MaxCalls: 2, MaxQueuedCalls: 3}, "the host", false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var running atomic.Int32
				gate := make(chan struct{})
				p := &fakeProvider{call: func(context.Context, mcpserver.Call) (*mcpserver.Result, error) {
					running.Add(1)
					<-gate
					return mcpserver.Text("ok"), nil
				}}
				quick := &fakeProvider{call: func(context.Context, mcpserver.Call) (*mcpserver.Result, error) { return mcpserver.Text("ok"), nil }}
				h := newHost(t, map[string]ServerConfig{"a": InProcess(p), "b": InProcess(quick)}, func(o *Options) {
					o.MaxServerCalls, o.MaxCalls, o.MaxQueuedCalls = tt.o.MaxServerCalls, tt.o.MaxCalls, tt.o.MaxQueuedCalls
				})
				ready(t, h)
				out := make(chan error, 10)
				for range 5 {
					go func() {
						_, err := h.CallServer(t.Context(), "a", "t", nil, nil)
						out <- err
					}()
					synctest.Wait()
				}
				if running.Load() != 2 || len(out) != 0 {
					t.Errorf("%d calls run, %d ended", running.Load(), len(out))
				}
				_, err := h.CallServer(t.Context(), "a", "t", nil, nil)
				var busy *BusyError
				var ce *CallError
				if !errors.As(err, &busy) || !busy.Retryable() || busy.Server != tt.server || busy.Running != 2 || busy.Queued != 3 || !errors.As(err, &ce) || ce.Sent {
					t.Errorf("got %v", err)
				}
				if want := `MCP server "a", tool "t": ` + tt.who + " is busy: 2 calls run and 3 wait; the call was not made; make it again later"; err.Error() != want {
					t.Errorf("got %s, want %s", err, want)
				}
				if _, err := h.ReadResource(t.Context(), "a", "x://y"); !errors.As(err, &busy) {
					t.Errorf("a resource: %v", err)
				}
				if err := h.Ping(t.Context(), "a"); err != nil {
					t.Errorf("a sign of life: %v", err)
				}
				if _, err := h.CallServer(t.Context(), "b", "t", nil, nil); (err == nil) != tt.other {
					t.Errorf("another server: %v", err)
				}
				for range 5 {
					gate <- struct{}{}
					if err := <-out; err != nil {
						t.Error(err)
					}
				}
				if _, err := h.CallServer(t.Context(), "b", "t", nil, nil); err != nil {
					t.Errorf("later: %v", err)
				}
				h.Close()
			})
		})
	}
}

// A call waits for room no longer than it may take, and no longer than its context.
// fault G11
func TestWaitForRoomEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, map[string]ServerConfig{"p": InProcess(timedServer())}, func(o *Options) { o.MaxServerCalls = 1 })
		ready(t, h)
		slow := make(chan error, 1)
		go func() {
			_, err := h.CallServer(t.Context(), "p", "t", []byte(`{"seconds":50}`), nil)
			slow <- err
		}()
		synctest.Wait()
		_, err := h.CallServer(t.Context(), "p", "t", nil, &CallOptions{Timeout: 3 * time.Second})
		if err == nil || !strings.Contains(err.Error(), "the server is busy: the call waited 3s while 1 others ran, and was not made; make it again later") {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := h.CallServer(ctx, "p", "t", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if err := <-slow; err != nil {
			t.Error(err)
		}
		h.Close()
	})
}

// With the defaults, 2,000 calls at once to a server that does not answer do not all wait.
// fault G11
func TestDefaultBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, map[string]ServerConfig{"p": InProcess(timedServer())})
		ready(t, h)
		out := make(chan error, 2000)
		for range 2000 {
			go func() {
				_, err := h.CallServer(t.Context(), "p", "t", []byte(`{"seconds":1}`), nil)
				out <- err
			}()
		}
		synctest.Wait()
		if want := 2000 - DefaultMaxServerCalls - DefaultMaxQueuedCalls; len(out) != want {
			t.Errorf("%d calls were refused, want %d", len(out), want)
		}
		served := 0
		for range 2000 {
			if err := <-out; err == nil {
				served++
			} else if !errors.As(err, new(*BusyError)) {
				t.Error(err)
			}
		}
		if served != DefaultMaxServerCalls+DefaultMaxQueuedCalls {
			t.Errorf("%d calls were served", served)
		}
		h.Close()
	})
}
