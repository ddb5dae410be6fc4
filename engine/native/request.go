package native

import (
	"encoding/json"
	"strconv"

	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
)

// A request is what is the same in every request of a turn, beside the conversation.
type request struct {
	model     string
	maxTokens int
	system    json.RawMessage // an array of text blocks; nil for none
	tools     json.RawMessage // an array; nil for none
	thinking  json.RawMessage // nil leaves it to the model
	output    json.RawMessage // output_config; nil for none
	thoughts  transcript.ThoughtPolicy
	marks     transcript.Breakpoints // the breakpoints of the cache
	plain     bool                   // no tool references
}

// body encodes the request. Equal input gives equal bytes, and a longer conversation gives a body
// that differs only in its last messages and their breakpoints. messages is how many bytes the conversation takes.
func (r *request) body(h *transcript.History) (body []byte, messages int) {
	b := make([]byte, 0, 512+len(r.system)+len(r.tools)+h.Size())
	b = append(b, `{"model":`...)
	b = append(b, transcript.Encode(r.model)...)
	b = append(b, `,"max_tokens":`...)
	b = strconv.AppendInt(b, int64(r.maxTokens), 10)
	b = append(b, `,"stream":true`...)
	for _, f := range []struct {
		name  string
		value json.RawMessage
	}{{"thinking", r.thinking}, {"output_config", r.output}, {"tools", r.tools}, {"system", r.system}} {
		if len(f.value) > 0 {
			b = append(b, `,"`+f.name+`":`...)
			b = append(b, f.value...)
		}
	}
	b = append(b, `,"messages":`...)
	before := len(b)
	b = h.AppendTo(b, r.model, r.thoughts, r.plain, r.marks.Parts)
	messages = len(b) - before
	return append(b, '}'), messages
}

// systemBlocks encodes a system prompt; nil if there is none.
func systemBlocks(texts ...string) []json.RawMessage {
	var blocks []json.RawMessage
	for _, t := range texts {
		if !transcript.IsBlank(t) {
			blocks = append(blocks, transcript.TextPart(t).Raw)
		}
	}
	return blocks
}

// encodeBlocks encodes blocks as an array, with a breakpoint of the cache at its end if mark is set; nil for none.
func encodeBlocks(blocks []json.RawMessage, mark bool) json.RawMessage {
	n := len(blocks)
	if n == 0 {
		return nil
	}
	if mark {
		blocks = append(blocks[:n-1:n-1], transcript.WithBreakpoint(blocks[n-1], transcript.Ephemeral))
	}
	return transcript.Encode(blocks)
}
