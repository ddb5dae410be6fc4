package agent

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/permission"
)

// A CanUseToolFunc is asked about each tool call that no rule, mode or hook settles. Its ctx ends
// when the turn does. It may be called from several goroutines at once, since calls that may run
// together are asked about together; it may take as long as it needs.
//
// See [Allow] and [Deny]. The verdict's permission updates apply from the next call on, to this
// session: keeping them is up to the program. An error, a panic or a nil verdict denies the call,
// and the model reads the error's text.
type CanUseToolFunc func(ctx context.Context, r *ToolRequest) (*permission.PromptResult, error)

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
	// Title is what people read: what the CLI says of the call, the tool's own name for them, or the
	// CLI's name for the tool; empty if there is none.
	Title string
	// Annotations are the tool's hints, which are the server's claims; nil if there are none. Of the
	// servers that the CLI connects only those that are set are known, and not the title.
	Annotations *mcp.ToolAnnotations
	// ReadOnly is the tool's readOnlyHint, which is the server's claim and no proof.
	ReadOnly bool
	// ToolUseID identifies the call.
	ToolUseID string
	// Input is the arguments, a JSON object. It must not be modified.
	Input json.RawMessage
	// Reason says why the call is asked about.
	Reason string
	// Description says in words what the call does, if the engine knows.
	Description string
	// BlockedPath is the file or directory that the call is not allowed to touch; empty for most calls.
	BlockedPath string
	// AgentID identifies the subagent that makes the call; empty for the main conversation.
	AgentID string
	// Suggestions are updates that would settle such calls from now on. A verdict may carry them back.
	Suggestions []permission.Update
}

// Allow is the verdict that a call may run as it is.
func Allow() *permission.PromptResult { return &permission.PromptResult{Behavior: permission.Allow} }

// Deny is the verdict that a call must not run. The model reads the message.
func Deny(message string) *permission.PromptResult {
	return &permission.PromptResult{Behavior: permission.Deny, Message: message}
}
