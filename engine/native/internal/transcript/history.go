// Package transcript holds a conversation as the Messages API accepts it: its messages as the bytes that
// are sent, loaded from an earlier run and repaired, or grown turn by turn.
package transcript

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
)

// An entry is a message of the conversation. Its blocks are the bytes that are sent, so that each request
// begins with the bytes of the one before.
type entry struct {
	Role  string
	Parts []Part
	Calls []string // the IDs of tool calls
	model string   // of an assistant message
}

// A Part is a content block as it is sent.
type Part struct {
	Raw     json.RawMessage
	Thought bool            // a thinking block: see ThoughtPolicy
	Plain   json.RawMessage // Raw without tool references; nil if it has none
	mark    json.RawMessage // the program's cache breakpoint; nil if it has none
}

// A History is the conversation as it is sent. The API accepts it: roles alternate, no block is empty, and
// every tool call is answered by the next entry.
type History struct {
	Entries []entry
	ids     map[string]bool // of all tool calls, which must be unique
}

// The roles of messages.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// AddUser adds blocks in the user's role, to the last entry if it has that role.
func (h *History) AddUser(parts ...Part) {
	if len(parts) == 0 {
		return
	}
	if n := len(h.Entries); n > 0 && h.Entries[n-1].Role == RoleUser {
		last := &h.Entries[n-1]
		last.Parts = append(last.Parts, parts...)
		return
	}
	h.Entries = append(h.Entries, entry{Role: RoleUser, Parts: parts})
}

// AddAssistant adds a message of a model without thoughts at its end, which the API refuses.
func (h *History) AddAssistant(model string, parts []Part, calls []string) {
	for len(parts) > 0 && parts[len(parts)-1].Thought {
		parts = parts[:len(parts)-1]
	}
	if len(parts) == 0 {
		return
	}
	if n := len(h.Entries); n > 0 && h.Entries[n-1].Role == RoleAssistant { // after pause_turn
		last := &h.Entries[n-1]
		last.Parts = append(last.Parts, parts...)
		last.Calls = append(last.Calls, calls...)
		return
	}
	h.Entries = append(h.Entries, entry{Role: RoleAssistant, Parts: parts, Calls: calls, model: model})
}

// A Position is a point in a history to go back to.
type Position struct{ entries, parts int }

// Position returns the end of the history.
func (h *History) Position() Position {
	n := len(h.Entries)
	if n == 0 {
		return Position{}
	}
	return Position{n, len(h.Entries[n-1].Parts)}
}

// Rewind removes what was added since m.
func (h *History) Rewind(m Position) {
	clear(h.Entries[m.entries:])
	h.Entries = h.Entries[:m.entries]
	if m.entries > 0 {
		last := &h.Entries[m.entries-1]
		last.Parts = last.Parts[:m.parts]
	}
}

// A ThoughtPolicy selects the thoughts that a request repeats. Newer models refuse those of other models,
// older ones refuse a conversation without them.
type ThoughtPolicy int

// The policies.
const (
	ownThoughts ThoughtPolicy = iota // those of the model of the request
	AllThoughts
	NoThoughts
)

// sends reports whether a thought of one model is sent to another.
func (p ThoughtPolicy) sends(of, to string) bool {
	return p == AllThoughts || p == ownThoughts && of == to
}

// A Message is a message as it is sent.
type Message struct {
	Role    string            `json:"role"`
	Content []json.RawMessage `json:"content"`
}

// Messages returns the messages for a model, with cache breakpoints at the given places. plain leaves out
// tool references.
func (h *History) Messages(model string, thoughts ThoughtPolicy, plain bool, marks map[place]json.RawMessage) []Message {
	all := make([]Message, len(h.Entries))
	for i, e := range h.Entries {
		all[i] = Message{e.Role, make([]json.RawMessage, 0, len(e.Parts))}
		for j, p := range e.Parts {
			if p.Thought && !thoughts.sends(e.model, model) {
				continue
			}
			raw := p.Raw
			if plain && p.Plain != nil {
				raw = p.Plain
			}
			if mark := marks[place{i, j}]; mark != nil {
				raw = WithBreakpoint(raw, mark)
			}
			all[i].Content = append(all[i].Content, raw)
		}
	}
	return all
}

// Size is about the number of bytes that the messages take.
func (h *History) Size() int {
	n := 2 + MaxBreakpoints*50
	for _, e := range h.Entries {
		n += 40
		for _, p := range e.Parts {
			n += len(p.Raw) + 1
		}
	}
	return n
}

// Trimmed returns the history without white space at the end of a last message of the model, which the API
// refuses. Such a message is one that the model continues.
func (h *History) Trimmed() *History {
	n := len(h.Entries)
	if n == 0 || h.Entries[n-1].Role != RoleAssistant {
		return h
	}
	last := h.Entries[n-1]
	text, ok := agent.DecodeBlock(last.Parts[len(last.Parts)-1].Raw).(*agent.TextBlock)
	if !ok || strings.TrimRight(text.Text, " \t\r\n") == text.Text {
		return h
	}
	text.Text = strings.TrimRight(text.Text, " \t\r\n")
	last.Parts = slices.Clone(last.Parts)
	last.Parts[len(last.Parts)-1].Raw = EncodeBlock(text)
	sent := &History{Entries: slices.Clone(h.Entries), ids: h.ids}
	sent.Entries[n-1] = last
	return sent
}
