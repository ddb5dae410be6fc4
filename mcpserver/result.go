package mcpserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/goschema"
)

// A Result is the result of a tool call. A failure of the tool is a Result with
// IsError set, which the model can read and react to.
//
// A handler must not change a Result that it has returned. It may return it again.
type Result struct {
	// Content holds the blocks that the model reads. A nil block is an error.
	Content []mcp.Content
	// StructuredContent is JSON that matches the tool's output schema; nil means none.
	StructuredContent json.RawMessage
	// IsError reports that the call failed.
	IsError bool
	// Meta is the result's _meta.
	Meta mcp.Meta
	// Extra holds the members of a raw result that the protocol does not define.
	Extra map[string]json.RawMessage
	// InputRequests asks the client for input, by keys that the handler chooses.
	// The result then has no content. The handler is called again with the answers
	// and RequestState in its [Request].
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

// ToolNotFound reports whether the server has no such tool. Encoding the result
// loses it.
func (r *Result) ToolNotFound() bool { return r.notFound }

// AsError returns a copy of the result with IsError set.
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
	if o == nil {
		o = &MediaOptions{}
	}
	return Mixed(&mcp.ImageContent{Data: data, MIMEType: cmp.Or(o.MIMEType, "image/png"), Annotations: o.Annotations, Meta: o.Meta})
}

// Audio returns a result with one piece of audio, a WAV unless o says otherwise. It keeps data.
func Audio(data []byte, o *MediaOptions) *Result {
	if o == nil {
		o = &MediaOptions{}
	}
	return Mixed(&mcp.AudioContent{Data: data, MIMEType: cmp.Or(o.MIMEType, "audio/wav"), Annotations: o.Annotations, Meta: o.Meta})
}

// ResourceLink returns a result with one link to a resource.
func ResourceLink(uri string, o *LinkOptions) *Result {
	if o == nil {
		o = &LinkOptions{}
	}
	return Mixed(&mcp.ResourceLink{
		URI: uri, Name: cmp.Or(o.Name, uri), Title: o.Title, Description: o.Description, MIMEType: cmp.Or(o.MIMEType, "text/plain"),
		Size: o.Size, Annotations: o.Annotations, Icons: o.Icons, Meta: o.Meta,
	})
}

// Embedded returns a result with one resource in it.
func Embedded(r *mcp.ResourceContents) *Result { return Mixed(&mcp.EmbeddedResource{Resource: r}) }

// Structured returns a result with v as structured content, and its JSON as text
// for clients that read only text. Nil slices and maps are written as empty ones. If
// v cannot be encoded, the result is an error result.
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

// Library returns the result in the type of the official library, without Extra.
// The two share their content.
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
