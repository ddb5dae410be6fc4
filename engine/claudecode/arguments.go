package claudecode

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// arguments keeps what the CLI would lose of the arguments of tool calls.
//
// The CLI reads them into JavaScript values, which rounds integers above 2^53 and drops the zero
// of 1.50. The text that the model wrote is in its stream, so that is read along where a tool may
// need it (see needsStream), and where the CLI's arguments are the same but for that, the model's
// text takes their place: in messages, in what hooks and permission callbacks are told, and in the
// calls of servers in this process (requirement D97). What a hook has changed is left alone; of new
// arguments that the program itself gives, the program's own text is kept in the same way.
//
// A verdict with an empty object as the new arguments counts as no change to the CLI; here it is
// kept and used for the call.
type arguments struct {
	mu      sync.Mutex // guards the rest
	blocks  map[blockKey]*streamedBlock
	written map[string][]json.RawMessage // by call: as the model, or the program, wrote them, where that differs
	emptied map[string]bool              // by call: a verdict took all arguments away
	results map[string]json.RawMessage   // by call: the tool's own result, where the CLI was given another
	read    map[string]bool              // calls that were in the stream: those of subagents are not
	open    map[string]bool              // calls of subagents that have no result yet: they may outlive the turn
	seen    map[string][]json.RawMessage // by call: inputs that the program has seen, if its hooks saw any
	outputs []string                     // the calls that gave the turn's structured output, the last one counts
}

// A blockKey is the place of a content block in the stream; parent is the call whose subagent speaks.
type blockKey struct {
	parent string
	index  int
}

type streamedBlock struct {
	id   string
	text strings.Builder
}

func newArguments() *arguments {
	return &arguments{
		blocks: map[blockKey]*streamedBlock{}, written: map[string][]json.RawMessage{}, emptied: map[string]bool{},
		results: map[string]json.RawMessage{}, seen: map[string][]json.RawMessage{}, read: map[string]bool{}, open: map[string]bool{},
	}
}

// streamed takes an event of the model's stream.
func (a *arguments) streamed(line []byte) {
	if !bytes.Contains(line, []byte("input_json_delta")) && !bytes.Contains(line, []byte("tool_use")) {
		return
	}
	m := readStreamEvent(line)
	key := blockKey{m.parent, m.index}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch m.kind {
	case "content_block_start":
		delete(a.blocks, key)
		if m.call != "" {
			a.blocks[key] = &streamedBlock{id: m.call}
		}
	case "content_block_delta":
		if b := a.blocks[key]; b != nil {
			b.text.WriteString(m.input)
		}
	}
}

// settle is told of a call that the CLI has read to its end, which it says before the end of the
// block is in the stream. It returns the arguments as the model wrote them.
func (a *arguments) settle(id string, got json.RawMessage) json.RawMessage {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, b := range a.blocks {
		if b.id != id {
			continue
		}
		delete(a.blocks, key)
		a.read[id] = true
		text := json.RawMessage(b.text.String())
		if !bytes.Equal(text, got) && exactNumbers(text) != exactNumbers(got) && sameRounded(text, got) {
			a.written[id] = append(a.written[id], text)
			return text
		}
	}
	return a.of(id, got)
}

// restore returns the arguments of a call as the model wrote them, if got is what the CLI made of them.
func (a *arguments) restore(id string, got json.RawMessage) json.RawMessage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of(id, got)
}

func (a *arguments) of(id string, got json.RawMessage) json.RawMessage {
	for _, text := range slices.Backward(a.written[id]) { // the program's before the model's
		if sameRounded(text, got) {
			return text
		}
	}
	return got
}

// outputTool is the tool of the CLI's by which the model gives structured output.
const outputTool = "StructuredOutput"

// gaveOutput notes that a call gives the turn's structured output.
func (a *arguments) gaveOutput(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.outputs = append(a.outputs, id)
}

// restoreOutput returns the structured output of the turn as the model wrote it.
func (a *arguments) restoreOutput(got json.RawMessage) json.RawMessage {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range slices.Backward(a.outputs) {
		if text := a.of(id, got); !bytes.Equal(text, got) {
			return text
		}
	}
	return got
}

// keepResult keeps a tool's own result for the program, in the CLI's form.
func (a *arguments) keepResult(id string, r *mcpserver.Result) {
	content := r.Content
	if content == nil {
		content = []mcp.Content{}
	}
	raw, err := json.Marshal(struct {
		Content    []mcp.Content   `json:"content"`
		Structured json.RawMessage `json:"structuredContent,omitempty"`
		Meta       mcp.Meta        `json:"_meta,omitempty"`
	}{content, r.StructuredContent, r.Meta})
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.results[id] = raw
}

// result returns a tool's own result, if the CLI was given another.
func (a *arguments) result(id string) (json.RawMessage, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	raw, ok := a.results[id]
	return raw, ok
}

// empty notes that a verdict took all arguments of a call away.
func (a *arguments) empty(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.emptied[id] = true
}

// replaced notes the arguments that the program has given a call. Several hooks may; which of them
// counts is the CLI's to say. Of those that the CLI rounds to the same, the last one counts.
func (a *arguments) replaced(id string, by json.RawMessage) {
	if len(by) == 0 || id == "" || smallNumbers(by) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.written[id] = append(a.written[id], slices.Clone(by))
}

// certain reports whether arguments are as the model or the program wrote them, and no work of the CLI's.
func (a *arguments) certain(id string, args json.RawMessage) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.read[id] {
		return true
	}
	exact := exactNumbers(args)
	return slices.ContainsFunc(a.written[id], func(text json.RawMessage) bool { return exactNumbers(text) == exact })
}

// call returns the arguments that a call is made with. It is made once.
func (a *arguments) call(id string, got json.RawMessage) json.RawMessage {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.emptied[id] {
		got = json.RawMessage("{}")
	}
	return a.of(id, got)
}

// inMessage returns a JSON-RPC message for a server with the arguments put right, if it is a call.
func (a *arguments) inMessage(raw json.RawMessage) json.RawMessage {
	if !bytes.Contains(raw, []byte(`"tools/call"`)) {
		return raw
	}
	id, got, ok := readCall(raw)
	if !ok {
		return raw
	}
	right := a.call(id, got)
	if bytes.Equal(right, got) {
		return raw
	}
	return withArguments(raw, right)
}

// withArguments returns a call with other arguments.
func withArguments(raw, arguments json.RawMessage) json.RawMessage {
	var m, params map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil || json.Unmarshal(m["params"], &params) != nil {
		return raw
	}
	params["arguments"] = arguments
	var err error
	if m["params"], err = json.Marshal(params); err != nil {
		return raw
	}
	out, err := json.Marshal(m)
	if err != nil {
		return raw
	}
	return out
}

// inHook returns a hook's input with the arguments in it put right.
func (a *arguments) inHook(raw json.RawMessage) json.RawMessage {
	a.mu.Lock()
	none := len(a.written) == 0 && len(a.results) == 0
	a.mu.Unlock()
	var m map[string]json.RawMessage
	if none || json.Unmarshal(raw, &m) != nil {
		return raw
	}
	changed := a.inCall(m)
	var calls []map[string]json.RawMessage
	if json.Unmarshal(m["tool_calls"], &calls) == nil {
		for _, c := range calls {
			changed = a.inCall(c) || changed
		}
		if list, err := json.Marshal(calls); err == nil && changed {
			m["tool_calls"] = list
		}
	}
	if !changed {
		return raw
	}
	out, err := json.Marshal(m)
	if err != nil {
		return raw
	}
	return out
}

// inCall puts the arguments of a call right that is written as tool_use_id and tool_input.
func (a *arguments) inCall(m map[string]json.RawMessage) bool {
	var id string
	if json.Unmarshal(m["tool_use_id"], &id) != nil || m["tool_input"] == nil {
		return false
	}
	right := a.restore(id, m["tool_input"])
	changed := !bytes.Equal(right, m["tool_input"])
	m["tool_input"] = right
	if raw, ok := a.result(id); ok && m["tool_response"] != nil {
		m["tool_response"], changed = raw, true
	}
	return changed
}

// opened notes a call of a subagent.
func (a *arguments) opened(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open[id] = true
}

// done notes that a call has its result.
func (a *arguments) done(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, id)
}

// turnEnded forgets the calls of the turn, but those that go on in the background.
func (a *arguments) turnEnded() {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.blocks, func(key blockKey, _ *streamedBlock) bool { return key.parent == "" })
	forget(a.read, a.open)
	forget(a.written, a.open)
	forget(a.emptied, a.open)
	forget(a.results, a.open)
	forget(a.seen, a.open)
	a.outputs = nil
}

// forget deletes what belongs to calls that are over.
func forget[V any](calls map[string]V, open map[string]bool) {
	maps.DeleteFunc(calls, func(id string, _ V) bool { return !open[id] })
}

// exactNumbers is JSON with its numbers digit by digit, in one form; empty for what is none.
func exactNumbers(raw json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return ""
	}
	out, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(out)
}

// sameRounded reports whether two texts are the same JSON once their numbers are double floats.
func sameRounded(a, b json.RawMessage) bool {
	norm := func(raw json.RawMessage) string {
		var v any
		if json.Unmarshal(raw, &v) != nil {
			return ""
		}
		out, err := json.Marshal(v)
		if err != nil {
			return ""
		}
		return string(out)
	}
	x := norm(a)
	return x != "" && x == norm(b)
}
