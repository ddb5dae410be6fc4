package transcript

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/tenon-sdk/tenon/agent"
)

// EncodeBlock encodes a block in the one form that it keeps: what the program hears of it, writes as
// JSON and gives back in [agent.Options.History] encodes as the same bytes.
func EncodeBlock(b agent.Block) json.RawMessage {
	switch t := b.(type) {
	case *agent.TextBlock:
		if !utf8.ValidString(t.Text) {
			valid := *t
			valid.Text = strings.ToValidUTF8(t.Text, "\uFFFD")
			b = &valid
		}
	case *agent.UnknownBlock:
		b = agent.DecodeBlock(Encode(t)) // it may be of a kind that is known
	}
	return Encode(b)
}

// anyText accepts the JSON text that encoding/json accepts.
var anyText = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// Compact returns JSON text without white space and with as few escapes as JSON needs. U+FFFD replaces
// invalid UTF-8 and lone surrogates, which the API refuses. Invalid text is returned as it is.
func Compact(raw json.RawMessage) json.RawMessage {
	out, err := jsontext.AppendFormat(nil, raw, anyText...)
	if err != nil {
		return raw
	}
	return out
}

// TextPart is a text block of the run's own.
func TextPart(text string) Part { return Part{Raw: Encode(&agent.TextBlock{Text: text})} }

// IsBlank reports whether a text has nothing but white space.
func IsBlank(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsSpace(r) })
}

// Encode encodes a value that consists of strings and checked JSON, which cannot fail. U+FFFD replaces
// invalid UTF-8 and lone surrogates.
func Encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return Encode(map[string]string{"type": "text", "text": "[a block that could not be encoded: " + err.Error() + "]"})
	}
	return Compact(raw)
}

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
