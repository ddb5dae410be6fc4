package agent

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/permission"
)

// A CanUseToolFunc decides a tool call that no rule, mode or hook decides. See [Allow] and [Deny]. Its ctx
// ends with the turn. Concurrent calls are decided concurrently, without a time limit.
//
// The verdict's permission updates apply to the following calls of the session; the program may store
// them. An error, a panic or a nil verdict denies the call. The model receives the error's text.
type CanUseToolFunc func(ctx context.Context, r *ToolRequest) (*permission.PromptResult, error)

// A ToolRequest is a tool call that waits for a verdict.
type ToolRequest struct {
	// ToolName is the full name: mcp__SERVER__TOOL for an MCP tool.
	ToolName string
	// Server is the key of the tool's server; empty for a tool that is not of an MCP server.
	Server string
	// Tool is the tool's name on its server.
	Tool string
	// Source is "sdk" for a server in this process, or else the scope of its configuration.
	Source string
	// Title is a display name of the call or the tool; it may be empty.
	Title string
	// Annotations are the server's claims about the tool; nil if there are none. For servers that the CLI
	// connects, they have no title and no hints that are false.
	Annotations *mcp.ToolAnnotations
	// ReadOnly is the tool's readOnlyHint, a claim of the server.
	ReadOnly bool
	// ToolUseID identifies the call.
	ToolUseID string
	// Input is the arguments, a JSON object. It must not be modified.
	Input json.RawMessage
	// Reason says why a permission is needed.
	Reason string
	// Description describes the call, if the engine knows it.
	Description string
	// BlockedPath is the file or directory that needs the permission; empty for most calls.
	BlockedPath string
	// AgentID identifies the subagent that makes the call; empty for the main conversation.
	AgentID string
	// Suggestions are updates that would decide such calls. A verdict may contain them.
	Suggestions []permission.Update
}

// Allow returns the verdict that a call may run unchanged.
func Allow() *permission.PromptResult { return &permission.PromptResult{Behavior: permission.Allow} }

// Deny returns the verdict that a call must not run. The model receives the message.
func Deny(message string) *permission.PromptResult {
	return &permission.PromptResult{Behavior: permission.Deny, Message: message}
}
