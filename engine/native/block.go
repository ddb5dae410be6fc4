package native

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
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
			t.Extra = agent.Fields{"citations": transcript.Encode(b.citations)}
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
func (b *block) sent() (transcript.Part, bool) {
	switch b.kind {
	case "text":
		// The API refuses empty texts, which it sometimes says itself.
		return transcript.Part{Raw: transcript.EncodeBlock(b.message())}, !transcript.IsBlank(b.text.String())
	case "thinking":
		// Without a signature it was cut off, or comes from a server that does not sign.
		return transcript.Part{Raw: transcript.EncodeBlock(b.message()), Thought: true}, b.signature.Len() > 0
	case "redacted_thinking":
		return transcript.Part{Raw: transcript.Canonical(transcript.Encode(b.merged())), Thought: true}, true
	case "tool_use":
		sent := *b.message().(*agent.ToolUseBlock)
		sent.Name = transcript.ValidName(sent.Name)
		return transcript.Part{Raw: transcript.EncodeBlock(&sent)}, true
	}
	return transcript.Part{Raw: transcript.Canonical(transcript.Encode(b.merged()))}, true
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
	return transcript.Encode(fields)
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
		fields["citations"] = transcript.Encode(b.citations)
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
		return empty, fmt.Errorf("it is not valid JSON: %s", transcript.Clip(string(raw), 200))
	case raw[0] != '{':
		return empty, fmt.Errorf("it is not a JSON object: %s", transcript.Clip(string(raw), 200))
	}
	return transcript.FixSurrogates(bytes.Clone(raw)), nil
}

// text is the text of a response.
func (r *response) text() string {
	var b strings.Builder
	for _, bl := range r.blocks {
		if bl.kind == "text" {
			b.Write(bl.text.Bytes())
		}
	}
	return b.String()
}

// calls are the whole calls in a response, as the program has heard of them. Nil has none.
func (r *response) calls() []*call {
	if r == nil {
		return nil
	}
	var calls []*call
	for _, b := range r.blocks {
		if b.kind == "tool_use" && b.done {
			calls = append(calls, &call{use: b.message().(*agent.ToolUseBlock)})
		}
	}
	return calls
}
