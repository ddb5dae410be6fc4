package transport

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/callback"
	"github.com/tenon-sdk/tenon/internal/lograte"
	"github.com/tenon-sdk/tenon/internal/secret"
)

// cancelTime bounds the delivery of notifications/cancelled.
const cancelTime = 5 * time.Second

// Options configure a [Client].
type Options struct {
	Log *slog.Logger
	// Limited logs what a server can repeat, and panics of the program's functions.
	Limited *lograte.Logger
	Mask    *secret.Masker
	// MaxMessageBytes is the longest message of the server. A negative number means no limit.
	MaxMessageBytes int
	// ProbeTime is how long the server may take to answer server/discover before initialize is
	// sent as well. Zero means as long as the context of the handshake.
	ProbeTime time.Duration

	// Info, Roots, Elicit and Sample are what the server is told of, and answered by, the host. The
	// capabilities of those that are empty or nil are not declared.
	Info   *mcp.Implementation
	Roots  []*mcp.Root
	Elicit func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error)
	Sample func(context.Context, *mcp.CreateMessageWithToolsParams) (*mcp.CreateMessageWithToolsResult, error)

	// The handlers of notifications are called in order and must not block.
	OnLog             func(*mcp.LoggingMessageParams)
	OnListChanged     func(method string) // the method of the notification
	OnResourceUpdated func(uri string)
}

// A connection carries messages to a server. It hands the server's messages to the client.
type connection interface {
	// send sends a message. It returns when the message is on its way or ctx ends. An error fails
	// the message and not the connection.
	send(ctx context.Context, m *message) error
	// close ends the connection and waits for its goroutines, for a bounded time.
	close() error
}

// A message is a message to the server.
type message struct {
	data   []byte
	id     int64  // of a request; 0 otherwise
	method string // of a request or notification; empty for a reply
	// version is the protocol version for the headers of HTTP; empty during initialize.
	version string
	name    string // what the request is about, for the headers of HTTP
	headers map[string]string
	sent    atomic.Bool // the message may have reached the server
}

// notSentIf takes back that the message may have reached the server.
func (m *message) notSentIf(never bool) {
	if never {
		m.sent.Store(false)
	}
}

// A pending is a request without a reply so far.
type pending struct {
	*message
	reply chan reply // receives one
}

type reply struct {
	result json.RawMessage
	err    error
}

// A Client makes requests of one server over one connection. It is safe for concurrent use.
type Client struct {
	o    *Options
	conn connection
	ctx  context.Context // of the connection; has the values of the context it was made with, and ends with Close
	stop context.CancelFunc
	live context.Context // of requests of the server; ends when the connection is over
	die  context.CancelFunc
	wg   sync.WaitGroup

	version atomic.Pointer[string] // negotiated; nil during the handshake
	info    Info

	done     chan struct{} // closed when the connection is over
	err      error         // why; set before done is closed
	end      sync.Once
	lost     chan struct{} // closed when a new connection is needed
	lostErr  error         // why; set before lost is closed
	lose     sync.Once
	shutdown func() error

	received atomic.Int64 // messages
	lastID   atomic.Int64

	mu       sync.Mutex // guards the rest
	closed   bool       // no goroutine may be added to wg
	pending  map[int64]*pending
	progress map[int64]func(*mcp.ProgressNotificationParams) // by token
	listed   map[string]bool                                 // methods of lists that were answered
	listens  map[string]context.CancelFunc                   // subscriptions to resources, by URI
	noiseN   int
	noise    []string

	requests serverRequests
	session  sessionCheck
}

// newClient returns a client without a connection.
func newClient(ctx context.Context, o *Options) *Client {
	c := &Client{
		o: o, done: make(chan struct{}), lost: make(chan struct{}),
		pending: map[int64]*pending{}, progress: map[int64]func(*mcp.ProgressNotificationParams){},
		listed: map[string]bool{}, listens: map[string]context.CancelFunc{},
	}
	c.ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	c.live, c.die = context.WithCancel(c.ctx)
	c.requests.running = map[string]*serverRequest{}
	c.session.turn = make(chan struct{}, 1)
	c.shutdown = sync.OnceValue(func() error {
		c.finish(ErrClosed)
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
		err := c.conn.close()
		c.stop()
		return errors.Join(err, callback.Wait(&c.wg))
	})
	return c
}

// Close ends the connection and waits for a bounded time until its goroutines have ended. It may be
// called more than once.
func (c *Client) Close() error { return c.shutdown() }

// spawn runs f on a goroutine that Close waits for. It reports false after Close.
func (c *Client) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.wg.Go(f)
	return true
}

// Done is closed when the connection is over.
func (c *Client) Done() <-chan struct{} { return c.done }

// Lost is closed when a new connection is needed. Requests on this one may still be answered.
func (c *Client) Lost() <-chan struct{} { return c.lost }

// Err returns why Done or Lost is closed, or nil if neither is.
func (c *Client) Err() error {
	if err := c.failure(); err != nil {
		return err
	}
	select {
	case <-c.lost:
		return c.lostErr
	default:
		return nil
	}
}

// failure returns why the connection is over, or nil if it is not.
func (c *Client) failure() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// ended returns why the connection is over for a request that found it so.
func (c *Client) ended() error { return cmp.Or(c.failure(), ErrClosed) }

// Failed reports whether the connection is over.
func (c *Client) Failed() bool { return c.failure() != nil }

// Received returns how many messages the server sent.
func (c *Client) Received() int64 { return c.received.Load() }

// Noise returns how many lines of the server were no messages, and the first few of them.
func (c *Client) Noise() (n int, head []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.noiseN, slices.Clone(c.noise)
}

// broken ends the connection because of a fault.
func (c *Client) broken(err error) { c.finish(fmt.Errorf("%w: %w", ErrConnectionLost, err)) }

func (c *Client) finish(err error) {
	c.end.Do(func() {
		c.err = err
		close(c.done)
		c.die()
	})
}

// needsNew reports that a new connection is needed, and why.
func (c *Client) needsNew(why error) {
	c.lose.Do(func() {
		c.lostErr = why
		close(c.lost)
	})
}

// established reports whether the handshake is over.
func (c *Client) established() bool { return c.version.Load() != nil }

// protocol returns the negotiated protocol version, or "" during the handshake.
func (c *Client) protocol() string {
	if v := c.version.Load(); v != nil {
		return *v
	}
	return ""
}

// A Request is a request of the server.
type Request struct {
	Method string
	// Params may be nil.
	Params mcp.Params
	// Headers are added to the request over HTTP.
	Headers map[string]string
	// OnProgress is called with the progress of the request. It must not block.
	OnProgress func(*mcp.ProgressNotificationParams)
	// Sent is set to whether the request may have reached the server.
	Sent bool
}

// Do makes a request and returns the result. The error of a server is a *[jsonrpc.Error]. If the
// server refuses all requests because it does not know the session, the error is [ErrSessionLost].
func (c *Client) Do(ctx context.Context, r *Request) (json.RawMessage, error) {
	m, forget, err := c.encode(r)
	if err != nil {
		return nil, err
	}
	defer forget()
	result, err := c.roundTrip(ctx, m)
	if err != nil && ctx.Err() == nil {
		err = c.checkSession(ctx, m, err)
	}
	r.Sent = m.sent.Load()
	return result, err
}

// encode makes the message of a request. forget drops what is remembered for it.
func (c *Client) encode(r *Request) (m *message, forget func(), err error) {
	forget = func() {}
	meta := mcp.Meta{}
	if r.Params != nil {
		for k, v := range r.Params.GetMeta() {
			meta[k] = v
		}
	}
	if r.OnProgress != nil {
		token := c.lastID.Add(1)
		meta["progressToken"] = token
		c.mu.Lock()
		c.progress[token] = r.OnProgress
		c.mu.Unlock()
		forget = func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.progress, token)
		}
	}
	version := c.protocol()
	if version >= V20260728 {
		c.addRequestMeta(meta, version)
	}
	if r.Params != nil && len(meta) > 0 {
		r.Params.SetMeta(meta)
	}
	m = &message{method: r.Method, version: version, name: requestName(r.Params), headers: r.Headers}
	return m, forget, c.addData(m, r.Params)
}

// addRequestMeta adds what requests hold from protocol version 2026-07-28 on.
func (c *Client) addRequestMeta(meta mcp.Meta, version string) {
	meta[mcp.MetaKeyProtocolVersion] = version
	meta[mcp.MetaKeyClientInfo] = c.o.Info
	meta[mcp.MetaKeyClientCapabilities] = c.capabilities()
}

// requestName returns what a request is about, for its Mcp-Name header.
func requestName(p mcp.Params) string {
	switch p := p.(type) {
	case *mcp.CallToolParams:
		return p.Name
	case *mcp.GetPromptParams:
		return p.Name
	case *mcp.ReadResourceParams:
		return p.URI
	}
	return ""
}

// addData gives a request its id and encodes it.
func (c *Client) addData(m *message, params any) error {
	m.id = c.lastID.Add(1)
	b := append(make([]byte, 0, 256), `{"jsonrpc":"2.0","id":`...)
	b = strconv.AppendInt(b, m.id, 10)
	var err error
	m.data, err = appendMethod(b, m.method, params)
	return err
}

// appendMethod appends the method and the params of a message, and its end.
func appendMethod(b []byte, method string, params any) ([]byte, error) {
	b = append(b, `,"method":"`+method+`"`...)
	if params != nil {
		raw, err := json.Marshal(params)
		if err != nil {
			return nil, fmt.Errorf("encoding the params of %s: %w", method, err)
		}
		b = append(append(b, `,"params":`...), raw...)
	}
	return append(b, '}'), nil
}

// notify sends a notification.
func (c *Client) notify(ctx context.Context, method string, params any) error {
	data, err := appendMethod([]byte(`{"jsonrpc":"2.0"`), method, params)
	if err != nil {
		return err
	}
	return c.conn.send(ctx, &message{data: data, method: method, version: c.protocol()})
}

// roundTrip sends a request and waits for its reply.
func (c *Client) roundTrip(ctx context.Context, m *message) (json.RawMessage, error) {
	p := c.start(ctx, m)
	return c.await(ctx, p)
}

// start sends a request. Its reply, or the error of sending it, is for await.
func (c *Client) start(ctx context.Context, m *message) *pending {
	p := &pending{message: m, reply: make(chan reply, 1)}
	c.mu.Lock()
	c.pending[m.id] = p
	c.mu.Unlock()
	if err := c.conn.send(ctx, m); err != nil && ctx.Err() == nil {
		c.fail(m.id, err)
	}
	return p
}

// await waits for the reply of a request. A request that is given up is cancelled.
func (c *Client) await(ctx context.Context, p *pending) (json.RawMessage, error) {
	select {
	case r := <-p.reply:
		return r.result, r.err
	case <-ctx.Done():
		if c.take(p.id) != nil && p.sent.Load() && p.method != methodInitialize && p.method != methodDiscover {
			c.cancel(p.id, ctx.Err())
		}
		return nil, ctx.Err()
	case <-c.done:
	}
	select {
	case r := <-p.reply: // it came before the end
		return r.result, r.err
	default:
		c.take(p.id)
		return nil, c.err
	}
}

// cancel tells the server that a reply is not needed any more, and does not wait for that.
func (c *Client) cancel(id int64, why error) {
	c.spawn(func() {
		ctx, stop := context.WithTimeout(c.ctx, cancelTime)
		defer stop()
		c.report("cancelling a request", c.notify(ctx, methodCancelled, &mcp.CancelledParams{RequestID: id, Reason: why.Error()}))
	})
}

func (c *Client) report(what string, err error) {
	if err != nil {
		c.o.Log.Debug("message not delivered", "what", what, "error", c.o.Mask.Head([]byte(err.Error()), textHead))
	}
}

// take removes and returns a pending request; nil if there is none with that id.
func (c *Client) take(id int64) *pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending[id]
	delete(c.pending, id)
	return p
}

// waits reports whether the request with an id has no reply so far.
func (c *Client) waits(id int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending[id] != nil
}

// fail answers a request with an error, if it is pending.
func (c *Client) fail(id int64, err error) {
	if p := c.take(id); p != nil {
		p.reply <- reply{err: err} // never blocks: take returns each request once
	}
}

// failAll answers all pending requests with an error.
func (c *Client) failAll(err error) {
	c.mu.Lock()
	ids := make([]int64, 0, len(c.pending))
	for id := range c.pending {
		ids = append(ids, id)
	}
	c.mu.Unlock()
	for _, id := range ids {
		c.fail(id, err)
	}
}

// onlyPending returns the one request that waits for a reply, if there is just one. The reply of
// subscriptions/listen is its end, and server/discover may be answered after initialize was sent.
func (c *Client) onlyPending() (id int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, discover := 0, int64(0)
	for pid, p := range c.pending {
		switch p.method {
		case methodListen:
		case methodDiscover:
			discover = pid
		default:
			id = pid
			n++
		}
	}
	if n == 0 {
		return discover, discover != 0
	}
	return id, n == 1
}

// InFlight returns how many requests that may have reached the server have no reply so far.
func (c *Client) InFlight() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, p := range c.pending {
		if p.sent.Load() && p.method != methodListen {
			n++
		}
	}
	return n
}
