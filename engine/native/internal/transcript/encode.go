package transcript

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

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
