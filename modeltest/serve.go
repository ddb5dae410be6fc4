package modeltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// maxBody is how many bytes a request may have.
const maxBody = 32 << 20

// response is what is sent back: a body, or the chunks of a stream.
type response struct {
	status int
	header http.Header
	body   []byte
	chunks []chunk
	err    error // the connection breaks instead
}

func (r *response) fail(e *apiError, requestID string) *response {
	r.status, r.body = statusOf(e.Type), errorBody(e, requestID)
	return r
}

// respond answers one request. Ctx ends when the client has gone.
func (m *Model) respond(ctx context.Context, req *http.Request) *response {
	requestID := m.nextID("req", &m.responses)
	res := &response{status: http.StatusOK, header: http.Header{
		"Content-Type": {"application/json"}, "Request-Id": {requestID},
	}}
	path := req.URL.Path
	switch {
	case req.Method == http.MethodHead && (path == "/" || path == ""):
		res.header.Del("Content-Type")
		return res
	case req.Method == http.MethodGet && (path == "/v1/models" || strings.HasPrefix(path, "/v1/models/")):
		return m.models(res, req, strings.TrimPrefix(strings.TrimPrefix(path, "/v1/models"), "/"))
	case path == "/v1/messages" || path == "/v1/messages/count_tokens":
		if req.Method != http.MethodPost {
			res.fail(&apiError{"invalid_request_error", "Method Not Allowed"}, requestID)
			res.status = http.StatusMethodNotAllowed
			return res
		}
		return m.messages(ctx, res, req, path == "/v1/messages/count_tokens")
	}
	return res.fail(&apiError{"not_found_error", "Not Found: " + req.Method + " " + path}, requestID)
}

// models answers the list of models, or one of them: any name is one.
func (m *Model) models(res *response, req *http.Request, name string) *response {
	if p := checkHeader(req.Header, false); p != nil {
		return res.fail(&apiError{p.typ, p.msg}, res.header.Get("Request-Id"))
	}
	info := func(name string) string {
		id := string(appendString(nil, name))
		return `{"type":"model","id":` + id + `,"display_name":` + id + `,"created_at":"2026-01-01T00:00:00Z"}`
	}
	if name != "" {
		res.body = []byte(info(name))
		return res
	}
	const only = "claude-modeltest"
	res.body = []byte(`{"data":[` + info(only) + `],"has_more":false,"first_id":"` + only + `","last_id":"` + only + `"}`)
	return res
}

// messages answers POST /v1/messages and count_tokens.
func (m *Model) messages(ctx context.Context, res *response, req *http.Request, count bool) *response {
	requestID := res.header.Get("Request-Id")
	body, err := readBody(req)
	if err != nil {
		res.err = fmt.Errorf("modeltest: reading the request: %w", err)
		return res
	}
	r := &Request{Method: req.Method, Path: req.URL.Path, Header: req.Header.Clone(), Body: body, ctx: ctx}
	d := &decoder{r: r, count: count, schemas: &m.schemas, thoughts: &m.thoughts}
	d.request()
	if !count {
		m.record(r)
	}
	if d.err != nil {
		m.refuse(r, d.err)
		res.fail(&apiError{d.err.typ, d.err.msg}, requestID)
		res.status = d.err.status
		return res
	}
	if m.o.NoToolReferences {
		if p := withoutReferences(r); p != nil {
			return res.fail(&apiError{p.typ, p.msg}, requestID)
		}
	}
	if count {
		res.body = strconv.AppendInt([]byte(`{"input_tokens":`), int64(m.o.CountTokens(r)), 10)
		res.body = append(res.body, '}')
		return res
	}
	return m.play(ctx, res, r)
}

// readBody reads a request's body, and stops after one byte too many.
func readBody(req *http.Request) ([]byte, error) {
	var b bytes.Buffer
	if n := req.ContentLength; n > 0 && n <= maxBody {
		b.Grow(int(n) + bytes.MinRead)
	}
	_, err := b.ReadFrom(io.LimitReader(req.Body, maxBody+1))
	return b.Bytes(), err
}

// play answers a request that is in order.
func (m *Model) play(ctx context.Context, res *response, r *Request) *response {
	requestID := res.header.Get("Request-Id")
	a, exhausted := m.answerTo(r, requestID)
	if exhausted != nil {
		return res.fail(&apiError{exhausted.typ, exhausted.msg}, requestID)
	}
	for name, values := range a.reply.header {
		res.header[name] = values
	}
	if f := a.reply.fail; f != nil {
		res.fail(f, requestID)
		res.status = a.reply.status
		return res
	}
	if r.Stream {
		res.header.Set("Content-Type", "text/event-stream; charset=utf-8")
		res.header.Set("Cache-Control", "no-cache")
		res.chunks = a.events()
		return res
	}
	body, failed, err := a.whole(ctx)
	switch {
	case err != nil:
		res.err = err
	case failed != nil:
		return res.fail(failed, requestID)
	}
	res.body = body
	return res
}

// ServeHTTP answers a request over a real connection.
func (m *Model) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	res := m.respond(req.Context(), req)
	if res.err != nil {
		panic(http.ErrAbortHandler) // what net/http takes to break the connection
	}
	for name, values := range res.header {
		w.Header()[name] = values
	}
	if res.chunks == nil {
		w.Header().Set("Content-Length", strconv.Itoa(len(res.body)))
		w.WriteHeader(res.status)
		_, _ = w.Write(res.body) // the client has gone: nobody is left to tell
		return
	}
	w.WriteHeader(res.status)
	flush := http.NewResponseController(w)
	s := stream{ctx: req.Context(), chunks: res.chunks}
	for {
		data, err := s.next()
		if _, werr := w.Write(data); werr != nil {
			return
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if ferr := flush.Flush(); ferr != nil {
			return
		}
		if err == nil {
			err = s.step()
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if s.over {
			return
		}
	}
}

// stream plays chunks one after the other.
type stream struct {
	ctx     context.Context
	chunks  []chunk
	pending *step // comes after the data that was returned last
	over    bool
}

// next returns the data before the next step, with io.EOF when none follows.
func (s *stream) next() ([]byte, error) {
	if len(s.chunks) == 0 {
		return nil, io.EOF
	}
	c := s.chunks[0]
	s.chunks = s.chunks[1:]
	s.pending = c.step
	if c.step == nil {
		return c.data, io.EOF
	}
	return c.data, nil
}

// step takes the step that is at hand.
func (s *stream) step() error {
	st := s.pending
	s.pending = nil
	if st == nil {
		return nil
	}
	failed, err := takeStep(s.ctx, *st)
	if failed != nil {
		s.over = true // the error event has been written
	}
	return err
}

// RoundTrip answers a request without a socket. The body of a stream is played
// as it is read: no goroutine stands behind it.
func (m *Model) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body == nil {
		req = req.Clone(req.Context())
		req.Body = http.NoBody
	}
	defer req.Body.Close()
	ctx, cancel := context.WithCancelCause(req.Context())
	if err := ctx.Err(); err != nil {
		cancel(nil)
		return nil, err
	}
	res := m.respond(ctx, req)
	if res.err != nil {
		cancel(nil)
		return nil, res.err
	}
	out := &http.Response{
		Status: strconv.Itoa(res.status) + " " + http.StatusText(res.status), StatusCode: res.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: res.header, Request: req, ContentLength: -1,
	}
	if res.chunks == nil {
		cancel(nil)
		out.ContentLength = int64(len(res.body))
		out.Body = io.NopCloser(bytes.NewReader(res.body))
		return out, nil
	}
	out.Body = &streamBody{stream: stream{ctx: ctx, chunks: res.chunks}, cancel: cancel}
	return out, nil
}

// streamBody is the body of a streamed response.
type streamBody struct {
	cancel context.CancelCauseFunc

	mu     sync.Mutex // held by Read; Close only cancels
	stream stream
	data   []byte
	err    error // what follows data
}

// errClosed is what a body reads as that was closed.
var errClosed = errors.New("modeltest: the response body is closed")

func (b *streamBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		if len(b.data) == 0 && errors.Is(b.err, io.EOF) {
			b.cancel(nil) // nothing is left to wait for
			return 0, io.EOF
		}
		if b.stream.ctx.Err() != nil {
			return 0, context.Cause(b.stream.ctx)
		}
		if len(b.data) > 0 {
			n := copy(p, b.data)
			b.data = b.data[n:]
			return n, nil
		}
		if b.err != nil {
			return 0, b.err
		}
		if err := b.stream.step(); err != nil {
			b.err = err
			continue
		}
		if b.stream.over {
			b.err = io.EOF
			continue
		}
		b.data, b.err = b.stream.next()
	}
}

func (b *streamBody) Close() error {
	b.cancel(errClosed)
	return nil
}

// A Server is a model on a port of the loopback interface.
type Server struct {
	// URL is http://127.0.0.1:port, what goes into ANTHROPIC_BASE_URL.
	URL string

	model  *Model
	server *http.Server
	done   chan struct{}  // closed when the listener is
	active sync.WaitGroup // requests

	mu     sync.Mutex // guards closed, and active against it
	closed bool
}

// Serve starts a server on a free port of the loopback interface. Close ends it,
// or the end of the test that the model works for.
func (m *Model) Serve() (*Server, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("modeltest: listening: %w", err)
	}
	return m.ServeOn(listener), nil
}

// ServeOn is Serve on a listener of the caller's choice, which the server closes.
func (m *Model) ServeOn(listener net.Listener) *Server {
	s := &Server{URL: "http://" + listener.Addr().String(), model: m, done: make(chan struct{})}
	s.server = &http.Server{Handler: http.HandlerFunc(s.serve)}
	go func() {
		defer close(s.done)
		_ = s.server.Serve(listener) // it always ends with an error, after Close with ErrServerClosed
	}()
	m.mu.Lock()
	m.servers = append(m.servers, s)
	m.mu.Unlock()
	return s
}

// serve answers a request while the server is open.
func (s *Server) serve(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	s.active.Add(1)
	s.mu.Unlock()
	defer s.active.Done()
	s.model.ServeHTTP(w, req)
}

// Close stops the server, breaks its connections and waits until no request is
// being answered any more. It may be called more than once, from any goroutine.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.server.Close()
	<-s.done
	s.active.Wait()
	return err
}
