package transcript

import (
	"regexp"
	"strings"

	"github.com/google/uuid"
)

// illegal matches what the API takes neither in an ID nor in the name of a tool.
var illegal = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// legal is s with _ for what the API does not take.
func legal(s string) string {
	if !illegal.MatchString(s) {
		return s
	}
	return illegal.ReplaceAllString(s, "_")
}

// Identify returns the ID of a new tool call: that of the model if the API accepts it back and the
// conversation does not have it yet, or else a new one.
func (h *History) Identify(id string) string {
	id = legal(id)
	if id == "" || h.ids[id] {
		id = "toolu_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	}
	if h.ids == nil {
		h.ids = map[string]bool{}
	}
	h.ids[id] = true
	return id
}

// ValidName is a tool's name as the API takes it back, whatever the model made of it.
func ValidName(name string) string {
	if name = legal(name); name == "" {
		return "unnamed"
	}
	return name[:min(len(name), 128)]
}

// dated matches the date, and the version of a cloud platform, at the end of a model ID.
var dated = regexp.MustCompile(`[-@]\d{8}(-v\d+(:\d+)?)?$`)

// PlainModel is a model's name without a date, and without what cloud platforms put before it.
func PlainModel(model string) string {
	model = dated.ReplaceAllString(model, "")
	if i := strings.LastIndex(model, "claude-"); i > 0 {
		model = model[i:] // us.anthropic.claude-opus-5
	}
	return model
}

// sameModel reports whether two names are of one model.
func sameModel(a, b string) bool { return PlainModel(a) == PlainModel(b) }
