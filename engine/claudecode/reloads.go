package claudecode

import (
	"context"
	"encoding/json"
)

// A PluginReload is the session after its plugins were read again.
type PluginReload struct {
	Commands []Command   `json:"commands"`
	Agents   []AgentInfo `json:"agents"`
	Plugins  []struct {
		Name    string `json:"name"`
		Path    string `json:"path"`
		Source  string `json:"source"`
		Version string `json:"version"`
	} `json:"plugins"`
	ErrorCount int `json:"error_count"`
	// Held is set if nothing was done because the model's cached prompt would be lost.
	Held bool `json:"held"`
}

// ReloadOptions say how plugins are read again. The zero value does it at once.
type ReloadOptions struct {
	// HoldOnCacheImpact does nothing if the session's tools would change and the prompt is cached.
	HoldOnCacheImpact bool
	// RefuseIfBusy fails while a turn runs.
	RefuseIfBusy bool
	// Add are plugins to load as well; their paths must be absolute.
	Add []Plugin
}

// ReloadPlugins reads the plugins from the disk again.
func (c *Control) ReloadPlugins(ctx context.Context, o ReloadOptions) (*PluginReload, error) {
	return answered[PluginReload](ctx, c, "reload_plugins", struct {
		Hold bool         `json:"hold_on_cache_impact,omitempty"`
		Busy bool         `json:"refuse_if_busy,omitempty"`
		Add  []wirePlugin `json:"add_plugins,omitempty"`
	}{o.HoldOnCacheImpact, o.RefuseIfBusy, wirePlugins(o.Add)})
}

// ReloadSkills reads the skills from the disk again and returns them.
func (c *Control) ReloadSkills(ctx context.Context) ([]Command, error) {
	r, err := answered[struct {
		Skills []Command `json:"skills"`
	}](ctx, c, "reload_skills", nil)
	if err != nil {
		return nil, err
	}
	return r.Skills, nil
}

// ReloadOutputStyles reads the output styles from the disk again and returns their names.
func (c *Control) ReloadOutputStyles(ctx context.Context) ([]string, error) {
	r, err := answered[struct {
		Styles []string `json:"available_output_styles"`
	}](ctx, c, "reload_output_styles", nil)
	if err != nil {
		return nil, err
	}
	return r.Styles, nil
}

// RegisterRoot adds a folder below those of the session, and reads what it brings along.
func (c *Control) RegisterRoot(ctx context.Context, dir string) error {
	return c.s.control(ctx, "register_repo_root", struct {
		Dir     string `json:"directory"`
		Memory  bool   `json:"reload_claude_md"`
		Plugins bool   `json:"reload_plugins"`
		Skills  bool   `json:"reload_skills"`
	}{dir, true, true, true}, nil)
}

// Rename gives the session a title.
func (c *Control) Rename(ctx context.Context, title string) error {
	return c.s.control(ctx, "rename_session", map[string]string{"title": title, "source": "host"}, nil)
}

// SetWatched tells the CLI whether anyone reads along, which matters to a CLI that was told by its
// environment to join small pieces of a stream.
func (c *Control) SetWatched(ctx context.Context, watched bool) error {
	return c.s.control(ctx, "set_has_subscribers", map[string]bool{"has_subscribers": watched}, nil)
}

// An MCPReply is what a server of the CLI's answered.
type MCPReply struct {
	Content           []json.RawMessage `json:"content"`
	StructuredContent json.RawMessage   `json:"structuredContent"`
	IsError           bool              `json:"isError"`
}

// CallMCPTool calls a tool of a server that the CLI has connected, by its full name, without a turn
// of the model and without asking for permission. Servers in this process are refused: call them
// directly.
func (c *Control) CallMCPTool(ctx context.Context, tool string, arguments json.RawMessage) (*MCPReply, error) {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	return answered[MCPReply](ctx, c, "mcp_call", map[string]any{"tool": tool, "arguments": arguments})
}

// ReadMCPResource reads a ui:// resource of a server that the CLI has connected, in the protocol's form.
func (c *Control) ReadMCPResource(ctx context.Context, server, uri string) (json.RawMessage, error) {
	return c.Request(ctx, "mcp_read_resource", map[string]string{"serverName": server, "uri": uri})
}
