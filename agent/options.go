package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/permission"
)

// Defaults of [Options].
const (
	DefaultMaxToolConcurrency = 32
	DefaultMaxQueuedInputs    = 1000
)

// Options configures a session. The zero value, like a nil pointer, means the defaults. The session
// copies the options: later changes have no effect on it.
type Options struct {
	// Model is the model's ID. Empty means the engine's default: native.DefaultModel on the native
	// engine, and the Claude Code CLI's choice for the account on the other.
	Model string
	// FallbackModel lists models, separated by commas, to try in order when Model is overloaded or not
	// found. The next turn tries Model again. The list must not contain Model. Empty means none.
	FallbackModel string
	// SystemPrompt is the system prompt. Empty means none on the native engine.
	SystemPrompt string
	// AppendSystemPrompt is added after SystemPrompt.
	AppendSystemPrompt string
	// MaxTurns bounds the model requests of one turn of the conversation. A turn that reaches it ends
	// with [SubtypeErrorMaxTurns]. Zero means no limit.
	MaxTurns int
	// TurnTimeout bounds a turn of the conversation, from taking up its input to its result, including
	// the wait for servers before the first turn. A turn that exceeds it ends with
	// [SubtypeErrorTurnTimeout]: its requests and tool calls are cancelled, and the conversation can
	// continue. Zero means no limit.
	TurnTimeout time.Duration
	// MaxQueuedInputs bounds the inputs that wait for their turn. A further input is refused with
	// [ErrTooManyInputs]. Zero means [DefaultMaxQueuedInputs].
	MaxQueuedInputs int
	// MaxTokens bounds the tokens of one response. Zero means the engine's default for the model.
	MaxTokens int
	// MaxBudgetUSD bounds the session's estimated cost in US dollars. A turn that reaches it ends with
	// [SubtypeErrorMaxBudget]. Zero means no limit. With a limit, a model without a known price is an
	// error at Open.
	MaxBudgetUSD float64
	// Thinking configures the model's reasoning. Nil leaves it to the engine and the model.
	Thinking *Thinking
	// Effort is "low", "medium", "high", "xhigh" or "max", as far as the model supports them. Empty
	// leaves it to the model.
	Effort string

	// Tools are the program's own tools, without a server. Their full names are mcp__tools__NAME; see
	// [ToolsServer]. A tool that cannot be registered is left out and listed in
	// [SystemInit.MCPServerErrors].
	Tools []mcpserver.Definition
	// MCPServers are the session's servers, by the key that names their tools: mcp__KEY__TOOL.
	MCPServers map[string]mcphost.ServerConfig
	// SettingSources names the configuration files to read: servers from .mcp.json and ~/.claude.json,
	// and permissions, hooks and environment from Claude Code's settings files. Nil means the project's
	// files without trust, so that a session does not depend on the user's account. An empty slice
	// means none, which suits a service.
	//
	// A source that is named is trusted. Files without trust give servers, rules that deny or ask, and
	// the modes plan and dontAsk. Everything else in them has no effect and is listed in
	// [SystemInit.MCPServerErrors] with the type "untrusted_config". The other options take precedence
	// over all files.
	SettingSources []SettingSource
	// TrustFile reports whether a file of a checkout is trusted: .mcp.json, .claude/settings.json or
	// .claude/settings.local.json. It receives the file's absolute path and the bytes that are used. It
	// is called from one goroutine while the session opens. Nil trusts the files of the sources that
	// SettingSources names.
	TrustFile func(file string, contents []byte) bool
	// Settings is a further settings file, with precedence over those of SettingSources: a path, or its
	// JSON. Empty means none.
	Settings string
	// StrictMCPConfig ignores the servers of SettingSources.
	StrictMCPConfig bool
	// AdditionalDirectories are sent to servers as roots, in addition to Dir. A relative directory is
	// below Dir.
	AdditionalDirectories []string
	// Host adds the servers of a running host. Sessions may share a host. The session does not close it
	// and does not wait for its servers. A closed host is the error [mcphost.ErrClosed]. MCPServers takes
	// precedence for a tool that both have. The host's servers elicit through [mcphost.Options.Elicit],
	// not OnElicitation.
	Host *mcphost.Host
	// AllowedTools are rules for tools that run without a question: a full name, mcp__KEY or mcp__KEY__*.
	AllowedTools []string
	// DisallowedTools are rules for tools that are hidden from the model.
	DisallowedTools []string
	// AskTools are rules for tools that need a permission even if AllowedTools lists them.
	AskTools []string
	// PermissionMode decides calls that no rule decides. Empty means the mode of the settings files, or
	// else permission.ModeDefault.
	PermissionMode permission.Mode
	// CanUseTool decides calls that nothing else decides. Nil denies them.
	CanUseTool CanUseToolFunc
	// PermissionPromptTool is the full name of an MCP tool that replaces CanUseTool. It is hidden from
	// the model. Empty means none.
	PermissionPromptTool string
	// MaxToolConcurrency bounds the tool calls of a turn that run at once. Only tools that are read-only
	// or declare that they can run concurrently do. Zero means [DefaultMaxToolConcurrency].
	MaxToolConcurrency int
	// ToolSearch configures whether the model searches for its tools. Empty means the environment
	// variable ENABLE_TOOL_SEARCH, or else a search from [ToolSearchTokens] of definitions. The entry
	// "ToolSearch" in DisallowedTools turns it off.
	ToolSearch ToolSearch
	// OnElicitation answers an MCP server's question to the user, by a form or a URL. server is the
	// server's key. It may be called from several goroutines at once; ctx ends if the question is
	// withdrawn. An error declines. Nil means that servers learn that nobody can be asked.
	OnElicitation func(ctx context.Context, server string, p *mcp.ElicitParams) (*mcp.ElicitResult, error)
	// Hooks are functions that are called at fixed points. Nil means none.
	Hooks *Hooks

	// OutputSchema is a JSON Schema with the root type "object" for the answer, which is then in
	// [Result.StructuredOutput]. Nil means free text.
	OutputSchema json.RawMessage
	// IncludePartialMessages adds a *[StreamEvent] for each event of the model's stream.
	IncludePartialMessages bool

	// Env overrides the process environment and that of the settings files for this session:
	// ANTHROPIC_API_KEY, MCP_TIMEOUT and so on. Servers do not inherit it.
	Env map[string]string
	// Dir is the session's directory. Empty means the process's.
	Dir string
	// SessionID is a UUID for the session. Empty means a new one.
	SessionID string
	// Resume selects a stored conversation to continue. The zero value begins a new one.
	Resume Resume
	// History is the earlier conversation, for a program that stores its conversations: the messages of
	// earlier sessions in order, and the inputs as *[User] messages. Messages that [json.Marshal] encoded
	// and [DecodeMessage] decoded are equivalent to the originals. Nil begins a new conversation. An
	// engine that stores conversations itself refuses History with an [UnsupportedError].
	//
	// Only *[Assistant] and *[User] messages are used. Messages of subagents (ParentToolUseID) and
	// reports of failures (Assistant.Error) are ignored. Messages that [Assistant.Supersedes] names are
	// left out. Of an input and its replay with the same UUID, the replay is used. Messages with the
	// same Message.ID are one message of the model. The messages are not modified.
	//
	// If the history is the stream of a session with ReplayUserMessages and the options are the same,
	// the model receives exactly the same conversation, so the API's cache remains valid. Without
	// ReplayUserMessages, the program adds the inputs itself, and the engine's own notes to the model,
	// such as the context of hooks, are missing.
	//
	// The history may be damaged: what the API would refuse is repaired or left out and reported, see
	// [HistoryRepair]. Only a nil message is an error. SessionStart hooks receive the source "resume".
	History []Message
	// HistoryUsage is what the conversation in History has used. It counts towards MaxTurns and
	// MaxBudgetUSD.
	HistoryUsage HistoryUsage
	// ReplayUserMessages adds the conversation's other user messages to the stream: each input where it
	// enters the conversation, with [User.IsReplay] and its UUID, and, on the native engine, the engine's
	// own notes to the model, with [User.IsSynthetic].
	ReplayUserMessages bool
	// Logger receives events for the operator of the program. Nil discards them.
	Logger *slog.Logger
	// Stderr receives each line that a stdio server writes to its standard error. It is called from
	// several goroutines. Nil discards the lines.
	Stderr func(server, line string)
	// ConfigProblems are configuration entries that the program left out. They are added to
	// [SystemInit.MCPServerErrors].
	ConfigProblems []MCPServerError
}

// A SettingSource is a place of configuration files.
type SettingSource string

// The setting sources, by Claude Code's names.
const (
	// SourceUser is ~/.claude/settings.json and the servers of ~/.claude.json.
	SourceUser SettingSource = "user"
	// SourceProject is .claude/settings.json and .mcp.json in Dir and the folders above it up to the root
	// of the repository.
	SourceProject SettingSource = "project"
	// SourceLocal is .claude/settings.local.json in the same folders, and the project's servers in
	// ~/.claude.json.
	SourceLocal SettingSource = "local"
)

// ToolsServer is the server key of [Options.Tools]: their full names begin with "mcp__tools__".
const ToolsServer = "tools"

// Thinking configures the model's reasoning.
type Thinking struct {
	// Type is "adaptive" (the model decides), "enabled" (with BudgetTokens), "between_tools" or
	// "disabled". Not every model supports all of them.
	Type string
	// BudgetTokens bounds the tokens for thinking with Type "enabled". It must be at least 1024.
	BudgetTokens int
	// Display is "summarized", "omitted" or "updates". Empty leaves it to the model.
	Display string
}

// withDefaults returns a validated copy with the defaults filled in. An error is an *[OptionError].
func (o *Options) withDefaults() (Options, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	var err error
	if opts.Hooks, err = opts.Hooks.checked(); err != nil {
		return Options{}, err
	}
	if err := opts.check(); err != nil {
		return Options{}, err
	}
	if opts.PermissionMode == "manual" {
		opts.PermissionMode = permission.ModeDefault
	}
	switch {
	case opts.SessionID != "":
	case opts.Resume.keepsID():
		opts.SessionID = opts.Resume.ID
	default:
		opts.SessionID = uuid.NewString()
	}
	if opts.MaxToolConcurrency == 0 {
		opts.MaxToolConcurrency = DefaultMaxToolConcurrency
	}
	if opts.MaxQueuedInputs == 0 {
		opts.MaxQueuedInputs = DefaultMaxQueuedInputs
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Thinking != nil {
		thinking := *opts.Thinking
		opts.Thinking = &thinking
	}
	opts.MCPServers = maps.Clone(opts.MCPServers)
	opts.Env = maps.Clone(opts.Env)
	opts.AllowedTools = slices.Clone(opts.AllowedTools)
	opts.DisallowedTools = slices.Clone(opts.DisallowedTools)
	opts.AskTools = slices.Clone(opts.AskTools)
	opts.ConfigProblems = slices.Clone(opts.ConfigProblems)
	opts.SettingSources = slices.Clone(opts.SettingSources)
	opts.AdditionalDirectories = slices.Clone(opts.AdditionalDirectories)
	opts.History = slices.Clone(opts.History)
	opts.addTools()
	opts.addEnvironment()
	opts.OutputSchema = slices.Clone(opts.OutputSchema)
	return opts, nil
}

// addTools adds a server of o.Tools.
func (o *Options) addTools() {
	if len(o.Tools) == 0 {
		return
	}
	srv := mcpserver.New(ToolsServer, &mcpserver.Options{Logger: o.Logger})
	for _, t := range o.Tools {
		if err := t.AddTo(srv); err != nil {
			o.ConfigProblems = append(o.ConfigProblems, MCPServerError{Name: ToolsServer, Type: "tool_left_out", Message: err.Error()})
			o.Logger.Warn("tool left out", "server", ToolsServer, "tool", t.Name(), "reason", err)
		}
	}
	if o.MCPServers == nil {
		o.MCPServers = map[string]mcphost.ServerConfig{}
	}
	o.MCPServers[ToolsServer] = mcphost.InProcess(srv)
	o.Tools = nil
}

// addEnvironment reports the invalid environment variables in ConfigProblems.
func (o *Options) addEnvironment() {
	problems := mcphost.EnvProblems(func(name string) (string, bool) {
		if v, ok := o.Env[name]; ok {
			return v, true
		}
		return os.LookupEnv(name)
	})
	for _, p := range problems {
		o.ConfigProblems = append(o.ConfigProblems, MCPServerError{Type: "invalid_environment", Message: p.String()})
	}
}

func (o *Options) check() error {
	for _, n := range []struct {
		field string
		value int
	}{
		{"MaxTurns", o.MaxTurns},
		{"MaxTokens", o.MaxTokens},
		{"MaxToolConcurrency", o.MaxToolConcurrency},
		{"MaxQueuedInputs", o.MaxQueuedInputs},
		{"HistoryUsage.Turns", o.HistoryUsage.Turns},
	} {
		if n.value < 0 {
			return &OptionError{n.field, fmt.Sprintf("is %d", n.value), "set a positive number, or 0 for the default"}
		}
	}
	for _, a := range []struct {
		field string
		usd   float64
		zero  string
	}{{"MaxBudgetUSD", o.MaxBudgetUSD, "0 for no limit"}, {"HistoryUsage.CostUSD", o.HistoryUsage.CostUSD, "0 for none"}} {
		if a.usd < 0 || math.IsNaN(a.usd) || math.IsInf(a.usd, 0) {
			return &OptionError{a.field, fmt.Sprintf("is %v", a.usd), "set a positive amount, or " + a.zero}
		}
	}
	if o.TurnTimeout < 0 {
		return &OptionError{"TurnTimeout", fmt.Sprintf("is %v", o.TurnTimeout), "set a positive duration, or 0 for no limit"}
	}
	if o.Model != "" && slices.Contains(strings.Split(strings.ReplaceAll(o.FallbackModel, " ", ""), ","), o.Model) {
		return &OptionError{"FallbackModel", fmt.Sprintf("has %q, which is Model", o.Model), "name another model, or none"}
	}
	if err := cmp.Or(o.checkTools(), o.checkModel()); err != nil {
		return err
	}
	if o.SessionID != "" && uuid.Validate(o.SessionID) != nil {
		return &OptionError{"SessionID", fmt.Sprintf("is %q", o.SessionID), "set a UUID, or leave it empty for a new one"}
	}
	return cmp.Or(o.checkHistory(), o.checkResume())
}

var effort = regexp.MustCompile(`^(low|medium|high|xhigh|max)?$`)

func (o *Options) checkModel() error {
	if !effort.MatchString(o.Effort) {
		return &OptionError{"Effort", fmt.Sprintf("is %q", o.Effort), `set "low", "medium", "high", "xhigh", "max" or nothing`}
	}
	if t := o.Thinking; t != nil {
		switch {
		case !slices.Contains([]string{"adaptive", "enabled", "between_tools", "disabled"}, t.Type):
			return &OptionError{"Thinking.Type", fmt.Sprintf("is %q", t.Type), `set "adaptive", "enabled", "between_tools" or "disabled"`}
		case t.Type == "enabled" && t.BudgetTokens < 1024:
			return &OptionError{"Thinking.BudgetTokens", fmt.Sprintf("is %d", t.BudgetTokens), "set at least 1024"}
		case t.Type != "enabled" && t.BudgetTokens != 0:
			return &OptionError{"Thinking.BudgetTokens", fmt.Sprintf("is %d", t.BudgetTokens), `set it with Type "enabled" only`}
		case !slices.Contains([]string{"", "summarized", "omitted", "updates"}, t.Display):
			return &OptionError{"Thinking.Display", fmt.Sprintf("is %q", t.Display), `set "summarized", "omitted", "updates" or nothing`}
		}
	}
	if o.OutputSchema != nil {
		var schema struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(o.OutputSchema, &schema); err != nil {
			return &OptionError{"OutputSchema", fmt.Sprintf("is no JSON Schema (%v)", err), `set a JSON object with "type": "object"`}
		}
		if schema.Type != "object" {
			return &OptionError{"OutputSchema", fmt.Sprintf("has the root type %q", schema.Type), `set "type": "object"`}
		}
	}
	return nil
}

func (o *Options) checkTools() error {
	if _, err := permission.ParseMode(string(o.PermissionMode)); err != nil {
		return &OptionError{"PermissionMode", fmt.Sprintf("is %q", o.PermissionMode), "set one of the permission.Mode constants"}
	}
	if o.PermissionPromptTool != "" && o.CanUseTool != nil {
		return &OptionError{"PermissionPromptTool", "is set together with CanUseTool", "set only one of them"}
	}
	if o.PermissionPromptTool != "" && !strings.HasPrefix(o.PermissionPromptTool, "mcp__") {
		return &OptionError{"PermissionPromptTool", fmt.Sprintf("is %q", o.PermissionPromptTool), "set the full name of an MCP tool: mcp__SERVER__TOOL"}
	}
	for _, source := range o.SettingSources {
		if !slices.Contains([]SettingSource{SourceUser, SourceProject, SourceLocal}, source) {
			return &OptionError{"SettingSources", fmt.Sprintf("has %q", source), `set any of "user", "project" and "local"`}
		}
	}
	for i, t := range o.Tools {
		if t.Name() == "" {
			return &OptionError{fmt.Sprintf("Tools[%d]", i), "has no name", "make it with mcpserver.Define or mcpserver.DefineRaw and a tool that has one"}
		}
	}
	if _, taken := o.MCPServers[ToolsServer]; taken && len(o.Tools) > 0 {
		return &OptionError{fmt.Sprintf("MCPServers[%q]", ToolsServer), "has the key that Options.Tools are registered under", "give the server another key, or add the tools to it"}
	}
	for _, name := range slices.Sorted(maps.Keys(o.MCPServers)) {
		if o.MCPServers[name] == nil {
			return &OptionError{fmt.Sprintf("MCPServers[%q]", name), "is nil", "set mcphost.Stdio, mcphost.HTTP, mcphost.SSE or mcphost.InProcess"}
		}
	}
	return o.ToolSearch.check()
}
