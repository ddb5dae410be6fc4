package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An UnknownContent is a content block of a type that this version does not know.
type UnknownContent struct {
	mcp.Content // nil; makes the type a content block of the library

	Type string
	Raw  json.RawMessage
}

// MarshalJSON returns Raw.
func (c *UnknownContent) MarshalJSON() ([]byte, error) { return c.Raw, nil }

// MarshalJSON returns the result as in the protocol, always with a content array
// and isError.
func (r *Result) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(`{"content":[`)
	for i, c := range r.Content {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := writeContent(&b, c); err != nil {
			return nil, fmt.Errorf("content block %d: %w", i, err)
		}
	}
	fmt.Fprintf(&b, `],"isError":%t`, r.IsError)
	members := []struct {
		name  string
		value any
		use   bool
	}{
		{"structuredContent", r.StructuredContent, r.StructuredContent != nil},
		{"_meta", r.Meta, r.Meta != nil},
		{"inputRequests", r.InputRequests, r.InputRequests != nil},
		{"requestState", r.RequestState, r.RequestState != ""},
	}
	for _, m := range members {
		if !m.use {
			continue
		}
		if err := writeMember(&b, m.name, m.value); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Extra)) {
		if err := writeMember(&b, name, r.Extra[name]); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func writeMember(b *bytes.Buffer, name string, v any) error {
	value, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	key, err := json.Marshal(name)
	if err != nil {
		return err
	}
	b.WriteByte(',')
	b.Write(key)
	b.WriteByte(':')
	b.Write(value)
	return nil
}

// writeContent writes one block. Plain text is the usual case.
func writeContent(b *bytes.Buffer, c mcp.Content) error {
	if isNil(c) {
		return errNoType
	}
	if t, ok := c.(*mcp.TextContent); ok && t.Meta == nil && t.Annotations == nil {
		b.WriteString(`{"type":"text","text":`)
		enc := json.NewEncoder(b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(t.Text); err != nil {
			return err
		}
		b.Truncate(b.Len() - 1) // the newline
		b.WriteByte('}')
		return nil
	}
	var v any = c
	if e, ok := c.(*mcp.EmbeddedResource); ok && e.Resource != nil && e.Resource.Text == "" && e.Resource.Blob == nil {
		v = withText(e)
	}
	block, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b.Write(block)
	return nil
}

// withText returns an embedded resource with an empty text, which the library's
// encoding leaves out; a resource needs a text or a blob.
func withText(e *mcp.EmbeddedResource) any {
	type contents struct {
		URI      string   `json:"uri"`
		MIMEType string   `json:"mimeType,omitempty"`
		Text     string   `json:"text"`
		Meta     mcp.Meta `json:"_meta,omitempty"`
	}
	r := e.Resource
	return &struct {
		Type        string           `json:"type"`
		Resource    contents         `json:"resource"`
		Meta        mcp.Meta         `json:"_meta,omitempty"`
		Annotations *mcp.Annotations `json:"annotations,omitempty"`
	}{"resource", contents{r.URI, r.MIMEType, r.Text, r.Meta}, e.Meta, e.Annotations}
}

var errNoType = errors.New("it has no type")

// isNil reports whether a block is nil or a nil pointer of one of the library's kinds.
func isNil(c mcp.Content) bool {
	switch c := c.(type) {
	case nil:
		return true
	case *mcp.TextContent:
		return c == nil
	case *mcp.ImageContent:
		return c == nil
	case *mcp.AudioContent:
		return c == nil
	case *mcp.ResourceLink:
		return c == nil
	case *mcp.EmbeddedResource:
		return c == nil || c.Resource == nil
	}
	return false
}

// UnmarshalJSON reads a result of the protocol. Its content must be an array of
// blocks with types. A text that is a number becomes its digits, and a block of an
// unknown type an [*UnknownContent].
func (r *Result) UnmarshalJSON(data []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return fmt.Errorf("decoding a tool result: %w", err)
	}
	var out Result
	if err := out.take(members); err != nil {
		return fmt.Errorf("decoding a tool result: %w", err)
	}
	*r = out
	return nil
}

var errNoContent = errors.New("it has no content array")

func (r *Result) take(members map[string]json.RawMessage) error {
	for name, value := range members {
		var err error
		switch name {
		case "content":
		case "structuredContent":
			if string(value) != "null" {
				r.StructuredContent = value
			}
		case "isError":
			err = json.Unmarshal(value, &r.IsError)
		case "_meta":
			err = json.Unmarshal(value, &r.Meta)
		case "inputRequests":
			err = json.Unmarshal(value, &r.InputRequests)
		case "requestState":
			err = json.Unmarshal(value, &r.RequestState)
		default:
			if r.Extra == nil {
				r.Extra = map[string]json.RawMessage{}
			}
			r.Extra[name] = value
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	content := members["content"]
	if r.InputRequests != nil && (content == nil || string(content) == "null") {
		return nil
	}
	var blocks []json.RawMessage
	if err := json.Unmarshal(content, &blocks); err != nil || blocks == nil {
		return errNoContent
	}
	r.Content = make([]mcp.Content, len(blocks))
	for i, block := range blocks {
		c, err := decodeContent(block)
		if err != nil {
			return fmt.Errorf("content block %d: %w", i, err)
		}
		r.Content[i] = c
	}
	return nil
}

// decodeContent decodes one block.
func decodeContent(block json.RawMessage) (mcp.Content, error) {
	var b struct {
		Type        string           `json:"type"`
		Text        json.RawMessage  `json:"text"`
		Resource    json.RawMessage  `json:"resource"`
		Annotations *mcp.Annotations `json:"annotations"`
		Meta        mcp.Meta         `json:"_meta"`
	}
	err := json.Unmarshal(block, &b)
	switch b.Type {
	case "":
		if err != nil {
			return nil, fmt.Errorf("it is not an object with a type: %w", err)
		}
		return nil, errNoType
	case "text":
		if err != nil {
			return nil, err
		}
		text, err := textOf(b.Text)
		if err != nil {
			return nil, err
		}
		return &mcp.TextContent{Text: text, Annotations: b.Annotations, Meta: b.Meta}, nil
	case "resource":
		if len(b.Resource) == 0 || string(b.Resource) == "null" {
			return nil, errors.New("the resource is missing")
		}
	case "image", "audio", "resource_link":
	default:
		return &UnknownContent{Type: b.Type, Raw: block}, nil
	}
	var message mcp.PromptMessage // the library's decoder of a block
	err = json.Unmarshal(slices.Concat([]byte(`{"content":`), block, []byte("}")), &message)
	return message.Content, err
}

// textOf returns the text of a block. Handlers in other languages may return a
// number.
func textOf(raw json.RawMessage) (string, error) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "", errors.New("the text is missing")
	case raw[0] == '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	case raw[0] == '{' || raw[0] == '[':
		return "", fmt.Errorf("the text is no string: %.40s", raw)
	}
	return string(raw), nil
}
