package agent

// ContextUsage describes the content of the model's context window. Token counts are estimates, except
// TotalTokens after an answer of the model, which is the API's count. The JSON form is the Claude Code
// CLI's.
type ContextUsage struct {
	Model string `json:"model"`
	// TotalTokens are used. MaxTokens is the size of the window, or 0 if unknown.
	TotalTokens int64 `json:"totalTokens"`
	MaxTokens   int64 `json:"maxTokens"`
	// Percentage is TotalTokens of MaxTokens, or 0 if unknown.
	Percentage float64 `json:"percentage"`
	// Categories are in the order of the model's input. Free space comes last.
	Categories []ContextCategory `json:"categories"`
	// MCPTools are the tools of servers, sorted by server and name.
	MCPTools []ContextTool `json:"mcpTools"`
	Extra    Fields        `json:"-"`
}

// The IDs of a [ContextCategory]; the set is open.
const (
	ContextSystemPrompt     = "system_prompt"
	ContextSystemTools      = "system_tools"
	ContextMCPTools         = "mcp_tools"
	ContextMCPToolsDeferred = "mcp_tools_deferred"
	ContextMessages         = "messages"
	ContextFree             = "free_space"
)

// A ContextCategory is a kind of content of a context window.
type ContextCategory struct {
	ID string `json:"id,omitempty"`
	// Name is the display name.
	Name   string `json:"name"`
	Tokens int64  `json:"tokens"`
	// Kind is "used", "free", "buffer" (reserved for compaction) or "deferred" (not in the window).
	Kind  string `json:"kind"`
	Extra Fields `json:"-"`
}

// A ContextTool is the share of a tool in a context window.
type ContextTool struct {
	// Name is the full name.
	Name string `json:"name"`
	// ServerName is the tool's server.
	ServerName string `json:"serverName"`
	Tokens     int64  `json:"tokens"`
	// IsLoaded is false for a tool that tool search has not loaded.
	IsLoaded bool   `json:"isLoaded"`
	Extra    Fields `json:"-"`
}

// ServerTokens returns the tokens of the loaded tools, by server.
func (u *ContextUsage) ServerTokens() map[string]int64 {
	sums := map[string]int64{}
	for _, t := range u.MCPTools {
		if t.IsLoaded {
			sums[t.ServerName] += t.Tokens
		}
	}
	return sums
}

// MarshalJSON implements [json.Marshaler].
func (u ContextUsage) MarshalJSON() ([]byte, error) {
	u.Categories, u.MCPTools = orEmpty(u.Categories), orEmpty(u.MCPTools)
	return encodeObject(&u)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (u *ContextUsage) UnmarshalJSON(data []byte) error { return decodeObject(data, u) }

// MarshalJSON implements [json.Marshaler].
func (c ContextCategory) MarshalJSON() ([]byte, error) { return encodeObject(&c) }

// UnmarshalJSON implements [json.Unmarshaler].
func (c *ContextCategory) UnmarshalJSON(data []byte) error { return decodeObject(data, c) }

// MarshalJSON implements [json.Marshaler].
func (t ContextTool) MarshalJSON() ([]byte, error) { return encodeObject(&t) }

// UnmarshalJSON implements [json.Unmarshaler].
func (t *ContextTool) UnmarshalJSON(data []byte) error {
	t.IsLoaded = true // the CLI omits the field if all tools are loaded
	return decodeObject(data, t)
}
