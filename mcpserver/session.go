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

// SessionOptions configures a session. The zero value, like a nil pointer, means the defaults.
type SessionOptions struct {
	// ID is what handlers see as the session's id; it may be empty.
	ID string
	// Client describes the client, as far as it is known.
	Client *mcp.Implementation
	// Scheduling and Middleware govern the session's calls. They replace the
	// server's pair as a whole: a session without a middleware has none.
	Scheduling Scheduling
	Middleware Middleware
	// Timeout is the time limit of calls of tools that set none. 0 means that
	// of the server (see [Options.Timeout]).
	Timeout time.Duration
	// Notify receives the session's notifications; nil drops them. Progress and
	// log messages come from the handler's goroutine, which waits for Notify.
	// All others come from a goroutine of the session, with a context that ends
	// when the session is closed; list changes that happen while Notify runs
	// become one.
	Notify func(ctx context.Context, n Notification)
	// Elicit, Sample and ListRoots ask the client while a call runs; nil means
	// that it cannot be asked. A panic in them is logged and an error for the
	// handler. What Elicit returns is checked (see [Request.Elicit]).
	Elicit    func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error)
	Sample    func(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error)
	ListRoots func(ctx context.Context) ([]*mcp.Root, error)
	// LookupEnv looks up the environment variables that set the time limit
	// where neither this session nor the server does; nil means the server's.
	LookupEnv func(name string) (string, bool)
	// OnFailure hears of handlers of the session that panicked or ran over their
	// time limit, with the context of the request; nil hears nothing. The server's
	// logger has the panics as well. It may be called from several goroutines at
	// the same time and must not block.
	OnFailure func(ctx context.Context, f Failure)

	allUpdates bool // Notify hears of updates of all resources
}

// A Failure is a handler that panicked or ran over its time limit. Either Panic or
// Timeout is set.
type Failure struct {
	Kind Kind
	// Name is that of the tool or prompt, or the URI.
	Name string
	// Panic is the value of a panic, Stack where it happened.
	Panic any
	Stack string
	// Timeout is the limit that passed.
	Timeout time.Duration
}

// A Session is one client's conversation with a [Server]. It is safe for
// concurrent use. Who opens it closes it; until then the server holds it.
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
	allUpdates bool         // it hears of updates of all resources
	level      atomic.Int32 // index into levels

	mu         sync.Mutex // guards the rest
	subscribed map[string]struct{}
	pending    []Notification // for the sink, each different
	sending    bool
}

// NewSession starts a session. On a closed server it is closed already.
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

// logger is the server's, with what tells the session.
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
// handlers end, and no more notifications come. It waits for handlers to end,
// but not much longer than a second; those that still run are logged.
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

// SetLevel sets the least severe level of log messages that reach the client.
// At first all do.
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

// wants reports whether a log message of that level goes to the client.
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
