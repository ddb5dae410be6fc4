package modeltest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"maps"
	"slices"

	"golang.org/x/image/webp"
)

// Limits of the API on what is not text.
const (
	maxImageBase64 = 5 << 20 // bytes of base64
	maxImageSide   = 8000    // pixels
	manyImages     = 20      // with more of them in a request,
	maxManySide    = 2000    // each side may have this many pixels
)

// An imageAt is an image of the request.
type imageAt struct {
	at   string
	side int // the longer one
}

// source decodes where an image or a document comes from.
func (d *decoder) source(p *path, block string, v json.RawMessage) {
	if !d.object(p, v) {
		return
	}
	got := map[string]json.RawMessage{}
	eachField(v, func(key string, v json.RawMessage) { got[key] = v })
	if got["type"] == nil {
		d.fail(p.key("type"), "Field required")
		return
	}
	shapes := map[string][]string{
		"base64": {"data", "media_type"}, "url": {"url"}, "file": {"file_id"},
	}
	if block == "document" {
		shapes["text"], shapes["content"] = []string{"data", "media_type"}, []string{"content"}
	}
	typ := d.text(p.key("type"), got["type"])
	shape, ok := shapes[typ]
	if !ok {
		d.fail(p, "Input tag '%s' found using 'type' does not match any of the expected tags", typ)
		return
	}
	p = p.key(typ)
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if key != "type" && !slices.Contains(shape, key) {
			d.fail(p.key(key), extraInputs)
		}
	}
	for _, key := range shape {
		if got[key] == nil {
			d.fail(p.key(key), "Field required")
			return
		}
	}
	d.sourceOf(p, block, typ, got)
}

func (d *decoder) sourceOf(p *path, block, typ string, got map[string]json.RawMessage) {
	switch typ {
	case "url":
		d.length(p, "url", d.textAt(p, "url", got["url"]), 1<<16)
	case "file":
		d.length(p, "file_id", d.textAt(p, "file_id", got["file_id"]), 1<<10)
	case "content":
		_ = d.blocks(p.key("content"), got["content"], "document")
	case "text":
		d.oneOf(p.key("media_type"), got["media_type"], "text/plain")
		if d.text(p.key("data"), got["data"]) == "" {
			d.fail(p.key("data"), "String should have at least 1 character")
		}
	case "base64":
		if kindOf(got["data"]) != '"' {
			d.fail(p.key("data"), "Input should be a valid string")
			return
		}
		if block == "image" {
			d.image(p, got["media_type"], got["data"])
			return
		}
		d.oneOf(p.key("media_type"), got["media_type"], "application/pdf")
		head, err := base64Head(got["data"])
		switch {
		case err != nil:
			d.fail(p.key("data"), "Invalid base64 data")
		case !bytes.HasPrefix(head, []byte("%PDF-")):
			d.fail(p, "The PDF specified was not valid.")
		}
	}
}

// image checks an inline image: its size, its bytes against its media type, and
// how many pixels it has.
func (d *decoder) image(p *path, media, data json.RawMessage) {
	typ := d.oneOf(p.key("media_type"), media, "image/jpeg", "image/png", "image/gif", "image/webp")
	size := len(data) - 2
	if size > maxImageBase64 {
		d.fail(p, "image exceeds 5 MB maximum: %d bytes > %d bytes", size, maxImageBase64)
		return
	}
	head, err := base64Head(data)
	if err != nil {
		d.fail(p.key("data"), "Invalid base64 data")
		return
	}
	is := imageType(head)
	switch {
	case size == 0:
		d.fail(p, "image cannot be empty")
		return
	case is == "":
		d.fail(p, "Could not process image")
		return
	case is != typ:
		d.fail(p, "The image was specified using the %s media type, but the image appears to be a %s image", typ, is)
		return
	}
	config, err := imageConfig(is, base64.NewDecoder(base64.StdEncoding, bytes.NewReader(data[1:len(data)-1])))
	if err != nil || config.Width == 0 || config.Height == 0 {
		d.fail(p, "Could not process image")
		return
	}
	d.images = append(d.images, imageAt{p.String(), max(config.Width, config.Height)})
}

// imageRules checks the images against their number.
func (d *decoder) imageRules() {
	for _, i := range d.images {
		switch {
		case i.side > maxImageSide:
			d.failAt(i.at, "At least one of the image dimensions exceed max allowed size: %d pixels", maxImageSide)
		case i.side > maxManySide && len(d.images) > manyImages:
			d.failAt(i.at, "At least one of the image dimensions exceed max allowed size for many-image requests: %d pixels", maxManySide)
		}
	}
}

// base64Head checks all of a quoted base64 string and returns its first bytes.
func base64Head(quoted json.RawMessage) ([]byte, error) {
	text := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(text, '\\') >= 0 {
		return nil, errors.New("an escape in base64")
	}
	dec := base64.NewDecoder(base64.StdEncoding.Strict(), bytes.NewReader(text))
	head := make([]byte, 16)
	n, err := io.ReadFull(dec, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) && len(text)%4 != 0 {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, dec); err != nil {
		return nil, err
	}
	return head[:n], nil
}

// imageType is the media type that the first bytes of an image tell.
func imageType(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return "image/gif"
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}

func imageConfig(media string, r io.Reader) (image.Config, error) {
	switch media {
	case "image/png":
		return png.DecodeConfig(r)
	case "image/jpeg":
		return jpeg.DecodeConfig(r)
	case "image/gif":
		return gif.DecodeConfig(r)
	}
	return webp.DecodeConfig(r)
}
