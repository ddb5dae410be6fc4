package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenon-sdk/tenon/mcpserver"
)

const (
	// openTime bounds the wait for the first answer to a request for a stream of changes: some
	// servers send not even headers before something changes.
	openTime = 500 * time.Millisecond
	// stableTime is how long a stream must have been open for the next attempts to begin anew.
	stableTime = 10 * time.Second
)

// A streamOpener requests a stream of changes once.
type streamOpener func(ctx context.Context, pos *streamPosition) (*http.Response, error)

// standing keeps the stream open on which a server with sessions sends what belongs to no request.
// It waits a little until the stream is open: a server may ask on it during the first call, and some
// servers drop what they send before. The protocol makes the stream optional: any other answer means
// that there is none.
func (h *httpConn) standing(ctx context.Context) {
	life, cancel := context.WithCancel(h.c.ctx) // the stream lives as long as the connection
	h.keepOpen(ctx, life, cancel, h.get)
}

// listen keeps the stream open that a server of version 2026-07-28 answers subscriptions/listen
// with, until ctx ends.
func (h *httpConn) listen(ctx context.Context, m *message) error {
	life, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(h.c.ctx, cancel) // the end of the connection ends the stream, too
	m.sent.Store(true)
	ok := h.keepOpen(ctx, life, func() { stop(); cancel() }, func(ctx context.Context, _ *streamPosition) (*http.Response, error) {
		resp, err := h.at.do(ctx, http.MethodPost, m.data, h.headers(m))
		if err != nil {
			return nil, err
		}
		return streamOf(resp)
	})
	if !ok {
		return h.c.ended()
	}
	return nil
}

// keepOpen reads a stream of changes until life ends. It opens the stream again whenever it ends,
// after pauses that grow while it does not last. It returns when the first attempt is answered,
// after openTime, or when ctx ends, and reports false if the connection is closed. It calls release
// when the stream is not needed any more.
func (h *httpConn) keepOpen(ctx, life context.Context, release func(), open streamOpener) bool {
	first := make(chan struct{})
	answered := sync.OnceFunc(func() { close(first) })
	ok := h.c.spawn(func() {
		defer release()
		defer answered()
		h.follow(life, answered, open)
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

func (h *httpConn) follow(ctx context.Context, answered func(), open streamOpener) {
	pos := new(streamPosition)
	defer func() {
		if ctx.Err() != nil {
			h.setStream(pos, nil)
		}
	}()
	for opened := false; ; {
		attempts := pos.attempts
		resp, err := open(ctx, pos) // readEvents closes its body
		answered()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = resp.Body.Close()
			}
			return
		case err == nil:
			h.setStream(pos, nil)
			if opened && pos.id == "" {
				h.missedChanges()
			}
			opened = true
			began := time.Now()
			h.open.Add(1)
			err = fmt.Errorf("the stream of changes ended: %w", orEOF(h.readEvents(resp.Body, pos, func() bool { return false })))
			h.open.Add(-1)
			if pos.attempts = 0; pos.retry == 0 && time.Since(began) < stableTime {
				pos.attempts = attempts // it ends as soon as it is open
			}
		case errors.Is(err, errNoStream):
			if !opened || h.sessionLost(ctx) {
				h.setStream(pos, err)
				return // there is none, or a new connection is made
			}
		case errors.Is(err, ErrRedirect):
			h.setStream(pos, err)
			return
		case !errors.Is(err, errStreamLater):
			_ = h.postFailed(err)
		}
		if ctx.Err() != nil {
			return
		}
		h.setStream(pos, err)
		pos.attempts++
		if !Sleep(ctx, pos.pause()) {
			return
		}
	}
}

// sessionLost reports whether the server refuses other requests as well, since it does not know the
// session any more.
func (h *httpConn) sessionLost(ctx context.Context) bool {
	if !h.c.established() || h.c.refusesAll(ctx) == nil {
		return false
	}
	h.forgotten()
	h.c.needsNew(ErrSessionLost)
	return true
}

// missedChanges reports that tools may have changed while the stream was closed.
func (h *httpConn) missedChanges() {
	if !h.c.established() {
		return
	}
	if t := h.c.info.Capabilities.Tools; t != nil && t.ListChanged {
		h.c.o.OnListChanged(mcpserver.MethodToolListChanged)
	}
}

// setStream notes why a stream of changes is not open, or with nil that it is, or is not needed.
func (h *httpConn) setStream(pos *streamPosition, why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if why == nil {
		delete(h.streams, pos)
		return
	}
	h.streams[pos] = why.Error()
}

// StreamOpen reports whether a stream of changes is open, whose end shows that the server is gone.
func (c *Client) StreamOpen() bool {
	h, ok := c.conn.(*httpConn)
	return ok && h.open.Load() > 0
}

// ChangesError returns why notifications of changes do not arrive at present. It is empty if they
// do, or if the server declares none.
func (c *Client) ChangesError() string {
	h, ok := c.conn.(*httpConn)
	if !ok || !c.SendsChanges() {
		return ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	why := make([]string, 0, len(h.streams))
	for _, w := range h.streams {
		why = append(why, w)
	}
	slices.Sort(why)
	return strings.Join(slices.Compact(why), "; ")
}
