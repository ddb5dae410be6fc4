package native

import (
	"bytes"
	"encoding/json"
	"unicode"
	"unicode/utf8"

	"github.com/tenon-sdk/tenon/agent"
)

// An entry is one message of the conversation. Its blocks are kept as the bytes that are sent, so
// that every request begins with the bytes of the one before.
type entry struct {
	role  string
	parts []part
	calls []string // the ids of an assistant's tool calls
	model string   // that said it; empty for the user's
}

// A part is a content block as it is sent.
type part struct {
	raw     json.RawMessage
	thought bool // a thinking block: see thoughtPolicy
	// plain stands for raw where the API takes no tool references; nil if raw has none.
	plain json.RawMessage
	// mark is the breakpoint of the cache that the program has set on the block; nil if it has none.
	mark json.RawMessage
}

// A history is the conversation as the model is sent it. It is always one that the API takes:
// roles alternate, no block is empty, and every tool call is answered by the entry after it.
type history struct {
	entries []entry
	ids     map[string]bool // of all tool calls so far; the API wants them unique
}

const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

// addUser adds blocks in the user's role, to the last entry if that is the user's too.
func (h *history) addUser(parts ...part) {
	if len(parts) == 0 {
		return
	}
	if n := len(h.entries); n > 0 && h.entries[n-1].role == roleUser {
		last := &h.entries[n-1]
		last.parts = append(last.parts, parts...)
		return
	}
	h.entries = append(h.entries, entry{role: roleUser, parts: parts})
}

// addAssistant adds what a model said. A message must not end in a thought, so thoughts at the end
// are left out, and nothing is added for a message without anything else.
func (h *history) addAssistant(model string, parts []part, calls []string) {
	for len(parts) > 0 && parts[len(parts)-1].thought {
		parts = parts[:len(parts)-1]
	}
	if len(parts) == 0 {
		return
	}
	if n := len(h.entries); n > 0 && h.entries[n-1].role == roleAssistant { // after pause_turn
		last := &h.entries[n-1]
		last.parts = append(last.parts, parts...)
		last.calls = append(last.calls, calls...)
		return
	}
	h.entries = append(h.entries, entry{role: roleAssistant, parts: parts, calls: calls, model: model})
}

// A mark is a point in a history to go back to.
type mark struct{ entries, parts int }

func (h *history) mark() mark {
	m := mark{entries: len(h.entries)}
	if m.entries > 0 {
		m.parts = len(h.entries[m.entries-1].parts)
	}
	return m
}

// rewind forgets what was added since m.
func (h *history) rewind(m mark) {
	clear(h.entries[m.entries:])
	h.entries = h.entries[:m.entries]
	if m.entries > 0 {
		last := &h.entries[m.entries-1]
		last.parts = last.parts[:m.parts]
	}
}

// A thoughtPolicy says which thoughts of the conversation a request repeats. Models differ in what
// they accept: newer ones refuse those of another model, older ones miss any that is left out.
type thoughtPolicy int

const (
	ownThoughts thoughtPolicy = iota // those of the model that is asked
	allThoughts
	noThoughts
)

// sends reports whether a thought of one model goes to another.
func (p thoughtPolicy) sends(of, to string) bool {
	return p == allThoughts || p == ownThoughts && of == to
}

// appendTo appends the messages as a JSON array for a model, with breakpoints of the cache at the given
// places. plain leaves out tool references.
func (h *history) appendTo(b []byte, model string, thoughts thoughtPolicy, plain bool, marks map[place]json.RawMessage) []byte {
	b = append(b, '[')
	for i, e := range h.entries {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"role":"`...)
		b = append(b, e.role...)
		b = append(b, `","content":[`...)
		sends, begun := thoughts.sends(e.model, model), false
		for j, p := range e.parts {
			if p.thought && !sends {
				continue
			}
			if begun {
				b = append(b, ',')
			}
			begun = true
			raw := p.raw
			if plain && p.plain != nil {
				raw = p.plain
			}
			if mark := marks[place{i, j}]; mark != nil {
				raw = withMark(raw, mark)
			}
			b = append(b, raw...)
		}
		b = append(b, `]}`...)
	}
	return append(b, ']')
}

// size is about the number of bytes that the messages take.
func (h *history) size() int {
	n := 2 + maxMarks*50
	for _, e := range h.entries {
		n += 40
		for _, p := range e.parts {
			n += len(p.raw) + 1
		}
	}
	return n
}

// textPart is a text block of the run's own.
func textPart(text string) part { return part{raw: encode(&agent.TextBlock{Text: text})} }

func isBlank(text string) bool {
	for _, r := range text {
		if !unicode.IsSpace(r) {
			return false
		}
	}
	return true
}

// encode encodes a value that cannot fail to: its parts are strings and JSON that was checked.
// Invalid UTF-8 and lone surrogates become U+FFFD.
func encode(v any) json.RawMessage {
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
	return fixSurrogates(raw)
}

// fixSurrogates replaces the escapes of lone surrogates in JSON text, which the API refuses, by that of U+FFFD.
func fixSurrogates(raw json.RawMessage) json.RawMessage {
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
