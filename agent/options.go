package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
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

// DefaultMaxToolConcurrency is how many tool calls of one turn run at once, unless Options.MaxToolConcurrency says otherwise.
const DefaultMaxToolConcurrency = 32

// DefaultMaxQueuedInputs is how many inputs of a session may wait for their turn, unless Options.MaxQueuedInputs says otherwise.
const DefaultMaxQueuedInputs = 1000

// Options configures a run. The zero value, like a nil pointer, means the defaults. The run keeps
// its own copy: later changes have no effect on it.
type Options struct {
	// Model is the model's ID. Empty means the engine's default, which is not the same on all engines:
	// native.DefaultModel on the native engine, and whatever the Claude Code CLI chooses for the account
	// on the other. A program that runs on both sets it.
	Model string
	// FallbackModel takes over for the rest of a turn when Model is overloaded or not found; the
	// next turn tries Model again. It may be a list, separated by commas, of models to try in this
	// order. It must not hold Model. Empty means none.
	FallbackModel string
	// SystemPrompt is the system prompt. Empty means none on the native engine.
	SystemPrompt string
	// AppendSystemPrompt is added after SystemPrompt. Empty adds nothing.
	AppendSystemPrompt string
	// MaxTurns is how many times the model may be asked in one turn of the conversation; then the
	// turn ends with [SubtypeErrorMaxTurns]. Zero means no limit; it must not be negative.
	MaxTurns int
	// TurnTimeout is how long a turn of the conversation may take, from when its input is taken up until its
	// result, the wait for servers before the first turn included. A turn that takes longer ends with
	// [SubtypeErrorTurnTimeout]: its request and its tool calls are cancelled, and the conversation can go
	// on. Zero means no limit; it must not be negative. An engine that cannot keep it refuses it.
	TurnTimeout time.Duration
	// MaxQueuedInputs is how many inputs may wait for their turn; one more is refused with
	// [ErrTooManyInputs]. Zero means [DefaultMaxQueuedInputs]; it must not be negative.
	MaxQueuedInputs int
	// MaxTokens is the most tokens that the model may write in one response. Zero means the
	// engine's default for the model; it must not be negative.
	MaxTokens int
	// MaxBudgetUSD ends the session's turns with [SubtypeErrorMaxBudget] once the estimated cost in
	// US dollars has reached it. Zero means no limit; it must not be negative. With a limit, a model
	// without a known price is an error at Open.
	MaxBudgetUSD float64
	// Thinking is how the model thinks before it answers. Nil leaves it to the engine and the model.
	Thinking *Thinking
	// Effort is how much work the model puts into an answer: "low", "medium", "high", "xhigh" or
	// "max", as far as the model knows them. Empty leaves it to the model.
	Effort string

	// Tools are tools of the program's own, without a server around them. Their full names are
	// mcp__tools__NAME; see [ToolsServer]. One that cannot be registered is left out and listed in
	// [SystemInit.MCPServerErrors]; the others stay.
	Tools []mcpserver.Definition
	// MCPServers are the session's servers by the key that names their tools: mcp__KEY__TOOL.
	MCPServers map[string]mcphost.ServerConfig
	// SettingSources are the machine's configuration files that are read: servers from .mcp.json and
	// ~/.claude.json, and permissions, hooks and environment from Claude Code's settings files. Nil
	// means the project's alone, so that a run does not depend on whose account it runs in; an empty
	// slice means none, which is right for a service. What Options says itself wins over them.
	//
	// To name a source is to trust it. With nil the project's files are read without trust: they
	// give servers, rules that deny or ask, and the modes plan and dontAsk. All else in them is
	// listed in [SystemInit.MCPServerErrors] with the type "untrusted_config" and has no effect.
	SettingSources []SettingSource
	// TrustFile decides for each file of a checkout whether it is trusted: .mcp.json, .claude/settings.json
	// and .claude/settings.local.json, as far as the sources have them. It gets the file's absolute path
	// and the bytes that were read and are used. It is called while the session is opened, from one
	// goroutine. Nil means that the files of the sources that SettingSources names are trusted.
	TrustFile func(file string, contents []byte) bool
	// Settings is one more settings file, laid over those of SettingSources: a path, or its JSON. Empty means none.
	Settings string
	// StrictMCPConfig uses no servers but those of MCPServers, Tools and Host: the SettingSources
	// give permissions, hooks and environment only.
	StrictMCPConfig bool
	// AdditionalDirectories are directories beside Dir that servers are told about as roots. A relative one is below Dir.
	AdditionalDirectories []string
	// Host adds the servers of a host that was started beforehand. Any number of runs may share it;
	// it is not closed, and one that was closed is an error, [mcphost.ErrClosed]. Its servers are not waited for. Where a tool's name is in both, MCPServers wins.
	// What its servers ask the user goes to [mcphost.Options.Elicit], not to OnElicitation.
	Host *mcphost.Host
	// AllowedTools are rules for tools that run without a question: a full name, mcp__KEY or mcp__KEY__*.
	AllowedTools []string
	// DisallowedTools are rules for tools that the model does not get to see.
	DisallowedTools []string
	// AskTools are rules for tools that are asked about whatever AllowedTools says.
	AskTools []string
	// PermissionMode is the stance towards calls that no rule settles. Empty means that of the settings
	// files, else permission.ModeDefault.
	PermissionMode permission.Mode
	// CanUseTool is asked about calls that nothing else settles. Nil means that they are denied.
	CanUseTool CanUseToolFunc
	// PermissionPromptTool is the full name of an MCP tool that is asked in place of CanUseTool. It
	// is hidden from the model. Empty means none; it excludes CanUseTool.
	PermissionPromptTool string
	// MaxToolConcurrency is how many tool calls of one turn run at once. Zero means
	// [DefaultMaxToolConcurrency]; it must not be negative. Only tools that are read-only, or declare
	// that they can, run together with others.
	MaxToolConcurrency int
	// ToolSearch says whether the model finds its tools by searching. Empty leaves it to
	// ENABLE_TOOL_SEARCH, and without that it does from [ToolSearchTokens] of definitions on. Naming the tool ToolSearch in DisallowedTools
	// switches it off as well.
	ToolSearch ToolSearch
	// OnElicitation answers what an MCP server asks the user, by a form or a link; server is the key of
	// the server. It may be called from several goroutines at once, and its ctx ends when the question
	// is withdrawn. Nil means that servers are told that nobody can be asked. An error declines.
	OnElicitation func(ctx context.Context, server string, p *mcp.ElicitParams) (*mcp.ElicitResult, error)
	// Hooks are functions called at fixed points of a run. Nil means none.
	Hooks *Hooks

	// OutputSchema is a JSON Schema with the root type "object" that the answer has to match; the
	// answer is then in [Result.StructuredOutput]. Nil means free text.
	OutputSchema json.RawMessage
	// IncludePartialMessages adds a *StreamEvent for each event of the model's stream.
	IncludePartialMessages bool

	// Env is laid over the process environment and that of the settings files for this run alone:
	// ANTHROPIC_API_KEY, MCP_TIMEOUT and so on. It does not reach the servers' processes.
	Env map[string]string
	// Dir is the session's directory. Empty means the process's.
	Dir string
	// SessionID is a UUID for the session. Empty means a new one.
	SessionID string
	// Resume goes on with a stored conversation. The zero value begins a new one.
	Resume Resume
	// History is the conversation so far, for a program that keeps its conversations itself: what an
	// earlier run said, in its order, and what was said to it, as *User messages with text, images or
	// documents. Messages that json.Marshal wrote and [DecodeMessage] read are as good as the first.
	// Nil begins a new conversation. It excludes Resume; an engine that keeps conversations by itself
	// refuses it with an [UnsupportedError].
	//
	// Only *Assistant and *User messages count: all other kinds, what a subagent said (ParentToolUseID)
	// and reports of failures (Assistant.Error) are passed over. What [Assistant.Supersedes] names is
	// left out, and of an input and its replay, with one UUID, only the replay counts. Messages with
	// one Message.ID are one message of the model. The caller's messages are not modified.
	//
	// What the program kept of a run with ReplayUserMessages, given back to a session with the same
	// options, makes the model read exactly what it would have read next in the first one, so what the
	// API has cached of it stays cached. Without, the program adds the inputs by itself, and the run's
	// own remarks to the model, such as the context of hooks, are not in the history.
	//
	// A history may be damaged in any way: what the model cannot be sent is mended or left out, and
	// reported; see [HistoryRepair]. Only a nil message is an error. Turns, costs and limits count from
	// zero, unless HistoryUsage says otherwise; hooks on SessionStart hear the source "resume".
	History []Message
	// HistoryUsage is what the conversation in History has used so far. It counts towards MaxTurns and
	// MaxBudgetUSD, so that the limits hold for a conversation that goes on in another session. The zero
	// value counts from zero.
	HistoryUsage HistoryUsage
	// ReplayUserMessages adds to the stream what the model is told in the user's role beside the
	// results of its calls: each input as it is taken into the conversation, with
	// [User.IsReplay], its UUID and its place among the other messages, and on the native engine the
	// run's own remarks as well, with [User.IsSynthetic]. What is streamed is then the whole conversation.
	ReplayUserMessages bool
	// Logger gets what is worth knowing for whoever operates the program. Nil means that nothing is logged.
	Logger *slog.Logger
	// Stderr gets each line that a stdio server writes to its standard error. It is called from several goroutines. Nil means none.
	Stderr func(server, line string)
	// ConfigProblems are configuration entries that were left out before; they are shown in [SystemInit.MCPServerErrors],
	// as are environment variables that cannot be used.
	ConfigProblems []MCPServerError
}

// A SettingSource is one of the places that configuration files are read from.
type SettingSource string

// The setting sources, by the names that Claude Code gives them.
const (
	// SourceUser is the user's: ~/.claude/settings.json and the servers of ~/.claude.json.
	SourceUser SettingSource = "user"
	// SourceProject is the project's: .claude/settings.json and .mcp.json in Dir and the folders above it up to the root of
	// the repository.
	SourceProject SettingSource = "project"
	// SourceLocal is the user's for one project: .claude/settings.local.json in the same folders, and the project's servers
	// in ~/.claude.json.
	SourceLocal SettingSource = "local"
)

// ToolsServer is the key that [Options.Tools] are registered under: their full names begin with "mcp__tools__".
const ToolsServer = "tools"

// Thinking is how a model thinks before it answers.
type Thinking struct {
	// Type is "adaptive" (the model decides), "enabled" (with BudgetTokens), "between_tools" or
	// "disabled". Not every model takes each.
	Type string
	// BudgetTokens is the most tokens for thinking, with Type "enabled": at least 1024.
	BudgetTokens int
	// Display is "summarized", "omitted" or "updates". Empty leaves it to the model.
	Display string
}

// withDefaults returns a checked and completed copy. Each error is an *OptionError.
func (o *Options) withDefaults() (Options, error) {
	var opts Options
	if o != nil {
		opts = *o // ours from here on: later changes by the caller have no effect
	}
	if err := opts.check(); err != nil {
		return Options{}, err
	}
	if opts.PermissionMode == "manual" {
		opts.PermissionMode = permission.ModeDefault
	}
	switch {
	case opts.SessionID != "":
	case opts.Resume.stays():
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
	opts.Hooks = opts.Hooks.clone()
	return opts, nil
}

// addTools makes a server of the tools. What cannot be registered is a problem of the configuration.
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

// addEnvironment adds the variables that cannot be used to the problems of the configuration.
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
	if err := o.checkTools(); err != nil {
		return err
	}
	if err := o.checkModel(); err != nil {
		return err
	}
	if o.SessionID != "" {
		if _, err := uuid.Parse(o.SessionID); err != nil {
			return &OptionError{"SessionID", fmt.Sprintf("is %q", o.SessionID), "set a UUID, or leave it empty for a new one"}
		}
	}
	if err := o.checkHistory(); err != nil {
		return err
	}
	return o.checkResume()
}

var effort = regexp.MustCompile(`^(low|medium|high|xhigh|max)?$`)

// checkModel checks what shapes the model's answers.
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

// Roots are the directories that an engine tells servers about, Dir first; nil if that is the only one.
func (o *Options) Roots() []string {
	if len(o.AdditionalDirectories) == 0 {
		return nil
	}
	roots := []string{o.Dir}
	for _, dir := range o.AdditionalDirectories {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(o.Dir, dir)
		}
		roots = append(roots, dir)
	}
	return roots
}

// checkTools checks what concerns servers and permission.
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
	if err := o.ToolSearch.check(); err != nil {
		return err
	}
	return o.Hooks.check()
}
