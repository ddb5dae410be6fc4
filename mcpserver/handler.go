package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Scheduling says where a handler runs.
type Scheduling int

const (
	// Concurrent runs each handler on a goroutine of its own. The caller waits
	// for it, but no longer than for its own context and the time limit.
	Concurrent Scheduling = iota
	// Inline runs each handler in the calling goroutine. A handler that
	// ignores its context then holds up its caller.
	Inline
)

func (s Scheduling) String() string {
	if s == Inline {
		return "inline"
	}
	return "concurrent"
}

// A Middleware wraps each call of a tool handler, resource reader, prompt
// handler and [Options.Complete]. It runs where they run, after arguments were checked and
// before the result is. It calls next at most once, with a context that comes
// from its own; next returns the handler's error. What the middleware returns
// counts as the handler's error, and a panic in it is contained like the handler's.
type Middleware func(ctx context.Context, inv *Invocation, next func(context.Context) error) error

// An Invocation is what a [Middleware] wraps.
type Invocation struct {
	Kind Kind
	// Name is the name of the tool or prompt, or the URI of the resource.
	Name string
	// Arguments is a tool's arguments. Changing them has no effect.
	Arguments json.RawMessage
	// Result is a tool's result once next has returned without an error. The
	// middleware may replace it, but not modify it.
	Result *Result
}

// A dispatch is the pair that governs how handlers run. It is immutable, so
// that who reads it never gets one half of each of two.
type dispatch struct {
	scheduling Scheduling
	middleware Middleware
}

// A RawHandler runs a tool on its arguments as they came. The context is the
// call's: it ends when the caller gives up, at the time limit, and when the
// session is closed, and the handler then has to return. [RequestFrom] knows
// more about the call. An error is a result for the model: its text, and nothing else.
type RawHandler func(ctx context.Context, args json.RawMessage) (*Result, error)

// A RawJSONHandler is a [RawHandler] that returns the result as the protocol's
// JSON: an object with a content array. Keys that the protocol does not know stay.
type RawJSONHandler func(ctx context.Context, args json.RawMessage) (json.RawMessage, error)

// A ResourceReader reads one resource. Its error reaches the reader of the
// resource unchanged; a result without contents is an error. What [RawHandler]
// says about the context holds here too.
type ResourceReader func(ctx context.Context) (*mcp.ReadResourceResult, error)

// A TemplateReader reads a resource whose URI matches a template. The variables
// are those of the template, percent-decoded. A reader that knows no such
// resource returns a [*NotFoundError].
type TemplateReader func(ctx context.Context, uri string, vars map[string]string) (*mcp.ReadResourceResult, error)

// A PromptHandler makes a prompt of its arguments, which are never nil. Its
// error reaches the caller unchanged; a result without messages is an error.
// What [RawHandler] says about the context holds here too.
type PromptHandler func(ctx context.Context, args map[string]string) (*mcp.GetPromptResult, error)

// Concurrency says which calls of a tool may run at the same time.
type Concurrency int

const (
	// ByAnnotation is the default: a host runs the calls of read-only tools in
	// parallel and all others of one conversation in the order in which the
	// model asked. The server itself holds up none of them.
	ByAnnotation Concurrency = iota
	// Parallel lets a host run calls in parallel, read-only or not.
	Parallel
	// Serial lets one call at a time run among all Serial tools of the server,
	// over all sessions, in the order of arrival. The server sees to it. The
	// time limit counts from when the handler starts. A Serial handler may
	// call other tools of its server.
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
