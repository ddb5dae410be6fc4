package mcpbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// A client that listens for ever new resources, or subscribes to them, leaves
// nothing behind.
//
// fault H4
func TestEndedSubscriptionsAreForgotten(t *testing.T) {
	s := mcpserver.New("s", nil)
	defer s.Close()
	if err := s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "mem:{x}"}, func(context.Context, string, map[string]string) (*mcp.ReadResourceResult, error) {
		return nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	acknowledged := make(chan struct{}, 1)
	b := New(s, &Options{Send: func(context.Context, json.RawMessage) error {
		acknowledged <- struct{}{}
		return nil
	}})
	defer b.Close()
	for i := range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = b.Handle(ctx, fmt.Appendf(nil, `{"id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["mem:%d","mem:x"]},`+
				`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, i))
		}()
		<-acknowledged
		cancel()
		<-done
		for _, method := range []string{"subscribe", "unsubscribe"} {
			if _, err := b.Handle(t.Context(), fmt.Appendf(nil, `{"id":2,"method":"resources/%s","params":{"uri":"mem:y%d"}}`, method, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if w := b.watches; len(w.count)+len(w.plain)+len(b.listeners)+len(b.calls.live) != 0 {
		t.Errorf("kept: listened %v, subscribed %v, listeners %v, calls %v", w.count, w.plain, b.listeners, b.calls.live)
	}
	if len(b.calls.finished) > remembered {
		t.Errorf("%d ids are remembered", len(b.calls.finished))
	}
}

// The requests of a batch count until all of it is answered: a batch that waits for
// one of them holds the replies to the others.
//
// fault G11
func TestBatchesCountUntilTheyAreAnswered(t *testing.T) {
	s := mcpserver.New("s", nil)
	defer s.Close()
	end := make(chan struct{})
	started := make(chan struct{})
	if err := s.AddTool(&mcpserver.Tool{Name: "wait"}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		close(started)
		<-end
		return mcpserver.Text("done"), nil
	}); err != nil {
		t.Fatal(err)
	}
	b := New(s, &Options{MaxRequests: 3})
	defer b.Close()
	answer := make(chan string)
	go func() {
		reply, err := b.Handle(t.Context(), json.RawMessage(`[{"id":1,"method":"ping"},{"id":2,"method":"tools/call","params":{"name":"wait"}},{"method":"x"},{"id":3}]`))
		if err != nil {
			t.Error(err)
		}
		answer <- string(reply)
	}()
	<-started
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	counted := 0
	for live := 2; live > 1; runtime.Gosched() { // the ping ends soon
		b.calls.mu.Lock()
		live, counted = len(b.calls.live), b.calls.inFlight
		b.calls.mu.Unlock()
		if ctx.Err() != nil {
			t.Fatal("the ping does not end")
		}
	}
	if counted != 2 {
		t.Errorf("%d requests are counted while one of two waits, want 2", counted)
	}
	ping := func(id string) string {
		reply, err := b.Handle(t.Context(), json.RawMessage(`{"id":`+id+`,"method":"ping"}`))
		if err != nil {
			t.Error(err)
		}
		return string(reply)
	}
	if got := ping("4"); got != `{"jsonrpc":"2.0","id":4,"result":{}}` {
		t.Errorf("beside the batch there is room for one: %s", got)
	}
	close(end)
	<-answer
	if b.calls.inFlight != 0 {
		t.Errorf("%d requests are counted in the end", b.calls.inFlight)
	}
}
