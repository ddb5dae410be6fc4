package mcpbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

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
	if w := b.subscriptions; len(w.listeners)+len(w.subscribed)+len(b.listeners)+len(b.inFlight.calls) != 0 {
		t.Errorf("kept: listened %v, subscribed %v, listeners %v, calls %v", w.listeners, w.subscribed, b.listeners, b.inFlight.calls)
	}
	if len(b.inFlight.finished) > maxRemembered {
		t.Errorf("%d ids are remembered", len(b.inFlight.finished))
	}
}
