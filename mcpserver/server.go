package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var errTodo = errors.New("not implemented yet")

// NoTimeout says that calls have no time limit. The zero value of a time limit
// means the default instead.
const NoTimeout time.Duration = -1

// ErrClosed reports that a server or session was closed.
var ErrClosed = errors.New("mcpserver: closed")

// Options configures a server. The zero value, like a nil pointer, means the defaults.
type Options struct {
	Version        string
	Title          string
	Instructions   string
	WebsiteURL     string
	Icons          []mcp.Icon
	Logger         *slog.Logger
	Timeout        time.Duration
	Scheduling     Scheduling
	Middleware     Middleware
	MaxSchemaDepth int
	SkipValidation bool
	HasResources   bool
	HasPrompts     bool
	Complete       func(ctx context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error)
	Subscribe      func(ctx context.Context, uri string) error
	Unsubscribe    func(ctx context.Context, uri string) error
	LookupEnv      func(name string) (string, bool)
}

// A Server is an MCP server in this process.
type Server struct{ name string }

// New returns a server without tools, resources and prompts. It panics when name is empty.
func New(name string, o *Options) *Server { return &Server{name: name} }

// Name returns the server's name.
func (s *Server) Name() string { return s.name }

// Version returns the server's version.
func (s *Server) Version() string { return "" }

// Info describes the server as the protocol does.
func (s *Server) Info() *mcp.Implementation { return &mcp.Implementation{Name: s.name} }

// Instructions returns the server's advice to the model.
func (s *Server) Instructions() string { return "" }

// Capabilities is what the server offers now.
func (s *Server) Capabilities() *mcp.ServerCapabilities { return &mcp.ServerCapabilities{} }

// Timeout is the time limit of calls in force, tools' own limits aside.
func (s *Server) Timeout() time.Duration { return 0 }

// ListTools returns the tools in the order of their registration.
func (s *Server) ListTools() []*mcp.Tool { return nil }

// CallTool calls a tool.
func (s *Server) CallTool(ctx context.Context, name string, args json.RawMessage) (*Result, error) {
	return nil, errTodo
}

// ListResources returns the resources.
func (s *Server) ListResources() []*mcp.Resource { return nil }

// ListResourceTemplates returns the resource templates.
func (s *Server) ListResourceTemplates() []*mcp.ResourceTemplate { return nil }

// ReadResource reads a resource.
func (s *Server) ReadResource(ctx context.Context, uri string) (*mcp.ReadResourceResult, error) {
	return nil, errTodo
}

// ListPrompts returns the prompts.
func (s *Server) ListPrompts() []*mcp.Prompt { return nil }

// GetPrompt makes a prompt.
func (s *Server) GetPrompt(ctx context.Context, name string, args map[string]string) (*mcp.GetPromptResult, error) {
	return nil, errTodo
}

// Complete completes an argument.
func (s *Server) Complete(ctx context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	return nil, errTodo
}

// OpenSession is [Server.NewSession] as [Provider] wants it.
func (s *Server) OpenSession(ctx context.Context, o *SessionOptions) (ServerSession, error) {
	return s.NewSession(o), nil
}

// Close ends all sessions.
func (s *Server) Close() error { return nil }

// Kind says what a registration is about.
type Kind string

// The kinds of registrations.
const (
	KindTool             Kind = "tool"
	KindResource         Kind = "resource"
	KindResourceTemplate Kind = "resource template"
	KindPrompt           Kind = "prompt"
)

// A Rejection is a registration that was left out.
type Rejection struct {
	Kind Kind
	Name string
	Err  error
}

// Rejected lists the registrations that were left out.
func (s *Server) Rejected() []Rejection { return nil }

// A NotFoundError reports an unknown resource or prompt.
type NotFoundError struct {
	Kind Kind
	Name string
}

func (e *NotFoundError) Error() string { return "" }
