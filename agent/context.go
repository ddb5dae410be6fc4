package agent

// ContextUsage says what fills the model's context window. Tokens are estimates, but for the total
// after the model has answered: that is what the API counted. Its JSON form is that of the Claude
// Code CLI.
type ContextUsage struct {
	Model string `json:"model"`
	// TotalTokens are in use; MaxTokens is the window. It is 0 for a model that the engine does not know.
	TotalTokens int64 `json:"totalTokens"`
	MaxTokens   int64 `json:"maxTokens"`
	// Percentage is TotalTokens of MaxTokens; 0 if that is not known.
	Percentage float64 `json:"percentage"`
	// Categories are what there is, in the order in which the model reads it, and then what is free.
	Categories []ContextCategory `json:"categories"`
	// MCPTools has each tool of a server, by server and name.
	MCPTools []ContextTool `json:"mcpTools"`
	Extra    Fields        `json:"-"`
}

// The IDs of categories that Tenon's own engines use; the set is open.
const (
	ContextSystemPrompt     = "system_prompt"
	ContextSystemTools      = "system_tools"
	ContextMCPTools         = "mcp_tools"
	ContextMCPToolsDeferred = "mcp_tools_deferred"
	ContextMessages         = "messages"
	ContextFree             = "free_space"
)

// A ContextCategory is one kind of content of a context window.
type ContextCategory struct {
	ID string `json:"id,omitempty"`
	// Name is for people.
	Name   string `json:"name"`
	Tokens int64  `json:"tokens"`
	// Kind is "used", "free", "buffer" (kept free for making the conversation shorter) or "deferred"
	// (known, and not in the window).
	Kind  string `json:"kind"`
	Extra Fields `json:"-"`
}

// A ContextTool is what one tool takes of a context window.
type ContextTool struct {
	// Name is the full name.
	Name string `json:"name"`
	// ServerName is the tool's server.
	ServerName string `json:"serverName"`
	Tokens     int64  `json:"tokens"`
	// IsLoaded is unset for a tool that is left to tool search and not in the window yet.
	IsLoaded bool   `json:"isLoaded"`
	Extra    Fields `json:"-"`
}

// ServerTokens are the tokens that the loaded tools of each server take.
func (u *ContextUsage) ServerTokens() map[string]int64 {
	sums := map[string]int64{}
	for _, t := range u.MCPTools {
		if t.IsLoaded {
			sums[t.ServerName] += t.Tokens
		}
	}
	return sums
}

// MarshalJSON writes the usage in the CLI's form.
func (u ContextUsage) MarshalJSON() ([]byte, error) {
	type wire ContextUsage
	u.Categories, u.MCPTools = emptyNotNull(u.Categories), emptyNotNull(u.MCPTools)
	return encodeWire("", wire(u), u.Extra)
}

// UnmarshalJSON reads the usage from the CLI's form.
func (u *ContextUsage) UnmarshalJSON(data []byte) (err error) {
	type wire ContextUsage
	u.Extra, err = decodeWire(data, (*wire)(u))
	return err
}

// MarshalJSON writes the category in the CLI's form.
func (c ContextCategory) MarshalJSON() ([]byte, error) {
	type wire ContextCategory
	return encodeWire("", wire(c), c.Extra)
}

// UnmarshalJSON reads the category from the CLI's form.
func (c *ContextCategory) UnmarshalJSON(data []byte) (err error) {
	type wire ContextCategory
	c.Extra, err = decodeWire(data, (*wire)(c))
	return err
}

// MarshalJSON writes the tool in the CLI's form.
func (t ContextTool) MarshalJSON() ([]byte, error) {
	type wire ContextTool
	return encodeWire("", wire(t), t.Extra)
}

// UnmarshalJSON reads the tool from the CLI's form.
func (t *ContextTool) UnmarshalJSON(data []byte) (err error) {
	type wire ContextTool
	t.IsLoaded = true // it is left out where no tool is left to tool search
	t.Extra, err = decodeWire(data, (*wire)(t))
	return err
}
