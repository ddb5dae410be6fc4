package mcphost

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpauth"
)

const (
	headerSession  = "Mcp-Session-Id"
	headerVersion  = "Mcp-Protocol-Version"
	headerMethod   = "Mcp-Method"
	headerName     = "Mcp-Name"
	headerParam    = "Mcp-Param-"
	headerLastID   = "Last-Event-ID"
	statelessSince = "2026-07-28" // the version from which there are no sessions and no GET stream

	// maxResume is how often a broken stream is resumed without any progress.
	maxResume = 5
	// deleteTime bounds the goodbye to a session.
	deleteTime = time.Second
	// badPosts is how many requests in a row may die of the network before the
	// connection counts as lost.
	badPosts = 3
)

// errSessionLost reports that the server refused a request for the sake of the
// session or login that it came with: it did not process it.
var errSessionLost = errors.New("the server does not accept this session any more")

// A httpCarrier speaks streamable HTTP: a POST for each message, answers in its
// response or a stream of events, and, if the server has one, a stream of what
// the server says unasked.
type httpCarrier struct {
	at    *endpoint
	wire  *wire
	limit int

	ctx    context.Context // of the connection: ends with close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	once   sync.Once
	open   atomic.Int64 // streams of changes that are open

	mu      sync.Mutex // guards the rest
	closed  bool       // no new goroutine may be added to wg
	session string
	version string // negotiated; empty during the handshake
	lost    bool   // the session is gone: nothing to say goodbye to
	bad     int    // requests in a row that the network lost
	hooks   hooks
	unheard map[*streamPos]string // the streams of changes that are not open, and why
}

func newHTTPCarrier(ctx context.Context, at *endpoint, w *wire, limit int) *httpCarrier {
	// The values of the context that connects are those of the connection; its
	// end is not.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	return &httpCarrier{at: at, wire: w, limit: limit, ctx: ctx, cancel: cancel}
}

// initialized takes the version that the server chose, for the headers of what
// follows.
func (c *httpCarrier) initialized(result json.RawMessage) {
	var r struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if json.Unmarshal(result, &r) == nil {
		c.negotiated(r.ProtocolVersion)
	}
}

// negotiated sets the version of the connection.
func (c *httpCarrier) negotiated(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = version
}

func (c *httpCarrier) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.wg.Go(f)
	return true
}

// send posts a message. The answer to a request may have arrived when it returns.
func (c *httpCarrier) send(ctx context.Context, m *outgoing) error {
	if err := m.checkHeaders(); err != nil {
		return err
	}
	caller := ctx
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.ctx, cancel) //nolint:contextcheck // the end of the connection ends the request, too
	release := func() { stop(); cancel() }
	if m.method == methodListen {
		release()
		return c.subscribe(caller, m)
	}
	header, withSession := c.headers(m)
	var reached atomic.Bool // there was a connection to the server
	if m.call != nil {
		m.call.sent.Store(true)
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { reached.Store(true) }})
	}
	resp, err := c.at.do(ctx, http.MethodPost, m.data, header)
	if err != nil {
		release()
		m.unsentIf(!reached.Load() && (neverSent(err) || errors.Is(caller.Err(), context.Canceled)))
		switch {
		case c.ctx.Err() != nil:
			return ErrClosed
		case caller.Err() != nil:
			// Whoever made the request gave it up, with an error of any kind as the cause: that says
			// nothing of the network.
			return caller.Err()
		}
		return c.postFailed(err)
	}
	c.mu.Lock()
	c.bad = 0
	c.mu.Unlock()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer release()
		return c.refused(m, resp, withSession)
	}
	c.keepSession(resp)
	if m.id == 0 {
		discard(resp.Body)
		release()
		return nil
	}
	switch t := baseType(resp.Header); {
	case t == "text/event-stream":
		if !c.spawn(func() { defer release(); c.answerStream(ctx, m, resp) }) {
			release()
			_ = resp.Body.Close()
			return ErrClosed
		}
		return nil
	case t == "application/json":
		defer release()
		return c.answerJSON(m, resp)
	case resp.StatusCode == http.StatusAccepted || resp.StatusCode == http.StatusNoContent:
		// Some servers answer on the standing stream.
		discard(resp.Body)
		release()
		return nil
	default:
		defer release()
		e := c.at.refusal(resp)
		return fmt.Errorf("the response is %q, not JSON or a stream of events: %w", c.at.mask.Head([]byte(t), noiseLine), e)
	}
}

// headers are those of one POST.
func (c *httpCarrier) headers(m *outgoing) (h http.Header, withSession bool) {
	h = http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {"application/json, text/event-stream"},
	}
	c.mu.Lock()
	version, session := c.version, c.session
	c.mu.Unlock()
	if version == "" {
		version = metaVersion(m.params)
	}
	if version != "" {
		h.Set(headerVersion, version)
	}
	if session != "" {
		h.Set(headerSession, session)
	}
	if version >= statelessSince && m.method != "" {
		h.Set(headerMethod, m.method)
		if name := nameOf(m.method, m.params); name != "" {
			h.Set(headerName, headerValue(name))
		}
	}
	if m.call != nil {
		for k, v := range m.call.headers {
			h.Set(k, v)
		}
	}
	return h, session != ""
}

// metaVersion is the protocol version that a request of the stateless era names.
func metaVersion(params json.RawMessage) string {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(params, &p) != nil {
		return ""
	}
	var v string
	if json.Unmarshal(p.Meta[mcp.MetaKeyProtocolVersion], &v) != nil {
		return ""
	}
	return v
}

// nameOf is what a request is about, for its Mcp-Name header.
func nameOf(method string, params json.RawMessage) string {
	var p struct {
		Name string `json:"name"`
		URI  string `json:"uri"`
	}
	switch method {
	case "tools/call", "prompts/get", "resources/read":
		if json.Unmarshal(params, &p) != nil {
			return ""
		}
	}
	if method == "resources/read" {
		return p.URI
	}
	return p.Name
}

func (c *httpCarrier) keepSession(resp *http.Response) {
	if id := resp.Header.Get(headerSession); id != "" {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.session == "" {
			c.session = id
		}
	}
}

// postFailed takes note of a request that the network lost. Where nothing listens any more, or after a few such
// requests in a row, a new connection is needed.
func (c *httpCarrier) postFailed(err error) error {
	if errors.Is(err, errRedirect) || errors.Is(err, errPanicked) {
		return err
	}
	if errors.As(err, new(*mcpauth.NeedsAuthError)) || errors.As(err, new(*mcpauth.StoreError)) {
		if c.established() { // the next connection meets it, too, and the status tells
			c.wire.leave(err)
		}
		return err
	}
	c.mu.Lock()
	c.bad++
	broken := c.bad >= badPosts || errors.Is(err, syscall.ECONNREFUSED)
	c.mu.Unlock()
	if broken && c.established() {
		c.wire.leave(fmt.Errorf("%w: %w", ErrConnectionLost, err))
	}
	return lostOnTheWay(err)
}

// lostOnTheWay marks the error of a request that may have reached the server.
func lostOnTheWay(err error) error {
	if neverSent(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrConnectionLost, err)
}

// refused turns a response that is no success into the error of its request.
func (c *httpCarrier) refused(m *outgoing, resp *http.Response, withSession bool) error {
	e := c.at.refusal(resp)
	inner := replyError([]byte(e.Body))
	if m.id == 0 {
		return e // there is no answer to a notification or a reply: the next request shows what the matter is
	}
	if withSession && sessionGone(e, inner) {
		m.unsentIf(true)
		c.forgotten()
		return errSessionLost
	}
	if e.Status == http.StatusUnauthorized && c.established() {
		// The login ended. A new connection finds out whether there is another,
		// and the status tells.
		c.wire.leave(e)
		if c.at.fresh {
			m.unsentIf(true)
			return fmt.Errorf("%w: %w", errSessionLost, e)
		}
		return e
	}
	if inner != nil && !e.NeedsAuth {
		return fmt.Errorf("%w (HTTP %d)", inner, e.Status)
	}
	return e
}

// forgotten takes note that the server does not know the session any more.
func (c *httpCarrier) forgotten() {
	c.mu.Lock()
	c.lost = true
	c.mu.Unlock()
	c.wire.leave(errSessionLost)
}

// sessionGone reports whether a refusal means that the server does not know the
// session that a request named. The protocol has 404 for it, and many servers,
// the reference ones among them, answer 400 and say so. Others say neither: see
// [remoteLink.refusesAll].
func sessionGone(e *HTTPError, inner *jsonrpc.Error) bool {
	switch e.Status {
	case http.StatusNotFound, http.StatusGone:
		return inner == nil || inner.Code != jsonrpc.CodeMethodNotFound
	case http.StatusBadRequest:
		return (inner == nil || inner.Code != jsonrpc.CodeInvalidParams) && saysSession.MatchString(e.Body)
	}
	return false
}

// saysSession finds the word in "No valid session ID provided", "Invalid
// session", "No transport found for sessionId".
var saysSession = regexp.MustCompile(`(?i)\b(session|sessionid)\b`)

// stateless reports whether the connection speaks the protocol without sessions.
func (c *httpCarrier) stateless() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version >= statelessSince
}

// established reports whether the handshake is over.
func (c *httpCarrier) established() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version != ""
}

// replyError is the error of a body that is a JSON-RPC reply, nil otherwise.
func replyError(body []byte) *jsonrpc.Error {
	var r struct {
		Error *jsonrpc.Error `json:"error"`
	}
	if json.Unmarshal(body, &r) != nil || r.Error == nil || r.Error.Message == "" && r.Error.Code == 0 {
		return nil //nolint:nilerr // what is no reply is no error of one
	}
	return shortened(r.Error)
}

// answerJSON reads an answer that is one JSON document.
func (c *httpCarrier) answerJSON(m *outgoing, resp *http.Response) error {
	defer resp.Body.Close()
	body, err := readBody(resp, c.limit)
	if err != nil {
		return err
	}
	body = bytes.TrimPrefix(bytes.TrimSpace(body), []byte("\xef\xbb\xbf"))
	if len(body) == 0 || !c.wire.receive(body) {
		return fmt.Errorf("the response is not a JSON-RPC message: %s", c.at.mask.Head(body, bodyHead))
	}
	// A reply with another id answers nothing; ours will not come.
	if e := replyError(body); e != nil {
		c.wire.fail(m.id, e)
	}
	c.wire.fail(m.id, errors.New("the response does not answer the request"))
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

// answerStream reads an answer that comes as a stream of events, and resumes a
// stream that broke if the server numbers its events. There is no resuming in the
// stateless protocol.
func (c *httpCarrier) answerStream(ctx context.Context, m *outgoing, resp *http.Response) {
	pos := new(streamPos)
	for {
		err := c.events(resp.Body, pos, func() bool { return c.answered(m.id) })
		if ctx.Err() != nil || c.answered(m.id) {
			return
		}
		if pos.id == "" || c.stateless() {
			c.wire.fail(m.id, fmt.Errorf("%w: the stream ended: %w", ErrConnectionLost, orEOF(err)))
			return
		}
		if resp, err = c.resume(ctx, pos); err != nil { //nolint:bodyclose // events closes it
			c.wire.fail(m.id, fmt.Errorf("%w: %w", ErrConnectionLost, err))
			return
		}
	}
}

func orEOF(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (c *httpCarrier) answered(id int64) bool {
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	return c.wire.pending[id] == nil
}

// A streamPos is where a stream of events is.
type streamPos struct {
	id    string        // of the last event
	retry time.Duration // the server's wish for the pause before the next attempt
	tries int           // attempts since the last event
}

// leastRetry is the shortest pause that a server may wish for.
const leastRetry = 250 * time.Millisecond

// pause is how long to wait before the next attempt.
func (p *streamPos) pause() time.Duration {
	if p.retry > 0 && p.tries <= 1 {
		return min(max(p.retry, leastRetry), time.Minute)
	}
	d := min(time.Second<<min(p.tries-1, 6), time.Minute)
	return d/2 + rand.N(d/2+1)
}

// events hands the events of a body to the wire until done says so or it ends,
// and closes it.
func (c *httpCarrier) events(body io.ReadCloser, pos *streamPos, done func() bool) error {
	defer body.Close()
	r := newEventReader(body, c.limit)
	for {
		e, err := r.next()
		if err != nil {
			return err
		}
		pos.tries = 0
		if e.id != "" {
			pos.id = e.id
		}
		if n, err := strconv.ParseInt(e.retry, 10, 32); err == nil && n >= 0 {
			pos.retry = time.Duration(n) * time.Millisecond
		}
		deliver(c.wire, e, c.limit)
		if done() {
			discard(body)
			return nil
		}
	}
}

// deliver hands the data of an event to a wire.
func deliver(w *wire, e sseEvent, limit int) {
	if e.over != nil {
		w.oversized(*e.over, limit)
		return
	}
	if e.name != "" && e.name != "message" {
		return
	}
	data := bytes.Trim(e.data, "\x00 \t\r\n")
	// An event without data is a sign of life, or its id is all that counts.
	if len(data) > 0 && !w.receive(data) {
		w.noise(data)
	}
}

// resume continues a broken stream.
func (c *httpCarrier) resume(ctx context.Context, pos *streamPos) (*http.Response, error) {
	var last error = io.ErrUnexpectedEOF
	for pos.tries < maxResume {
		pos.tries++
		if !sleep(ctx, pos.pause()) {
			return nil, ctx.Err()
		}
		resp, err := c.get(ctx, pos.id)
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
	// errNoStream reports that the server has no stream to give, errStreamLater that it may have one later.
	errNoStream    = errors.New("the server has no stream of changes")
	errStreamLater = errors.New("the server has no stream of changes just now")
)

// get opens a stream of events.
func (c *httpCarrier) get(ctx context.Context, lastID string) (*http.Response, error) {
	h := http.Header{"Accept": {"text/event-stream"}}
	c.mu.Lock()
	if c.version != "" {
		h.Set(headerVersion, c.version)
	}
	if c.session != "" {
		h.Set(headerSession, c.session)
	}
	c.mu.Unlock()
	if lastID != "" {
		h.Set(headerLastID, lastID)
	}
	resp, err := c.at.do(ctx, http.MethodGet, nil, h)
	if err != nil {
		return nil, err
	}
	return streamOf(resp)
}

// streamOf returns a response that is a stream of events. The error of another is errNoStream or errStreamLater.
func streamOf(resp *http.Response) (*http.Response, error) {
	if resp.StatusCode == http.StatusOK && baseType(resp.Header) == "text/event-stream" {
		return resp, nil
	}
	discard(resp.Body)
	if resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests {
		return nil, fmt.Errorf("%w (HTTP %d)", errStreamLater, resp.StatusCode)
	}
	return nil, fmt.Errorf("%w (HTTP %d)", errNoStream, resp.StatusCode)
}

// sleep waits; it reports false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// close says goodbye to the session and ends all requests.
func (c *httpCarrier) close() error {
	c.wire.end(io.EOF)
	c.once.Do(func() {
		c.mu.Lock()
		session, lost := c.session, c.lost || c.bad > 0
		c.closed = true
		c.mu.Unlock()
		if session != "" && !lost {
			c.goodbye(session)
		}
		c.cancel()
	})
	return awaitAll(&c.wg)
}

func (c *httpCarrier) goodbye(session string) {
	ctx, cancel := context.WithTimeout(c.ctx, deleteTime)
	defer cancel()
	h := http.Header{headerSession: {session}}
	c.mu.Lock()
	if c.version != "" {
		h.Set(headerVersion, c.version)
	}
	c.mu.Unlock()
	resp, err := c.at.do(ctx, http.MethodDelete, nil, h) //nolint:bodyclose // discard closes it
	if err != nil {
		return // the server forgets it by itself in time
	}
	discard(resp.Body)
}
