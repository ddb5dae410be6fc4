package native

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tenon-sdk/tenon/agent"
)

// message is the block as the program hears it. That of a whole block is made once.
func (b *block) message() agent.Block {
	if !b.done {
		return b.makeMessage()
	}
	if b.made == nil {
		b.made = b.makeMessage()
	}
	return b.made
}

func (b *block) makeMessage() agent.Block {
	switch b.kind {
	case "text":
		t := &agent.TextBlock{Text: b.text.String()}
		if len(b.citations) > 0 {
			t.Extra = agent.Fields{"citations": encode(b.citations)}
		}
		return t
	case "thinking":
		return &agent.ThinkingBlock{Thinking: b.text.String(), Signature: b.signature.String()}
	case "tool_use":
		input, _ := b.arguments()
		return &agent.ToolUseBlock{ID: b.id, Name: b.name, Input: input, Extra: b.extra()}
	}
	return agent.DecodeBlock(b.merged())
}

// extra are the fields of a tool call that have no name here.
func (b *block) extra() agent.Fields {
	fields := b.fields()
	for _, known := range []string{"type", "id", "name", "input"} {
		delete(fields, known)
	}
	if len(fields) == 0 {
		return nil
	}
	return fields
}

// sent is the block as it goes back to the model; false if it must not.
func (b *block) sent() (part, bool) {
	switch b.kind {
	case "text":
		// The API refuses empty texts, which it sometimes says itself.
		return part{raw: encodeBlock(b.message())}, !isBlank(b.text.String())
	case "thinking":
		// Without a signature it was cut off, or comes from a server that does not sign.
		return part{raw: encodeBlock(b.message()), thought: true}, b.signature.Len() > 0
	case "redacted_thinking":
		return part{raw: canonical(encode(b.merged())), thought: true}, true
	case "tool_use":
		sent := *b.message().(*agent.ToolUseBlock)
		sent.Name = validName(sent.Name)
		return part{raw: encodeBlock(&sent)}, true
	}
	return part{raw: canonical(encode(b.merged()))}, true
}

// merged is the block's start with what the deltas brought.
func (b *block) merged() json.RawMessage {
	if b.input.Len() == 0 && len(b.other) == 0 && len(b.citations) == 0 {
		return b.start
	}
	fields := b.fields()
	if fields == nil {
		return b.start
	}
	if b.input.Len() > 0 && json.Valid(b.input.Bytes()) {
		fields["input"] = bytes.Clone(b.input.Bytes())
	}
	return encode(fields)
}

// fields are those of the block's start, with what the deltas brought but a tool call's input; nil if the
// start is no object.
func (b *block) fields() agent.Fields {
	var fields agent.Fields
	if json.Unmarshal(b.start, &fields) != nil || fields == nil {
		return nil
	}
	for name, g := range b.other {
		fields[name] = g.json()
	}
	if len(b.citations) > 0 {
		fields["citations"] = encode(b.citations)
	}
	return fields
}

// arguments are a tool call's arguments. No input at all is {}. What is not a JSON object is an
// error for the model, and {} stands in for it.
func (b *block) arguments() (json.RawMessage, error) {
	raw := bytes.TrimSpace(b.input.Bytes())
	if len(raw) == 0 {
		var start struct {
			Input json.RawMessage `json:"input"`
		}
		if json.Unmarshal(b.start, &start) == nil { // a server that sends the whole call at once
			raw = bytes.TrimSpace(start.Input)
		}
	}
	empty := json.RawMessage("{}")
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return empty, nil
	case !json.Valid(raw):
		return empty, fmt.Errorf("it is not valid JSON: %s", clip(string(raw), 200))
	case raw[0] != '{':
		return empty, fmt.Errorf("it is not a JSON object: %s", clip(string(raw), 200))
	}
	return fixSurrogates(bytes.Clone(raw)), nil
}
