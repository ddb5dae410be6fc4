package mcpserver

import (
	"context"
	"testing"
	"testing/synctest"
)

// A second Shutdown must not take the first one's notice that requests have ended.
func TestShutdownTwiceWhileARequestIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHTTPHandler(New("s", nil), nil)
		if !h.begin(false) {
			t.Fatal("the handler is closed")
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		first := make(chan error, 1)
		go func() { first <- h.Shutdown(ctx) }()
		synctest.Wait()
		if err := h.Shutdown(t.Context()); err != nil {
			t.Errorf("second Shutdown: %v", err)
		}
		h.end(false)
		synctest.Wait()
		select {
		case err := <-first:
			if err != nil {
				t.Errorf("first Shutdown: %v", err)
			}
		default:
			t.Error("the first Shutdown still waits though no request is in flight")
		}
	})
}
