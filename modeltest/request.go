package modeltest

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// A Request is a request to the model, decoded as far as possible: a refused one may lack fields.
// It must not be changed.
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
	number int // 1 for the model's first request
	marks  int // cache_control blocks
}

// A Message is a message of the conversation. Content that is a string is one text block.
type Message struct {
	Role    string // user, assistant or system
	Content []Content
}

// Content is a content block of a request. Fields of other types of blocks are zero.
type Content struct {
	Type      string
	Text      string          // text
	ID        string          // tool_use
	Name      string          // tool_use
	Input     json.RawMessage // tool_use
	ToolUseID string          // tool_result
	IsError   bool            // tool_result
	Content   []Content       // tool_result, search_result; a string is one text block
	ToolName  string          // tool_reference
	Thinking  string          // thinking
	Signature string          // thinking
	Raw       json.RawMessage // the whole block as it arrived
}

// A Tool is a tool definition in a request.
type Tool struct {
	Type         string // empty and custom are client tools; else one of the API's own
	Name         string
	Description  string
	InputSchema  json.RawMessage
	DeferLoading bool
	Raw          json.RawMessage // the whole definition as it arrived
}

// Context returns a context that ends when the client disconnects.
func (r *Request) Context() context.Context { return r.ctx }

// Number returns 1 for the first POST /v1/messages request to the model, 2 for the next, and so on.
func (r *Request) Number() int { return r.number }

// Field returns a top-level field of the body unchanged, nil if it is absent.
func (r *Request) Field(name string) json.RawMessage { return r.fields[name] }

// ToolNames returns the names of the tools in order.
func (r *Request) ToolNames() []string {
	names := make([]string, len(r.Tools))
	for i, t := range r.Tools {
		names[i] = t.Name
	}
	return names
}

// Tool returns the definition of the tool with the given name.
func (r *Request) Tool(name string) (Tool, bool) {
	if i := slices.IndexFunc(r.Tools, func(t Tool) bool { return t.Name == name }); i >= 0 {
		return r.Tools[i], true
	}
	return Tool{}, false
}

// SystemText returns the texts of the system prompt, joined by newlines.
func (r *Request) SystemText() string { return joinTexts(r.System) }

// LastUserText returns the texts of the last user message with text, joined by newlines, without
// those in tool results.
func (r *Request) LastUserText() string {
	for _, m := range slices.Backward(r.Messages) {
		if text := m.userText(); text != "" {
			return text
		}
	}
	return ""
}

// FirstUserText is LastUserText for the first user message with text. It identifies the
// conversation in most tests.
func (r *Request) FirstUserText() string {
	for _, m := range r.Messages {
		if text := m.userText(); text != "" {
			return text
		}
	}
	return ""
}

func (m Message) userText() string {
	if m.Role != "user" {
		return ""
	}
	return joinTexts(m.Content)
}

// ToolResults returns the tool results of the last user message in order.
func (r *Request) ToolResults() []Content {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "user" {
			return ofType(m.Content, "tool_result")
		}
	}
	return nil
}

// ToolResult returns the result of the call with the given ID from anywhere in the conversation.
func (r *Request) ToolResult(id string) (Content, bool) {
	for _, m := range r.Messages {
		for _, c := range m.Content {
			if c.Type == "tool_result" && c.ToolUseID == id {
				return c, true
			}
		}
	}
	return Content{}, false
}

// ToolUses returns all tool calls of the conversation in order.
func (r *Request) ToolUses() []Content {
	var uses []Content
	for _, m := range r.Messages {
		uses = append(uses, ofType(m.Content, "tool_use")...)
	}
	return uses
}

// Betas returns the values of the anthropic-beta headers.
func (r *Request) Betas() []string {
	var betas []string
	for _, line := range r.Header.Values("anthropic-beta") {
		for b := range strings.SplitSeq(line, ",") {
			if b = strings.TrimSpace(b); b != "" {
				betas = append(betas, b)
			}
		}
	}
	return betas
}

// PlainText returns the text of a text block, or the texts in a tool result, joined by newlines. It
// is empty for other blocks.
func (c Content) PlainText() string {
	if c.Type == "tool_result" {
		return joinTexts(c.Content)
	}
	return c.Text
}

func joinTexts(blocks []Content) string {
	var texts []string
	for _, c := range ofType(blocks, "text") {
		texts = append(texts, c.Text)
	}
	return strings.Join(texts, "\n")
}

func ofType(blocks []Content, typ string) []Content {
	var found []Content
	for i := range blocks {
		if blocks[i].Type == typ {
			found = append(found, blocks[i])
		}
	}
	return found
}

// toolChoice returns the type of the tool_choice, or "".
func (r *Request) toolChoice() string {
	var typ string
	if v := r.fields["tool_choice"]; v != nil && kindOf(v) == '{' {
		eachField(v, func(key string, v json.RawMessage) {
			if key == "type" && kindOf(v) == '"' {
				typ = unquote(v)
			}
		})
	}
	return typ
}
