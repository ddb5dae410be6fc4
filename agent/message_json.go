package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
)

// MarshalJSON implements [json.Marshaler].
func (m *SystemInit) MarshalJSON() ([]byte, error) {
	out := *m
	out.Tools, out.MCPServers = orEmpty(m.Tools), orEmpty(m.MCPServers)
	out.SlashCommands, out.Agents, out.Skills = orEmpty(m.SlashCommands), orEmpty(m.Agents), orEmpty(m.Skills)
	return encodeObject(&out, "type", "system", "subtype", "init")
}

// UnmarshalJSON implements [json.Unmarshaler].
func (m *SystemInit) UnmarshalJSON(data []byte) error {
	m.Raw = bytes.Clone(data)
	return decodeObject(data, m, "type", "subtype")
}

// MarshalJSON implements [json.Marshaler].
func (s MCPServer) MarshalJSON() ([]byte, error) { return encodeObject(&s) }

// UnmarshalJSON implements [json.Unmarshaler].
func (s *MCPServer) UnmarshalJSON(data []byte) error { return decodeObject(data, s) }

// MarshalJSON implements [json.Marshaler].
func (e MCPServerError) MarshalJSON() ([]byte, error) {
	if e.plain {
		return json.Marshal(e.Message)
	}
	return encodeObject(&e)
}

// UnmarshalJSON implements [json.Unmarshaler]. It reads an object or a string.
func (e *MCPServerError) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		e.plain = true
		return json.Unmarshal(data, &e.Message)
	}
	return decodeObject(data, e)
}

// systemHead holds the fields that every system message has.
type systemHead struct {
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`
	UUID      string `json:"uuid"`
}

// NewSystem returns a system message. The message's other fields are those of the JSON object that
// fields encodes as; nil means none.
func NewSystem(subtype, sessionID, uuid string, fields any) (*System, error) {
	var extra Fields
	if fields != nil {
		body, err := json.Marshal(fields)
		if err == nil {
			err = json.Unmarshal(body, &extra)
		}
		if err != nil {
			return nil, fmt.Errorf("agent: encoding a %q message: %w", subtype, err)
		}
	}
	raw, err := joinObject(&systemHead{subtype, sessionID, uuid}, extra, "type", "system")
	return &System{Subtype: subtype, SessionID: sessionID, UUID: uuid, Raw: raw}, err
}

// Decode decodes the message into the value that v points to, as [json.Unmarshal] does.
func (m *System) Decode(v any) error { return json.Unmarshal(m.Raw, v) }

// MarshalJSON implements [json.Marshaler].
func (m *System) MarshalJSON() ([]byte, error) {
	if len(m.Raw) > 0 {
		return m.Raw, nil
	}
	return joinObject(&systemHead{m.Subtype, m.SessionID, m.UUID}, nil, "type", "system")
}

// UnmarshalJSON implements [json.Unmarshaler].
func (m *System) UnmarshalJSON(data []byte) error {
	var head systemHead
	if err := decodeObject(data, &head); err != nil {
		return err
	}
	*m = System{Subtype: head.Subtype, SessionID: head.SessionID, UUID: head.UUID, Raw: bytes.Clone(data)}
	return nil
}

// MarshalJSON implements [json.Marshaler].
func (m *Assistant) MarshalJSON() ([]byte, error) { return encodeObject(m, "type", "assistant") }

// UnmarshalJSON implements [json.Unmarshaler].
func (m *Assistant) UnmarshalJSON(data []byte) error { return decodeObject(data, m, "type") }

// MarshalJSON implements [json.Marshaler].
func (m APIMessage) MarshalJSON() ([]byte, error) { return encodeObject(&m, "type", "message") }

// UnmarshalJSON implements [json.Unmarshaler].
func (m *APIMessage) UnmarshalJSON(data []byte) error { return decodeObject(data, m, "type") }

// MarshalJSON implements [json.Marshaler].
func (m *User) MarshalJSON() ([]byte, error) { return encodeObject(m, "type", "user") }

// UnmarshalJSON implements [json.Unmarshaler].
func (m *User) UnmarshalJSON(data []byte) error { return decodeObject(data, m, "type") }

// MarshalJSON implements [json.Marshaler].
func (m UserMessage) MarshalJSON() ([]byte, error) {
	m.Role = cmp.Or(m.Role, "user")
	return encodeObject(&m)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (m *UserMessage) UnmarshalJSON(data []byte) error { return decodeObject(data, m) }

// MarshalJSON implements [json.Marshaler].
func (m *StreamEvent) MarshalJSON() ([]byte, error) { return encodeObject(m, "type", "stream_event") }

// UnmarshalJSON implements [json.Unmarshaler].
func (m *StreamEvent) UnmarshalJSON(data []byte) error { return decodeObject(data, m, "type") }

// MarshalJSON implements [json.Marshaler]. It fails without Raw.
func (m *Unknown) MarshalJSON() ([]byte, error) {
	if len(m.Raw) == 0 {
		return nil, fmt.Errorf("agent: an Unknown message without Raw has no JSON form")
	}
	return m.Raw, nil
}
