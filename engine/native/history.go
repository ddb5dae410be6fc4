package native

import (
	"encoding/json"
	"slices"
	"strings"

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

// trimmed is the history as it is sent: the API refuses one that ends with white space of the model's,
// which a response that is gone on with may do.
func (h *history) trimmed() *history {
	n := len(h.entries)
	if n == 0 || h.entries[n-1].role != roleAssistant {
		return h
	}
	last := h.entries[n-1]
	text, ok := agent.DecodeBlock(last.parts[len(last.parts)-1].raw).(*agent.TextBlock)
	if !ok || strings.TrimRight(text.Text, " \t\r\n") == text.Text {
		return h
	}
	text.Text = strings.TrimRight(text.Text, " \t\r\n")
	last.parts = slices.Clone(last.parts)
	last.parts[len(last.parts)-1].raw = encodeBlock(text)
	sent := &history{entries: slices.Clone(h.entries), ids: h.ids}
	sent.entries[n-1] = last
	return sent
}
