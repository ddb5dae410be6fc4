package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// The JSON forms of the message kinds. Each keeps the fields that it has no name for.

// MarshalJSON writes the message in its stream-json form.
func (m *SystemInit) MarshalJSON() ([]byte, error) {
	type fields SystemInit
	w := struct {
		Subtype string `json:"subtype"`
		fields
	}{"init", fields(*m)}
	w.Tools = emptyNotNull(w.Tools)
	w.MCPServers = emptyNotNull(w.MCPServers)
	w.SlashCommands = emptyNotNull(w.SlashCommands)
	w.Agents, w.Skills = emptyNotNull(w.Agents), emptyNotNull(w.Skills)
	return encodeWire("system", w, m.Extra)
}

// UnmarshalJSON reads the message from its stream-json form.
func (m *SystemInit) UnmarshalJSON(data []byte) (err error) {
	type wire SystemInit
	m.Extra, err = decodeWire(data, (*wire)(m), "type", "subtype")
	m.Raw = bytes.Clone(data)
	return err
}

func emptyNotNull[E any](s []E) []E {
	if s == nil {
		return []E{}
	}
	return s
}

// MarshalJSON writes the row in its stream-json form.
func (s MCPServer) MarshalJSON() ([]byte, error) {
	type wire MCPServer
	return encodeWire("", wire(s), s.Extra)
}

// UnmarshalJSON reads the row from its stream-json form.
func (s *MCPServer) UnmarshalJSON(data []byte) (err error) {
	type wire MCPServer
	s.Extra, err = decodeWire(data, (*wire)(s))
	return err
}

// MarshalJSON writes an object, or a string for an error that was read as one.
func (e MCPServerError) MarshalJSON() ([]byte, error) {
	type wire MCPServerError
	if e.plain {
		return json.Marshal(e.Message)
	}
	return encodeWire("", wire(e), e.Extra)
}

// UnmarshalJSON reads an object or a string.
func (e *MCPServerError) UnmarshalJSON(data []byte) (err error) {
	type wire MCPServerError
	if len(data) > 0 && data[0] == '"' {
		e.plain = true
		return json.Unmarshal(data, &e.Message)
	}
	e.Extra, err = decodeWire(data, (*wire)(e))
	return err
}

// NewSystem makes a system message. fields is a struct or a map whose JSON object is the rest of
// the message; nil for none. It fails if fields does not encode as an object.
func NewSystem(subtype, sessionID, uuid string, fields any) (*System, error) {
	m := &System{Subtype: subtype, SessionID: sessionID, UUID: uuid}
	head := struct {
		Subtype   string `json:"subtype"`
		SessionID string `json:"session_id"`
		UUID      string `json:"uuid"`
	}{subtype, sessionID, uuid}
	var extra Fields
	if fields != nil {
		body, err := json.Marshal(fields)
		if err != nil {
			return nil, fmt.Errorf("agent: encoding %q message: %w", subtype, err)
		}
		if err := json.Unmarshal(body, &extra); err != nil {
			return nil, fmt.Errorf("agent: encoding %q message: %w", subtype, err)
		}
	}
	raw, err := encodeWire("system", head, extra)
	m.Raw = raw
	return m, err
}

// Decode reads the message's fields into v, a pointer, as json.Unmarshal does.
func (m *System) Decode(v any) error { return json.Unmarshal(m.Raw, v) }

// MarshalJSON writes the message as it came.
func (m *System) MarshalJSON() ([]byte, error) {
	if len(m.Raw) > 0 {
		return m.Raw, nil
	}
	made, err := NewSystem(m.Subtype, m.SessionID, m.UUID, nil)
	if err != nil {
		return nil, err
	}
	return made.Raw, nil
}

// UnmarshalJSON keeps the whole message.
func (m *System) UnmarshalJSON(data []byte) error {
	var head struct {
		Subtype   string `json:"subtype"`
		SessionID string `json:"session_id"`
		UUID      string `json:"uuid"`
	}
	if err := decodeHead(data, &head); err != nil {
		return err
	}
	*m = System{Subtype: head.Subtype, SessionID: head.SessionID, UUID: head.UUID, Raw: bytes.Clone(data)}
	return nil
}

// MarshalJSON writes the message in its stream-json form.
func (m *Assistant) MarshalJSON() ([]byte, error) {
	type wire Assistant
	return encodeWire("assistant", (*wire)(m), m.Extra)
}

// UnmarshalJSON reads the message from its stream-json form.
func (m *Assistant) UnmarshalJSON(data []byte) (err error) {
	type wire Assistant
	m.Extra, err = decodeWire(data, (*wire)(m), "type")
	return err
}

// MarshalJSON writes the message in its Messages API form.
func (m APIMessage) MarshalJSON() ([]byte, error) {
	type wire APIMessage
	return encodeWire("message", wire(m), m.Extra)
}

// UnmarshalJSON reads the message from its Messages API form.
func (m *APIMessage) UnmarshalJSON(data []byte) (err error) {
	type wire APIMessage
	m.Extra, err = decodeWire(data, (*wire)(m), "type")
	return err
}

// MarshalJSON writes the message in its stream-json form.
func (m *User) MarshalJSON() ([]byte, error) {
	type wire User
	return encodeWire("user", (*wire)(m), m.Extra)
}

// UnmarshalJSON reads the message from its stream-json form.
func (m *User) UnmarshalJSON(data []byte) (err error) {
	type wire User
	m.Extra, err = decodeWire(data, (*wire)(m), "type")
	return err
}

// MarshalJSON writes the message in its Messages API form.
func (m UserMessage) MarshalJSON() ([]byte, error) {
	type wire UserMessage
	if m.Role == "" {
		m.Role = "user"
	}
	return encodeWire("", wire(m), m.Extra)
}

// UnmarshalJSON reads the message from its Messages API form.
func (m *UserMessage) UnmarshalJSON(data []byte) (err error) {
	type wire UserMessage
	m.Extra, err = decodeWire(data, (*wire)(m))
	return err
}

// MarshalJSON writes the message in its stream-json form.
func (m *StreamEvent) MarshalJSON() ([]byte, error) {
	type wire StreamEvent
	return encodeWire("stream_event", (*wire)(m), m.Extra)
}

// UnmarshalJSON reads the message from its stream-json form.
func (m *StreamEvent) UnmarshalJSON(data []byte) (err error) {
	type wire StreamEvent
	m.Extra, err = decodeWire(data, (*wire)(m), "type")
	return err
}

// MarshalJSON writes the message as it came.
func (m *Unknown) MarshalJSON() ([]byte, error) {
	if len(m.Raw) == 0 {
		return nil, fmt.Errorf("agent: an Unknown message without Raw has no JSON form")
	}
	return m.Raw, nil
}
