package faults

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
)

// A proxy stands between a host and an MCP server over HTTP and spoils whole
// exchanges and single events of their streams.
type proxy struct {
	upstream http.Handler
	server   *httptest.Server
	gone     chan struct{} // closed by close: lets go of exchanges that hang
	shakes   handshakes

	mu   sync.Mutex // guards the rest
	odds *odds
}

func newProxy(upstream http.Handler, seed uint64) *proxy {
	p := &proxy{upstream: upstream, gone: make(chan struct{}), odds: newOdds(seed)}
	return p
}

// listen makes the proxy one on the network.
func (p *proxy) listen() {
	p.server = httptest.NewUnstartedServer(p)
	// The library's handlers complain there about clients that went away.
	p.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	p.server.Start()
}

func (p *proxy) close() {
	close(p.gone)
	if p.server != nil {
		p.server.CloseClientConnections()
		p.server.Close()
	}
}

// heal lets all pass from now on.
func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.odds.rate = 0
}

func (p *proxy) next() fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.odds.next()
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	p.shakes.see(body)
	again := func() *http.Request {
		c := r.Clone(r.Context())
		c.Body = io.NopCloser(bytes.NewReader(body))
		c.ContentLength = int64(len(body))
		return c
	}
	out := &spoiler{ResponseWriter: w, proxy: p}
	switch p.next() {
	case drop: // the request is swallowed: no answer for as long as the client waits
		select {
		case <-r.Context().Done():
		case <-p.gone:
		}
		hangUp(w)
		return
	case reset:
		hangUp(w)
		return
	case duplicate: // the server gets it twice, the client one answer
		p.upstream.ServeHTTP(httptest.NewRecorder(), again())
	case garble:
		http.Error(w, "bad gateway", http.StatusBadGateway)
		return
	case truncate:
		out.limit = 20
	}
	p.upstream.ServeHTTP(out, again())
	out.finish()
}

// hangUp ends the connection as a router does that lost it.
func hangUp(w http.ResponseWriter) {
	h, ok := w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler) // there is no network in between
	}
	conn, _, err := h.Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}

// A spoiler spoils the events of a stream; answers that are no stream pass as
// they are, but for the limit.
type spoiler struct {
	http.ResponseWriter
	proxy *proxy
	limit int // if positive, the connection ends after that many bytes
	buf   bytes.Buffer
	held  []byte
	dead  bool
}

func (s *spoiler) Flush() {
	if f, ok := s.ResponseWriter.(http.Flusher); ok && !s.dead {
		f.Flush()
	}
}

func (s *spoiler) Write(b []byte) (int, error) {
	if s.dead {
		return 0, net.ErrClosed
	}
	if s.Header().Get("Content-Type") != "text/event-stream" {
		return len(b), s.pass(b)
	}
	s.buf.Write(b)
	for {
		event, rest, ok := bytes.Cut(s.buf.Bytes(), []byte("\n\n"))
		if !ok {
			return len(b), nil
		}
		event = append(bytes.Clone(event), "\n\n"...)
		rest = bytes.Clone(rest)
		s.buf.Reset()
		s.buf.Write(rest)
		if err := s.event(event); err != nil {
			return 0, err
		}
	}
}

func (s *spoiler) event(event []byte) error {
	switch s.proxy.next() {
	case drop:
		return nil
	case delay:
		if s.held == nil {
			s.held = event
			return nil
		}
	case truncate:
		return s.end(event[:len(event)/2])
	case duplicate:
		event = append(bytes.Clone(event), event...)
	case garble:
		event = append([]byte(": noise\nevent: unheard-of\ndata: {\n\n"), event...)
	case reset:
		return s.end(nil)
	}
	if s.held != nil {
		event = append(event, s.held...)
		s.held = nil
	}
	return s.pass(event)
}

func (s *spoiler) pass(b []byte) error {
	if s.limit > 0 && len(b) > s.limit {
		return s.end(b[:s.limit])
	}
	_, err := s.ResponseWriter.Write(b)
	s.Flush()
	return err
}

// end sends the last bytes and breaks the connection off.
func (s *spoiler) end(last []byte) error {
	_, _ = s.ResponseWriter.Write(last)
	s.Flush()
	s.dead = true
	return net.ErrClosed
}

func (s *spoiler) finish() {
	if s.dead {
		panic(http.ErrAbortHandler) // net/http resets the connection
	}
	if s.held != nil {
		_ = s.pass(s.held)
	}
}
