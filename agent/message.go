package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A Message is one thing that a run says: a *SystemInit, *System, *Assistant, *User,
// *StreamEvent or *Result, or an *Unknown for whatever this package has no type for.
//
// The JSON form of every kind is that of the Claude Code CLI's stream-json output.
// [DecodeMessage] reads it, json.Marshal writes it, and fields without a name here survive both.
// Messages are not modified after they were handed out; those who receive one may keep it.
type Message interface {
	isMessage()
}

// SystemInit opens each turn: what the session has to work with.
type SystemInit struct {
	// CWD is the session's directory.
	CWD       string `json:"cwd"`
	SessionID string `json:"session_id"`
	// Tools are the names that the model can call by now, sorted. Absent reads as empty.
	Tools []string `json:"tools"`
	// MCPServers has one entry for each configured server, with its state at this moment.
	MCPServers []MCPServer `json:"mcp_servers"`
	// MCPServerErrors are configuration entries that were left out and tools that were taken out, with the reason.
	MCPServerErrors []MCPServerError `json:"mcp_server_errors,omitempty"`
	Model           string           `json:"model"`
	// PermissionMode is the mode in force: one of the permission.Mode values.
	PermissionMode string   `json:"permissionMode"`
	SlashCommands  []string `json:"slash_commands"`
	// APIKeySource says where the credential came from: "ANTHROPIC_API_KEY", "none", and so on.
	APIKeySource      string   `json:"apiKeySource"`
	ClaudeCodeVersion string   `json:"claude_code_version,omitempty"`
	OutputStyle       string   `json:"output_style,omitempty"`
	Agents            []string `json:"agents"`
	Skills            []string `json:"skills"`
	Capabilities      []string `json:"capabilities,omitempty"`
	UUID              string   `json:"uuid"`
	Extra             Fields   `json:"-"`
	// Raw is the message as it was read; nil for one that was made in this process.
	Raw json.RawMessage `json:"-"`
}

// An MCPServer is a server's row in a [SystemInit].
type MCPServer struct {
	// Name is the key that the server was registered under.
	Name string `json:"name"`
	// Status is "pending", "connected", "failed", "needs-auth" or "disabled".
	Status string `json:"status"`
	// Source says where the server was defined: "sdk" for one in this process, else a scope of the configuration.
	Source string `json:"source,omitempty"`
	Extra  Fields `json:"-"`
}

// Usable reports whether the server's tools can be expected to work: it is connected, or may still be.
func (s MCPServer) Usable() bool { return s.Status == "connected" || s.Status == "pending" }

// An MCPServerError is a configuration entry or a tool that was left out.
type MCPServerError struct {
	// Name is the server's; it may be empty when a whole file could not be read.
	Name string `json:"name,omitempty"`
	// Type is "invalid_config" for an entry that was left out, "untrusted_config" for what a file of a checkout says and
	// may not say without trust, "name_taken" for a server of a file whose name the program's servers have,
	// "tool_left_out" for a tool, "invalid_environment" for an environment variable that cannot be used; the set is open.
	Type    string `json:"type,omitempty"`
	Message string `json:"message"`
	Extra   Fields `json:"-"`

	plain bool // it came as a string
}

// System is a system message of any other subtype than init, such as "api_retry" or "informational".
type System struct {
	Subtype   string
	SessionID string
	UUID      string
	// Raw is the whole message. [System.Decode] reads its fields.
	Raw json.RawMessage
}

// Assistant is what the model said. While a response streams there is one Assistant for each
// finished content block; they share Message.ID, and Message.StopReason is empty.
type Assistant struct {
	Message APIMessage `json:"message"`
	// ParentToolUseID is set when a subagent said it.
	ParentToolUseID NullString `json:"parent_tool_use_id"`
	// Error says that this is not the model's text but the report of a failed request:
	// "authentication_failed", "rate_limit", "overloaded", "invalid_request", "server_error", "max_output_tokens" and others.
	Error string `json:"error,omitempty"`
	// Aborted is set when an interrupt cut the text short.
	Aborted bool `json:"aborted,omitempty"`
	// Supersedes holds the UUIDs of earlier messages that this one replaces.
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

// User is a message in the user's role that the run added by itself: above all the results of tool calls.
type User struct {
	Message         UserMessage `json:"message"`
	ParentToolUseID NullString  `json:"parent_tool_use_id"`
	// ToolUseResult is the tool's own result, before it was made readable for the model.
	ToolUseResult json.RawMessage `json:"tool_use_result,omitempty"`
	// IsReplay is set on the echo of an input.
	IsReplay bool `json:"isReplay,omitempty"`
	// IsSynthetic is set when the text was written by the run and not by a person.
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

// StreamEvent is one event of the model's stream, sent only with Options.IncludePartialMessages.
type StreamEvent struct {
	// Event is the event of the Messages API as it came.
	Event           json.RawMessage `json:"event"`
	ParentToolUseID NullString      `json:"parent_tool_use_id"`
	// APIMessageID is the ID of the message that the event belongs to.
	APIMessageID string `json:"api_message_id,omitempty"`
	// TTFTMS is the milliseconds from the request to the first token, on the event that begins a message.
	TTFTMS    int64  `json:"ttft_ms,omitempty"`
	SessionID string `json:"session_id"`
	UUID      string `json:"uuid"`
	Extra     Fields `json:"-"`
}

// TextDelta returns the text that the event adds; empty if it adds none.
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

// Unknown is a message that this package has no type for. It is passed on, never an error.
type Unknown struct {
	Type string
	// Raw is the whole message.
	Raw json.RawMessage
	// Err says why a message of a known type could not be read as one; nil if the type is not known.
	Err error
}

func (*SystemInit) isMessage()  {}
func (*System) isMessage()      {}
func (*Assistant) isMessage()   {}
func (*User) isMessage()        {}
func (*StreamEvent) isMessage() {}
func (*Result) isMessage()      {}
func (*Unknown) isMessage()     {}

// A readMessage is a message of a kind that can be read.
type readMessage interface {
	Message
	json.Unmarshaler
}

// DecodeMessage reads one message. It fails only for what is no JSON object. A message of a
// type or form that it does not know comes back as an [Unknown] that holds all of it.
func DecodeMessage(data json.RawMessage) (Message, error) {
	scratch := takeScratch()
	defer scratch.putBack()
	members, err := scratch.membersOf(data)
	if err != nil {
		return nil, fmt.Errorf("agent: decoding message: %w", err)
	}
	raw := bytes.Clone(data)
	kind, _, ok := textOf(members, "type")
	if !ok {
		return &Unknown{Raw: raw}, nil
	}
	subtype, present, ok := textOf(members, "subtype")
	if present && !ok {
		return &Unknown{Type: kind, Raw: raw, Err: fmt.Errorf("agent: the subtype of a %q message is no string", kind)}, nil
	}
	m := newMessage(kind, subtype)
	if m == nil {
		return &Unknown{Type: kind, Raw: raw}, nil
	}
	if err := m.UnmarshalJSON(raw); err != nil { // which is valid: it was read above
		return &Unknown{Type: kind, Raw: raw, Err: fmt.Errorf("agent: decoding %q message: %w", kind, err)}, nil
	}
	return m, nil
}

func newMessage(kind, subtype string) readMessage {
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
