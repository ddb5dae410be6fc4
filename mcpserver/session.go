package mcpserver

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// SessionOptions configures a session. The zero value, like a nil pointer, means the defaults.
type SessionOptions struct {
	ID         string
	Client     *mcp.Implementation
	Scheduling Scheduling
	Middleware Middleware
	Timeout    time.Duration
	// Notify receives the session's notifications; nil drops them.
	Notify    func(ctx context.Context, n Notification)
	Elicit    func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error)
	Sample    func(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error)
	ListRoots func(ctx context.Context) ([]*mcp.Root, error)
	// LookupEnv overrides [Options.LookupEnv] for this session.
	LookupEnv func(name string) (string, bool)
}

// A Session is one client's conversation with a [Server].
type Session struct{}

// NewSession starts a session.
func (s *Server) NewSession(o *SessionOptions) *Session { return &Session{} }

// ID returns the session's id.
func (ss *Session) ID() string { return "" }

// Timeout is the time limit of this session's calls in force, tools' own limits aside.
func (ss *Session) Timeout() time.Duration { return 0 }

// ListTools returns the tools.
func (ss *Session) ListTools(ctx context.Context) ([]*mcp.Tool, error) { return nil, errTodo }

// CallTool calls a tool.
func (ss *Session) CallTool(ctx context.Context, c Call) (*Result, error) { return nil, errTodo }

// ListResources returns the resources.
func (ss *Session) ListResources(ctx context.Context) ([]*mcp.Resource, error) { return nil, errTodo }

// ListResourceTemplates returns the resource templates.
func (ss *Session) ListResourceTemplates(ctx context.Context) ([]*mcp.ResourceTemplate, error) {
	return nil, errTodo
}

// ReadResource reads a resource.
func (ss *Session) ReadResource(ctx context.Context, uri string) (*mcp.ReadResourceResult, error) {
	return nil, errTodo
}

// Subscribe subscribes to updates of a resource.
func (ss *Session) Subscribe(ctx context.Context, uri string) error { return errTodo }

// Unsubscribe ends a subscription.
func (ss *Session) Unsubscribe(ctx context.Context, uri string) error { return errTodo }

// ListPrompts returns the prompts.
func (ss *Session) ListPrompts(ctx context.Context) ([]*mcp.Prompt, error) { return nil, errTodo }

// GetPrompt makes a prompt.
func (ss *Session) GetPrompt(ctx context.Context, name string, args map[string]string) (*mcp.GetPromptResult, error) {
	return nil, errTodo
}

// Complete completes an argument.
func (ss *Session) Complete(ctx context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	return nil, errTodo
}

// SetLevel sets the least severe level of log messages.
func (ss *Session) SetLevel(ctx context.Context, level mcp.LoggingLevel) error { return errTodo }

// Close ends the session.
func (ss *Session) Close() error { return nil }
