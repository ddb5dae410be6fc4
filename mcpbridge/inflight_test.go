package mcpbridge

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// The bytes of the requests in flight are bounded beside their number.
//
// fault H4
func TestBytesOfRequestsAreBounded(t *testing.T) {
	f := newInFlight(-1, maxStdioBytes)
	request := func(size int) *rpcmsg.Message {
		return &rpcmsg.Message{ID: json.RawMessage("1"), Method: "ping", Params: json.RawMessage(strings.Repeat(" ", size-1))}
	}
	for range 4 {
		if f.begin(t.Context(), request(maxStdioBytes/4)) == nil {
			t.Fatalf("a request is refused with %d bytes in flight", f.bytes)
		}
	}
	if f.begin(t.Context(), request(1)) != nil {
		t.Errorf("a request is accepted with %d bytes in flight", f.bytes)
	}
	f.leave(1, maxStdioBytes/4)
	f.hold(maxStdioBytes / 4)
	if f.begin(t.Context(), request(1)) != nil {
		t.Errorf("a request is accepted although a batch holds a reply: %d bytes in flight", f.bytes)
	}
	f.leave(3, maxStdioBytes)
	if f.begin(t.Context(), request(2*maxStdioBytes)) == nil {
		t.Error("a large request is refused with nothing in flight")
	}
	f.close()
}

// The requests of a batch take up room until all of it is answered: a batch that
// waits for one of them holds the replies to the others.
//
// fault G11
// fault H4
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
		b.inFlight.mu.Lock()
		live, counted = len(b.inFlight.calls), b.inFlight.count
		b.inFlight.mu.Unlock()
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
	if b.inFlight.count != 0 || b.inFlight.bytes != 0 {
		t.Errorf("%d requests and %d bytes are counted in the end", b.inFlight.count, b.inFlight.bytes)
	}
}
