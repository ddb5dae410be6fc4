package transcript

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

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
	return Canonical(Encode(b))
}

// Canonical gives JSON text the escapes that json.Marshal gives it, and takes away those of U+FFFD.
func Canonical(raw json.RawMessage) json.RawMessage {
	if bytes.ContainsAny(raw, "<>&") || bytes.Contains(raw, []byte("\u2028")) || bytes.Contains(raw, []byte("\u2029")) {
		var b bytes.Buffer
		json.HTMLEscape(&b, raw)
		raw = b.Bytes()
	}
	if !bytes.Contains(raw, []byte(`\ufffd`)) && !bytes.Contains(raw, []byte(`\uFFFD`)) {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		switch {
		case raw[i] != '\\' || i+1 >= len(raw):
			out = append(out, raw[i])
		case i+6 <= len(raw) && bytes.EqualFold(raw[i:i+6], []byte(`\ufffd`)) && raw[i+1] == 'u':
			out = append(out, "\uFFFD"...)
			i += 5
		default:
			out = append(out, raw[i], raw[i+1])
			i++
		}
	}
	return out
}

// TextPart is a text block of the run's own.
func TextPart(text string) Part { return Part{Raw: Encode(&agent.TextBlock{Text: text})} }

func IsBlank(text string) bool {
	for _, r := range text {
		if !unicode.IsSpace(r) {
			return false
		}
	}
	return true
}

// Encode encodes a value that cannot fail to: its parts are strings and JSON that was checked.
// Invalid UTF-8 and lone surrogates become U+FFFD.
func Encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		b.Reset()
		_ = enc.Encode(map[string]string{"type": "text", "text": "[a block that could not be encoded: " + err.Error() + "]"})
	}
	raw := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	return FixSurrogates(raw)
}

// FixSurrogates replaces the escapes of lone surrogates in JSON text, which the API refuses, by that of U+FFFD.
func FixSurrogates(raw json.RawMessage) json.RawMessage {
	var out []byte
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' || i+1 >= len(raw) {
			continue
		}
		if raw[i+1] != 'u' {
			i++
			continue
		}
		switch {
		case isSurrogate(raw, i, 'd', '8', 'b') && isSurrogate(raw, i+6, 'd', 'c', 'f'):
			i += 11
		case isSurrogate(raw, i, 'd', '8', 'f'):
			if out == nil {
				out = bytes.Clone(raw)
			}
			copy(out[i:], `\ufffd`)
			i += 5
		default:
			i += 5
		}
	}
	if out != nil {
		return out
	}
	return raw
}

// isSurrogate reports whether raw has an escape at i whose first digit is d and whose second is in lo..hi.
func isSurrogate(raw []byte, i int, d, lo, hi byte) bool {
	if i+6 > len(raw) || raw[i] != '\\' || raw[i+1] != 'u' {
		return false
	}
	second := lower(raw[i+3])
	return lower(raw[i+2]) == d && second >= lo && second <= hi
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// DecodeLoose decodes what is only for display: what does not fit stays empty.
func DecodeLoose(raw json.RawMessage, v any) {
	if len(raw) > 0 {
		_ = json.Unmarshal(raw, v)
	}
}
