package claudecode

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/claudecode/event"
)

// A Control has the operations of a session on the CLI beyond those of [agent.Client]. Its methods are
// safe for concurrent use and wait for the CLI's answer. The error of a refused request is a
// [*ControlError]. After Close each method returns [agent.ErrClosed].
type Control struct{ s *session }

// ControlOf returns the control of a client. It reports false if the session is not on the CLI.
func ControlOf(c *agent.Client) (*Control, bool) {
	s, ok := c.Session().(*session)
	if !ok {
		return nil, false
	}
	return &Control{s}, true
}

// Initialization returns the CLI's answer to the first request of the session. It must not be modified.
func (c *Control) Initialization() *Initialization { return &c.s.init }

// Request sends a control request and returns the answer in the CLI's form. fields is an object, or
// nil. It is for the requests that have no method here:
//
//   - get_settings: the current settings and their sources
//   - list_permission_rules: the current rules and the folders of the session
//   - get_hooks_listing: the current hooks
//   - get_usage: cost, tokens and the limits of the account's plan, which the CLI calls experimental
//   - get_session_cost: the session's cost as text for a terminal
//   - list_models: the models that the session can use now
//   - file_suggestions {query}: completions of the beginning of a path, as after @
//   - get_binary_version: the version of the CLI, also in [Initialization]
//   - reload_output_styles: reloads the output styles from the disk
//   - register_repo_root {directory, reload_claude_md, reload_plugins, reload_skills}: adds a folder below
//     those of the session
//   - seed_read_state {path, mtime}: marks a file as read at a time in milliseconds, so that the model may
//     edit it
//   - set_has_subscribers {has_subscribers}: reports whether anyone follows the stream
//   - mcp_read_resource {serverName, uri}: a ui:// resource of a server that the CLI has connected
func (c *Control) Request(ctx context.Context, subtype string, fields any) (json.RawMessage, error) {
	var answer json.RawMessage
	err := c.s.control(ctx, subtype, fields, &answer)
	return answer, err
}

// requestAs sends a request and decodes its answer.
func requestAs[T any](ctx context.Context, c *Control, subtype string, fields any) (*T, error) {
	answer := new(T)
	if err := c.s.control(ctx, subtype, fields, answer); err != nil {
		return nil, err
	}
	return answer, nil
}

// An InterruptReceipt lists the inputs that waited during an interrupt.
type InterruptReceipt struct {
	// StillQueued are the UUIDs of inputs that are answered next.
	StillQueued []string `json:"still_queued"`
	// Cancelled are the UUIDs of inputs that are not answered.
	Cancelled []string `json:"cancelled"`
}

// Interrupt is [agent.Client.Interrupt] with a receipt. With cancelQueued it also cancels the inputs
// that wait.
func (c *Control) Interrupt(ctx context.Context, cancelQueued bool) (*InterruptReceipt, error) {
	receipt := new(InterruptReceipt)
	fields := map[string]bool{}
	if cancelQueued {
		fields["cancel_queued"] = true
	}
	if err := c.s.interrupt(ctx, fields, receipt); err != nil {
		return nil, err
	}
	return receipt, nil
}

// CancelInput cancels an input that waits. It reports whether it was in time.
func (c *Control) CancelInput(ctx context.Context, uuid string) (bool, error) {
	var r struct {
		Cancelled bool `json:"cancelled"`
	}
	err := c.s.control(ctx, "cancel_async_message", map[string]string{"message_uuid": uuid}, &r)
	return r.Cancelled, err
}

// SetThinking changes the number of tokens that the model may think with. Nil means the number at the
// start of the session. display is "summarized", "omitted" or, for no change, empty.
func (c *Control) SetThinking(ctx context.Context, tokens *int, display string) error {
	return c.s.control(ctx, "set_max_thinking_tokens", struct {
		Tokens  *int   `json:"max_thinking_tokens"`
		Display string `json:"thinking_display,omitempty"`
	}{tokens, display}, nil)
}

// SetMCPPermissionMode restricts the permission mode for one server: "default" asks about each call,
// "auto" has the CLI's classifier decide, and empty removes the restriction. If no server has the
// name, SetMCPPermissionMode returns a warning and no error, because the server may be added later.
func (c *Control) SetMCPPermissionMode(ctx context.Context, server, mode string) (warning string, err error) {
	var r struct {
		Warning string `json:"warning"`
	}
	err = c.s.control(ctx, "set_mcp_permission_mode_override", map[string]any{"serverName": server, "mode": orNull(mode)}, &r)
	return r.Warning, err
}

// ApplySettings overrides settings of the session, key by key. A null removes an override.
func (c *Control) ApplySettings(ctx context.Context, settings map[string]json.RawMessage) error {
	return c.s.control(ctx, "apply_flag_settings", map[string]any{"settings": settings}, nil)
}

// UpdateSettings writes to a settings file, "localSettings" or "userSettings". The CLI lets programs
// write a few keys.
func (c *Control) UpdateSettings(ctx context.Context, source string, settings map[string]string) error {
	return c.s.control(ctx, "update_settings", map[string]any{"source": source, "settings": settings}, nil)
}

// ContextEstimate is [agent.Client.ContextUsage] by the CLI's own estimate, without requests to the API.
func (c *Control) ContextEstimate(ctx context.Context) (*agent.ContextUsage, error) {
	return requestAs[agent.ContextUsage](ctx, c, "get_context_usage", map[string]string{"detail": "summary"})
}

// A File is a file that the CLI has read.
type File struct {
	Path     string // absolute
	Contents []byte
	// Truncated reports whether the file is longer.
	Truncated bool
}

// ReadFile reads a file of the session's folders under the rules of the CLI's tool Read. maxBytes
// bounds the contents. Zero means the CLI's limit of 1 MB.
func (c *Control) ReadFile(ctx context.Context, path string, maxBytes int) (*File, error) {
	fields := map[string]any{"path": path, "encoding": "base64"}
	if maxBytes != 0 {
		fields["max_bytes"] = maxBytes
	}
	var r struct {
		Contents  string `json:"contents"`
		Path      string `json:"absPath"`
		Truncated bool   `json:"truncated"`
		Encoding  string `json:"encoding"`
	}
	err := c.s.control(ctx, "read_file", fields, &r)
	if err != nil {
		return nil, err
	}
	f := &File{Path: r.Path, Contents: []byte(r.Contents), Truncated: r.Truncated}
	if r.Encoding == "base64" {
		if f.Contents, err = base64.StdEncoding.DecodeString(r.Contents); err != nil {
			return nil, fmt.Errorf("claude-code: the answer to read_file: %w", err)
		}
	}
	return f, nil
}

// A Rewind is the effect of RewindFiles.
type Rewind struct {
	Possible bool `json:"canRewind"`
	// Problem is the reason if the files cannot be rewound.
	Problem      string   `json:"error"`
	FilesChanged []string `json:"filesChanged"`
	Insertions   int      `json:"insertions"`
	Deletions    int      `json:"deletions"`
	SkippedLinks int      `json:"skippedLinks"`
}

// RewindFiles restores the files as they were at an input. It needs Options.FileCheckpoints. With
// dryRun it changes nothing.
func (c *Control) RewindFiles(ctx context.Context, inputUUID string, dryRun bool) (*Rewind, error) {
	return requestAs[Rewind](ctx, c, "rewind_files", struct {
		ID  string `json:"user_message_id"`
		Dry bool   `json:"dry_run,omitempty"`
	}{inputUUID, dryRun})
}

// StopTask stops a background task. An [event.TaskNotification] reports its end.
func (c *Control) StopTask(ctx context.Context, taskID string) error {
	return c.s.control(ctx, "stop_task", map[string]string{"task_id": taskID}, nil)
}

// BackgroundTasks moves the running commands and subagents to the background, or only the one of a
// tool call. It reports whether there was any.
func (c *Control) BackgroundTasks(ctx context.Context, toolUseID string) (bool, error) {
	r := struct {
		Backgrounded bool `json:"backgrounded"`
	}{true}
	err := c.s.control(ctx, "background_tasks", struct {
		ID string `json:"tool_use_id,omitempty"`
	}{toolUseID}, &r)
	return err == nil && r.Backgrounded, err
}

// A TaskOutput is the end of the output of a background command.
type TaskOutput struct {
	Output     string `json:"output"`
	TotalBytes int64  `json:"total_bytes"`
	// Truncated reports whether Output is only the last 8 KiB.
	Truncated bool `json:"truncated"`
}

// TaskOutput returns the end of what a background command has written so far.
func (c *Control) TaskOutput(ctx context.Context, taskID string) (*TaskOutput, error) {
	return requestAs[TaskOutput](ctx, c, "get_task_output", map[string]string{"task_id": taskID})
}

// A PluginReload is the state of the session after its plugins were reloaded.
type PluginReload struct {
	Commands []event.Command `json:"commands"`
	Agents   []AgentInfo     `json:"agents"`
	Plugins  []struct {
		Name    string `json:"name"`
		Path    string `json:"path"`
		Source  string `json:"source"`
		Version string `json:"version"`
	} `json:"plugins"`
	ErrorCount int `json:"error_count"`
	// Held reports that nothing was reloaded because the cached prompt would be lost.
	Held bool `json:"held"`
}

// ReloadOptions configures the reloading of plugins. The zero value reloads at once.
type ReloadOptions struct {
	// HoldOnCacheImpact reloads nothing if the session's tools would change and the prompt is cached.
	HoldOnCacheImpact bool
	// RefuseIfBusy fails while a turn runs.
	RefuseIfBusy bool
	// Add are plugins to load in addition. Their paths must be absolute.
	Add []Plugin
}

// ReloadPlugins reloads the plugins from the disk.
func (c *Control) ReloadPlugins(ctx context.Context, o ReloadOptions) (*PluginReload, error) {
	return requestAs[PluginReload](ctx, c, "reload_plugins", struct {
		Hold bool           `json:"hold_on_cache_impact,omitempty"`
		Busy bool           `json:"refuse_if_busy,omitempty"`
		Add  []pluginFolder `json:"add_plugins,omitempty"`
	}{o.HoldOnCacheImpact, o.RefuseIfBusy, pluginFolders(o.Add)})
}

// ReloadSkills reloads the skills from the disk and returns them.
func (c *Control) ReloadSkills(ctx context.Context) ([]event.Command, error) {
	var r struct {
		Skills []event.Command `json:"skills"`
	}
	err := c.s.control(ctx, "reload_skills", nil, &r)
	return r.Skills, err
}

// Rename gives the session a title.
func (c *Control) Rename(ctx context.Context, title string) error {
	return c.s.control(ctx, "rename_session", map[string]string{"title": title, "source": "host"}, nil)
}

// An MCPReply is the result of CallMCPTool.
type MCPReply struct {
	Content           []json.RawMessage `json:"content"`
	StructuredContent json.RawMessage   `json:"structuredContent"`
	IsError           bool              `json:"isError"`
}

// CallMCPTool calls a tool by its full name, without a turn of the model and without asking for
// permission. The CLI must have connected the server: it refuses servers in this process.
func (c *Control) CallMCPTool(ctx context.Context, tool string, arguments json.RawMessage) (*MCPReply, error) {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	return requestAs[MCPReply](ctx, c, "mcp_call", map[string]any{"tool": tool, "arguments": arguments})
}
