package mcpserver

import (
	"context"
	"encoding/json"
)

// Scheduling says where a handler runs.
type Scheduling int

const (
	// Concurrent runs each handler on a goroutine of its own.
	Concurrent Scheduling = iota
	// Inline runs each handler in the calling goroutine.
	Inline
)

// A Middleware wraps each call of a tool handler, resource reader and prompt generator.
type Middleware func(ctx context.Context, inv *Invocation, next func(context.Context) error) error

// An Invocation is what a [Middleware] wraps.
type Invocation struct {
	Kind      Kind
	Name      string          // tool or prompt name, or URI
	Arguments json.RawMessage // of a tool
	Result    *Result         // of a tool, once next has returned
}

// Dispatch returns the scheduling and middleware of direct calls.
func (s *Server) Dispatch() (Scheduling, Middleware) { return Concurrent, nil }

// SetDispatch replaces scheduling and middleware of later direct calls.
func (s *Server) SetDispatch(sc Scheduling, m Middleware) {}
