package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Scheduling selects the goroutine in which handlers run.
type Scheduling int

const (
	// Concurrent runs each handler on a goroutine of its own. The caller waits
	// until the handler returns, its own context ends or the time limit passes.
	Concurrent Scheduling = iota
	// Inline runs each handler in the calling goroutine. A handler that ignores
	// its context then delays its caller.
	Inline
)

func (s Scheduling) String() string {
	if s == Inline {
		return "inline"
	}
	return "concurrent"
}

// A Middleware wraps each call of a tool handler, resource reader, prompt handler
// and [Options.Complete]. It runs in the handler's goroutine, after the arguments
// are checked and before the result is. It calls next at most once, with a context
// derived from its own, and next returns the handler's error. The middleware's
// error replaces the handler's, and a panic in it is treated like the handler's.
type Middleware func(ctx context.Context, inv *Invocation, next func(context.Context) error) error

// An Invocation describes the call that a [Middleware] wraps.
type Invocation struct {
	Kind Kind
	// Name is the name of the tool or prompt, or the URI of the resource.
	Name string
	// Arguments is a tool's arguments. Changing them has no effect.
	Arguments json.RawMessage
	// Result is a tool's result after next has returned without an error. The
	// middleware may replace it, but must not modify it.
	Result *Result
}

// A dispatch says how handlers run. It is immutable: readers get its two fields
// together.
type dispatch struct {
	scheduling Scheduling
	middleware Middleware
}

// A RawHandler runs a tool with its arguments as JSON. The context ends when the
// caller's does, at the time limit, and when the session is closed; the handler
// must return then. [RequestFrom] describes the call. The text of an error becomes
// a result for the model.
type RawHandler func(ctx context.Context, args json.RawMessage) (*Result, error)

// A RawJSONHandler is a [RawHandler] that returns the result as the protocol's
// JSON: an object with a content array. Unknown members are kept.
type RawJSONHandler func(ctx context.Context, args json.RawMessage) (json.RawMessage, error)

// A ResourceReader reads one resource. Its error reaches the caller unchanged; a
// result without contents is an error. The context is as in [RawHandler].
type ResourceReader func(ctx context.Context) (*mcp.ReadResourceResult, error)

// A TemplateReader reads a resource whose URI matches a template. The variables are
// percent-decoded. If there is no such resource it returns a [*NotFoundError].
type TemplateReader func(ctx context.Context, uri string, vars map[string]string) (*mcp.ReadResourceResult, error)

// A PromptHandler returns a prompt for its arguments, which are never nil. Its
// error reaches the caller unchanged; a result without messages is an error. The
// context is as in [RawHandler].
type PromptHandler func(ctx context.Context, args map[string]string) (*mcp.GetPromptResult, error)

// Concurrency selects which calls of a tool may run at the same time.
type Concurrency int

const (
	// ByAnnotation is the default: a host runs calls of read-only tools in parallel
	// and the other calls of a conversation in the order of the model. The server
	// delays none of them.
	ByAnnotation Concurrency = iota
	// Parallel lets a host run calls in parallel, read-only or not.
	Parallel
	// Serial runs one call at a time of all Serial tools of the server, over all
	// sessions, in the order of arrival. The time limit begins with the handler.
	// A Serial handler may call other tools of its server.
	Serial
)

func (c Concurrency) String() string {
	switch c {
	case Parallel:
		return "parallel"
	case Serial:
		return "serial"
	}
	return "by annotation"
}
