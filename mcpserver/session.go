package mcpserver

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// SessionOptions configures a session. The zero value and a nil pointer mean the defaults.
type SessionOptions struct {
	// ID is the session id that handlers see; it may be empty.
	ID string
	// Client describes the client, if known.
	Client *mcp.Implementation
	// Scheduling and Middleware apply to the session's calls, in place of the
	// server's. A session without a middleware has none.
	Scheduling Scheduling
	Middleware Middleware
	// Timeout is the time limit of calls of tools that set none. 0 means the
	// server's (see [Options.Timeout]).
	Timeout time.Duration
	// Notify receives the session's notifications; nil drops them. The handler's
	// goroutine calls it for progress and log messages. A goroutine of the session
	// calls it for all others, with a context that ends when the session is
	// closed. Equal list changes that happen while Notify runs become one.
	Notify func(ctx context.Context, n Notification)
	// Elicit, Sample and ListRoots send requests to the client while a call runs.
	// Nil means that the client does not support the request. A panic in them is
	// logged and becomes an error for the handler. The result of Elicit is checked
	// (see [Request.Elicit]).
	Elicit    func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error)
	Sample    func(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error)
	ListRoots func(ctx context.Context) ([]*mcp.Root, error)
	// LookupEnv looks up the environment variables that set the time limit if
	// neither the session nor the server does. Nil means the server's.
	LookupEnv func(name string) (string, bool)
	// OnFailure is called when a handler of the session panics or exceeds its time
	// limit, with the context of the request. The server also logs panics. It may
	// be called from several goroutines at a time and must not block.
	OnFailure func(ctx context.Context, f Failure)

	allUpdates bool // Notify receives updates of all resources
}

// A Failure is a handler that panicked or exceeded its time limit. Either Panic or
// Timeout is set.
type Failure struct {
	Kind Kind
	// Name is the name of the tool or prompt, or the URI.
	Name string
	// Panic is the value of the panic, Stack its stack trace.
	Panic any
	Stack string
	// Timeout is the time limit.
	Timeout time.Duration
}

// A Session is a session of one client with a [Server]. It is safe for concurrent
// use. The caller of [Server.NewSession] closes it.
type Session struct {
	server     *Server
	id         string
	client     *mcp.Implementation
	dispatch   *dispatch
	timeout    time.Duration
	onNotify   func(ctx context.Context, n Notification)
	elicit     func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error)
	sample     func(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error)
	listRoots  func(ctx context.Context) ([]*mcp.Root, error)
	onFailure  func(ctx context.Context, f Failure)
	lifetime   *lifetime
	allUpdates bool         // it receives updates of all resources
	level      atomic.Int32 // index into levels

	mu         sync.Mutex // guards the rest
	subscribed map[string]struct{}
	pending    []Notification // for onNotify, each different
	sending    bool
}

// NewSession opens a session. On a closed server it returns a closed one.
func (s *Server) NewSession(o *SessionOptions) *Session {
	var opts SessionOptions
	if o != nil {
		opts = *o
	}
	ss := &Session{
		server: s, id: opts.ID, client: opts.Client, dispatch: &dispatch{opts.Scheduling, opts.Middleware},
		onNotify: opts.Notify, elicit: opts.Elicit, sample: opts.Sample, listRoots: opts.ListRoots, onFailure: opts.OnFailure,
		lifetime: newLifetime(), allUpdates: opts.allUpdates, subscribed: map[string]struct{}{},
	}
	ss.lifetime.maxCalls = int64(s.opts.MaxCalls)
	ss.timeout = s.timeout
	if opts.LookupEnv != nil {
		ss.timeout = effectiveTimeout(s.opts.Timeout, envTimeout(opts.LookupEnv, s.warnEnv))
	}
	if opts.Timeout != 0 {
		ss.timeout = effectiveTimeout(opts.Timeout)
	}
	s.mu.Lock()
	s.sessions[ss] = struct{}{}
	s.mu.Unlock()
	if s.lifetime.isClosed() {
		ss.startClose()
	}
	return ss
}

// logger returns the server's logger with the session in each record.
func (ss *Session) logger() *slog.Logger {
	return ss.server.logger.With("server", ss.server.name, "session", ss.id)
}

// ID returns the session's id.
func (ss *Session) ID() string { return ss.id }

// Timeout returns the time limit in force for calls of tools that set none.
func (ss *Session) Timeout() time.Duration { return ss.timeout }

// Dispatch returns the scheduling and the middleware of the session's calls.
func (ss *Session) Dispatch() (Scheduling, Middleware) {
	return ss.dispatch.scheduling, ss.dispatch.middleware
}

// startClose ends the calls without waiting for them.
func (ss *Session) startClose() {
	ss.lifetime.startClose()
	ss.server.mu.Lock()
	delete(ss.server.sessions, ss)
	ss.server.mu.Unlock()
}

// Close ends the session: its calls end with [ErrClosed], the contexts of their
// handlers end, and no more notifications come. It waits for handlers for about a
// second and logs how many still run then.
func (ss *Session) Close() error {
	ss.startClose()
	if n := ss.lifetime.wait(closeGrace); n > 0 {
		ss.server.logger.Warn("handlers still run after their session was closed",
			"server", ss.server.name, "session", ss.id, "handlers", n)
	}
	return nil
}

// check returns an error if the session or ctx has ended.
func (ss *Session) check(ctx context.Context) error {
	if ss.lifetime.isClosed() {
		return fmt.Errorf("session on %q: %w", ss.server.name, ErrClosed)
	}
	return ctx.Err()
}

// ListTools returns the tools in the order of their registration. The caller
// must not modify them.
func (ss *Session) ListTools(ctx context.Context) ([]*mcp.Tool, error) {
	return ss.server.ListTools(), ss.check(ctx)
}

// ListResources returns the resources in the order of their registration. The
// caller must not modify them.
func (ss *Session) ListResources(ctx context.Context) ([]*mcp.Resource, error) {
	return ss.server.ListResources(), ss.check(ctx)
}

// ListResourceTemplates returns the resource templates in the order of their
// registration. The caller must not modify them.
func (ss *Session) ListResourceTemplates(ctx context.Context) ([]*mcp.ResourceTemplate, error) {
	return ss.server.ListResourceTemplates(), ss.check(ctx)
}

// ListPrompts returns the prompts in the order of their registration. The
// caller must not modify them.
func (ss *Session) ListPrompts(ctx context.Context) ([]*mcp.Prompt, error) {
	return ss.server.ListPrompts(), ss.check(ctx)
}

// SetLevel sets the least severe level of log messages that reach the client. At
// first all do.
func (ss *Session) SetLevel(ctx context.Context, level mcp.LoggingLevel) error {
	i := slices.Index(levels, level)
	if i < 0 {
		return fmt.Errorf("mcpserver: unknown logging level %q", level)
	}
	if err := ss.check(ctx); err != nil {
		return err
	}
	ss.level.Store(int32(i))
	return nil
}

// wants reports whether to send a log message of that level to the client.
func (ss *Session) wants(level mcp.LoggingLevel, meta mcp.Meta) bool {
	least := int(ss.level.Load())
	if name, ok := meta[metaLogLevel].(string); ok {
		if i := slices.Index(levels, mcp.LoggingLevel(name)); i >= 0 {
			least = i
		}
	}
	return slices.Index(levels, level) >= least
}

var (
	_ Provider      = (*Server)(nil)
	_ ServerSession = (*Session)(nil)
)
