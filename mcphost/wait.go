package mcphost

import "time"

// WaitOptions are the typed forms of the environment variables that rule how
// long the first turn waits. A nil field leaves the variable its say.
type WaitOptions struct {
	// StartupWait is CLAUDE_CODE_MCP_STARTUP_WAIT_MS.
	StartupWait *time.Duration
	// Blocking is the negation of MCP_CONNECTION_NONBLOCKING.
	Blocking *bool
	// BatchTimeout is MCP_CONNECT_TIMEOUT_MS.
	BatchTimeout *time.Duration
}

// WaitInput is what the wait for the first turn depends on beside the host's
// own options and servers.
type WaitInput struct {
	// Named are the tool names and rules of the allowed tools: a server is
	// named by an exact tool name or by mcp__SERVER__*.
	Named []string
	// HookServers are the servers that mcp_tool hooks name.
	HookServers []string
	// PermissionPromptTool is the full name of the tool that is asked for
	// permission; empty without one.
	PermissionPromptTool string
	// ToolSearchOff reports that tools are not deferred: the model lacks tool
	// search, or ToolSearch is excluded. ENABLE_TOOL_SEARCH has its say beside it.
	ToolSearchOff bool
	// BaseURL is that of the model's API; empty means the environment's
	// ANTHROPIC_BASE_URL.
	BaseURL string
}
