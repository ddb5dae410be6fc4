package toolresult

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/jsonequal"
	"github.com/tenon-sdk/tenon/internal/jsonscan"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// DefaultMaxImageBytes is the largest image that the Messages API accepts, in bytes of base64.
const DefaultMaxImageBytes = 5 << 20

const (
	// maxImages limits the images of a result. With more in a request the Messages API accepts only
	// smaller ones.
	maxImages = 20
	// maxImagesBytes limits their total size in bytes of base64. A request may have 32 MB.
	maxImagesBytes = 12 << 20
	// maxBlocks is the number of blocks above which consecutive texts are joined.
	maxBlocks = 100
)

// A Block is a block of a tool's result that a model can read: text or an image.
type Block struct {
	Type string // "text" or "image"
	Text string // never empty in a text block
	// MIMEType and Data describe a PNG, JPEG, GIF or WebP image. Data is not in base64.
	MIMEType string
	Data     []byte
}

// ConvertOptions are options of [Convert]. Nil means the defaults.
type ConvertOptions struct {
	// Save stores binary content that a model cannot read and returns its path. Nil means that the
	// content is only described.
	Save func(name, mimeType string, data []byte) (path string, err error)
	// MaxImageBytes is the size above which images are scaled down, in bytes of base64. Zero means
	// [DefaultMaxImageBytes].
	MaxImageBytes int
}

// Convert converts a tool's result to blocks that a model can read. It never returns an empty slice
// or an empty text, and its texts are valid UTF-8. An error result has text only, as the Messages API
// demands. It does not modify r.
//
//	text                 unchanged, except for tags that hosts use: see [EscapeHostTags]
//	image                unchanged, or scaled down if it is too large; a note if models cannot read it or there are too many
//	audio, other binary  a note, with the path if it was saved
//	resource             its text or image, after a line with server and URI; a blob with a text type is text
//	resource link        a line with name, URI and description
//	structured content   its JSON, after the other blocks, unless they have the same content
//	no content           a note that the tool completed without output
func Convert(ctx context.Context, server, tool string, r *mcpserver.Result, o *ConvertOptions) []Block {
	c := converter{
		ctx: ctx, server: server, tool: toolname.Full(server, tool), isError: r.IsError,
		limit: DefaultMaxImageBytes, room: maxImagesBytes,
	}
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
	if len(c.out) > maxBlocks {
		c.out = joinTexts(c.out)
	}
	if len(c.out) == 0 {
		if r.IsError {
			c.text("(" + c.tool + " failed without saying why)")
		} else {
			c.text("(" + c.tool + " completed with no output)")
		}
	}
	return c.out
}

// A converter collects the blocks of one result.
type converter struct {
	ctx          context.Context // ends waiting for memory
	server, tool string
	isError      bool
	limit        int
	images, room int // the images so far, and the bytes of base64 left for more
	save         func(name, mimeType string, data []byte) (string, error)
	saved        int
	out          []Block
}

func (c *converter) text(s string) {
	if s = strings.ToValidUTF8(s, "\uFFFD"); strings.TrimSpace(s) != "" {
		c.out = append(c.out, Block{Type: "text", Text: EscapeHostTags(s)})
	}
}

func (c *converter) textf(format string, args ...any) { c.text(fmt.Sprintf(format, args...)) }

func (c *converter) block(b mcp.Content) {
	if isNil(b) {
		return
	}
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
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			c.textf("[content block of an unknown kind that cannot be encoded: %v]", err)
			return
		}
		c.text(string(raw))
	}
}

// isNil reports whether a is nil or a nil pointer, as a server in this process may return.
func isNil(a any) bool {
	v := reflect.ValueOf(a)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

func (c *converter) link(l *mcp.ResourceLink) {
	s := fmt.Sprintf("[Resource link: %s] %s", cmp.Or(l.Name, l.Title, l.URI), l.URI)
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
	case len(r.Blob) == 0 && r.Text == "":
		c.textf("[%s] (empty)", from)
	case len(r.Blob) == 0:
		c.textf("[%s] %s", from, r.Text)
	case isTextType(r.MIMEType) && utf8.Valid(r.Blob):
		c.textf("[%s] %s", from, r.Blob)
	case strings.HasPrefix(r.MIMEType, "image/") && readable[http.DetectContentType(r.Blob)]:
		c.textf("[%s]", from)
		c.image(r.MIMEType, r.Blob)
	default:
		c.binary(from, r.MIMEType, r.Blob)
	}
}

// isTextType reports whether content of a MIME type is text.
func isTextType(mimeType string) bool {
	kind, _, _ := strings.Cut(strings.ToLower(mimeType), ";")
	kind = strings.TrimSpace(kind)
	switch kind {
	case "application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml",
		"application/javascript", "application/typescript", "application/sql", "application/x-sh":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml")
}

// image adds an image if a model can read it.
func (c *converter) image(mimeType string, data []byte) {
	if c.isError {
		c.textf("[Image left out: an error result has text only (%s, %d bytes)]", mimeType, len(data))
		return
	}
	if c.images++; c.images > maxImages {
		c.binary(fmt.Sprintf("Image from %s, not shown: a result can show %d", c.server, maxImages), mimeType, data)
		return
	}
	img, err := fitImage(c.ctx, data, min(c.limit, max(c.room, 0)))
	if err != nil {
		c.images-- // it does not count
		c.binary(fmt.Sprintf("Image from %s, not shown: %v", c.server, err), mimeType, data)
		return
	}
	c.room -= base64Len(img.data)
	c.out = append(c.out, Block{Type: "image", MIMEType: img.mimeType, Data: img.data})
	if img.note != "" {
		c.textf("[%s]", img.note)
	}
	if path, err := c.store(mimeType, data); path != "" && err == nil {
		c.textf("[Image: source: %s]", path)
	}
}

// binary adds a note about content that a model cannot read.
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

// store saves data if there is a Save function.
func (c *converter) store(mimeType string, data []byte) (string, error) {
	if c.save == nil {
		return "", nil
	}
	c.saved++
	return c.save(fmt.Sprintf("%s-%d", c.tool, c.saved), mimeType, data)
}

// joinTexts joins consecutive texts.
func joinTexts(blocks []Block) []Block {
	var out []Block
	var texts []string
	flush := func() {
		if len(texts) > 0 {
			out = append(out, Block{Type: "text", Text: strings.Join(texts, "\n")})
			texts = nil
		}
	}
	for _, b := range blocks {
		if b.Type == "text" {
			texts = append(texts, b.Text)
			continue
		}
		flush()
		out = append(out, b)
	}
	flush()
	return out
}

// structured adds structured content, unless the texts have the same content.
func (c *converter) structured(raw json.RawMessage) {
	if len(raw) == 0 || jsonscan.IsNull(raw) {
		return
	}
	var texts []string
	same := jsonequal.To(raw)
	for _, b := range c.out {
		if b.Type == "text" {
			if same([]byte(b.Text)) {
				return
			}
			texts = append(texts, b.Text)
		}
	}
	if key, value := onlyMember(raw); value != nil && (key == "result" || value[0] == '"') && textsEqual(texts, value) {
		return
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		compact.Reset()
		compact.Write(raw)
	}
	c.text(compact.String())
}

// onlyMember returns the member of an object that has one, and a nil value otherwise. Servers wrap
// values in an object: {"result": value} for any value, and many names for a text.
func onlyMember(raw json.RawMessage) (key string, value json.RawMessage) {
	n := 0
	err := jsonscan.Object(raw, func(k []byte, v json.RawMessage) {
		n++
		key, value = string(k), v
	})
	if err != nil || n != 1 {
		return "", nil
	}
	return key, value
}

// textsEqual reports whether the texts are a value, or each is an element of it.
func textsEqual(texts []string, value json.RawMessage) bool {
	equal := func(text string, v json.RawMessage) bool {
		return len(v) > 0 && v[0] == '"' && jsonscan.TextOf(v) == text || jsonequal.To(v)([]byte(text))
	}
	if equal(strings.Join(texts, "\n"), value) {
		return true
	}
	same, n := true, 0
	err := jsonscan.Array(value, func(v json.RawMessage) {
		same = same && n < len(texts) && equal(texts[n], v)
		n++
	})
	return err == nil && same && n == len(texts) && n > 0
}

// base64Len returns the length of data in base64.
func base64Len(data []byte) int { return base64.StdEncoding.EncodedLen(len(data)) }
