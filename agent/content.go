package agent

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tenon-sdk/tenon/internal/jsonscan"
)

// A Block is one block of a message's content: a *[TextBlock], *[ThinkingBlock], *[ToolUseBlock],
// *[ToolResultBlock], *[ImageBlock], or an *[UnknownBlock] for every other kind.
type Block interface {
	isBlock()
}

// Content is the content of a message or of a tool result. In JSON it is a list of blocks, or a string
// for one text block.
type Content []Block

// A TextBlock is text.
type TextBlock struct {
	Text string `json:"text"`
	// Extra holds the block's other fields, such as citations.
	Extra Fields `json:"-"`

	plain bool // a string in JSON, not a list of blocks
}

// A ThinkingBlock is the model's reasoning. It is sent back to the model unchanged.
type ThinkingBlock struct {
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
	Extra     Fields `json:"-"`
}

// A ToolUseBlock is a tool call that the model requests.
type ToolUseBlock struct {
	ID string `json:"id"`
	// Name is the full name of the tool: mcp__SERVER__TOOL for an MCP tool.
	Name string `json:"name"`
	// Input holds the arguments, a JSON object.
	Input json.RawMessage `json:"input"`
	Extra Fields          `json:"-"`
}

// IsMCP reports whether the tool is of an MCP server.
func (b *ToolUseBlock) IsMCP() bool { return strings.HasPrefix(b.Name, "mcp__") }

// A ToolResultBlock is the result of the tool call with the ID ToolUseID.
type ToolResultBlock struct {
	ToolUseID string  `json:"tool_use_id"`
	Content   Content `json:"content,omitempty"`
	// IsError is set if the tool failed, was not allowed to run, or was stopped.
	IsError bool   `json:"is_error,omitempty"`
	Extra   Fields `json:"-"`
}

// Text returns the result's text blocks, joined by newlines.
func (b *ToolResultBlock) Text() string { return b.Content.Text() }

// An ImageBlock is an image.
type ImageBlock struct {
	Source ImageSource `json:"source"`
	Extra  Fields      `json:"-"`
}

// An ImageSource is the bytes of an image, a URL, or the ID of an uploaded file.
type ImageSource struct {
	// Type is "base64", "url" or "file".
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitempty"`
	// Data is standard base64.
	Data string `json:"data,omitempty"`
	URL  string `json:"url,omitempty"`
	// FileID is the ID of an uploaded file, with Type "file".
	FileID string `json:"file_id,omitempty"`
}

// An UnknownBlock is a block of a kind or form that this package has no type for.
type UnknownBlock struct {
	Type string
	Raw  json.RawMessage
}

func (*TextBlock) isBlock()       {}
func (*ThinkingBlock) isBlock()   {}
func (*ToolUseBlock) isBlock()    {}
func (*ToolResultBlock) isBlock() {}
func (*ImageBlock) isBlock()      {}
func (*UnknownBlock) isBlock()    {}

// Text returns the text blocks of c, joined by newlines.
func (c Content) Text() string {
	var parts []string
	for _, b := range c {
		if t, ok := b.(*TextBlock); ok {
			parts = append(parts, t.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// TextContent returns content of one text, which JSON writes as a string.
func TextContent(text string) Content {
	return Content{&TextBlock{Text: text, plain: true}}
}

// MarshalJSON implements [json.Marshaler]. It writes a list of blocks, or a string for one plain text.
func (c Content) MarshalJSON() ([]byte, error) {
	if len(c) == 1 {
		if t, ok := c[0].(*TextBlock); ok && t.plain && t.Extra == nil {
			return json.Marshal(t.Text)
		}
	}
	return json.Marshal(orEmpty([]Block(c)))
}

// UnmarshalJSON implements [json.Unmarshaler]. It reads a list of blocks or a string.
func (c *Content) UnmarshalJSON(data []byte) error {
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		*c = TextContent(text)
		return nil
	}
	blocks := Content{}
	if jsonscan.Array(data, func(raw json.RawMessage) { blocks = append(blocks, DecodeBlock(raw)) }) == nil {
		*c = blocks
		return nil
	}
	// The scanner refuses null and some texts that encoding/json accepts.
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	*c = nil
	for _, raw := range list {
		*c = append(*c, DecodeBlock(raw))
	}
	return nil
}

// DecodeBlock reads one block. A block of an unknown kind or form is an [UnknownBlock] with the whole
// JSON.
func DecodeBlock(data json.RawMessage) Block {
	var head struct {
		Type string `json:"type"`
	}
	if decodeObject(data, &head) != nil {
		return &UnknownBlock{Raw: bytes.Clone(data)}
	}
	b := newBlock(head.Type)
	if b == nil || b.UnmarshalJSON(data) != nil {
		return &UnknownBlock{Type: head.Type, Raw: bytes.Clone(data)}
	}
	return b
}

// A decodableBlock is a block that can be decoded.
type decodableBlock interface {
	Block
	json.Unmarshaler
}

func newBlock(kind string) decodableBlock {
	switch kind {
	case "text":
		return new(TextBlock)
	case "thinking":
		return new(ThinkingBlock)
	case "tool_use":
		return new(ToolUseBlock)
	case "tool_result":
		return new(ToolResultBlock)
	case "image":
		return new(ImageBlock)
	}
	return nil
}

// MarshalJSON implements [json.Marshaler].
func (b *TextBlock) MarshalJSON() ([]byte, error) { return encodeObject(b, "type", "text") }

// UnmarshalJSON implements [json.Unmarshaler].
func (b *TextBlock) UnmarshalJSON(data []byte) error { return decodeObject(data, b, "type") }

// MarshalJSON implements [json.Marshaler].
func (b *ThinkingBlock) MarshalJSON() ([]byte, error) { return encodeObject(b, "type", "thinking") }

// UnmarshalJSON implements [json.Unmarshaler].
func (b *ThinkingBlock) UnmarshalJSON(data []byte) error { return decodeObject(data, b, "type") }

// MarshalJSON implements [json.Marshaler].
func (b *ToolUseBlock) MarshalJSON() ([]byte, error) {
	out := *b
	if len(out.Input) == 0 {
		out.Input = json.RawMessage("{}")
	}
	return encodeObject(&out, "type", "tool_use")
}

// UnmarshalJSON implements [json.Unmarshaler].
func (b *ToolUseBlock) UnmarshalJSON(data []byte) error { return decodeObject(data, b, "type") }

// MarshalJSON implements [json.Marshaler].
func (b *ToolResultBlock) MarshalJSON() ([]byte, error) {
	return encodeObject(b, "type", "tool_result")
}

// UnmarshalJSON implements [json.Unmarshaler].
func (b *ToolResultBlock) UnmarshalJSON(data []byte) error { return decodeObject(data, b, "type") }

// MarshalJSON implements [json.Marshaler].
func (b *ImageBlock) MarshalJSON() ([]byte, error) { return encodeObject(b, "type", "image") }

// UnmarshalJSON implements [json.Unmarshaler].
func (b *ImageBlock) UnmarshalJSON(data []byte) error { return decodeObject(data, b, "type") }

// MarshalJSON implements [json.Marshaler]. It returns Raw.
func (b *UnknownBlock) MarshalJSON() ([]byte, error) {
	if len(b.Raw) == 0 {
		return json.Marshal(struct {
			Type string `json:"type"`
		}{b.Type})
	}
	return b.Raw, nil
}
