package mcphost

import (
	"errors"
	"time"

	"github.com/tenon-sdk/tenon/mcphost/internal/transport"
)

// cut notes why the connection is about to be closed, for the calls on it. If
// there is a grace, the connection first takes no more calls, and those that run
// have until the grace, stop or the server's life is over. Calls that come
// meanwhile get refusal as their error or, if it is nil, wait for the next
// connection. The result restores the connection if it is not closed after all.
func (c *conn) cut(why, refusal error, grace time.Duration, stop <-chan struct{}) (restore func()) {
	c.mu.Lock()
	l := c.rec.link
	if l == nil {
		c.mu.Unlock()
		return func() {}
	}
	l.why = why
	restore = func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.rec.link == l {
			l.why, l.draining = nil, false
			c.broadcast()
		}
	}
	if grace <= 0 {
		c.mu.Unlock()
		return restore
	}
	l.draining, l.refusal = true, refusal
	unused := l.unused()
	c.mu.Unlock()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-unused:
	case <-timer.C:
	case <-stop:
	case <-l.done():
	}
	return restore
}

// cause is the error of a request whose connection was closed while it ran: why
// that was done.
func (c *conn) cause(l *liveLink, err error) error {
	if !errors.Is(err, transport.ErrClosed) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.why == nil {
		return err
	}
	return &cutError{l.why}
}
