package agent

import (
	"context"
	"encoding/json"

	"github.com/tenon-sdk/tenon/permission"
)

// A CanUseToolFunc is asked about each tool call that no rule, mode or hook settles. Its ctx ends
// when the turn does. It may be called from several goroutines at once, since calls that may run
// together are asked about together; it may take as long as it needs.
//
// An error, a panic or a nil verdict denies the call. Sentences in them reach the model.
type CanUseToolFunc func(ctx context.Context, r *ToolRequest) (*Verdict, error)

// A ToolRequest is a tool call that is waiting for a verdict.
type ToolRequest struct {
	// ToolName is the full name, as it stands in rules: mcp__SERVER__TOOL for an MCP tool.
	ToolName string
	// Server is the registration key of the tool's server; empty for a tool that is not MCP.
	Server string
	// Tool is the tool's own name on its server.
	Tool string
	// Source says where the server was defined: "sdk" for one in this process, else a scope of the configuration.
	Source string
	// ReadOnly is the tool's readOnlyHint, which is the server's claim and no proof.
	ReadOnly bool
	// ToolUseID identifies the call.
	ToolUseID string
	// Input is the arguments, a JSON object. It must not be modified.
	Input json.RawMessage
	// Reason says why the call is asked about.
	Reason string
}

// A Verdict answers a [ToolRequest]. See [Allow] and [Deny].
type Verdict struct {
	// Behavior is permission.Allow or permission.Deny; anything else denies.
	Behavior permission.Behavior
	// Input replaces the arguments of an allowed call. Nil leaves them as they are; an empty object is not nil.
	Input json.RawMessage
	// Message is what the model reads about a denied call.
	Message string
	// Interrupt ends the turn after a denial.
	Interrupt bool
	// AllowRules are rules that are allowed from now on, for the rest of the session: see package permission for their form.
	AllowRules []string
	// Mode is the permission mode from now on. Empty leaves it as it is.
	Mode permission.Mode
}

// Allow is the verdict that a call may run as it is.
func Allow() *Verdict { return &Verdict{Behavior: permission.Allow} }

// Deny is the verdict that a call must not run. The model reads the message.
func Deny(message string) *Verdict {
	return &Verdict{Behavior: permission.Deny, Message: message}
}
