package mcpserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// DefaultStateLifetime is the default of [Options.StateLifetime].
const DefaultStateLifetime = time.Hour

// DefaultMaxCalls is the default of [Options.MaxCalls].
const DefaultMaxCalls = 1000

// Options configures a server. The zero value and a nil pointer mean the defaults.
type Options struct {
	// Version is the server's version; "" means 1.0.0.
	Version string
	// Title is the name for people, Instructions the advice to the model.
	Title, Instructions string
	WebsiteURL          string
	Icons               []mcp.Icon
	// Logger records rejected registrations and handlers that panic or do not end.
	// If nil, nothing is logged.
	Logger *slog.Logger
	// Timeout is the time limit of each call of a handler. The first of these that
	// is set applies: [Tool.Timeout], [SessionOptions.Timeout], Timeout, the
	// environment variables CLAUDE_AGENT_TOOL_TIMEOUT (seconds, 1 to 300) and
	// MCP_TOOL_TIMEOUT (milliseconds), [DefaultTimeout]. [NoTimeout] means none.
	Timeout time.Duration
	// MaxCalls bounds the calls that run at a time in one session: of tools,
	// readers, prompts and Complete, including those whose caller no longer waits.
	// A further tool call is a result with IsError set, any other call an error
	// that wraps [ErrTooManyCalls]. Over HTTP it also bounds the calls of
	// one user (see [BearerAuth]). Direct calls are not bounded. Zero means
	// DefaultMaxCalls, a negative value no bound.
	MaxCalls int
	// Scheduling and Middleware apply to direct calls; see [Server.SetDispatch].
	Scheduling Scheduling
	Middleware Middleware
	// MaxSchemaDepth is the depth of arguments and results that validation
	// accepts; 0 means 50. A member or item of the whole value is one level deep.
	MaxSchemaDepth int
	// SkipValidation passes arguments to handlers unchecked and without defaults.
	// Results are still checked.
	SkipValidation bool
	// SkipDirectValidation does so for direct calls alone ([Server.CallTool], also
	// by handlers).
	SkipDirectValidation bool
	// HasResources and HasPrompts announce the capability before there is a
	// resource or prompt.
	HasResources, HasPrompts bool
	// Complete suggests values for arguments of prompts and resource templates.
	// If it is nil or returns nil, the enums of typed prompts are suggested.
	Complete func(ctx context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error)
	// Subscribe and Unsubscribe are called when a session subscribes to a resource
	// and when it unsubscribes. An error of Subscribe refuses the subscription.
	Subscribe, Unsubscribe func(ctx context.Context, uri string) error
	// StateKey seals the state that clients keep between calls of a handler that
	// asks for input (protocol 2026-07-28). Processes that serve one address need
	// the same key. Nil means a random one.
	StateKey []byte
	// StateLifetime is the time that a client has to answer. Afterwards the state
	// is refused. Zero means DefaultStateLifetime, a negative value no limit.
	StateLifetime time.Duration
	// LookupEnv looks up environment variables; nil means [os.LookupEnv].
	LookupEnv func(name string) (string, bool)
}

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.Version == "" {
		opts.Version = "1.0.0"
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.LookupEnv == nil {
		opts.LookupEnv = os.LookupEnv
	}
	if opts.MaxCalls == 0 {
		opts.MaxCalls = DefaultMaxCalls
	}
	if opts.StateLifetime == 0 {
		opts.StateLifetime = DefaultStateLifetime
	}
	opts.Icons = slices.Clone(opts.Icons)
	opts.StateKey = slices.Clone(opts.StateKey)
	return opts
}

// A Server is an MCP server in this process: a set of tools, resources and prompts,
// which may be added and removed at any time. It serves any number of sessions at
// once, and direct calls. It is safe for concurrent use.
type Server struct {
	name     string
	opts     Options
	info     *mcp.Implementation
	logger   *slog.Logger
	timeout  time.Duration // of direct calls
	stateKey func() []byte
	serial   serialQueue
	schemas  schemaCache
	lifetime *lifetime // of the server and its direct calls
	library  func() *adapter

	dispatch atomic.Pointer[dispatch]
	snapshot atomic.Pointer[registry] // nil after a change

	mu       sync.Mutex // guards the rest
	features features
	rejected []Rejection
	sessions map[*Session]struct{}
}

// New returns a server without tools, resources and prompts. It panics if name is empty.
func New(name string, o *Options) *Server {
	if name == "" {
		panic("mcpserver: New: the server has no name")
	}
	opts := o.withDefaults()
	s := &Server{
		name: name, opts: opts, logger: opts.Logger, lifetime: newLifetime(), sessions: map[*Session]struct{}{},
		info: &mcp.Implementation{Name: name, Title: opts.Title, Version: opts.Version, WebsiteURL: opts.WebsiteURL, Icons: opts.Icons},
	}
	s.timeout = effectiveTimeout(opts.Timeout, envTimeout(opts.LookupEnv, s.warnEnv))
	s.stateKey = sync.OnceValue(func() []byte {
		if opts.StateKey != nil {
			return opts.StateKey
		}
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		return key
	})
	s.features.init()
	s.library = sync.OnceValue(func() *adapter { return newAdapter(s) })
	s.SetDispatch(opts.Scheduling, opts.Middleware)
	return s
}

func (s *Server) warnEnv(name, value string) {
	s.logger.Warn("ignoring an environment variable that is not a usable number", "server", s.name, "variable", name, "value", value)
}

// Name returns the server's name.
func (s *Server) Name() string { return s.name }

// Version returns the server's version.
func (s *Server) Version() string { return s.info.Version }

// Info describes the server. The caller must not modify it.
func (s *Server) Info() *mcp.Implementation { return s.info }

// Logger returns the server's logger, which is never nil.
func (s *Server) Logger() *slog.Logger { return s.logger }

// Instructions returns the server's advice to the model.
func (s *Server) Instructions() string { return s.opts.Instructions }

// Timeout returns the time limit in force for direct calls of tools that set none.
func (s *Server) Timeout() time.Duration { return s.timeout }

// Capabilities returns the capabilities that the server has now, which always
// include tools and logging. The caller owns them.
func (s *Server) Capabilities() *mcp.ServerCapabilities {
	reg := s.registry()
	c := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}, Logging: &mcp.LoggingCapabilities{}}
	if s.opts.HasResources || len(reg.resources)+len(reg.templates) > 0 {
		c.Resources = &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true}
	}
	if s.opts.HasPrompts || len(reg.prompts) > 0 {
		c.Prompts = &mcp.PromptCapabilities{ListChanged: true}
	}
	if s.opts.Complete != nil || reg.completes {
		c.Completions = &mcp.CompletionCapabilities{}
	}
	return c
}

// OpenSession is [Server.NewSession] for [Provider]. On a closed server it returns
// [ErrClosed].
func (s *Server) OpenSession(_ context.Context, o *SessionOptions) (ServerSession, error) {
	if s.lifetime.isClosed() {
		return nil, fmt.Errorf("opening a session on %q: %w", s.name, ErrClosed)
	}
	return s.NewSession(o), nil
}

// Close ends all sessions and direct calls and accepts no more. It waits for
// handlers for about a second and logs how many still run then. It may be called
// more than once.
func (s *Server) Close() error {
	s.lifetime.startClose()
	s.mu.Lock()
	lifetimes := []*lifetime{s.lifetime}
	open := make([]*Session, 0, len(s.sessions))
	for ss := range s.sessions {
		open, lifetimes = append(open, ss), append(lifetimes, ss.lifetime)
	}
	s.mu.Unlock()
	for _, ss := range open {
		ss.startClose()
	}
	var n int64
	deadline := time.Now().Add(closeGrace)
	for _, l := range lifetimes {
		n += l.wait(max(0, time.Until(deadline)))
	}
	if n > 0 {
		s.logger.Warn("handlers still run after the server was closed", "server", s.name, "handlers", n)
	}
	return nil
}

// A Rejection is a registration that was rejected.
type Rejection struct {
	Kind Kind
	// Name is the name of the tool or prompt, the URI, or the URI template.
	Name string
	Err  error
}

// maxRejected is the number of rejections that a server keeps.
const maxRejected = 1000

// Rejected returns the rejected registrations, the oldest first, at most the first
// thousand.
func (s *Server) Rejected() []Rejection {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rejected)
}

// reject logs a registration, adds it to Rejected and returns its error.
func (s *Server) reject(kind Kind, name string, err error) error {
	err = fmt.Errorf("mcpserver: %s %q on server %q was left out: %w", kind, name, s.name, err)
	s.mu.Lock()
	if len(s.rejected) < maxRejected {
		s.rejected = append(s.rejected, Rejection{kind, name, err})
	}
	s.mu.Unlock()
	text, attrs := string(kind)+" left out", []any{"server", s.name, "name", name, "error", err}
	if in := (*inputSchemaError)(nil); errors.As(err, &in) {
		text, attrs = in.warning(s.name, name), append(attrs, "code", codeUnconvertible)
	}
	s.logger.Warn(text, attrs...)
	return err
}

// codeUnconvertible is the code of the warning about a tool whose input schema
// cannot be used. Other agent SDKs use the same.
const codeUnconvertible = "CLAUDE_SDK_MCP_TOOL_SCHEMA_UNCONVERTIBLE"

// An inputSchemaError is an error in the input schema of a tool, or in the Go type
// that it is derived from.
type inputSchemaError struct{ err error }

func (e *inputSchemaError) Error() string { return e.err.Error() }

func (e *inputSchemaError) Unwrap() error { return e.err }

// warning returns the text that names the tool, the reason, and what to check.
func (e *inputSchemaError) warning(server, tool string) string {
	return fmt.Sprintf("Tool %q on SDK MCP server %q was left out of the server's tool list, because its input schema cannot be converted to JSON Schema: %v. "+
		"Check that it is a JSON object of type \"object\" in draft 2020-12, 2019-09 or draft-07, that its references lead to definitions of its own, "+
		"and, if it is made from a Go type, that every field has a JSON form.", tool, server, e.err)
}

// Dispatch returns the scheduling and the middleware of direct calls. Each session
// has its own.
func (s *Server) Dispatch() (Scheduling, Middleware) {
	d := s.dispatch.Load()
	return d.scheduling, d.middleware
}

// SetDispatch sets the scheduling and the middleware of later direct calls; a nil m
// means no middleware. Running calls and sessions keep theirs.
func (s *Server) SetDispatch(sc Scheduling, m Middleware) {
	s.dispatch.Store(&dispatch{sc, m})
}
