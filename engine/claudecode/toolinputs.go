package claudecode

import (
	"bytes"
	"encoding/json"
	"iter"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/tenon-sdk/tenon/engine/claudecode/event"
)

// toolInputs keeps what the CLI loses of the inputs of tool calls.
//
// The CLI reads inputs into JavaScript values, which rounds integers above 2^53 and drops the zero of
// 1.50. The text that the model wrote is in the model's stream. Where the CLI's input is the same but
// for its numbers, that text replaces it: in messages, hooks, permission callbacks and calls of
// servers in this process (requirement D97). The texts of inputs that the program gives are kept in
// the same way. Inputs that others have changed are left alone.
type toolInputs struct {
	mu      sync.Mutex // guards the rest
	blocks  map[blockKey]*toolBlock
	calls   map[string]*toolCall // by ID
	outputs []string             // IDs of the calls that gave the turn's structured output
}

// A blockKey identifies a content block of the stream. parent is the call whose subagent it is of.
type blockKey struct {
	parent string
	index  int
}

// A toolBlock is a tool call in the stream.
type toolBlock struct {
	id   string
	text strings.Builder
}

// A toolCall is what is known of a call.
type toolCall struct {
	texts    []json.RawMessage // the input as the model, and then the program, wrote it, where the CLI rounds it
	seen     []json.RawMessage // inputs that the program has seen or made, if its hooks saw the call
	result   json.RawMessage   // the tool's own result, if the CLI was given another
	streamed bool              // the call was in the stream
	emptied  bool              // a callback replaced the input by {}
	open     bool              // the call is a subagent's and has no result: it may outlive the turn
}

func newToolInputs() *toolInputs {
	return &toolInputs{blocks: map[blockKey]*toolBlock{}, calls: map[string]*toolCall{}}
}

// call returns what is known of a call. The caller holds t.mu.
func (t *toolInputs) call(id string) *toolCall {
	c := t.calls[id]
	if c == nil {
		c = new(toolCall)
		t.calls[id] = c
	}
	return c
}

// note calls f with what is known of a call.
func (t *toolInputs) note(id string, f func(*toolCall)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(t.call(id))
}

// known returns the result of f with what is known of a call.
func known[T any](t *toolInputs, id string, f func(*toolCall) T) (v T) {
	t.note(id, func(c *toolCall) { v = f(c) })
	return v
}

// add adds a part of the stream.
func (t *toolInputs) add(part *event.ToolInput) {
	key := blockKey{part.Parent, part.Index}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case part.Starts && part.ID != "":
		t.blocks[key] = &toolBlock{id: part.ID}
	case part.Starts:
		delete(t.blocks, key)
	case t.blocks[key] != nil:
		t.blocks[key].text.WriteString(part.Piece)
	}
}

// complete returns the input of a call that the CLI has read completely, as the model wrote it. The
// CLI reports a call before the end of its content block.
func (t *toolInputs) complete(id string, got json.RawMessage) json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.call(id)
	for key, b := range t.blocks {
		if b.id != id {
			continue
		}
		delete(t.blocks, key)
		c.streamed = true
		if text := json.RawMessage(b.text.String()); !sameExact(text, got) && sameRounded(text, got) {
			c.texts = append(c.texts, text)
		}
	}
	return c.restore(got)
}

// restore returns the text of which got is the CLI's form, or got.
func (c *toolCall) restore(got json.RawMessage) json.RawMessage {
	for _, text := range slices.Backward(c.texts) { // the program's before the model's
		if sameRounded(text, got) {
			return text
		}
	}
	return got
}

// restore returns the input of a call as it was written, if got is the CLI's form of it.
func (t *toolInputs) restore(id string, got json.RawMessage) json.RawMessage {
	return known(t, id, func(c *toolCall) json.RawMessage { return c.restore(got) })
}

// inCall returns the input with which a call is made.
func (t *toolInputs) inCall(id string, got json.RawMessage) json.RawMessage {
	if known(t, id, func(c *toolCall) bool { return c.emptied }) {
		return json.RawMessage("{}")
	}
	return t.restore(id, got)
}

// empty notes that a callback replaced the input of a call by {}, which the CLI takes for no change.
func (t *toolInputs) empty(id string) {
	t.note(id, func(c *toolCall) { c.emptied = true })
}

// replace notes an input that the program gives a call in place of input. If several hooks do, the CLI
// chooses. A number that the CLI may have rounded does not become certain by being passed on.
func (t *toolInputs) replace(id string, input, updated json.RawMessage) {
	if id == "" || len(updated) == 0 || isLossless(updated) || passesOn(updated, input) && !t.certain(id, input) {
		return
	}
	t.note(id, func(c *toolCall) { c.texts = append(c.texts, slices.Clone(updated)) })
}

// certain reports whether an input has the digits that the model or the program wrote.
func (t *toolInputs) certain(id string, input json.RawMessage) bool {
	return known(t, id, func(c *toolCall) bool {
		return c.streamed || slices.ContainsFunc(c.texts, func(text json.RawMessage) bool { return sameExact(text, input) })
	})
}

// saw notes an input that the program's hooks have seen or made.
func (t *toolInputs) saw(id string, input json.RawMessage) {
	t.note(id, func(c *toolCall) { c.seen = append(c.seen, input) })
}

// approved notes an input that the program has seen or made in a permission callback.
func (t *toolInputs) approved(id string, input json.RawMessage) {
	t.note(id, func(c *toolCall) {
		if len(c.seen) > 0 {
			c.seen = append(c.seen, input)
		}
	})
}

// unseen reports whether the program's hooks have seen a call, but not with this input.
func (t *toolInputs) unseen(id string, input json.RawMessage) bool {
	seen := known(t, id, func(c *toolCall) []json.RawMessage { return c.seen })
	return len(seen) > 0 && !slices.ContainsFunc(seen, func(s json.RawMessage) bool { return bytes.Equal(s, input) || sameRounded(s, input) })
}

// outputTool is the CLI's tool by which the model gives structured output.
const outputTool = "StructuredOutput"

// gaveOutput notes a call that gives the turn's structured output.
func (t *toolInputs) gaveOutput(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.outputs = append(t.outputs, id)
}

// restoreOutput returns the structured output of the turn as the model wrote it.
func (t *toolInputs) restoreOutput(got json.RawMessage) json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, id := range slices.Backward(t.outputs) {
		if text := t.call(id).restore(got); !bytes.Equal(text, got) {
			return text
		}
	}
	return got
}

// keepResult keeps the tool's own result of a call, in the CLI's form.
func (t *toolInputs) keepResult(id string, result json.RawMessage) {
	t.note(id, func(c *toolCall) { c.result = result })
}

// result returns the tool's own result of a call, or nil if the CLI has it.
func (t *toolInputs) result(id string) json.RawMessage {
	return known(t, id, func(c *toolCall) json.RawMessage { return c.result })
}

// setOpen notes whether a call of a subagent waits for its result.
func (t *toolInputs) setOpen(id string, open bool) {
	t.note(id, func(c *toolCall) { c.open = open })
}

// endTurn forgets the calls of the turn, except those that continue in the background.
func (t *toolInputs) endTurn() {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.blocks, func(key blockKey, _ *toolBlock) bool { return key.parent == "" })
	maps.DeleteFunc(t.calls, func(_ string, c *toolCall) bool { return !c.open })
	t.outputs = nil
}

// inHook returns the input of a hook with the inputs and results of the calls in it restored.
func (t *toolInputs) inHook(raw json.RawMessage) json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return raw
	}
	changed := t.inMembers(m)
	var calls []map[string]json.RawMessage
	if json.Unmarshal(m["tool_calls"], &calls) == nil {
		for _, c := range calls {
			changed = t.inMembers(c) || changed
		}
		m["tool_calls"] = encode(calls, m["tool_calls"])
	}
	if !changed {
		return raw
	}
	return encode(m, raw)
}

// encode returns the JSON of a value, or before if it cannot be encoded.
func encode(v any, before json.RawMessage) json.RawMessage {
	out, err := json.Marshal(v)
	if err != nil {
		return before
	}
	return out
}

// inMembers restores the call in an object with the members tool_use_id, tool_input and tool_response.
// It reports whether it changed any.
func (t *toolInputs) inMembers(m map[string]json.RawMessage) (changed bool) {
	var id string
	if json.Unmarshal(m["tool_use_id"], &id) != nil || m["tool_input"] == nil {
		return false
	}
	restored := t.restore(id, m["tool_input"])
	changed = !bytes.Equal(restored, m["tool_input"])
	m["tool_input"] = restored
	if result := t.result(id); result != nil && m["tool_response"] != nil {
		m["tool_response"], changed = result, true
	}
	return changed
}

// toolUseIDKey is the key in _meta of a tools/call request for the model's ID of the call.
const toolUseIDKey = "claudecode/toolUseId"

// A toolsCall is what is read of a tools/call request.
type toolsCall struct {
	requestID json.RawMessage
	name, id  string // id is the model's
	input     json.RawMessage
}

// readToolsCall reads a JSON-RPC message. It reports false for messages that are not calls of a model.
func readToolsCall(raw json.RawMessage) (c toolsCall, ok bool) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
			Meta      struct {
				ID string `json:"claudecode/toolUseId"`
			} `json:"_meta"`
		} `json:"params"`
	}
	_ = json.Unmarshal(raw, &m) // the bridge reports a faulty message
	c = toolsCall{m.ID, m.Params.Name, m.Params.Meta.ID, m.Params.Arguments}
	return c, m.Method == "tools/call" && c.id != ""
}

// withInput returns a tools/call request with another input.
func withInput(raw, input json.RawMessage) json.RawMessage {
	var m, params map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil || json.Unmarshal(m["params"], &params) != nil {
		return raw
	}
	params["arguments"] = input
	m["params"] = encode(params, m["params"])
	return encode(m, raw)
}

// maxSafeInteger is the greatest integer that a float64 tells from its neighbours. The CLI reads the
// inputs of tool calls into JavaScript numbers, which are float64.
const maxSafeInteger = 1<<53 - 1

// numbers returns the numbers in JSON. It ends where the JSON is invalid.
func numbers(raw json.RawMessage) iter.Seq[json.Number] {
	return func(yield func(json.Number) bool) {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		for {
			token, err := d.Token()
			if err != nil {
				return
			}
			if n, ok := token.(json.Number); ok && !yield(n) {
				return
			}
		}
	}
}

// allowsNumbers reports whether a schema names a type of numbers, or names no members at all.
func allowsNumbers(schema json.RawMessage) bool {
	return bytes.Contains(schema, []byte(`"integer"`)) || bytes.Contains(schema, []byte(`"number"`)) || !bytes.Contains(schema, []byte(`"properties"`))
}

// isUnsafe reports whether a number is an integer that another one is rounded to.
func isUnsafe(n json.Number) bool {
	f, err := n.Float64()
	return err == nil && (f > maxSafeInteger || f < -maxSafeInteger)
}

// unsafeInteger returns the first number in JSON that the CLI may have rounded, or "".
func unsafeInteger(raw json.RawMessage) string {
	for n := range numbers(raw) {
		if isUnsafe(n) {
			return n.String()
		}
	}
	return ""
}

// passesOn reports whether updated has an unsafe integer of input: callbacks pass on what they get,
// which the CLI may have rounded.
func passesOn(updated, input json.RawMessage) bool {
	got := map[string]bool{}
	for n := range numbers(input) {
		if !isUnsafe(n) {
			continue
		}
		got[exact(n)] = true
		if f, err := n.Float64(); err == nil { // as a callback reads it that decodes into float64
			got[new(big.Rat).SetFloat64(f).String()] = true
		}
	}
	for n := range numbers(updated) {
		if isUnsafe(n) && got[exact(n)] {
			return true
		}
	}
	return false
}

// maxExact is the length from which exact returns a number as it is: exponents make small texts large.
const maxExact = 400

// exact returns the value of a number in a form that does not depend on how it is written.
func exact(n json.Number) string {
	if len(n) > maxExact {
		return n.String()
	}
	if r, ok := new(big.Rat).SetString(n.String()); ok {
		return r.String()
	}
	return n.String()
}

// isLossless reports whether JSON keeps its numbers, as they are written, when it is read into float64.
func isLossless(raw json.RawMessage) bool {
	for n := range numbers(raw) {
		f, err := n.Float64()
		if err != nil {
			return false
		}
		if text, err := json.Marshal(f); err != nil || string(text) != n.String() {
			return false
		}
	}
	return json.Valid(raw)
}

// sameRounded reports whether two texts are the same JSON once their numbers are float64.
func sameRounded(a, b json.RawMessage) bool { return equalJSON(a, b, false) }

// sameExact reports whether two texts are the same JSON with the same digits.
func sameExact(a, b json.RawMessage) bool { return equalJSON(a, b, true) }

func equalJSON(a, b json.RawMessage, exact bool) bool {
	var values [2]any
	for i, raw := range []json.RawMessage{a, b} {
		d := json.NewDecoder(bytes.NewReader(raw))
		if exact {
			d.UseNumber()
		}
		if d.Decode(&values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}
