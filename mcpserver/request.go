package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Request is what a handler can know about the call that it serves.
type Request struct {
	Kind           Kind
	Name           string
	SessionID      string
	RequestID      string
	ProgressToken  any
	Meta           mcp.Meta
	Client         *mcp.Implementation
	InputResponses mcp.InputResponseMap
	RequestState   string
}

// RequestFrom returns the request of the call that ctx belongs to. It is never nil.
func RequestFrom(ctx context.Context) *Request { return &Request{} }

// Dispatch returns the scheduling and middleware in force for the call.
func (r *Request) Dispatch() (Scheduling, Middleware) { return Concurrent, nil }

// Progress reports progress.
func (r *Request) Progress(ctx context.Context, done, total float64, msg string) error {
	return errTodo
}

// Log sends a log message to the client.
func (r *Request) Log(ctx context.Context, level mcp.LoggingLevel, logger string, data any) error {
	return errTodo
}

// Elicit asks the user.
func (r *Request) Elicit(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	return nil, errTodo
}

// Sample asks the client's model.
func (r *Request) Sample(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	return nil, errTodo
}

// ListRoots asks for the client's roots.
func (r *Request) ListRoots(ctx context.Context) ([]*mcp.Root, error) { return nil, errTodo }
