package modeltest

import (
	"context"
	"encoding/json"
	"net/http"
)

// A Request is one request that the model was sent, decoded as far as it could
// be. It must not be changed.
type Request struct {
	Method string
	Path   string
	Header http.Header
	Body   []byte // as it arrived

	Model     string
	MaxTokens int
	Stream    bool
	System    []Content // a string is one text block
	Messages  []Message
	Tools     []Tool

	ctx    context.Context
	fields map[string]json.RawMessage
}

// A Message is one message of the conversation. A string is one text block.
type Message struct {
	Role    string
	Content []Content
}

// Content is a content block of a request.
type Content struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	ToolName  string          `json:"tool_name"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Content   []Content       `json:"-"` // of a tool_result; a string is one text block
	Raw       json.RawMessage `json:"-"` // the whole block as it arrived
}

// A Tool is a tool definition of a request.
type Tool struct {
	Type         string          `json:"type"`
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	DeferLoading bool            `json:"defer_loading"`
	Raw          json.RawMessage `json:"-"` // the whole definition as it arrived
}

// Context ends when the client has gone.
func (r *Request) Context() context.Context { return r.ctx }

// Field returns a top-level field of the body as it arrived, nil if it is absent.
func (r *Request) Field(name string) json.RawMessage { return r.fields[name] }

// ToolNames returns the names of the tools, in the order of the request.
func (r *Request) ToolNames() []string { return nil }

// Tool returns the definition of the tool with this name.
func (r *Request) Tool(name string) (Tool, bool) { return Tool{}, false }

// SystemText returns the system prompt's texts, joined by newlines.
func (r *Request) SystemText() string { return "" }

// LastUserText returns the texts of the last user message that has any, joined
// by newlines. Texts inside tool results don't count.
func (r *Request) LastUserText() string { return "" }

// FirstUserText is LastUserText of the first user message that has any: what
// tells one conversation from another in most tests.
func (r *Request) FirstUserText() string { return "" }

// ToolResults returns the tool results of the last message, in its order.
func (r *Request) ToolResults() []Content { return nil }

// ToolResult returns the result of the call with this id, from anywhere in the
// conversation.
func (r *Request) ToolResult(id string) (Content, bool) { return Content{}, false }

// ToolUses returns all tool calls of the conversation, in its order.
func (r *Request) ToolUses() []Content { return nil }

// Betas returns the values of the anthropic-beta headers.
func (r *Request) Betas() []string { return nil }

// PlainText returns the block's text; for a tool result, the texts in it joined
// by newlines.
func (c Content) PlainText() string { return c.Text }
