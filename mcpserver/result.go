package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/goschema"
)

// A Result is what a tool call came to. A failure of the tool is a Result with
// IsError set, which the model reads and can correct itself from.
//
// A handler that returns a Result gives it away: it must not change it later.
// It may return the same one many times.
type Result struct {
	// Content is what the model reads. A nil block is an error.
	Content []mcp.Content
	// StructuredContent is the result as data, shaped by the tool's output schema; nil means none.
	StructuredContent json.RawMessage
	// IsError says that the call failed.
	IsError bool
	// Meta is the result's _meta.
	Meta mcp.Meta
	// Extra keeps keys that a raw handler returned and that the protocol does not know.
	Extra map[string]json.RawMessage
	// InputRequests asks the client for input, by keys that the handler
	// chooses; the result then has no content. When the answers are there the
	// handler is called again and finds them, and RequestState, in its [Request].
	InputRequests mcp.InputRequestMap
	RequestState  string

	notFound bool
}

// Text returns the text blocks joined by newlines.
func (r *Result) Text() string {
	var texts []string
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok && t != nil {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// ToolNotFound reports whether the result says that the server has no such tool.
// It is lost when a result is encoded.
func (r *Result) ToolNotFound() bool { return r.notFound }

// AsError returns the result marked as an error.
func (r *Result) AsError() *Result {
	c := *r
	c.IsError = true
	return &c
}

// MediaOptions are the options of [Image] and [Audio]. Nil means the defaults.
type MediaOptions struct {
	MIMEType    string // "" means image/png or audio/wav
	Annotations *mcp.Annotations
	Meta        mcp.Meta
}

// LinkOptions are the options of [ResourceLink]. Nil means the defaults.
type LinkOptions struct {
	Name        string // "" means the URI
	Title       string
	Description string
	MIMEType    string // "" means text/plain
	Size        *int64 // bytes
	Annotations *mcp.Annotations
	Icons       []mcp.Icon
	Meta        mcp.Meta
}

// Text returns a result with one text block.
func Text(s string) *Result { return Mixed(&mcp.TextContent{Text: s}) }

// Errorf returns an error result with one text block, formatted as by [fmt.Sprintf].
func Errorf(format string, args ...any) *Result {
	return &Result{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}, IsError: true}
}

// Image returns a result with one image, a PNG unless o says otherwise. It keeps data.
func Image(data []byte, o *MediaOptions) *Result {
	c := &mcp.ImageContent{Data: data, MIMEType: "image/png"}
	if o != nil {
		c.Annotations, c.Meta = o.Annotations, o.Meta
		if o.MIMEType != "" {
			c.MIMEType = o.MIMEType
		}
	}
	return Mixed(c)
}

// Audio returns a result with one piece of audio, a WAV unless o says otherwise. It keeps data.
func Audio(data []byte, o *MediaOptions) *Result {
	c := &mcp.AudioContent{Data: data, MIMEType: "audio/wav"}
	if o != nil {
		c.Annotations, c.Meta = o.Annotations, o.Meta
		if o.MIMEType != "" {
			c.MIMEType = o.MIMEType
		}
	}
	return Mixed(c)
}

// ResourceLink returns a result with one link to a resource.
func ResourceLink(uri string, o *LinkOptions) *Result {
	c := &mcp.ResourceLink{URI: uri, Name: uri, MIMEType: "text/plain"}
	if o != nil {
		c.Title, c.Description, c.Size = o.Title, o.Description, o.Size
		c.Annotations, c.Icons, c.Meta = o.Annotations, o.Icons, o.Meta
		if o.Name != "" {
			c.Name = o.Name
		}
		if o.MIMEType != "" {
			c.MIMEType = o.MIMEType
		}
	}
	return Mixed(c)
}

// Embedded returns a result with one resource in it.
func Embedded(r *mcp.ResourceContents) *Result { return Mixed(&mcp.EmbeddedResource{Resource: r}) }

// Structured returns a result with structured content, and its JSON as text for
// clients that read only that. A call checks it against the tool's output
// schema; what does not match becomes an error result. A v that cannot be
// encoded makes an error result here. Nil slices and maps are written as empty ones.
func Structured(v any) *Result {
	data, err := goschema.Marshal(v)
	if err != nil {
		return Errorf("encoding the structured result: %v", err)
	}
	r := Text(string(data))
	r.StructuredContent = data
	return r
}

// Mixed returns a result with any blocks.
func Mixed(blocks ...mcp.Content) *Result { return &Result{Content: blocks} }

// Library converts the result to the official library's. The two share their
// content. Extra has no place there and is left out.
func (r *Result) Library() *mcp.CallToolResult {
	out := &mcp.CallToolResult{
		Meta: r.Meta, Content: r.Content, IsError: r.IsError,
		InputRequests: r.InputRequests, RequestState: r.RequestState,
	}
	if out.Content == nil {
		out.Content = []mcp.Content{}
	}
	if r.StructuredContent != nil {
		out.StructuredContent = r.StructuredContent
	}
	return out
}
