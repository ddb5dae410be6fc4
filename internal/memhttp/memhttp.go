// Package memhttp makes HTTP requests to a handler without a network, for tests whose clock is a fake one: all that waits
// there waits in channels.
package memhttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// A Transport makes requests to a handler. Responses stream: what the handler writes waits until the client reads it. A
// handler that panics with [http.ErrAbortHandler] breaks the connection off.
type Transport struct {
	Handler http.Handler

	wg sync.WaitGroup
}

// Wait waits for the handlers of all requests.
func (m *Transport) Wait() { m.wg.Wait() }

// RoundTrip implements [http.RoundTripper].
func (m *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		if err = errors.Join(err, r.Body.Close()); err != nil {
			return nil, err
		}
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	in := r.Clone(ctx)
	in.Body = io.NopCloser(bytes.NewReader(body))
	pr, pw := io.Pipe()
	w := &writer{header: http.Header{}, body: pw, begun: make(chan struct{})}
	m.wg.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				if p != http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
					panic(p)
				}
				w.broken = true
				pw.CloseWithError(io.ErrUnexpectedEOF)
			}
			w.WriteHeader(http.StatusOK)
			pw.Close()
		}()
		m.Handler.ServeHTTP(w, in)
	})
	ended := context.AfterFunc(ctx, func() { _ = pr.CloseWithError(context.Canceled) }) // as a connection ends with its request
	stop := func() error { ended(); cancel(); return pr.Close() }
	select {
	case <-w.begun:
	case <-r.Context().Done():
		_ = stop()
		return nil, r.Context().Err()
	}
	if w.status == 0 {
		_ = stop()
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{
		StatusCode: w.status, Header: w.sent, ContentLength: -1, Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: &response{pr, stop},
	}, nil
}

type response struct {
	io.Reader
	stop func() error
}

func (b *response) Close() error { return b.stop() }

// A writer is the handler's end of a response.
type writer struct {
	header, sent http.Header
	status       int
	body         *io.PipeWriter
	begun        chan struct{} // closed when status and sent are set, or the request is broken off
	broken       bool
	once         sync.Once
}

func (w *writer) Header() http.Header { return w.header }
func (w *writer) Flush()              { w.WriteHeader(http.StatusOK) }

func (w *writer) WriteHeader(code int) {
	w.once.Do(func() {
		if !w.broken {
			w.status, w.sent = code, w.header.Clone()
		}
		close(w.begun)
	})
}

func (w *writer) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}
