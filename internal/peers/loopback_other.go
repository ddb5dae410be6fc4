//go:build !linux

package peers

import (
	"errors"
	"net"
	"testing"
)

// A Loopback is a network of its own on Linux; here it is the machine's.
type Loopback struct {
	// Isolated tells whether this is a network of its own.
	Isolated bool
}

// NewLoopback returns the machine's own network.
func NewLoopback(testing.TB) *Loopback { return &Loopback{} }

// Listen opens a listener on a free port of 127.0.0.1. It is closed when the
// test ends, if it is not before.
func (l *Loopback) Listen(t testing.TB) net.Listener {
	t.Helper()
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("peers: %v", err)
	}
	t.Cleanup(func() {
		if err := lis.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("peers: %v", err)
		}
	})
	return lis
}

// Wrap returns c as it is.
func (l *Loopback) Wrap(c Command) Command { return c }

// Executable returns path as it is.
func (l *Loopback) Executable(_ testing.TB, path string) string { return path }
