// Package mcpbridge speaks JSON-RPC for a server that lives in this process: raw
// messages in, raw replies out, and whatever the server has to say by itself
// through one function. It is what stands between an in-process server and
// anyone who has MCP messages but no transport: an agent's control channel, a
// gateway, a test.
//
//	bridge := mcpbridge.New(server, &mcpbridge.Options{Send: write})
//	defer bridge.Close()
//	reply, err := bridge.Handle(ctx, message) // nil, nil: nothing to answer
//
// A bridge is one session, however often the other side shakes hands. It accepts
// what the official library refuses: a repeated initialize, none at all, ids of
// any form (they come back byte for byte), a missing jsonrpc, batches in any
// version. Both eras of the protocol work, request by request: up to 2025-11-25
// with a handshake, 2026-07-28 without.
//
// What fails inside a tools/call reaches the other side as a result with isError
// set, which a model can read. A tool that does not exist is the error -32601,
// a fault of the bridge itself -32603.
package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// Options configures a bridge. The zero value, like a nil pointer, means the defaults.
type Options struct {
	// ToolTimeout is the time limit of tool calls through this bridge, tools'
	// own limits aside. Zero means the server's, [mcpserver.NoTimeout] none.
	ToolTimeout time.Duration
	// Send takes what the server sends by itself: notifications and its own
	// requests (elicitation, sampling, roots, ping), one JSON-RPC message a call.
	// The answers to such requests come back through [Bridge.Handle]. Send may be
	// called from any number of goroutines; while it blocks, so does the handler
	// that reports progress. A panic in it is logged and an error of that
	// message. If nil, notifications are dropped and requests are refused.
	Send func(ctx context.Context, raw json.RawMessage) error
	// Scheduling and Middleware replace the server's own, both of them, for
	// everything that comes through this bridge.
	Scheduling mcpserver.Scheduling
	Middleware mcpserver.Middleware
	// PageSize is how many entries one page of a list has. Zero means all.
	PageSize int
	// MaxRequests bounds the requests that are being served at a time, each of a
	// batch and each subscription among them. One more is answered with the error
	// -32005. Zero means DefaultMaxRequests, a negative value no bound.
	MaxRequests int
	// SessionID is what handlers see as the session's id; it may be empty.
	SessionID string
	// LookupEnv replaces os.LookupEnv for the time limits that come from the
	// environment.
	LookupEnv func(name string) (string, bool)
	// Logger hears of messages that make no sense, of faults of the bridge and of
	// messages that could not be sent. If nil, nothing is logged.
	Logger *slog.Logger
}

// codeClosed is what a message to a closed bridge is answered with, the code
// that the official TypeScript library has for a closed connection.
const codeClosed = -32000

// DefaultMaxRequests is how many requests a bridge serves at a time by default.
const DefaultMaxRequests = 1000

// A Bridge handles the JSON-RPC messages of one session. It is safe for
// concurrent use. Whoever made it closes it.
type Bridge struct {
	server  mcpserver.Provider
	opts    Options // Send is guarded
	rawSend func(ctx context.Context, raw json.RawMessage) error
	log     *slog.Logger
	calls   *calls
	asks    *asks
	watches *watches

	opening chan struct{} // holds one token: the right to open the session

	mu        sync.Mutex // guards the rest
	session   mcpserver.ServerSession
	closed    bool
	client    client
	modern    bool        // a request of 2026-07-28 has been seen
	shaken    bool        // an initialize has been seen
	listeners []*listener // the oldest first
}

// A client is what a handshake, or the _meta of a request, says of the other side.
type client struct {
	info    *mcp.Implementation
	caps    *mcp.ClientCapabilities
	version string
}

// New returns a bridge to server. It panics when server is nil: a bridge to
// nowhere is a mistake in the program. The session on a [*mcpserver.Server] opens
// at once, that on any other server with the first message that needs it.
func New(server mcpserver.Provider, o *Options) *Bridge {
	if server == nil {
		panic("mcpbridge: New without a server")
	}
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.MaxRequests == 0 {
		opts.MaxRequests = DefaultMaxRequests
	}
	if opts.PageSize < 0 {
		panic(fmt.Sprintf("mcpbridge: PageSize is %d, want 0 or more", opts.PageSize))
	}
	b := &Bridge{
		server:  server,
		opts:    opts,
		log:     opts.Logger,
		calls:   newCalls(opts.MaxRequests),
		opening: make(chan struct{}, 1),
		watches: newWatches(),
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if opts.Send != nil {
		b.opts.Send = b.guardedSend
	}
	b.rawSend = opts.Send
	b.asks = newAsks(b.opts.Send)
	b.opening <- struct{}{}
	if s, ok := server.(*mcpserver.Server); ok {
		b.session = s.NewSession(b.sessionOptions())
	}
	return b
}

// Handle handles one message, or one batch, and returns the reply to it. It
// blocks until the reply is there and may be called from any number of
// goroutines; a slow call delays no other. The bridge keeps raw: it must not be
// modified, even after Handle has returned, since a handler may still run. How
// long raw may be is for the caller to bound; the bridge bounds what is in it:
// an id has at most 4,096 bytes, params and a batch have at most 1,000 entries.
//
// Where the protocol wants no answer the reply is nil: to notifications, to
// answers to our own requests, and to requests that notifications/cancelled took
// back. An error means that ctx ended before the answer was there. Everything
// else, a message that is no JSON included, is answered by a reply.
func (b *Bridge) Handle(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	msgs, batch, err := rpcmsg.Parse(raw)
	if err != nil {
		b.log.Warn("mcpbridge: message cannot be read", "error", err, "bytes", len(raw))
		return rpcmsg.ErrorReply(nil, rpcmsg.ParseError(err)), nil
	}
	if !batch {
		return b.handle(ctx, msgs[0], b.calls.leave)
	}
	if len(msgs) == 0 {
		return rpcmsg.ErrorReply(nil, rpcmsg.InvalidRequest("an empty batch")), nil
	}
	return b.batch(ctx, msgs)
}

// batch handles the messages of a batch at the same time and puts the replies,
// in the order of the requests, into one. Until then all its requests count as
// being served, since their replies are held.
func (b *Bridge) batch(ctx context.Context, msgs []*rpcmsg.Message) (json.RawMessage, error) {
	replies := make([]json.RawMessage, len(msgs))
	errs := make([]error, len(msgs))
	var held atomic.Int64
	var wg sync.WaitGroup
	for i, m := range msgs {
		wg.Go(func() { replies[i], errs[i] = b.handle(ctx, m, func(n int) { held.Add(int64(n)) }) })
	}
	wg.Wait()
	b.calls.leave(int(held.Load()))
	var out json.RawMessage
	for _, reply := range replies {
		if reply == nil {
			continue
		}
		if out == nil {
			out = append(out, '[')
		} else {
			out = append(out, ',')
		}
		out = append(out, reply...)
	}
	if out == nil {
		return nil, errors.Join(errs...)
	}
	return append(out, ']'), nil
}

// handle handles one message. A request that was served is given to leave, which
// lets another have its place.
func (b *Bridge) handle(ctx context.Context, m *rpcmsg.Message, leave func(n int)) (json.RawMessage, error) {
	switch {
	case m.Reply():
		if !b.asks.answer(m) {
			b.log.Debug("mcpbridge: an answer to no request of ours", "id", string(m.ID))
		}
		return nil, nil
	case m.Notification():
		b.notification(m)
		return nil, nil
	case m.Fault != nil:
		b.log.Warn("mcpbridge: malformed message", "error", m.Fault)
		return errorReply(m.ID, m.Fault), nil //nolint:nilerr // the reply says what is wrong
	}
	return b.request(ctx, m, leave)
}

// request runs one request under a context that a cancellation or Close ends.
func (b *Bridge) request(parent context.Context, m *rpcmsg.Message, leave func(n int)) (json.RawMessage, error) {
	ctx, call := b.calls.begin(parent, m)
	if call == nil {
		b.log.Warn("mcpbridge: too many requests at once", "limit", b.opts.MaxRequests, "method", fmt.Sprintf("%.200s", m.Method))
		return rpcmsg.ErrorReply(m.ID, rpcmsg.Busy(b.opts.MaxRequests)), nil
	}
	defer leave(1)
	defer call.end()
	result, err := b.dispatch(ctx, m)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errCancelled):
		return nil, nil
	case err == nil:
		return rpcmsg.ResultReply(m.ID, result), nil
	case errors.Is(cause, mcpserver.ErrClosed), errors.Is(err, mcpserver.ErrClosed):
		return rpcmsg.ErrorReply(m.ID, &jsonrpc.Error{Code: codeClosed, Message: "the server is closed"}), nil
	case parent.Err() != nil:
		return nil, parent.Err()
	}
	return errorReply(m.ID, err), nil
}

// dispatch runs one request. A panic in the bridge, or in a server that does not
// catch its own, is an error of that request alone.
func (b *Bridge) dispatch(ctx context.Context, m *rpcmsg.Message) (result json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			b.log.Error("mcpbridge: panic", "method", m.Method, "panic", p, "stack", string(debug.Stack()))
			result, err = nil, fault("the server failed to handle the request")
		}
	}()
	return b.serve(ctx, m)
}

// guardedSend is [Options.Send], whose panic is an error.
func (b *Bridge) guardedSend(ctx context.Context, raw json.RawMessage) (err error) {
	defer func() {
		if p := recover(); p != nil {
			b.log.Error("mcpbridge: Options.Send panicked", "panic", p, "stack", string(debug.Stack()))
			err = errors.New("mcpbridge: Options.Send panicked")
		}
	}()
	return b.rawSend(ctx, raw)
}

// open returns the session, which it opens at first.
func (b *Bridge) open(ctx context.Context) (mcpserver.ServerSession, error) {
	if session, err := b.opened(); session != nil || err != nil {
		return session, err
	}
	select {
	case <-b.opening:
		defer func() { b.opening <- struct{}{} }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if session, err := b.opened(); session != nil || err != nil {
		return session, err // another request has been faster
	}
	session, err := b.server.OpenSession(ctx, b.sessionOptions())
	if err != nil {
		return nil, fmt.Errorf("opening a session on the server: %w", err)
	}
	b.mu.Lock()
	closed := b.closed
	if !closed {
		b.session = session
	}
	b.mu.Unlock()
	if closed {
		return nil, errors.Join(mcpserver.ErrClosed, session.Close())
	}
	return session, nil
}

func (b *Bridge) opened() (mcpserver.ServerSession, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, mcpserver.ErrClosed
	}
	return b.session, nil
}

func (b *Bridge) sessionOptions() *mcpserver.SessionOptions {
	return &mcpserver.SessionOptions{
		ID:         b.opts.SessionID,
		Scheduling: b.opts.Scheduling,
		Middleware: b.opts.Middleware,
		Timeout:    b.opts.ToolTimeout,
		Notify:     b.notify,
		Elicit:     b.elicit,
		Sample:     b.sample,
		ListRoots:  b.listRoots,
		LookupEnv:  b.opts.LookupEnv,
	}
}

// Timeout is the time limit of tool calls in force, tools' own limits aside:
// [Options.ToolTimeout], else the server's. [mcpserver.NoTimeout] means none.
func (b *Bridge) Timeout() time.Duration {
	type limited interface{ Timeout() time.Duration }
	b.mu.Lock()
	session, _ := b.session.(limited)
	b.mu.Unlock()
	if session != nil {
		return session.Timeout()
	}
	if server, ok := b.server.(limited); ok && b.opts.ToolTimeout == 0 {
		return server.Timeout()
	}
	return b.opts.ToolTimeout
}

// Close ends the session. Requests in flight and later ones are answered with an
// error, requests of the server's own fail. Close is bounded, idempotent and
// may be called from any goroutine.
func (b *Bridge) Close() error {
	b.mu.Lock()
	session := b.session
	first := !b.closed
	b.closed = true
	b.mu.Unlock()
	if !first {
		return nil
	}
	b.calls.close()
	b.asks.close()
	if session == nil {
		return nil
	}
	return session.Close()
}
