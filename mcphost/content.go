package mcphost

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// DefaultMaxImageBytes is the largest image, in bytes of its base64 form, that
// the Messages API takes.
const DefaultMaxImageBytes = 5 << 20

// A ContentBlock is a block of a tool's result as a model can read it: text or
// an image.
type ContentBlock struct {
	// Type is "text" or "image".
	Type string
	// Text is never empty in a text block.
	Text string
	// MIMEType and Data are those of an image: PNG, JPEG, GIF or WebP. Data is
	// the image itself, not its base64 form.
	MIMEType string
	Data     []byte
}

// ContentOptions are options of [ModelContent]. Nil means the defaults.
type ContentOptions struct {
	// Save stores binary content that a model cannot read and returns a path to
	// it. Nil means that it is described only.
	Save func(name, mimeType string, data []byte) (path string, err error)
	// MaxImageBytes is the largest image that is passed on, in bytes of its
	// base64 form. Zero means DefaultMaxImageBytes. A larger one is scaled down.
	MaxImageBytes int
}

// ModelContent converts a tool's result to what a model can read. It never
// returns an empty slice or an empty text, and its texts are valid UTF-8. An
// error result has text only, as the Messages API demands. It does not modify r.
//
//	text                 as it is
//	image                as it is; scaled down when it is too large; a note when it is no image that models read
//	audio, other binary  a note, with the path if it was saved
//	resource             its text or image, with a line that says where it is from
//	resource link        a line with name, URI and description
//	structured content   its JSON, after the other blocks, unless one of them says the same
//	nothing at all       a note that the tool ended without output
func ModelContent(server, tool string, r *mcpserver.Result, o *ContentOptions) []ContentBlock {
	c := converter{server: server, tool: toolname.Full(server, tool), isError: r.IsError, limit: DefaultMaxImageBytes}
	if o != nil {
		c.save = o.Save
		if o.MaxImageBytes > 0 {
			c.limit = o.MaxImageBytes
		}
	}
	for _, b := range r.Content {
		c.block(b)
	}
	c.structured(r.StructuredContent)
	if len(c.out) == 0 {
		if r.IsError {
			c.text("(" + c.tool + " failed without saying why)")
		} else {
			c.text("(" + c.tool + " completed with no output)")
		}
	}
	return c.out
}

// A converter gathers the blocks of one result.
type converter struct {
	server, tool string
	isError      bool
	limit        int
	save         func(name, mimeType string, data []byte) (string, error)
	saved        int
	out          []ContentBlock
}

func (c *converter) text(s string) {
	if s = strings.ToValidUTF8(s, "\uFFFD"); strings.TrimSpace(s) != "" {
		c.out = append(c.out, ContentBlock{Type: "text", Text: s})
	}
}

func (c *converter) textf(format string, args ...any) { c.text(fmt.Sprintf(format, args...)) }

func (c *converter) block(b mcp.Content) {
	switch b := b.(type) {
	case *mcp.TextContent:
		c.text(b.Text)
	case *mcp.ImageContent:
		c.image(b.MIMEType, b.Data)
	case *mcp.AudioContent:
		c.binary("Audio from "+c.server, b.MIMEType, b.Data)
	case *mcp.EmbeddedResource:
		c.resource(b.Resource)
	case *mcp.ResourceLink:
		c.link(b)
	case nil:
	default:
		if raw, err := json.Marshal(b); err == nil {
			c.text(string(raw))
		}
	}
}

func (c *converter) link(l *mcp.ResourceLink) {
	s := fmt.Sprintf("[Resource link: %s] %s", l.Name, l.URI)
	if l.Description != "" {
		s += " (" + l.Description + ")"
	}
	c.text(s)
}

func (c *converter) resource(r *mcp.ResourceContents) {
	if r == nil {
		return
	}
	from := fmt.Sprintf("Resource from %s at %s", c.server, r.URI)
	switch {
	case r.Blob == nil:
		c.textf("[%s] %s", from, r.Text)
	case strings.HasPrefix(r.MIMEType, "image/"):
		c.textf("[%s]", from)
		c.image(r.MIMEType, r.Blob)
	default:
		c.binary(from, r.MIMEType, r.Blob)
	}
}

// image passes an image on if a model can read it.
func (c *converter) image(mimeType string, data []byte) {
	if c.isError {
		c.textf("[Image left out: an error result has text only (%s, %d bytes)]", mimeType, len(data))
		return
	}
	img, err := fitImage(data, c.limit)
	if err != nil {
		c.binary(fmt.Sprintf("Image from %s, not shown: %v", c.server, err), mimeType, data)
		return
	}
	c.out = append(c.out, ContentBlock{Type: "image", MIMEType: img.mimeType, Data: img.data})
	if img.note != "" {
		c.textf("[%s]", img.note)
	}
	if path, err := c.store(mimeType, data); path != "" && err == nil {
		c.textf("[Image: source: %s]", path)
	}
}

// binary describes what a model cannot read.
func (c *converter) binary(what, mimeType string, data []byte) {
	if mimeType == "" {
		mimeType = "unknown type"
	}
	path, err := c.store(mimeType, data)
	switch {
	case err != nil:
		c.textf("[%s] Binary content (%s, %d bytes) could not be saved: %v", what, mimeType, len(data), err)
	case path == "":
		c.textf("[%s] Binary content (%s, %d bytes)", what, mimeType, len(data))
	default:
		c.textf("[%s] Binary content (%s, %d bytes) saved to %s", what, mimeType, len(data), path)
	}
}

// store saves data if there is a place for it.
func (c *converter) store(mimeType string, data []byte) (string, error) {
	if c.save == nil {
		return "", nil
	}
	c.saved++
	return c.save(fmt.Sprintf("%s-%d", c.tool, c.saved), mimeType, data)
}

// structured adds structured content, unless a text block says the same already.
func (c *converter) structured(raw json.RawMessage) {
	if len(raw) == 0 || isNull(raw) {
		return
	}
	for _, b := range c.out {
		if b.Type == "text" && sameJSON([]byte(b.Text), raw) {
			return
		}
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		compact.Write(raw)
	}
	c.text(compact.String())
}

// sameJSON reports whether two texts are JSON with one meaning.
func sameJSON(a, b []byte) bool {
	a = bytes.TrimSpace(a)
	if len(a) == 0 || len(b) == 0 || a[0] != bytes.TrimSpace(b)[0] {
		return false
	}
	if bytes.Equal(a, b) {
		return true
	}
	va, oka := decodeAny(a)
	vb, okb := decodeAny(b)
	return oka && okb && reflect.DeepEqual(va, vb)
}

func decodeAny(raw []byte) (any, bool) {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if dec.Decode(&v) != nil || dec.More() {
		return nil, false
	}
	return v, true
}

// base64Len is how long data is in base64.
func base64Len(data []byte) int { return base64.StdEncoding.EncodedLen(len(data)) }
