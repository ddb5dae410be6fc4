// Package mcpbridge is the server side of MCP's JSON-RPC: it serves a
// [mcpserver.Provider] to a client that sends messages. [ServeStdio] serves one
// client over standard input and output. A [Bridge] serves callers that bring
// their own transport: an agent's control channel, a gateway, a test.
//
//	bridge := mcpbridge.New(server, &mcpbridge.Options{Send: write})
//	defer bridge.Close()
//	reply, err := bridge.Handle(ctx, message) // nil, nil: the message has no reply
//
// A bridge is one session, however often the client initializes it. It accepts
// messages that the official library refuses: a repeated initialize, requests
// without one, ids of any form (replies repeat them byte for byte), a missing
// jsonrpc member, and batches in any protocol version. Each request follows its
// own protocol version: up to 2025-11-25 with a handshake, 2026-07-28 without.
//
// A failure of a tool is a result with isError set, which a model can read. An
// unknown tool is the error -32601, a failure of the bridge itself -32603.
package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// Options configures a bridge. The zero value and a nil pointer mean the defaults.
type Options struct {
	// ToolTimeout is the time limit of tool calls for tools that set none. Zero
	// means the server's limit, [mcpserver.NoTimeout] none.
	ToolTimeout time.Duration
	// Send sends one JSON-RPC message to the client: a notification, or a request
	// of the server's (elicitation, sampling, roots, ping) whose answer comes back
	// through [Bridge.Handle]. It may be called from several goroutines. While it
	// blocks, so does the handler that reports progress. A panic in it is logged
	// and fails that message. If Send is nil, notifications are dropped and
	// requests fail.
	Send func(ctx context.Context, raw json.RawMessage) error
	// Scheduling and Middleware replace those of the server for all calls through
	// this bridge.
	Scheduling mcpserver.Scheduling
	Middleware mcpserver.Middleware
	// PageSize is the number of entries in one page of a list. Zero means all.
	PageSize int
	// MaxRequests bounds the requests that are served at a time, including those
	// of a batch and subscriptions. Further requests fail with the error -32005.
	// Zero means DefaultMaxRequests, a negative value no bound.
	MaxRequests int
	// SessionID is the session id that handlers see; it may be empty.
	SessionID string
	// LookupEnv replaces os.LookupEnv for the time limits that the environment sets.
	LookupEnv func(name string) (string, bool)
	// Logger records malformed messages, panics and messages that could not be
	// sent. If nil, nothing is logged.
	Logger *slog.Logger

	maxBytes int64 // of the requests that are served at a time; 0: no bound
}

// DefaultMaxRequests is the default of [Options.MaxRequests].
const DefaultMaxRequests = 1000

// A Bridge handles the JSON-RPC messages of one session. It is safe for
// concurrent use. The caller of [New] closes it.
type Bridge struct {
	server         mcpserver.Provider
	opts           Options // Send recovers from panics
	log            *slog.Logger
	inFlight       *inFlight
	clientRequests *clientRequests
	subscriptions  *subscriptions
	opening        chan struct{} // holds one token: the right to open the session

	mu          sync.Mutex // guards the rest
	session     mcpserver.ServerSession
	closed      bool
	client      client
	initialized bool        // an initialize request has been seen
	v20260728   bool        // a request of 2026-07-28 has been seen
	listeners   []*listener // the oldest first
}

// A client is the description of the client in a handshake or in the _meta of a request.
type client struct {
	info    *mcp.Implementation
	caps    *mcp.ClientCapabilities
	version string
}

// New returns a bridge to server. It panics if server is nil or o.PageSize is
// negative. The session on a [*mcpserver.Server] opens at once, the session on
// any other server with the first message that needs it.
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
		server:        server,
		opts:          opts,
		log:           opts.Logger,
		inFlight:      newInFlight(opts.MaxRequests, opts.maxBytes),
		subscriptions: newSubscriptions(),
		opening:       make(chan struct{}, 1),
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if opts.Send != nil {
		b.opts.Send = func(ctx context.Context, raw json.RawMessage) (err error) {
			defer func() {
				if p := recover(); p != nil {
					b.log.Error("mcpbridge: Options.Send panicked", "panic", p, "stack", string(debug.Stack()))
					err = errors.New("mcpbridge: Options.Send panicked")
				}
			}()
			return opts.Send(ctx, raw)
		}
	}
	b.clientRequests = newClientRequests(b.opts.Send)
	b.opening <- struct{}{}
	if s, ok := server.(*mcpserver.Server); ok {
		b.session = s.NewSession(b.sessionOptions())
	}
	return b
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

// openSession returns the session. The first call opens it.
func (b *Bridge) openSession(ctx context.Context) (mcpserver.ServerSession, error) {
	if session, err := b.currentSession(); session != nil || err != nil {
		return session, err
	}
	select {
	case <-b.opening:
		defer func() { b.opening <- struct{}{} }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if session, err := b.currentSession(); session != nil || err != nil {
		return session, err // another request opened it meanwhile
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

func (b *Bridge) currentSession() (mcpserver.ServerSession, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, mcpserver.ErrClosed
	}
	return b.session, nil
}

// capabilities returns the capabilities that the server has now.
func (b *Bridge) capabilities() *mcp.ServerCapabilities {
	if caps := b.server.Capabilities(); caps != nil {
		return caps
	}
	return &mcp.ServerCapabilities{}
}

// Timeout returns the time limit of tool calls for tools that set none:
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

// Close ends the session. Requests in flight and later ones fail, and so do
// requests of the server to the client. Close returns within the time that
// [mcpserver.ServerSession.Close] takes. It may be called more than once and from
// any goroutine.
func (b *Bridge) Close() error {
	b.mu.Lock()
	session, closed := b.session, b.closed
	b.closed = true
	b.mu.Unlock()
	if closed {
		return nil
	}
	b.inFlight.close()
	b.clientRequests.close()
	if session == nil {
		return nil
	}
	return session.Close()
}
