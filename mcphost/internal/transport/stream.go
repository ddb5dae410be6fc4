package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	// maxResumes is how many attempts in a row are made to resume a broken stream.
	maxResumes = 5
	// minRetry is the shortest pause before an attempt that a server may ask for.
	minRetry = 250 * time.Millisecond
)

// readReply reads a response that is a stream of events, until the reply to the request has come. It
// resumes a stream that broke if the server numbers its events. From version 2026-07-28 on streams
// cannot be resumed.
func (h *httpConn) readReply(ctx context.Context, m *message, resp *http.Response) {
	pos := new(streamPosition)
	for {
		err := h.readEvents(resp.Body, pos, func() bool { return !h.c.waits(m.id) })
		if ctx.Err() != nil || !h.c.waits(m.id) {
			return
		}
		if pos.id == "" || h.c.protocol() >= V20260728 {
			h.c.fail(m.id, fmt.Errorf("%w: the stream ended: %w", ErrConnectionLost, orEOF(err)))
			return
		}
		if resp, err = h.resume(ctx, pos); err != nil { //nolint:bodyclose // readEvents closes it
			h.c.fail(m.id, fmt.Errorf("%w: %w", ErrConnectionLost, err))
			return
		}
	}
}

// orEOF returns err, or [io.ErrUnexpectedEOF] if it is nil.
func orEOF(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A streamPosition is where in a stream of events its reader is.
type streamPosition struct {
	id       string        // of the last event
	retry    time.Duration // the pause before the next attempt that the server asked for
	attempts int           // since the last event
}

// pause returns how long to wait before the next attempt.
func (p *streamPosition) pause() time.Duration {
	if p.retry > 0 && p.attempts <= 1 {
		return min(max(p.retry, minRetry), time.Minute)
	}
	d := min(time.Second<<min(p.attempts-1, 6), time.Minute)
	return d/2 + rand.N(d/2+1)
}

// readEvents hands the events of a body to the client until done reports true or the body ends, and
// closes it.
func (h *httpConn) readEvents(body io.ReadCloser, pos *streamPosition, done func() bool) error {
	defer body.Close()
	r := newEventReader(body, h.c.o.MaxMessageBytes)
	for {
		e, err := r.next()
		if err != nil {
			return err
		}
		pos.attempts = 0
		if e.id != "" {
			pos.id = e.id
		}
		if n, err := strconv.ParseInt(e.retry, 10, 32); err == nil && n >= 0 {
			pos.retry = time.Duration(n) * time.Millisecond
		}
		h.c.receiveEvent(e)
		if done() {
			discard(body)
			return nil
		}
	}
}

// receiveEvent takes the data of an event.
func (c *Client) receiveEvent(e event) {
	if e.oversized != nil {
		c.oversized(*e.oversized)
		return
	}
	if e.name != "" && e.name != "message" {
		return
	}
	data := bytes.Trim(e.data, "\x00 \t\r\n")
	if len(data) > 0 && !c.receive(data) { // an event without data is a sign of life, or has an id to resume from
		c.noiseLine(data)
	}
}

// resume continues a broken stream.
func (h *httpConn) resume(ctx context.Context, pos *streamPosition) (*http.Response, error) {
	var last error = io.ErrUnexpectedEOF
	for pos.attempts < maxResumes {
		pos.attempts++
		if !Sleep(ctx, pos.pause()) {
			return nil, ctx.Err()
		}
		resp, err := h.get(ctx, pos)
		if err == nil {
			return resp, nil
		}
		if last = err; errors.Is(err, errNoStream) {
			break
		}
	}
	return nil, fmt.Errorf("the stream could not be resumed: %w", last)
}

var (
	// errNoStream reports that the server has no stream, errStreamLater that it may have one later.
	errNoStream    = errors.New("the server has no stream of changes")
	errStreamLater = errors.New("the server has no stream of changes just now")
)

// get opens a stream of events.
func (h *httpConn) get(ctx context.Context, pos *streamPosition) (*http.Response, error) {
	header := http.Header{"Accept": {"text/event-stream"}}
	h.addSession(header, h.c.protocol())
	if pos.id != "" {
		header.Set(headerLastID, pos.id)
	}
	resp, err := h.at.do(ctx, http.MethodGet, nil, header)
	if err != nil {
		return nil, err
	}
	return streamOf(resp)
}

// streamOf returns a response that is a stream of events. The error of another wraps errNoStream or
// errStreamLater.
func streamOf(resp *http.Response) (*http.Response, error) {
	if resp.StatusCode == http.StatusOK && mediaType(resp.Header) == "text/event-stream" {
		return resp, nil
	}
	discard(resp.Body)
	if resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests {
		return nil, fmt.Errorf("%w (HTTP %d)", errStreamLater, resp.StatusCode)
	}
	return nil, fmt.Errorf("%w (HTTP %d)", errNoStream, resp.StatusCode)
}

// Sleep waits for a time. It reports false if ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
