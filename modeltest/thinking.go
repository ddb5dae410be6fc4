package modeltest

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"sync"
)

// Signature returns the signature that a [Model] gives to a thinking block with the given text, and
// accepts. Use it in histories that a test writes.
func Signature(thinking string) string {
	sum := sha256.Sum256([]byte("tenon modeltest thinking\n" + thinking))
	return "Eq" + base64.StdEncoding.EncodeToString(sum[:])
}

// thoughts holds the thinking blocks of a model's answers.
type thoughts struct {
	mu     sync.Mutex          // guards the rest
	signed map[string]bool     // signatures that a script made up
	before map[string][]string // by the id of a tool call: the signatures before it
}

// given stores the thinking blocks of an answer.
func (t *thoughts) given(blocks []answerBlock) {
	var signatures []string
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range blocks {
		switch b.typ {
		case "thinking":
			signatures = append(signatures, b.signature)
			if b.signature != Signature(b.text) {
				if t.signed == nil {
					t.signed = map[string]bool{}
				}
				t.signed[b.signature] = true
			}
		case "tool_use":
			if len(signatures) > 0 {
				if t.before == nil {
					t.before = map[string][]string{}
				}
				t.before[b.id] = signatures
			}
		}
	}
}

// made reports whether a model signed this.
func (t *thoughts) made(thinking, signature string) bool {
	if signature != "" && signature == Signature(thinking) {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return signature != "" && t.signed[signature]
}

func (t *thoughts) beforeCall(id string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.before[id]
}

// thinkingBlocks checks the thinking blocks in a request: each has its signature, and none is
// missing while the tool calls after them are unfinished.
func (d *decoder) thinkingBlocks() {
	thinks := d.thinks()
	current := true // in the turn that is still going on
	for i, m := range slices.Backward(d.r.Messages) {
		if m.Role == "user" && len(leadingResults(m)) == 0 {
			current = false
		}
		if m.Role != "assistant" {
			continue
		}
		at := func(j int) *path { return (&path{name: "messages"}).at(i).key("content").at(j) }
		var signatures []string
		for j := range m.Content {
			c := &m.Content[j]
			switch {
			case c.Type == "thinking" && !d.thoughts.made(c.Thinking, c.Signature):
				d.fail(at(j), "Invalid `signature` in `thinking` block")
			case c.Type == "thinking":
				signatures = append(signatures, c.Signature)
			case c.Type == "tool_use" && current && thinks:
				if want := d.thoughts.beforeCall(c.ID); !slices.Equal(want, signatures) && len(want) > 0 {
					d.fail(at(j).key("type"), "Expected `thinking` or `redacted_thinking`, but found `tool_use`. "+
						"When `thinking` is enabled, the thinking blocks before a tool call must be sent back with it, complete, "+
						"unmodified and in their order.")
				}
			}
		}
	}
}

// thinks reports whether thinking is on.
func (d *decoder) thinks() bool {
	v := string(d.r.fields["thinking"])
	return strings.Contains(v, `"enabled"`) || strings.Contains(v, `"adaptive"`)
}
