package transcript

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	_ "image/gif"  // to be measured
	_ "image/jpeg" // to be measured
	_ "image/png"  // to be measured
	"net/http"
	"slices"
	"strings"

	_ "golang.org/x/image/webp" // to be measured

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/toolresult"
)

// The API's limits on images: https://platform.claude.com/docs/en/build-with-claude/vision.
const (
	MaxImageBase64 = 5 << 20 // bytes of base64
	// MaxImageSide is in pixels. A request with up to 20 images may have larger ones, and nobody knows how
	// many there will be.
	MaxImageSide = 2000
	MaxURL       = 1 << 16
	maxFileID    = 1 << 10
)

var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// Image checks an image. It returns the image, a smaller one, or a note.
func (l *Loader) Image(index int, b *agent.ImageBlock) []agent.Block {
	l.extras(index, "image", b.Extra)
	src, why := b.Source, ""
	var data []byte
	clean := true
	switch src.Type {
	case "url":
		if src = (agent.ImageSource{Type: src.Type, URL: src.URL}); src.URL == "" || len(src.URL) > MaxURL {
			why = "it has no URL"
		}
	case "file":
		if src = (agent.ImageSource{Type: src.Type, FileID: src.FileID}); src.FileID == "" || len(src.FileID) > maxFileID {
			why = "it names no file"
		}
	case "base64":
		src = agent.ImageSource{Type: src.Type, MediaType: src.MediaType, Data: src.Data}
		if data, clean = decodeBase64(src.Data); data == nil {
			why = "its data is no base64"
		}
		clean = clean && FitsAPI(src, data)
	default:
		why = fmt.Sprintf("its source is of the unknown type %q", clip.Text(src.Type, 40))
	}
	switch {
	case why != "":
		return l.mediaNote(index, "An image", why)
	case clean:
		return []agent.Block{&agent.ImageBlock{Source: src}}
	}
	fitted := scaledImage(l.ctx, src.MediaType, data)
	l.Repair(index, agent.RepairMedia, "an image that the API does not take was replaced: %s", clip.Text(fitted.Text(), 300))
	return fitted
}

// decodeBase64 decodes base64. clean reports that it is in the standard form without line ends.
func decodeBase64(s string) (data []byte, clean bool) {
	data, err := base64.StdEncoding.Strict().DecodeString(s)
	if err == nil && len(data) > 0 {
		return data, !strings.ContainsAny(s, "\r\n")
	}
	s = strings.NewReplacer("\r", "", "\n", "", " ", "", "=", "", "-", "+", "_", "/").Replace(s)
	if data, err = base64.RawStdEncoding.DecodeString(s); err != nil || len(data) == 0 {
		return nil, false
	}
	return data, false
}

// FitsAPI reports whether the API takes an image as it is.
func FitsAPI(src agent.ImageSource, data []byte) bool {
	if len(src.Data) > MaxImageBase64 || !slices.Contains(imageTypes, src.MediaType) || http.DetectContentType(data) != src.MediaType {
		return false
	}
	cfg, kind, err := image.DecodeConfig(bytes.NewReader(data))
	return err == nil && "image/"+kind == src.MediaType && min(cfg.Width, cfg.Height) > 0 && max(cfg.Width, cfg.Height) <= MaxImageSide
}

// mediaNote returns a text in place of media that is left out.
func (l *Loader) mediaNote(index int, what, why string) []agent.Block {
	text := fmt.Sprintf("[%s was left out of the history: %s]", what, why)
	l.Repair(index, agent.RepairMedia, "%s", strings.Trim(text, "[]"))
	return []agent.Block{&agent.TextBlock{Text: text}}
}

// A shape lists the fields of a block or of its source.
type shape struct{ required, optional []string }

var (
	documentShapes = map[string]shape{
		"document":         {[]string{"source"}, []string{"citations", "context", "title"}},
		"search_result":    {[]string{"content", "source", "title"}, []string{"citations"}},
		"container_upload": {[]string{"file_id"}, nil},
	}
	sourceShapes = map[string]shape{
		"base64": {[]string{"data", "media_type"}, nil}, "text": {[]string{"data", "media_type"}, nil},
		"url": {[]string{"url"}, nil}, "file": {[]string{"file_id"}, nil}, "content": {[]string{"content"}, nil},
	}
)

// fit removes fields that a shape does not have. It reports whether all required ones are there.
func (s shape) fit(fields map[string]json.RawMessage) (gone []string, whole bool) {
	for name, raw := range fields {
		if name != "type" && !slices.Contains(s.required, name) && (!slices.Contains(s.optional, name) || string(raw) == "null") {
			if string(raw) != "null" && name != "cache_control" {
				gone = append(gone, name)
			}
			delete(fields, name)
		}
	}
	slices.Sort(gone)
	return gone, !slices.ContainsFunc(s.required, func(name string) bool { return len(fields[name]) == 0 })
}

// document checks a document or another block of the user that is neither text nor image.
func (l *Loader) document(index int, b *agent.UnknownBlock) []agent.Block {
	what := "A block of the kind " + b.Type
	fields, why := blockFields(b)
	if why != "" {
		return l.mediaNote(index, what, why)
	}
	before := len(fields)
	gone, whole := documentShapes[b.Type].fit(fields)
	l.fieldsLeftOut(index, b.Type, gone)
	changed := len(fields) != before
	for _, name := range []string{"title", "context", "file_id"} {
		if raw, ok := fields[name]; ok && raw[0] != '"' {
			why = name + " is no text"
		}
	}
	if raw, ok := fields["citations"]; ok && raw[0] != '{' {
		delete(fields, "citations")
		changed = true
	}
	switch {
	case why != "":
	case !whole:
		why = "it has not the fields that it should have"
	case b.Type == "document":
		why = l.source(fields["source"])
	case b.Type == "search_result":
		why = searchResultFault(fields)
	}
	if why != "" {
		return l.mediaNote(index, what, why)
	}
	if changed {
		return []agent.Block{&agent.UnknownBlock{Type: b.Type, Raw: Encode(fields)}}
	}
	return []agent.Block{b}
}

// source returns what is wrong with the source of a document, or "".
func (l *Loader) source(raw json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil || repeated(raw) {
		return "its source is no object"
	}
	typ := stringIn(fields, "type")
	s, ok := sourceShapes[typ]
	if !ok {
		return fmt.Sprintf("its source is of the unknown type %q", clip.Text(typ, 40))
	}
	before := len(fields)
	if _, whole := s.fit(fields); !whole || len(fields) != before {
		return "its source has not the fields that it should have"
	}
	text := func(name string, most int) bool { v := stringIn(fields, name); return v != "" && len(v) <= most }
	switch {
	case typ == "url" && !text("url", MaxURL), typ == "file" && !text("file_id", maxFileID):
		return "its source names nothing"
	case typ == "text" && (stringIn(fields, "media_type") != "text/plain" || stringIn(fields, "data") == ""):
		return "its text is not plain, or empty"
	case typ == "content" && !l.documentContent(fields["content"]):
		return "its content is not text and images"
	case typ == "base64":
		data, clean := decodeBase64(stringIn(fields, "data"))
		if stringIn(fields, "media_type") != "application/pdf" || !clean || !bytes.HasPrefix(data, []byte("%PDF-")) {
			return "its data is no PDF in base64"
		}
	}
	return ""
}

// documentContent reports whether raw is content for a document: a text, or texts and images.
func (l *Loader) documentContent(raw json.RawMessage) bool {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return raw[0] == '"' && !IsBlank(text)
	}
	var content agent.Content
	if content.UnmarshalJSON(raw) != nil || len(content) == 0 {
		return false
	}
	return !slices.ContainsFunc(content, func(b agent.Block) bool {
		switch b := b.(type) {
		case *agent.TextBlock:
			return IsBlank(b.Text) || b.Extra != nil
		case *agent.ImageBlock:
			data, clean := decodeBase64(b.Source.Data)
			return b.Source.Type != "base64" || b.Extra != nil || !clean || !FitsAPI(b.Source, data)
		}
		return true
	})
}

// searchResultFault returns what is wrong with a search result, or "".
func searchResultFault(fields map[string]json.RawMessage) string {
	var content agent.Content
	switch {
	case stringIn(fields, "source") == "" || stringIn(fields, "title") == "":
		return "it has no source or no title"
	case fields["content"][0] != '[' || content.UnmarshalJSON(fields["content"]) != nil || len(content) == 0:
		return "it has no content"
	case slices.ContainsFunc(content, func(b agent.Block) bool {
		t, ok := b.(*agent.TextBlock)
		return !ok || IsBlank(t.Text) || t.Extra != nil
	}):
		return "its content is not text"
	}
	return ""
}

// ResultContent returns the blocks of a result in the form of requests.
func ResultContent(blocks []toolresult.Block) agent.Content {
	var content agent.Content
	for _, b := range blocks {
		if b.Type == "image" {
			content = append(content, &agent.ImageBlock{Source: agent.ImageSource{
				Type: "base64", MediaType: b.MIMEType, Data: base64.StdEncoding.EncodeToString(b.Data),
			}})
		} else if text := strings.ToValidUTF8(b.Text, "\uFFFD"); !IsBlank(text) {
			content = append(content, &agent.TextBlock{Text: text})
		}
	}
	return content
}
