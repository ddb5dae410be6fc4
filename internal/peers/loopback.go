package peers

import (
	"net/http"
	"testing"
	"time"
)

// Serve serves h in the network until the test ends, and returns its address.
func (l *Loopback) Serve(t testing.TB, h http.Handler) (url string) {
	t.Helper()
	lis := l.Listen(t)
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(lis) }()
	t.Cleanup(func() { _ = server.Close(); <-done })
	return "http://" + lis.Addr().String()
}
