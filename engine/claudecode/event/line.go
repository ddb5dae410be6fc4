// Package event decodes what the Claude Code CLI writes: the control protocol, and the messages that
// package agent has no type for.
//
//	switch e, err := event.Of(msg); e := e.(type) {
//	case *event.TaskNotification:
package event

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tenon-sdk/tenon/agent"
)

// A Line is a decoded line of the CLI. Type is its type. Of the other fields at most one is set,
// except that ToolInput and Event describe a Message.
type Line struct {
	Type string

	Request   *Request      // of type control_request
	Response  *Response     // of type control_response
	Cancelled string        // of type control_cancel_request: the ID of the request
	Mirror    *Mirror       // of type transcript_mirror
	Lifecycle *Lifecycle    // of type command_lifecycle
	Message   agent.Message // of all other types but keep_alive

	// ToolInput is the part of a tool call in a stream event.
	ToolInput *ToolInput
	// Event is what [Of] returns for Message if it is a *SessionState or a *Status.
	Event any
}

// A Request is a request of the CLI.
type Request struct {
	ID, Subtype string
	Body        json.RawMessage
}

// A Response answers a request. It has the same form in both directions.
type Response struct {
	Subtype   string          `json:"subtype"` // "success" or "error"
	RequestID string          `json:"request_id"`
	Response  json.RawMessage `json:"response,omitempty"`
	Error     string          `json:"error,omitempty"`
	ErrorCode string          `json:"error_code,omitempty"`
}

// A Mirror has entries that the CLI has written to a transcript.
type Mirror struct {
	Path    string            `json:"filePath"`
	Entries []json.RawMessage `json:"entries"`
}

// A Lifecycle reports the state of an input: "queued", "started", "completed" or "cancelled".
type Lifecycle struct {
	UUID  string `json:"command_uuid"`
	State string `json:"state"`
}

// head has the members of a line that Decode reads.
type head struct {
	Type      string          `json:"type"`
	RequestID string          `json:"request_id"`
	Parent    string          `json:"parent_tool_use_id"`
	Request   json.RawMessage `json:"request"`
	Response  json.RawMessage `json:"response"`
	Event     json.RawMessage `json:"event"`
}

// lenient decodes JSON. A member in an unexpected form reads as absent.
func lenient(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return nil
	}
	return err
}

// Decode decodes a line. Unless streamed is set, stream events have no Message, which costs more
// than the rest of them. The result refers to line.
func Decode(line []byte, streamed bool) (*Line, error) {
	var h head
	err := lenient(line, &h)
	switch {
	case err != nil:
		return nil, err
	case h.Type == "":
		return nil, errors.New("the line has no type")
	}
	l := &Line{Type: h.Type}
	switch h.Type {
	case "control_request":
		var body struct {
			Subtype string `json:"subtype"`
		}
		_ = lenient(h.Request, &body)
		l.Request = &Request{ID: h.RequestID, Subtype: body.Subtype, Body: h.Request}
	case "control_response":
		l.Response, err = decode[Response](h.Response)
	case "control_cancel_request":
		l.Cancelled = h.RequestID
	case "keep_alive":
	case "transcript_mirror":
		l.Mirror, err = decode[Mirror](line)
	case "command_lifecycle":
		l.Lifecycle, err = decode[Lifecycle](line)
	case "stream_event":
		l.ToolInput = toolInput(h.Parent, h.Event)
		if streamed {
			l.Message, err = agent.DecodeMessage(line)
		}
	default:
		if l.Message, err = agent.DecodeMessage(line); err == nil {
			l.Event = stateOf(l.Message)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", h.Type, err)
	}
	return l, nil
}

func decode[T any](data json.RawMessage) (*T, error) {
	v := new(T)
	return v, json.Unmarshal(data, v)
}

// stateOf returns the event of a system message that the engine follows.
func stateOf(m agent.Message) any {
	s, ok := m.(*agent.System)
	if !ok || s.Subtype != "session_state_changed" && s.Subtype != "status" {
		return nil
	}
	e, err := Of(m)
	if err != nil {
		return nil
	}
	return e
}

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
	var e struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
		Block struct {
			Type string `json:"type"`
			ID   string `json:"id"`
		} `json:"content_block"`
		Delta struct {
			Piece string `json:"partial_json"`
		} `json:"delta"`
	}
	_ = lenient(event, &e)
	t := &ToolInput{Parent: parent, Index: e.Index, Starts: e.Type == "content_block_start", Piece: e.Delta.Piece}
	if e.Block.Type == "tool_use" {
		t.ID = e.Block.ID
	}
	if !t.Starts && (e.Type != "content_block_delta" || t.Piece == "") {
		return nil
	}
	return t
}
