package mcpbridge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// A stalledWriter takes its first bytes and then blocks until end is closed.
type stalledWriter struct {
	room    atomic.Int64
	blocked chan struct{} // gets a value when a write begins to wait
	end     chan struct{}
}

func (w *stalledWriter) Write(p []byte) (int, error) {
	if w.room.Add(-int64(len(p))) >= 0 {
		return len(p), nil
	}
	select {
	case w.blocked <- struct{}{}:
	default:
	}
	<-w.end
	return 0, io.ErrClosedPipe
}

// A client that sends requests without end and reads nothing is not read from any
// more once its replies do not go out.
//
// fault H4
func TestStdioClientThatReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 20
		s := mcpserver.New("s", &mcpserver.Options{LookupEnv: noEnv})
		defer s.Close()
		var ran, sent atomic.Int64
		if err := s.AddTool(&mcpserver.Tool{Name: "count"}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
			ran.Add(1)
			return mcpserver.Text(strings.Repeat("x", 1000)), nil
		}); err != nil {
			t.Fatal(err)
		}
		in, client := io.Pipe()
		out := &stalledWriter{blocked: make(chan struct{}, 1), end: make(chan struct{})}
		out.room.Store(5000)
		served := make(chan error, 1)
		go func() {
			served <- mcpbridge.ServeStdio(t.Context(), s, &mcpbridge.StdioOptions{In: in, Out: out, Grace: -1, MaxRequests: most})
		}()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for i := 1; i <= 1_000_000; i++ {
				if _, err := fmt.Fprintf(client, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"count"}}`+"\n", i); err != nil {
					return
				}
				sent.Add(1)
			}
		}()
		<-out.blocked
		synctest.Wait() // nothing moves any more
		if n := sent.Load(); n > 4*most {
			t.Errorf("%d requests were read", n)
		}
		if n := ran.Load(); n > 4*most {
			t.Errorf("%d calls ran", n)
		}
		_ = client.Close()
		_ = in.Close()
		close(out.end)
		<-served
		<-ended
	})
}

// Beyond the bound each request is refused by itself, alone and in a batch. A
// request that got its reply makes room.
//
// fault H4
func TestStdioRefusesTooManyRequests(t *testing.T) {
	s := mcpserver.New("s", &mcpserver.Options{LookupEnv: noEnv})
	defer s.Close()
	started, gate := make(chan struct{}, 2), make(chan struct{})
	end := sync.OnceFunc(func() { close(gate) })
	defer end()
	if err := s.AddTool(&mcpserver.Tool{Name: "wait"}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		started <- struct{}{}
		<-gate
		return mcpserver.Text("done"), nil
	}); err != nil {
		t.Fatal(err)
	}
	in, client := io.Pipe()
	lines, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- mcpbridge.ServeStdio(ctx, s, &mcpbridge.StdioOptions{In: in, Out: out, MaxRequests: 2})
	}()
	replies := bufio.NewScanner(lines)
	send := func(line string) {
		t.Helper()
		if _, err := io.WriteString(client, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	next := func() string {
		t.Helper()
		if !replies.Scan() {
			t.Fatal(replies.Err())
		}
		return replies.Text()
	}
	for id := 1; id <= 2; id++ {
		send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wait"}}`, id))
		<-started
	}
	const busy = `"error":{"code":-32005,"message":"too many requests at once: the limit is 2; send this one again when others have been answered"}}`
	send(`{"jsonrpc":"2.0","id":"three","method":"ping"}`)
	if got, want := next(), `{"jsonrpc":"2.0","id":"three",`+busy; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	send(`[{"jsonrpc":"2.0","id":4,"method":"ping"},{"jsonrpc":"2.0","id":5,"method":"ping"}]`)
	if got, want := next(), `[{"jsonrpc":"2.0","id":4,`+busy+`,{"jsonrpc":"2.0","id":5,`+busy+`]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	long := strings.Repeat("x", 100_000)
	send(`{"jsonrpc":"2.0","id":"` + long + `","method":"ping"}`)
	if got := next(); len(got) > 200 || !strings.Contains(got, `"id":null`) {
		t.Errorf("an id of 100 KB: %.300s", got)
	}
	send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"` + long + `"}}`) // of no request
	end()
	for range 2 {
		if got := next(); !strings.Contains(got, "done") {
			t.Errorf("got %s", got)
		}
	}
	send(`{"jsonrpc":"2.0","id":6,"method":"ping"}`)
	if got := next(); got != `{"jsonrpc":"2.0","id":6,"result":{}}` {
		t.Errorf("with room again: %s", got)
	}
	cancel()
	_ = client.Close()
	_ = out.Close()
	<-served
}
