package modeltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// maxBody is the size limit of a request.
const maxBody = 32 << 20

// response is a response: a body, or the chunks of a stream.
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

// respond answers a request. ctx ends when the client disconnects.
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

// models answers with the list of models, or with one of them: any name is valid.
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

// readBody reads a request's body, up to one byte over the limit.
func readBody(req *http.Request) ([]byte, error) {
	var b bytes.Buffer
	if n := req.ContentLength; n > 0 && n <= maxBody {
		b.Grow(int(n) + bytes.MinRead)
	}
	_, err := b.ReadFrom(io.LimitReader(req.Body, maxBody+1))
	return b.Bytes(), err
}

// play answers a valid request.
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

// ServeHTTP implements [http.Handler].
func (m *Model) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	res, err := m.RoundTrip(req)
	if err != nil {
		panic(http.ErrAbortHandler) // breaks the connection
	}
	defer res.Body.Close()
	maps.Copy(w.Header(), res.Header)
	if res.ContentLength >= 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(res.ContentLength, 10))
	}
	w.WriteHeader(res.StatusCode)
	flush := http.NewResponseController(w)
	for buf := make([]byte, 32<<10); ; {
		n, err := res.Body.Read(buf)
		if _, werr := w.Write(buf[:n]); werr != nil || errors.Is(err, io.EOF) || n > 0 && flush.Flush() != nil {
			return // complete, or the client has gone
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// RoundTrip implements [http.RoundTripper] without a network. Reading the body of a stream runs the
// reply's steps; there is no goroutine behind it.
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
	out.Body = &streamBody{ctx: ctx, cancel: cancel, chunks: res.chunks}
	return out, nil
}

// A streamBody is the body of a streamed response.
type streamBody struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu     sync.Mutex // held by Read; Close only cancels
	chunks []chunk
	err    error // of the last step
}

var errClosed = errors.New("modeltest: the response body is closed")

func (b *streamBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for !errors.Is(b.err, io.EOF) {
		c := &b.chunks[0]
		switch {
		case b.ctx.Err() != nil:
			return 0, context.Cause(b.ctx)
		case b.err != nil:
			return 0, b.err
		case len(c.data) > 0:
			n := copy(p, c.data)
			c.data = c.data[n:]
			return n, nil
		case c.step == nil:
			b.err = io.EOF
		default:
			var failed *apiError
			if failed, b.err = takeStep(b.ctx, *c.step); failed != nil {
				b.err = io.EOF // the data has the error event
			}
			b.chunks = b.chunks[1:]
		}
	}
	b.cancel(nil)
	return 0, io.EOF
}

func (b *streamBody) Close() error {
	b.cancel(errClosed)
	return nil
}

// A Server is a model on a port of the loopback interface.
type Server struct {
	// URL is http://127.0.0.1:PORT, for ANTHROPIC_BASE_URL.
	URL string

	model  *Model
	server *http.Server
	done   chan struct{}  // closed when the listener is
	active sync.WaitGroup // requests

	mu     sync.Mutex // guards closed, and active against it
	closed bool
}

// Serve starts a server on a free port of the loopback interface. Close stops it, as does the end
// of the model's test.
func (m *Model) Serve() (*Server, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("modeltest: listening: %w", err)
	}
	return m.ServeOn(listener), nil
}

// ServeOn is Serve with a listener, which the server closes.
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

// Close stops the server, breaks its connections and waits for the requests being answered. It may
// be called more than once and concurrently.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.server.Close()
	<-s.done
	s.active.Wait()
	return err
}
