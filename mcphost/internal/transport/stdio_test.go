package transport

import (
	"context"
	"errors"
	"testing"
)

// A request that its caller gives up while a goroutine writes it to a process may still arrive, and is so recorded.
// fault G5
func TestRequestBeingWrittenMayRun(t *testing.T) {
	c := &stdioConn{c: newClient(t.Context(), discardOptions()), write: make(chan *writing)}
	ctx, cancel := context.WithCancel(t.Context())
	m := &message{data: []byte("{}")}
	failed := make(chan error, 1)
	go func() { failed <- c.send(ctx, m) }()
	<-c.write
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) || !m.sent.Load() {
		t.Errorf("got %v and sent %t, want a canceled request that may have been sent", err, m.sent.Load())
	}
}
