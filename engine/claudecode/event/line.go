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
	"github.com/tenon-sdk/tenon/internal/jsonscan"
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

// members are the members of a line that Decode reads.
type members struct {
	kind, requestID, parent  string
	request, response, event json.RawMessage
}

func scan(line []byte) (m members, err error) {
	err = jsonscan.Object(line, func(name []byte, value json.RawMessage) {
		switch string(name) {
		case "type":
			m.kind = text(value)
		case "request_id":
			m.requestID = text(value)
		case "parent_tool_use_id":
			m.parent = text(value)
		case "request":
			m.request = value
		case "response":
			m.response = value
		case "event":
			m.event = value
		}
	})
	if err == nil && m.kind == "" {
		err = errors.New("the line has no type")
	}
	return m, err
}

// Decode decodes a line. Unless streamed is set, stream events have no Message, which costs more
// than the rest of them. The result refers to line.
func Decode(line []byte, streamed bool) (*Line, error) {
	m, err := scan(line)
	if err != nil {
		return nil, err
	}
	l := &Line{Type: m.kind}
	switch m.kind {
	case "control_request":
		r := &Request{ID: m.requestID, Body: m.request}
		each(m.request, func(name string, value json.RawMessage) {
			if name == "subtype" {
				r.Subtype = text(value)
			}
		})
		l.Request = r
	case "control_response":
		l.Response, err = decode[Response](m.response)
	case "control_cancel_request":
		l.Cancelled = m.requestID
	case "keep_alive":
	case "transcript_mirror":
		l.Mirror, err = decode[Mirror](line)
	case "command_lifecycle":
		l.Lifecycle, err = decode[Lifecycle](line)
	case "stream_event":
		l.ToolInput = toolInput(m.parent, m.event)
		if streamed {
			l.Message, err = agent.DecodeMessage(line)
		}
	default:
		if l.Message, err = agent.DecodeMessage(line); err == nil {
			l.Event = stateOf(l.Message)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", m.kind, err)
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

// each calls f with the members of an object. Other values have none.
func each(object json.RawMessage, f func(name string, value json.RawMessage)) {
	_ = jsonscan.Object(object, func(name []byte, value json.RawMessage) { f(string(name), value) })
}

// text returns the string that value is, or "" for any other value.
func text(value json.RawMessage) string {
	s, _ := jsonscan.Text(value)
	return s
}
