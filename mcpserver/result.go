package mcpserver

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Result is what a tool call came to.
type Result struct {
	Content           []mcp.Content
	StructuredContent json.RawMessage
	IsError           bool
	Meta              mcp.Meta
	// Extra keeps keys that a raw handler returned and the protocol does not know.
	Extra map[string]json.RawMessage
	// InputRequests asks the client for input before the call can go on
	// (protocol 2026-07-28); the result then has no content.
	InputRequests mcp.InputRequestMap
	RequestState  string

	notFound bool
}

// MarshalJSON writes the result as the protocol does.
func (r *Result) MarshalJSON() ([]byte, error) { return nil, errTodo }

// UnmarshalJSON reads a result of the protocol.
func (r *Result) UnmarshalJSON(data []byte) error { return errTodo }

// Text returns the text blocks joined by newlines.
func (r *Result) Text() string { return "" }

// ToolNotFound reports that the result says that the server has no such tool.
func (r *Result) ToolNotFound() bool { return r.notFound }

// AsError marks the result as an error and returns it.
func (r *Result) AsError() *Result { r.IsError = true; return r }

// MediaOptions are the options of [Image] and [Audio].
type MediaOptions struct {
	MIMEType    string
	Annotations *mcp.Annotations
	Meta        mcp.Meta
}

// LinkOptions are the options of [ResourceLink].
type LinkOptions struct {
	Name        string
	Title       string
	Description string
	MIMEType    string
	Size        *int64
	Annotations *mcp.Annotations
	Icons       []mcp.Icon
	Meta        mcp.Meta
}

// Text is a result with one text block.
func Text(s string) *Result { return nil }

// Errorf is an error result with one text block.
func Errorf(format string, args ...any) *Result { return nil }

// Image is a result with one image.
func Image(data []byte, o *MediaOptions) *Result { return nil }

// Audio is a result with one audio block.
func Audio(data []byte, o *MediaOptions) *Result { return nil }

// ResourceLink is a result with one link.
func ResourceLink(uri string, o *LinkOptions) *Result { return nil }

// Embedded is a result with one embedded resource.
func Embedded(r *mcp.ResourceContents) *Result { return nil }

// Structured is a result with structured content.
func Structured(v any) *Result { return nil }

// Mixed is a result with any blocks.
func Mixed(blocks ...mcp.Content) *Result { return nil }

// FromLibraryResult converts a result of the official library.
func FromLibraryResult(r *mcp.CallToolResult) *Result { return nil }

// Library converts the result to the official library's.
func (r *Result) Library() *mcp.CallToolResult { return nil }
