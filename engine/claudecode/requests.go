package claudecode

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/tenon-sdk/tenon/agent"
)

// Request sends a control request that no method here is for. fields is an object, or nil.
func (c *Control) Request(ctx context.Context, subtype string, fields any) (json.RawMessage, error) {
	var answer json.RawMessage
	err := c.s.control(ctx, subtype, fields, &answer)
	return answer, err
}

// answered sends a request and decodes its answer.
func answered[T any](ctx context.Context, c *Control, subtype string, fields any) (*T, error) {
	answer := new(T)
	if err := c.s.control(ctx, subtype, fields, answer); err != nil {
		return nil, err
	}
	return answer, nil
}

// An InterruptReceipt says what became of inputs that were waiting.
type InterruptReceipt struct {
	// StillQueued are the UUIDs of inputs that will be answered next.
	StillQueued []string `json:"still_queued"`
	// Cancelled are those that will not.
	Cancelled []string `json:"cancelled"`
}

// Interrupt is [agent.Client.Interrupt] with the CLI's receipt. With cancelQueued the inputs that
// wait are cancelled as well.
func (c *Control) Interrupt(ctx context.Context, cancelQueued bool) (*InterruptReceipt, error) {
	receipt := new(InterruptReceipt)
	fields := struct {
		Cancel bool `json:"cancel_queued,omitempty"`
	}{cancelQueued}
	if err := c.s.interrupt(ctx, fields, receipt); err != nil {
		return nil, err
	}
	return receipt, nil
}

// CancelInput takes back an input that waits. It reports false if it was too late.
func (c *Control) CancelInput(ctx context.Context, uuid string) (bool, error) {
	r, err := answered[struct {
		Cancelled bool `json:"cancelled"`
	}](ctx, c, "cancel_async_message", map[string]string{"message_uuid": uuid})
	return r != nil && r.Cancelled, err
}

// SetThinking changes how many tokens the model may think with; nil means what the session began
// with. display is "summarized", "omitted" or, for no change, empty.
func (c *Control) SetThinking(ctx context.Context, tokens *int, display string) error {
	return c.s.control(ctx, "set_max_thinking_tokens", struct {
		Tokens  *int   `json:"max_thinking_tokens"`
		Display string `json:"thinking_display,omitempty"`
	}{tokens, display}, nil)
}

// SetMCPPermissionMode narrows the permission mode for one server: "default" has each call asked
// about, "auto" has the CLI's classifier decide, empty takes either back. warning says that no
// server of that name is known, which is no error: it may still come.
func (c *Control) SetMCPPermissionMode(ctx context.Context, server, mode string) (warning string, err error) {
	fields := struct {
		Server string  `json:"serverName"`
		Mode   *string `json:"mode"`
	}{Server: server}
	if mode != "" {
		fields.Mode = &mode
	}
	r, err := answered[struct {
		Warning string `json:"warning"`
	}](ctx, c, "set_mcp_permission_mode_override", fields)
	if err != nil {
		return "", err
	}
	return r.Warning, nil
}

// ApplySettings lays settings over those of the session, key by key; a null takes a key back.
func (c *Control) ApplySettings(ctx context.Context, settings map[string]json.RawMessage) error {
	return c.s.control(ctx, "apply_flag_settings", map[string]any{"settings": settings}, nil)
}

// UpdateSettings writes into a settings file, "localSettings" or "userSettings", the few keys that
// the CLI lets programs write.
func (c *Control) UpdateSettings(ctx context.Context, source string, settings map[string]string) error {
	return c.s.control(ctx, "update_settings", map[string]any{"source": source, "settings": settings}, nil)
}

// Settings returns the settings in force and where they come from, in the CLI's form.
func (c *Control) Settings(ctx context.Context) (json.RawMessage, error) {
	return c.Request(ctx, "get_settings", nil)
}

// PermissionRules returns the rules in force and the folders of the session, in the CLI's form.
func (c *Control) PermissionRules(ctx context.Context) (json.RawMessage, error) {
	return c.Request(ctx, "list_permission_rules", nil)
}

// Hooks returns the hooks in force, in the CLI's form.
func (c *Control) Hooks(ctx context.Context) (json.RawMessage, error) {
	return c.Request(ctx, "get_hooks_listing", nil)
}

// ContextEstimate is [agent.Client.ContextUsage] by the CLI's own estimate, which costs nothing: for
// that the API counts each part.
func (c *Control) ContextEstimate(ctx context.Context) (*agent.ContextUsage, error) {
	return answered[agent.ContextUsage](ctx, c, "get_context_usage", map[string]string{"detail": "summary"})
}

// Usage returns cost, tokens and the limits of the account's plan, in the CLI's form, which it calls experimental.
func (c *Control) Usage(ctx context.Context) (json.RawMessage, error) {
	return c.Request(ctx, "get_usage", map[string]bool{"skip_behaviors": true})
}

// SessionCost returns the session's cost as text for a terminal, in the CLI's form.
func (c *Control) SessionCost(ctx context.Context) (json.RawMessage, error) {
	return c.Request(ctx, "get_session_cost", nil)
}

// Version asks the CLI for its version.
func (c *Control) Version(ctx context.Context) (string, error) {
	r, err := answered[struct {
		Version string `json:"version"`
	}](ctx, c, "get_binary_version", nil)
	if err != nil {
		return "", err
	}
	return r.Version, nil
}

// Models asks the CLI for the models that the session can use now, in its form.
func (c *Control) Models(ctx context.Context) (json.RawMessage, error) {
	return c.Request(ctx, "list_models", nil)
}

// FileSuggestions completes the beginning of a path as the CLI does after @, in its form.
func (c *Control) FileSuggestions(ctx context.Context, query string) (json.RawMessage, error) {
	return c.Request(ctx, "file_suggestions", map[string]string{"query": query})
}

// A File is a file as the CLI read it.
type File struct {
	Path     string // absolute
	Contents []byte
	// Truncated is set if the file is longer.
	Truncated bool
}

// ReadFile reads a file of the session's folders under the rules of the CLI's tool Read. maxBytes
// bounds it; zero means the CLI's own limit of 1 MB.
func (c *Control) ReadFile(ctx context.Context, path string, maxBytes int) (*File, error) {
	r, err := answered[struct {
		Contents  string `json:"contents"`
		Path      string `json:"absPath"`
		Truncated bool   `json:"truncated"`
		Encoding  string `json:"encoding"`
	}](ctx, c, "read_file", struct {
		Path     string `json:"path"`
		MaxBytes int    `json:"max_bytes,omitempty"`
		Encoding string `json:"encoding"`
	}{path, maxBytes, "base64"})
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

// SeedReadState tells the CLI that a file was read when it had this time, so that the model may edit
// it without reading it again. If the file has changed since, nothing happens.
func (c *Control) SeedReadState(ctx context.Context, path string, modified time.Time) error {
	return c.s.control(ctx, "seed_read_state", struct {
		Path  string `json:"path"`
		MTime int64  `json:"mtime"`
	}{path, modified.UnixMilli()}, nil)
}

// A Rewind is what RewindFiles did, or would do.
type Rewind struct {
	Possible bool `json:"canRewind"`
	// Problem says why not.
	Problem      string   `json:"error"`
	FilesChanged []string `json:"filesChanged"`
	Insertions   int      `json:"insertions"`
	Deletions    int      `json:"deletions"`
	SkippedLinks int      `json:"skippedLinks"`
}

// RewindFiles puts the files back to what they were at an input. It needs Options.FileCheckpoints.
// With dryRun it only says what it would do.
func (c *Control) RewindFiles(ctx context.Context, inputUUID string, dryRun bool) (*Rewind, error) {
	return answered[Rewind](ctx, c, "rewind_files", struct {
		ID  string `json:"user_message_id"`
		Dry bool   `json:"dry_run,omitempty"`
	}{inputUUID, dryRun})
}

// StopTask stops a background task, which a task_notification then reports.
func (c *Control) StopTask(ctx context.Context, taskID string) error {
	return c.s.control(ctx, "stop_task", map[string]string{"task_id": taskID}, nil)
}

// BackgroundTasks lets the running commands and subagents go on in the background; with a tool
// call's ID only that one. It reports whether there was any.
func (c *Control) BackgroundTasks(ctx context.Context, toolUseID string) (bool, error) {
	r, err := answered[struct {
		Backgrounded *bool `json:"backgrounded"`
	}](ctx, c, "background_tasks", struct {
		ID string `json:"tool_use_id,omitempty"`
	}{toolUseID})
	if err != nil {
		return false, err
	}
	return r.Backgrounded == nil || *r.Backgrounded, nil
}

// A TaskOutput is the end of what a background command wrote.
type TaskOutput struct {
	Output     string `json:"output"`
	TotalBytes int64  `json:"total_bytes"`
	// Truncated is set if Output is only the last 8 KiB.
	Truncated bool `json:"truncated"`
}

// TaskOutput reads the end of what a background command has written.
func (c *Control) TaskOutput(ctx context.Context, taskID string) (*TaskOutput, error) {
	return answered[TaskOutput](ctx, c, "get_task_output", map[string]string{"task_id": taskID})
}
