package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A Message is a message of a session: a *[SystemInit], *[System], *[Assistant], *[User], *[StreamEvent] or
// *[Result], or an *[Unknown] for every other kind.
//
// The JSON form is the Claude Code CLI's stream-json output. [DecodeMessage] decodes it, and
// [json.Marshal] encodes it. Fields that a type has no name for survive both. Messages are immutable.
type Message interface {
	isMessage()
}

// SystemInit is the first message of each turn. It describes the session.
type SystemInit struct {
	// CWD is the session's directory.
	CWD       string `json:"cwd"`
	SessionID string `json:"session_id"`
	// Tools are the names of the tools that the model can call, sorted.
	Tools []string `json:"tools"`
	// MCPServers has an entry for each configured server with its current state.
	MCPServers []MCPServer `json:"mcp_servers"`
	// MCPServerErrors are the configuration entries and tools that were left out.
	MCPServerErrors []MCPServerError `json:"mcp_server_errors,omitempty"`
	Model           string           `json:"model"`
	// PermissionMode is the current [permission.Mode].
	PermissionMode string   `json:"permissionMode"`
	SlashCommands  []string `json:"slash_commands"`
	// APIKeySource is the source of the credential: "ANTHROPIC_API_KEY", "none", and so on.
	APIKeySource      string   `json:"apiKeySource"`
	ClaudeCodeVersion string   `json:"claude_code_version,omitempty"`
	OutputStyle       string   `json:"output_style,omitempty"`
	Agents            []string `json:"agents"`
	Skills            []string `json:"skills"`
	Capabilities      []string `json:"capabilities,omitempty"`
	UUID              string   `json:"uuid"`
	Extra             Fields   `json:"-"`
	// Raw is the JSON that the message was decoded from, if any.
	Raw json.RawMessage `json:"-"`
}

// An MCPServer is a server in a [SystemInit].
type MCPServer struct {
	// Name is the server's key.
	Name string `json:"name"`
	// Status is "pending", "connected", "failed", "needs-auth" or "disabled".
	Status string `json:"status"`
	// Source is "sdk" for a server in this process, or else the scope of its configuration.
	Source string `json:"source,omitempty"`
	Extra  Fields `json:"-"`
}

// Usable reports whether the server is connected or still connecting.
func (s MCPServer) Usable() bool { return s.Status == "connected" || s.Status == "pending" }

// An MCPServerError is a configuration entry or a tool that was left out.
type MCPServerError struct {
	// Name is the server's key. It is empty for a whole file.
	Name string `json:"name,omitempty"`
	// Type is "invalid_config" for an entry, "untrusted_config" for a part of a file that has no effect
	// without trust, "name_taken" for a server of a file with the name of one of the program's servers,
	// "tool_left_out" for a tool, or "invalid_environment" for an environment variable; the set is open.
	Type    string `json:"type,omitempty"`
	Message string `json:"message"`
	Extra   Fields `json:"-"`

	plain bool // a string in JSON
}

// System is a system message of another subtype than init, such as "api_retry" or "informational".
type System struct {
	Subtype   string
	SessionID string
	UUID      string
	// Raw is the whole message. See [System.Decode].
	Raw json.RawMessage
}

// Assistant is a message of the model. While a response streams, each finished content block is an
// Assistant with the same Message.ID and without Message.StopReason.
type Assistant struct {
	Message APIMessage `json:"message"`
	// ParentToolUseID is the tool call that runs the subagent; empty for the main conversation.
	ParentToolUseID NullString `json:"parent_tool_use_id"`
	// Error is set if the message reports a failed request: "authentication_failed", "rate_limit",
	// "overloaded", "invalid_request", "server_error", "max_output_tokens" and others.
	Error string `json:"error,omitempty"`
	// Aborted is set if an interrupt ended the text early.
	Aborted bool `json:"aborted,omitempty"`
	// Supersedes are the UUIDs of earlier messages that this one replaces.
	Supersedes []string `json:"supersedes,omitempty"`
	RequestID  string   `json:"request_id,omitempty"`
	Timestamp  string   `json:"timestamp,omitempty"`
	SessionID  string   `json:"session_id"`
	UUID       string   `json:"uuid"`
	Extra      Fields   `json:"-"`
}

// Text returns the message's text blocks, joined by newlines.
func (m *Assistant) Text() string { return m.Message.Content.Text() }

// ToolUses returns the tool calls in the message.
func (m *Assistant) ToolUses() []*ToolUseBlock {
	var uses []*ToolUseBlock
	for _, b := range m.Message.Content {
		if u, ok := b.(*ToolUseBlock); ok {
			uses = append(uses, u)
		}
	}
	return uses
}

// APIMessage is a message of the Messages API.
type APIMessage struct {
	ID           string     `json:"id"`
	Role         string     `json:"role"`
	Model        string     `json:"model"`
	Content      Content    `json:"content"`
	StopReason   NullString `json:"stop_reason"`
	StopSequence NullString `json:"stop_sequence"`
	Usage        Usage      `json:"usage"`
	Extra        Fields     `json:"-"`
}

// User is a message in the user's role. Most hold the results of tool calls.
type User struct {
	Message         UserMessage `json:"message"`
	ParentToolUseID NullString  `json:"parent_tool_use_id"`
	// ToolUseResult is the tool's result before its conversion for the model.
	ToolUseResult json.RawMessage `json:"tool_use_result,omitempty"`
	// IsReplay is set if the message repeats an input.
	IsReplay bool `json:"isReplay,omitempty"`
	// IsSynthetic is set if the engine wrote the text.
	IsSynthetic bool   `json:"isSynthetic,omitempty"`
	Timestamp   string `json:"timestamp,omitempty"`
	SessionID   string `json:"session_id"`
	UUID        string `json:"uuid"`
	Extra       Fields `json:"-"`
}

// ToolResults returns the tool results in the message.
func (m *User) ToolResults() []*ToolResultBlock {
	var results []*ToolResultBlock
	for _, b := range m.Message.Content {
		if r, ok := b.(*ToolResultBlock); ok {
			results = append(results, r)
		}
	}
	return results
}

// UserMessage is a message of the Messages API in the user's role.
type UserMessage struct {
	Role    string  `json:"role"`
	Content Content `json:"content"`
	Extra   Fields  `json:"-"`
}

// StreamEvent is an event of the model's stream, with Options.IncludePartialMessages.
type StreamEvent struct {
	// Event is the event of the Messages API.
	Event           json.RawMessage `json:"event"`
	ParentToolUseID NullString      `json:"parent_tool_use_id"`
	// APIMessageID is the ID of the event's message.
	APIMessageID string `json:"api_message_id,omitempty"`
	// TTFTMS is the time to the first token in milliseconds, on the first event of a message.
	TTFTMS    int64  `json:"ttft_ms,omitempty"`
	SessionID string `json:"session_id"`
	UUID      string `json:"uuid"`
	Extra     Fields `json:"-"`
}

// TextDelta returns the text that the event adds, if any.
func (m *StreamEvent) TextDelta() string {
	var e struct {
		Delta struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"delta"`
	}
	if json.Unmarshal(m.Event, &e) != nil || e.Delta.Type != "text_delta" {
		return ""
	}
	return e.Delta.Text
}

// Unknown is a message of a type or form that this package does not know.
type Unknown struct {
	Type string
	// Raw is the whole message.
	Raw json.RawMessage
	// Err says why a message of a known type could not be decoded; nil for an unknown type.
	Err error
}

func (*SystemInit) isMessage()  {}
func (*System) isMessage()      {}
func (*Assistant) isMessage()   {}
func (*User) isMessage()        {}
func (*StreamEvent) isMessage() {}
func (*Result) isMessage()      {}
func (*Unknown) isMessage()     {}

// A decodableMessage is a message that can be decoded.
type decodableMessage interface {
	Message
	json.Unmarshaler
}

// DecodeMessage decodes one message. Data that is not a JSON object is an error. A message of an unknown
// type or form is an *[Unknown].
func DecodeMessage(data json.RawMessage) (Message, error) {
	var rawType, rawSubtype json.RawMessage
	err := visitObject(data, func(name []byte, value json.RawMessage) {
		switch string(name) {
		case "type":
			rawType = value
		case "subtype":
			rawSubtype = value
		}
	})
	if err != nil {
		return nil, fmt.Errorf("agent: decoding message: %w", err)
	}
	raw := bytes.Clone(data)
	var kind, subtype string
	if decodeValue(rawType, &kind) != nil {
		return &Unknown{Raw: raw}, nil //nolint:nilerr // Unknown holds it
	}
	if rawSubtype != nil && decodeValue(rawSubtype, &subtype) != nil {
		return &Unknown{Type: kind, Raw: raw, Err: fmt.Errorf("agent: the subtype of a %q message is not a string", kind)}, nil //nolint:nilerr // Unknown holds it
	}
	m := newMessage(kind, subtype)
	if m == nil {
		return &Unknown{Type: kind, Raw: raw}, nil
	}
	if err := m.UnmarshalJSON(raw); err != nil {
		return &Unknown{Type: kind, Raw: raw, Err: fmt.Errorf("agent: decoding a %q message: %w", kind, err)}, nil
	}
	return m, nil
}

func newMessage(kind, subtype string) decodableMessage {
	switch kind {
	case "system":
		if subtype == "init" {
			return new(SystemInit)
		}
		return new(System)
	case "assistant":
		return new(Assistant)
	case "user":
		return new(User)
	case "stream_event":
		return new(StreamEvent)
	case "result":
		return new(Result)
	}
	return nil
}
