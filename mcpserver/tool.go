package mcpserver

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Concurrency says which calls of a tool may run at the same time.
type Concurrency int

const (
	// ByAnnotation lets read-only tools run in parallel; hosts run all others in order.
	ByAnnotation Concurrency = iota
	// Parallel lets calls run in parallel.
	Parallel
	// Serial runs one call at a time among all Serial tools of the server, over all sessions.
	Serial
)

// The keys under which a tool's _meta carries what the protocol has no field for.
const (
	MetaSearchHint    = "anthropic/searchHint"         // string
	MetaAlwaysLoad    = "anthropic/alwaysLoad"         // boolean
	MetaMaxResultSize = "anthropic/maxResultSizeChars" // integer
	MetaConcurrency   = "tenon/concurrency"            // "parallel" or "serial"; absent for ByAnnotation
)

// A Tool describes a tool.
type Tool struct {
	Name           string
	Title          string
	Description    string
	InputSchema    json.RawMessage
	OutputSchema   json.RawMessage
	ReadOnly       bool
	Idempotent     bool
	Destructive    *bool
	OpenWorld      *bool
	Icons          []mcp.Icon
	Meta           mcp.Meta
	SearchHint     string
	AlwaysLoad     *bool
	MaxResultSize  int
	Timeout        time.Duration
	Concurrency    Concurrency
	MaxSchemaDepth int
}

// A RawHandler runs a tool on arguments as they came.
type RawHandler func(ctx context.Context, args json.RawMessage) (*Result, error)

// A RawJSONHandler runs a tool and returns the result as the protocol's JSON.
type RawJSONHandler func(ctx context.Context, args json.RawMessage) (json.RawMessage, error)

// AddTool adds a tool with typed arguments and results.
func AddTool[In, Out any](s *Server, t *Tool, h func(ctx context.Context, in In) (Out, error)) error {
	return errTodo
}

// MustAddTool is [AddTool], but panics on an error.
func MustAddTool[In, Out any](s *Server, t *Tool, h func(ctx context.Context, in In) (Out, error)) {
	if err := AddTool(s, t, h); err != nil {
		panic(err)
	}
}

// AddTool adds a tool with a raw handler.
func (s *Server) AddTool(t *Tool, h RawHandler) error { return errTodo }

// AddRawTool adds a tool whose handler returns the result as JSON.
func (s *Server) AddRawTool(t *Tool, h RawJSONHandler) error { return errTodo }

// RemoveTool removes tools.
func (s *Server) RemoveTool(names ...string) {}

// ToolTimeout is the time limit in force for calls of one tool.
func (s *Server) ToolTimeout(name string) time.Duration { return 0 }

// ValidateInput checks arguments against a tool's input schema.
func (s *Server) ValidateInput(tool string, args json.RawMessage) error { return errTodo }

// ValidateOutput checks structured content against a tool's output schema.
func (s *Server) ValidateOutput(tool string, data json.RawMessage) error { return errTodo }
