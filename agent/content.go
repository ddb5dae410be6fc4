package agent

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tenon-sdk/tenon/internal/jsonscan"
)

// A Block is one block of a message's content: a *TextBlock, *ThinkingBlock, *ToolUseBlock,
// *ToolResultBlock, *ImageBlock, or an *UnknownBlock for every other kind.
type Block interface {
	isBlock()
}

// Content is the content of a message or of a tool result. In JSON it is an array of blocks;
// a plain string is read as one text block, and written as a string again.
type Content []Block

// A TextBlock is text.
type TextBlock struct {
	Text string `json:"text"`
	// Extra holds what else the block had, such as citations.
	Extra Fields `json:"-"`

	plain bool // it came as a plain string in place of a list of blocks
}

// A ThinkingBlock is the model's reasoning. It goes back to the model as it came.
type ThinkingBlock struct {
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
	Extra     Fields `json:"-"`
}

// A ToolUseBlock is the model's wish to call a tool.
type ToolUseBlock struct {
	ID string `json:"id"`
	// Name is the full name of the tool: mcp__SERVER__TOOL for an MCP tool.
	Name string `json:"name"`
	// Input is the arguments, a JSON object.
	Input json.RawMessage `json:"input"`
	Extra Fields          `json:"-"`
}

// IsMCP reports whether the call is to a tool of an MCP server.
func (b *ToolUseBlock) IsMCP() bool { return strings.HasPrefix(b.Name, "mcp__") }

// A ToolResultBlock answers the ToolUseBlock with the ID ToolUseID.
type ToolResultBlock struct {
	ToolUseID string  `json:"tool_use_id"`
	Content   Content `json:"content,omitempty"`
	// IsError is set when the tool failed, was not allowed to run, or was stopped.
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

// An ImageSource is where an image comes from: the bytes themselves or a URL.
type ImageSource struct {
	// Type is "base64", "url" or "file".
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitempty"`
	// Data is standard base64.
	Data string `json:"data,omitempty"`
	URL  string `json:"url,omitempty"`
	// FileID names an uploaded file, with Type "file".
	FileID string `json:"file_id,omitempty"`
}

// An UnknownBlock is a block of a kind that this package has no type for. It is passed on as it is.
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

// TextContent returns content that is one plain text, a string in JSON.
func TextContent(text string) Content {
	return Content{&TextBlock{Text: text, plain: true}}
}

// MarshalJSON writes a list of blocks, or a string for content that is one plain text.
func (c Content) MarshalJSON() ([]byte, error) {
	if len(c) == 1 {
		if t, ok := c[0].(*TextBlock); ok && t.plain && t.Extra == nil {
			return json.Marshal(t.Text)
		}
	}
	if c == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]Block(c))
}

// UnmarshalJSON reads a list of blocks or a string.
func (c *Content) UnmarshalJSON(data []byte) error {
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		*c = TextContent(text)
		return nil
	}
	var blocks Content
	if err := jsonscan.Array(data, func(raw json.RawMessage) { blocks = append(blocks, DecodeBlock(raw)) }); err != nil {
		return c.decodeOther(data)
	}
	if blocks == nil {
		blocks = Content{}
	}
	*c = blocks
	return nil
}

// decodeOther reads what is no list: null is no content, anything else an error.
func (c *Content) decodeOther(data []byte) error {
	var raws []json.RawMessage
	if err := json.Unmarshal(data, &raws); err != nil {
		return err
	}
	*c = nil
	for _, raw := range raws {
		*c = append(*c, DecodeBlock(raw))
	}
	return nil
}

// DecodeBlock reads one block. What it cannot read as a kind that it knows it returns as an
// UnknownBlock with the whole JSON in it.
func DecodeBlock(data json.RawMessage) Block {
	var head struct {
		Type string `json:"type"`
	}
	if decodeHead(data, &head) != nil {
		return &UnknownBlock{Raw: bytes.Clone(data)}
	}
	b := newBlock(head.Type)
	if b == nil || b.UnmarshalJSON(data) != nil { // data is valid: its head was read above
		return &UnknownBlock{Type: head.Type, Raw: bytes.Clone(data)}
	}
	return b
}

// A readBlock is a block of a kind that can be read.
type readBlock interface {
	Block
	json.Unmarshaler
}

func newBlock(kind string) readBlock {
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

// The methods below give each kind its "type" field and keep the fields that it has no name for.

// MarshalJSON writes the block in its Messages API form.
func (b *TextBlock) MarshalJSON() ([]byte, error) {
	type wire TextBlock
	return encodeWire("text", (*wire)(b), b.Extra)
}

// UnmarshalJSON reads the block from its Messages API form.
func (b *TextBlock) UnmarshalJSON(data []byte) (err error) {
	type wire TextBlock
	b.Extra, err = decodeWire(data, (*wire)(b), "type")
	return err
}

// MarshalJSON writes the block in its Messages API form.
func (b *ThinkingBlock) MarshalJSON() ([]byte, error) {
	type wire ThinkingBlock
	return encodeWire("thinking", (*wire)(b), b.Extra)
}

// UnmarshalJSON reads the block from its Messages API form.
func (b *ThinkingBlock) UnmarshalJSON(data []byte) (err error) {
	type wire ThinkingBlock
	b.Extra, err = decodeWire(data, (*wire)(b), "type")
	return err
}

// MarshalJSON writes the block in its Messages API form.
func (b *ToolUseBlock) MarshalJSON() ([]byte, error) {
	type wire ToolUseBlock
	w := wire(*b)
	if len(w.Input) == 0 {
		w.Input = json.RawMessage("{}")
	}
	return encodeWire("tool_use", w, b.Extra)
}

// UnmarshalJSON reads the block from its Messages API form.
func (b *ToolUseBlock) UnmarshalJSON(data []byte) (err error) {
	type wire ToolUseBlock
	b.Extra, err = decodeWire(data, (*wire)(b), "type")
	return err
}

// MarshalJSON writes the block in its Messages API form.
func (b *ToolResultBlock) MarshalJSON() ([]byte, error) {
	type wire ToolResultBlock
	return encodeWire("tool_result", (*wire)(b), b.Extra)
}

// UnmarshalJSON reads the block from its Messages API form.
func (b *ToolResultBlock) UnmarshalJSON(data []byte) (err error) {
	type wire ToolResultBlock
	b.Extra, err = decodeWire(data, (*wire)(b), "type")
	return err
}

// MarshalJSON writes the block in its Messages API form.
func (b *ImageBlock) MarshalJSON() ([]byte, error) {
	type wire ImageBlock
	return encodeWire("image", (*wire)(b), b.Extra)
}

// UnmarshalJSON reads the block from its Messages API form.
func (b *ImageBlock) UnmarshalJSON(data []byte) (err error) {
	type wire ImageBlock
	b.Extra, err = decodeWire(data, (*wire)(b), "type")
	return err
}

// MarshalJSON writes the block as it came.
func (b *UnknownBlock) MarshalJSON() ([]byte, error) {
	if len(b.Raw) == 0 {
		return json.Marshal(struct {
			Type string `json:"type"`
		}{b.Type})
	}
	return b.Raw, nil
}
