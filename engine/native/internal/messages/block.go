package messages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/internal/clip"
)

// Message returns the block for the program.
func (b *Block) Message() agent.Block {
	switch b.Kind {
	case "text":
		t := &agent.TextBlock{Text: b.text.String()}
		if len(b.citations) > 0 {
			t.Extra = agent.Fields{"citations": transcript.Encode(b.citations)}
		}
		return t
	case "thinking":
		return &agent.ThinkingBlock{Thinking: b.text.String(), Signature: b.signature.String()}
	case "tool_use":
		input, _ := b.Arguments()
		return &agent.ToolUseBlock{ID: b.ID, Name: b.name, Input: input, Extra: b.extra()}
	}
	return agent.DecodeBlock(b.merged())
}

// extra returns the other fields of a tool call.
func (b *Block) extra() agent.Fields {
	fields := b.fields()
	for _, known := range []string{"type", "id", "name", "input"} {
		delete(fields, known)
	}
	if len(fields) == 0 {
		return nil
	}
	return fields
}

// Sent returns the block as later requests repeat it, and false if they must not.
func (b *Block) Sent() (transcript.Part, bool) {
	switch b.Kind {
	case "text": // the API refuses empty texts, which it sometimes returns itself
		return transcript.Part{Raw: transcript.EncodeBlock(b.Message())}, !transcript.IsBlank(b.text.String())
	case "thinking": // without a signature it is incomplete, or from a server that does not sign
		return transcript.Part{Raw: transcript.EncodeBlock(b.Message()), Thought: true}, b.signature.Len() > 0
	case "tool_use":
		use := b.Message().(*agent.ToolUseBlock)
		use.Name = transcript.ValidName(use.Name)
		return transcript.Part{Raw: transcript.EncodeBlock(use)}, true
	}
	return transcript.Part{Raw: transcript.Encode(b.merged()), Thought: b.Kind == "redacted_thinking"}, true
}

// merged returns the block's start with its deltas.
func (b *Block) merged() json.RawMessage {
	fields := b.fields()
	if fields == nil || b.Input.Len() == 0 && len(b.other) == 0 && len(b.citations) == 0 {
		return b.start
	}
	if json.Valid(b.Input.Bytes()) {
		fields["input"] = bytes.Clone(b.Input.Bytes())
	}
	return transcript.Encode(fields)
}

// fields returns the fields of the block's start with the deltas, except the input of a tool call. It is nil
// if the start is not an object.
func (b *Block) fields() agent.Fields {
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

// Arguments returns the arguments of a tool call, {} if there is no input. If the input is not a JSON object,
// Arguments returns {} and an error for the model.
func (b *Block) Arguments() (json.RawMessage, error) {
	raw := bytes.TrimSpace(b.Input.Bytes())
	if len(raw) == 0 { // some servers send the complete call in the block's start
		raw = bytes.TrimSpace(b.fields()["input"])
	}
	empty := json.RawMessage("{}")
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return empty, nil
	case !json.Valid(raw):
		return empty, fmt.Errorf("it is not valid JSON: %s", clip.Text(string(raw), 200))
	case raw[0] != '{':
		return empty, fmt.Errorf("it is not a JSON object: %s", clip.Text(string(raw), 200))
	}
	return transcript.Compact(raw), nil
}

// Text returns the text of a response.
func (r *Response) Text() string {
	var b strings.Builder
	for _, bl := range r.Blocks {
		if bl.Kind == "text" {
			b.Write(bl.text.Bytes())
		}
	}
	return b.String()
}

// Uses returns the complete tool calls. r may be nil.
func (r *Response) Uses() []*agent.ToolUseBlock {
	if r == nil {
		return nil
	}
	var uses []*agent.ToolUseBlock
	for _, b := range r.Blocks {
		if b.Kind == "tool_use" && b.Done {
			uses = append(uses, b.Message().(*agent.ToolUseBlock))
		}
	}
	return uses
}
