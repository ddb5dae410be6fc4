package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"regexp"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/tenon-sdk/tenon/internal/callback"
	"github.com/tenon-sdk/tenon/mcpauth"
)

const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerLastID  = "Last-Event-ID"

	// deleteTime bounds the request that ends a session.
	deleteTime = time.Second
	// maxFailedPosts is how many requests in a row may fail in the network before a new connection
	// is needed.
	maxFailedPosts = 3
)

// An httpConn is a connection over streamable HTTP: a POST for each message, replies in its response
// or in a stream of events, and streams of what the server sends unasked.
type httpConn struct {
	c    *Client
	at   *Endpoint
	open atomic.Int64 // streams of changes that are open

	mu          sync.Mutex // guards the rest
	session     string
	gone        bool                       // the session is: it need not be ended
	failedPosts int                        // in a row, by faults of the network
	streams     map[*streamPosition]string // why streams of changes are not open, of those that are not
}

// HTTP returns a client over streamable HTTP.
func HTTP(ctx context.Context, e *Endpoint) *Client {
	c := newClient(ctx, e.o)
	c.conn = &httpConn{c: c, at: e, streams: map[*streamPosition]string{}}
	return c
}

// send implements connection. The reply to a request may have arrived when it returns.
func (h *httpConn) send(ctx context.Context, m *message) error {
	if err := checkHeaders(m); err != nil {
		return err
	}
	if m.method == methodListen {
		return h.listen(ctx, m)
	}
	caller := ctx
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(h.c.ctx, cancel) // the end of the connection ends the request, too
	release := func() { stop(); cancel() }
	var reached atomic.Bool // there was a connection to the server
	m.sent.Store(true)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { reached.Store(true) }})
	header := h.headers(m)
	resp, err := h.at.do(ctx, http.MethodPost, m.data, header)
	if err != nil {
		release()
		m.notSentIf(!reached.Load() && (NeverSent(err) || errors.Is(caller.Err(), context.Canceled)))
		switch {
		case h.c.ctx.Err() != nil:
			return h.c.ended()
		case caller.Err() != nil: // with an error of any kind as its cause, which is no fault of the network
			return caller.Err()
		}
		return h.postFailed(err)
	}
	h.mu.Lock()
	h.failedPosts = 0
	h.mu.Unlock()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer release()
		return h.refused(m, resp, header.Get(headerSession) != "")
	}
	h.keepSession(resp)
	return h.accepted(ctx, m, resp, release)
}

// accepted handles a response of success. It calls release when the response is not needed any more.
func (h *httpConn) accepted(ctx context.Context, m *message, resp *http.Response, release func()) error {
	t := mediaType(resp.Header)
	switch {
	case m.id == 0, t != "text/event-stream" && t != "application/json" && (resp.StatusCode == http.StatusAccepted || resp.StatusCode == http.StatusNoContent):
		defer release()
		discard(resp.Body) // of a request: some servers reply on the stream of changes
		return nil
	case t == "text/event-stream":
		if !h.c.spawn(func() { defer release(); h.readReply(ctx, m, resp) }) {
			release()
			_ = resp.Body.Close()
			return h.c.ended()
		}
		return nil
	case t == "application/json":
		defer release()
		return h.readJSON(m, resp)
	}
	defer release()
	e := h.at.refusal(resp)
	return fmt.Errorf("the response is %q, not JSON or a stream of events: %w", h.c.o.Mask.Head([]byte(t), textHead), e)
}

// headers returns the headers of a POST.
func (h *httpConn) headers(m *message) http.Header {
	header := http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {"application/json, text/event-stream"},
	}
	h.addSession(header, m.version)
	if m.version >= V20260728 && m.method != "" {
		header.Set(headerMethod, m.method)
		if m.name != "" {
			header.Set(headerName, HeaderValue(m.name))
		}
	}
	addHeaders(header, m)
	return header
}

// addSession adds the protocol version and the session to the headers of a request.
func (h *httpConn) addSession(header http.Header, version string) {
	if version != "" {
		header.Set(headerVersion, version)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.session != "" {
		header.Set(headerSession, h.session)
	}
}

// checkHeaders reports headers of a request that cannot be sent.
func checkHeaders(m *message) error {
	for k, v := range m.headers {
		if !validHeader(k, v) {
			return fmt.Errorf("header %q of the call: invalid name or value", k)
		}
	}
	return nil
}

func addHeaders(header http.Header, m *message) {
	for k, v := range m.headers {
		header.Set(k, v)
	}
}

func (h *httpConn) keepSession(resp *http.Response) {
	if id := resp.Header.Get(headerSession); id != "" {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.session == "" {
			h.session = id
		}
	}
}

// postFailed returns the error of a request that failed in the network. A new connection is needed
// if nothing listens any more, or after a few such requests in a row.
func (h *httpConn) postFailed(err error) error {
	if errors.Is(err, ErrRedirect) || errors.Is(err, callback.ErrPanicked) {
		return err
	}
	if errors.As(err, new(*mcpauth.NeedsAuthError)) || errors.As(err, new(*mcpauth.StoreError)) {
		if h.c.established() { // the next connection has the same error, which the status shows
			h.c.needsNew(err)
		}
		return err
	}
	h.mu.Lock()
	h.failedPosts++
	broken := h.failedPosts >= maxFailedPosts || errors.Is(err, syscall.ECONNREFUSED)
	h.mu.Unlock()
	if broken && h.c.established() {
		h.c.needsNew(fmt.Errorf("%w: %w", ErrConnectionLost, err))
	}
	return lostOnTheWay(err)
}

// lostOnTheWay marks the error of a request that may have reached the server.
func lostOnTheWay(err error) error {
	if NeverSent(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrConnectionLost, err)
}

// refused returns the error of a message that a response refuses.
func (h *httpConn) refused(m *message, resp *http.Response, withSession bool) error {
	e := h.at.refusal(resp)
	inner := replyError([]byte(e.Body))
	switch {
	case m.id == 0:
		return e // there is no reply to it: the next request meets the same
	case withSession && sessionGone(e, inner):
		m.sent.Store(false)
		h.forgotten()
		h.c.needsNew(ErrSessionLost)
		return ErrSessionLost
	case e.Status == http.StatusUnauthorized && h.c.established():
		// The login ended. A new connection finds out whether there is another.
		h.c.needsNew(e)
		if h.at.recomputed {
			m.sent.Store(false)
			return fmt.Errorf("%w: %w", ErrSessionLost, e)
		}
		return e
	case inner != nil && !e.NeedsAuth:
		return fmt.Errorf("%w (HTTP %d)", inner, e.Status)
	}
	return e
}

// forgotten notes that the server does not know the session any more.
func (h *httpConn) forgotten() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone = true
}

// sessionGone reports whether a refusal means that the server does not know the session of the
// request. The protocol has status 404 for that. Many servers, including the reference ones, answer
// 400 and say so. Others do neither: see [Client.checkSession].
func sessionGone(e *HTTPError, inner *jsonrpc.Error) bool {
	switch e.Status {
	case http.StatusNotFound, http.StatusGone:
		return inner == nil || inner.Code != jsonrpc.CodeMethodNotFound
	case http.StatusBadRequest:
		return (inner == nil || inner.Code != jsonrpc.CodeInvalidParams) && sessionWord.MatchString(e.Body)
	}
	return false
}

// sessionWord finds the word in "No valid session ID provided", "Invalid session" and "No transport
// found for sessionId".
var sessionWord = regexp.MustCompile(`(?i)\b(session|sessionid)\b`)

// replyError returns the error of a body that is a JSON-RPC reply, or nil.
func replyError(body []byte) *jsonrpc.Error {
	var r struct {
		Error *jsonrpc.Error `json:"error"`
	}
	if json.Unmarshal(body, &r) != nil || r.Error == nil || r.Error.Message == "" && r.Error.Code == 0 {
		return nil //nolint:nilerr // what is no reply has no error
	}
	return shortened(r.Error)
}

// readJSON reads a response that is one JSON document.
func (h *httpConn) readJSON(m *message, resp *http.Response) error {
	defer resp.Body.Close()
	body, err := readBody(resp, h.c.o.MaxMessageBytes)
	if err != nil {
		return err
	}
	body = bytes.TrimPrefix(bytes.TrimSpace(body), []byte("\xef\xbb\xbf"))
	if len(body) == 0 || !h.c.receive(body) {
		return fmt.Errorf("the response is not a JSON-RPC message: %s", h.c.o.Mask.Head(body, BodyHead))
	}
	// The request has its reply unless the response has another id.
	if e := replyError(body); e != nil {
		h.c.fail(m.id, e)
	}
	h.c.fail(m.id, errors.New("the response does not answer the request"))
	return nil
}

// readBody reads a body up to a limit.
func readBody(resp *http.Response, limit int) ([]byte, error) {
	if limit < 0 {
		return io.ReadAll(resp.Body)
	}
	if resp.ContentLength > int64(limit) {
		return nil, tooLarge(fmt.Sprintf("%d bytes", resp.ContentLength), limit)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("reading the response: %w", err)
	}
	if len(body) > limit {
		return nil, tooLarge(fmt.Sprintf("%d bytes or more", len(body)), limit)
	}
	return body, nil
}

// close implements connection. It ends the session, if there is one.
func (h *httpConn) close() error {
	h.mu.Lock()
	needless := h.session == "" || h.gone || h.failedPosts > 0
	h.mu.Unlock()
	if needless {
		return nil
	}
	ctx, cancel := context.WithTimeout(h.c.ctx, deleteTime)
	defer cancel()
	header := http.Header{}
	h.addSession(header, h.c.protocol())
	resp, err := h.at.do(ctx, http.MethodDelete, nil, header) //nolint:bodyclose // discard closes it
	if err == nil {
		discard(resp.Body)
	} // else the server forgets the session in time
	return nil
}

// ProbeHTTP looks whether a server over streamable HTTP still listens, by a bare TCP connection. The
// error is [errors.ErrUnsupported] where that proves nothing.
func (c *Client) ProbeHTTP(ctx context.Context) error {
	h, ok := c.conn.(*httpConn)
	if !ok {
		return errors.ErrUnsupported
	}
	err := h.at.dial(ctx)
	if errors.Is(err, syscall.ECONNREFUSED) {
		_ = h.postFailed(err) // which asks for a new connection
	}
	return err
}

// IsHTTP reports whether the connection is one over streamable HTTP.
func (c *Client) IsHTTP() bool { _, ok := c.conn.(*httpConn); return ok }
