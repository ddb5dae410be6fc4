package event

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// A ToolInput is the part of a tool call in an event of the model's stream: its beginning or a piece
// of its input.
type ToolInput struct {
	// Parent is the ID of the call whose subagent makes this call. It is empty for the main conversation.
	Parent string
	// Index is the index of the content block.
	Index int
	// Starts reports whether a content block begins. ID is the ID of the call, and empty if the block
	// is not a tool call.
	Starts bool
	ID     string
	// Piece is a piece of the input's JSON.
	Piece string
}

// toolInput reads a stream event. It returns nil if the event has no part of a tool call.
func toolInput(parent string, event json.RawMessage) *ToolInput {
	if !bytes.Contains(event, []byte("partial_json")) && !bytes.Contains(event, []byte("content_block_start")) {
		return nil // most events are about texts
	}
	t := &ToolInput{Parent: parent}
	var kind string
	each(event, func(name string, value json.RawMessage) {
		switch name {
		case "type":
			kind = text(value)
		case "index":
			if i, err := strconv.Atoi(string(value)); err == nil {
				t.Index = i
			}
		case "content_block":
			var kind, id string
			each(value, func(name string, value json.RawMessage) {
				switch name {
				case "type":
					kind = text(value)
				case "id":
					id = text(value)
				}
			})
			if kind == "tool_use" {
				t.ID = id
			}
		case "delta":
			each(value, func(name string, value json.RawMessage) {
				if name == "partial_json" {
					t.Piece = text(value)
				}
			})
		}
	})
	t.Starts = kind == "content_block_start"
	if !t.Starts && (kind != "content_block_delta" || t.Piece == "") {
		return nil
	}
	return t
}
