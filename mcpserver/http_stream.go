package mcpserver

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// maxUnread is the number of bytes of a stream that wait for a client that does not
// read. A single longer message is still sent.
const maxUnread = 1 << 20

var errUnread = errors.New("the client does not read its stream")

// A streamWriter writes an open stream. The library notifies one client after the
// other and must not wait for any: the writer queues, and a client with too much in
// its queue loses the stream.
type streamWriter struct {
	http.ResponseWriter
	cancel context.CancelCauseFunc // of the request
	wake   chan struct{}           // holds a token if there is something to do
	closed chan struct{}           // closed when nothing more comes
	idle   chan struct{}           // closed when the goroutine has ended

	mu      sync.Mutex // guards the rest
	pending []byte
	err     error
}

// serveStream serves a request whose reply is an open stream.
func (h *HTTPHandler) serveStream(next http.Handler, w http.ResponseWriter, req *http.Request) {
	ctx, cancel := context.WithCancelCause(req.Context())
	defer cancel(nil)
	s := &streamWriter{
		ResponseWriter: w, cancel: cancel,
		wake: make(chan struct{}, 1), closed: make(chan struct{}), idle: make(chan struct{}),
	}
	go s.run() // ends with close
	defer s.close()
	next.ServeHTTP(s, req.WithContext(ctx))
	if errors.Is(context.Cause(ctx), errUnread) {
		h.log.Warn("stream ended: its client does not read", "remote", req.RemoteAddr, "bytes", maxUnread)
	}
}

// run sends the queue.
func (s *streamWriter) run() {
	defer close(s.idle)
	control := http.NewResponseController(s.ResponseWriter)
	for last := false; !last; {
		select {
		case <-s.wake:
		case <-s.closed:
			last = true
		}
		s.mu.Lock()
		out := s.pending
		s.pending = nil
		s.mu.Unlock()
		var err error
		if len(out) > 0 {
			_, err = s.ResponseWriter.Write(out)
		}
		if err == nil && !last {
			err = control.Flush()
		}
		if err != nil && !errors.Is(err, http.ErrNotSupported) {
			s.fail(err)
		}
	}
}

func (s *streamWriter) fail(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	s.mu.Unlock()
	s.cancel(err)
}

// close waits until the queue has been sent, if the client reads.
func (s *streamWriter) close() {
	close(s.closed)
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	select {
	case <-s.idle:
		return
	case <-timer.C:
	}
	// The write under way fails, and with it the connection.
	_ = http.NewResponseController(s.ResponseWriter).SetWriteDeadline(time.Now())
	<-s.idle
}

// Write queues p without waiting for the client.
func (s *streamWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	err := s.err
	full := err == nil && len(s.pending) > 0 && len(s.pending)+len(p) > maxUnread
	if err == nil && !full {
		s.pending = append(s.pending, p...)
	}
	s.mu.Unlock()
	switch {
	case full:
		s.fail(errUnread)
		return 0, errUnread
	case err != nil:
		return 0, err
	}
	return len(p), s.FlushError()
}

// FlushError starts to send the queue, and the header.
func (s *streamWriter) FlushError() error {
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}
