package mcphost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// openTime bounds the wait for the first answer to a request for a stream of changes: some servers
// send nothing, not even headers, before they have something to say.
const openTime = 500 * time.Millisecond

// A streamOpener asks for a stream of changes, once.
type streamOpener func(ctx context.Context, pos *streamPos) (*http.Response, error)

// hooks are what a carrier needs of the link that it carries, once that is connected.
type hooks struct {
	// forgot asks whether the server refuses other requests, too.
	forgot func(context.Context) bool
	// missed says that changes may have been told while the stream was closed.
	missed func()
}

// attach sets the hooks.
func (c *httpCarrier) attach(h hooks) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hooks = h
}

// standing keeps the stream open on which a server of the kind with sessions says what nobody asked for, and waits a
// little until it is open: what a server asks during the first call may come on it, and some lose what they say before.
// The protocol makes it optional: any answer but a stream means that there is none.
func (c *httpCarrier) standing(ctx context.Context) {
	life, cancel := context.WithCancel(c.ctx) //nolint:contextcheck // the stream lives as long as the connection
	c.keepOpen(ctx, life, cancel, func(ctx context.Context, pos *streamPos) (*http.Response, error) {
		return c.get(ctx, pos.id)
	})
}

// subscribe keeps the stream open that a server without sessions answers subscriptions/listen with, until ctx ends.
// The reply to the request would be the end of the stream, so it does not count.
func (c *httpCarrier) subscribe(ctx context.Context, m *outgoing) error {
	life, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.ctx, cancel) //nolint:contextcheck // the end of the connection ends the stream, too
	ok := c.keepOpen(ctx, life, func() { stop(); cancel() }, func(ctx context.Context, _ *streamPos) (*http.Response, error) {
		header, _ := c.headers(m)
		resp, err := c.at.do(ctx, http.MethodPost, m.data, header)
		if err != nil {
			return nil, err
		}
		return streamOf(resp)
	})
	if !ok {
		return ErrClosed
	}
	return nil
}

// keepOpen reads a stream of changes until life ends, and opens it again whenever it ends, after pauses that grow while
// it does not last. It returns when the first attempt is answered, after openTime, or when ctx ends; false says that the
// carrier is closed. It calls release when the stream is not needed any more.
func (c *httpCarrier) keepOpen(ctx, life context.Context, release func(), open streamOpener) bool {
	first := make(chan struct{})
	answered := sync.OnceFunc(func() { close(first) })
	ok := c.spawn(func() {
		defer release()
		defer answered()
		c.follow(life, answered, open)
	})
	if !ok {
		release()
		return false
	}
	t := time.NewTimer(openTime)
	defer t.Stop()
	select {
	case <-first:
	case <-t.C:
	case <-ctx.Done():
	}
	return true
}

func (c *httpCarrier) follow(ctx context.Context, answered func(), open streamOpener) {
	pos := new(streamPos)
	defer func() {
		if ctx.Err() != nil {
			c.hears(pos, "")
		}
	}()
	for opened := false; ; {
		tries := pos.tries
		resp, err := open(ctx, pos) //nolint:bodyclose // events closes it
		answered()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = resp.Body.Close()
			}
			return
		case err == nil:
			c.hears(pos, "")
			if opened && pos.id == "" {
				c.missed()
			}
			opened = true
			began := time.Now()
			c.open.Add(1)
			err = fmt.Errorf("the stream of changes ended: %w", orEOF(c.events(resp.Body, pos, func() bool { return false })))
			c.open.Add(-1)
			if pos.tries = 0; pos.retry == 0 && time.Since(began) < stableAfter {
				pos.tries = tries // it ends as soon as it is open
			}
		case errors.Is(err, errNoStream):
			if !opened || c.forgot(ctx) {
				c.hears(pos, err.Error())
				return // there is none, or a new connection is made
			}
		case errors.Is(err, errRedirect):
			c.hears(pos, err.Error())
			return
		case !errors.Is(err, errStreamLater):
			_ = c.postFailed(err)
		}
		if ctx.Err() != nil {
			return
		}
		c.hears(pos, err.Error())
		pos.tries++
		if !sleep(ctx, pos.pause()) {
			return
		}
	}
}

// hearsChanges reports whether a stream of changes is open, whose end tells of the server's.
func (l *remoteLink) hearsChanges() bool {
	c, ok := l.car.(*httpCarrier)
	return ok && c.open.Load() > 0
}

// forgot reports whether the server refuses other requests as well, because it does not know the session any more.
func (c *httpCarrier) forgot(ctx context.Context) bool {
	c.mu.Lock()
	forgot := c.hooks.forgot
	c.mu.Unlock()
	if forgot == nil || !forgot(ctx) {
		return false
	}
	c.forgotten()
	return true
}

// missed says that changes may have been missed.
func (c *httpCarrier) missed() {
	c.mu.Lock()
	missed := c.hooks.missed
	c.mu.Unlock()
	if missed != nil {
		missed()
	}
}

// hears takes note of whether a stream of changes is open: why is empty then.
func (c *httpCarrier) hears(pos *streamPos, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if why == "" {
		delete(c.unheard, pos)
		return
	}
	if c.unheard == nil {
		c.unheard = map[*streamPos]string{}
	}
	c.unheard[pos] = why
}

// notHeard says why changes are not heard of at present; empty if they are.
func (c *httpCarrier) notHeard() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	why := make([]string, 0, len(c.unheard))
	for _, w := range c.unheard {
		why = append(why, w)
	}
	slices.Sort(why)
	return strings.Join(slices.Compact(why), "; ")
}
