package mcpbridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// A bridge serves so many requests at a time and refuses the next. A cancellation
// still gets through, and what it frees may be used.
//
// fault H4
// fault G11
func TestRequestsAtATimeAreBounded(t *testing.T) {
	s := mcpserver.New("s", nil)
	defer s.Close()
	started := make(chan struct{})
	if err := s.AddTool(&mcpserver.Tool{Name: "wait"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
		started <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}); err != nil {
		t.Fatal(err)
	}
	b := newBridge(t, s, &mcpbridge.Options{MaxRequests: 2})
	var calls sync.WaitGroup
	for id := range 2 {
		calls.Go(func() {
			if reply := handle(t, b, fmt.Sprintf(`{"id":%d,"method":"tools/call","params":{"name":"wait"}}`, id)); reply != "" {
				t.Errorf("a cancelled call was answered: %s", reply)
			}
		})
		<-started
	}
	const busy = `"error":{"code":-32005,"message":"too many requests at once: the limit is 2; send this one again when others have been answered"}}`
	if got, want := handle(t, b, `{"id":"x","method":"ping"}`), `{"jsonrpc":"2.0","id":"x",`+busy; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := handle(t, b, `[{"id":7,"method":"ping"}]`), `[{"jsonrpc":"2.0","id":7,`+busy+`]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for id := range 2 {
		handle(t, b, fmt.Sprintf(`{"method":"notifications/cancelled","params":{"requestId":%d}}`, id))
	}
	calls.Wait()
	if got := handle(t, b, `{"id":8,"method":"ping"}`); got != `{"jsonrpc":"2.0","id":8,"result":{}}` {
		t.Errorf("with room again: %s", got)
	}
}

// The session's own bound has the same code.
//
// fault G11
func TestCallsOfASessionAreBounded(t *testing.T) {
	s := full(t, &mcpserver.Options{MaxCalls: 1})
	started, end := make(chan struct{}), make(chan struct{})
	if err := s.AddTool(&mcpserver.Tool{Name: "hold"}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		close(started)
		<-end
		return mcpserver.Text("held"), nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.AddResource(&mcp.Resource{URI: "mem:x"}, func(context.Context) (*mcp.ReadResourceResult, error) {
		return mcpserver.TextResource("mem:x", "", ""), nil
	}); err != nil {
		t.Fatal(err)
	}
	b := newBridge(t, s, nil)
	done := make(chan string)
	go func() { done <- handle(t, b, `{"id":1,"method":"tools/call","params":{"name":"hold"}}`) }()
	<-started
	if got := handle(t, b, `{"id":2,"method":"resources/read","params":{"uri":"mem:x"}}`); !strings.Contains(got, `"code":-32005`) {
		t.Errorf("a resource: %s", got)
	}
	if got := handle(t, b, `{"id":3,"method":"tools/call","params":{"name":"echo"}}`); !strings.Contains(got, "1 calls of this session run already") || !strings.Contains(got, `"isError":true`) {
		t.Errorf("a tool: %s", got)
	}
	close(end)
	if got := <-done; !strings.Contains(got, "held") {
		t.Errorf("the first call: %s", got)
	}
}

// Ids, progress tokens and ids of cancelled requests that are too long are not kept
// and not repeated.
//
// fault H4
func TestLongIDsAreNotKept(t *testing.T) {
	s := mcpserver.New("s", nil)
	defer s.Close()
	if err := s.AddTool(&mcpserver.Tool{Name: "token"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
		return mcpserver.Text(fmt.Sprint(mcpserver.RequestFrom(ctx).ProgressToken != nil)), nil
	}); err != nil {
		t.Fatal(err)
	}
	b := newBridge(t, s, nil)
	const limit = 4096
	text := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
	if got := handle(t, b, `{"id":`+text(limit)+`,"method":"ping"}`); !strings.Contains(got, text(limit)) || !strings.Contains(got, `"result":{}`) {
		t.Errorf("the longest id: %.100s", got)
	}
	if got := handle(t, b, `{"id":`+text(limit+1)+`,"method":"ping"}`); len(got) > 200 || !strings.Contains(got, `"id":null,"error":{"code":-32600`) {
		t.Errorf("a longer one: %.300s", got)
	}
	for n, want := range map[int]string{limit: "true", limit + 1: "false"} {
		token := text(n + len(`""`)) // its text counts
		got := handle(t, b, `{"id":1,"method":"tools/call","params":{"name":"token","_meta":{"progressToken":`+token+`}}}`)
		if !strings.Contains(got, `"text":"`+want+`"`) {
			t.Errorf("a token of %d bytes: %.200s, want %s", n, got, want)
		}
	}
	// A request whose cancellation came before it is not run: its id was kept.
	early := func(id string) string {
		handle(t, b, `{"method":"notifications/cancelled","params":{"requestId":`+id+`}}`)
		return handle(t, b, `{"id":`+id+`,"method":"ping"}`)
	}
	if got := early(text(limit - 1)); got != "" {
		t.Errorf("the longest id, cancelled: %.200s", got)
	}
}

// A Send that panics is an error of the message that it was to send.
//
// fault G3
func TestSendThatPanics(t *testing.T) {
	s := mcpserver.New("s", nil)
	defer s.Close()
	if err := s.AddTool(&mcpserver.Tool{Name: "tell"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
		r := mcpserver.RequestFrom(ctx)
		_, err := r.Elicit(ctx, &mcp.ElicitParams{Message: "?"})
		return mcpserver.Text(fmt.Sprint(err)), r.Log(ctx, "info", "", "x")
	}); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	var mu sync.Mutex
	logged := make(chan struct{}, 10)
	b := newBridge(t, s, &mcpbridge.Options{
		Send: func(context.Context, json.RawMessage) error { panic("no pipe") },
		Logger: slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			defer func() { logged <- struct{}{} }()
			return log.Write(p)
		}), nil)),
	})
	handle(t, b, `{"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}`)
	if got := handle(t, b, `{"id":1,"method":"tools/call","params":{"name":"tell"}}`); !strings.Contains(got, "sending elicitation/create: mcpbridge: Options.Send panicked") {
		t.Errorf("got %s", got)
	}
	if err := b.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "Options.Send panicked") {
		t.Errorf("Ping: %v", err)
	}
	for len(logged) > 0 {
		<-logged
	}
	if err := s.AddTool(&mcpserver.Tool{Name: "more"}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) { return nil, errors.New("x") }); err != nil {
		t.Fatal(err)
	}
	<-logged // from the session's own goroutine
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(log.String(), "no pipe") || !strings.Contains(log.String(), "goroutine") {
		t.Errorf("the log has no stack: %s", log.String())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
