package messages

import (
	"encoding/json"
	"strconv"

	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
)

// A Request is what is the same in every request of a turn, beside the conversation.
type Request struct {
	Model       string
	MaxTokens   int
	System      json.RawMessage // an array of text blocks; nil for none
	Tools       json.RawMessage // an array; nil for none
	Thinking    json.RawMessage // nil leaves it to the model
	Output      json.RawMessage // output_config; nil for none
	Thoughts    transcript.ThoughtPolicy
	Breakpoints transcript.Breakpoints // the breakpoints of the cache
	Plain       bool                   // no tool references
}

// Body encodes the request. Equal input gives equal bytes, and a longer conversation gives a body
// that differs only in its last messages and their breakpoints. messages is how many bytes the conversation takes.
func (r *Request) Body(h *transcript.History) (body []byte, messages int) {
	b := make([]byte, 0, 512+len(r.System)+len(r.Tools)+h.Size())
	b = append(b, `{"model":`...)
	b = append(b, transcript.Encode(r.Model)...)
	b = append(b, `,"max_tokens":`...)
	b = strconv.AppendInt(b, int64(r.MaxTokens), 10)
	b = append(b, `,"stream":true`...)
	for _, f := range []struct {
		name  string
		value json.RawMessage
	}{{"thinking", r.Thinking}, {"output_config", r.Output}, {"tools", r.Tools}, {"system", r.System}} {
		if len(f.value) > 0 {
			b = append(b, `,"`+f.name+`":`...)
			b = append(b, f.value...)
		}
	}
	b = append(b, `,"messages":`...)
	before := len(b)
	b = h.AppendTo(b, r.Model, r.Thoughts, r.Plain, r.Breakpoints.Parts)
	messages = len(b) - before
	return append(b, '}'), messages
}

// SystemBlocks encodes a system prompt; nil if there is none.
func SystemBlocks(texts ...string) []json.RawMessage {
	var blocks []json.RawMessage
	for _, t := range texts {
		if !transcript.IsBlank(t) {
			blocks = append(blocks, transcript.TextPart(t).Raw)
		}
	}
	return blocks
}

// EncodeBlocks encodes blocks as an array, with a breakpoint of the cache at its end if mark is set; nil for none.
func EncodeBlocks(blocks []json.RawMessage, mark bool) json.RawMessage {
	n := len(blocks)
	if n == 0 {
		return nil
	}
	if mark {
		blocks = append(blocks[:n-1:n-1], transcript.WithBreakpoint(blocks[n-1], transcript.Ephemeral))
	}
	return transcript.Encode(blocks)
}
