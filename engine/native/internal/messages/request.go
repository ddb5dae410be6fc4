package messages

import (
	"encoding/json"

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

// Body encodes the request. Equal input gives equal bytes, and a longer conversation gives a body that
// differs only in its last messages and their breakpoints.
func (r *Request) Body(h *transcript.History) []byte {
	return transcript.Encode(struct {
		Model     string               `json:"model"`
		MaxTokens int                  `json:"max_tokens"`
		Stream    bool                 `json:"stream"`
		Thinking  json.RawMessage      `json:"thinking,omitempty"`
		Output    json.RawMessage      `json:"output_config,omitempty"`
		Tools     json.RawMessage      `json:"tools,omitempty"`
		System    json.RawMessage      `json:"system,omitempty"`
		Messages  []transcript.Message `json:"messages"`
	}{
		r.Model, r.MaxTokens, true, r.Thinking, r.Output, r.Tools, r.System,
		h.Messages(r.Model, r.Thoughts, r.Plain, r.Breakpoints.Parts),
	})
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
