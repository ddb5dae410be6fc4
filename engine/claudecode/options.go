package claudecode

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/permission"
)

// Options are the options of an engine that only the CLI has. The options of every engine are in
// [agent.Options]. The zero value, like a nil pointer, means the defaults. Engines cost nothing:
// sessions with different options use different engines.
type Options struct {
	// Path is the CLI's executable. If it is empty, the engine looks on the PATH and where installers put
	// the CLI, but not in the checkout of agent.Options.Dir. See [NotFoundError].
	Path string
	// Launcher is a command that starts the CLI, such as {"docker", "run", "-i", "image"} or {"node",
	// "--max-old-space-size=4096"}. The engine appends Path, which must be set and is not checked, and the
	// CLI's arguments. The command must pass on stdin, stdout and signals.
	Launcher []string
	// BuiltinTools are the CLI's own tools that the model gets, such as "Bash" and "Read". "default" means
	// all. Nil means none: the model has the program's tools, as on every engine.
	BuiltinTools []string
	// ExtraArgs are appended to the arguments of the CLI.
	ExtraArgs []string
	// Stderr receives each line of the CLI's standard error. It may be nil. The error of a failed run has
	// the last lines in any case.
	Stderr func(line string)

	// Preset selects the CLI's own system prompt, with AppendSystemPrompt appended. SystemPrompt must then
	// be empty. Nil means the program's prompt, or none.
	Preset *Preset
	// FreshPrompt renders the system prompt again for each request. By default the CLI may store the first
	// one with the session and send it for the whole conversation.
	FreshPrompt bool
	// PlanInstructions replace the CLI's instructions for the model in the mode "plan".
	PlanInstructions string
	// VerbatimPrompts disables the expansion of @path and slash commands in inputs.
	VerbatimPrompts bool

	// Agents are the subagents by name. The model calls them with the CLI's tool "Agent".
	Agents map[string]AgentDefinition
	// Agent is the agent for the main conversation. Empty means none.
	Agent string
	// Skills are the enabled skills. "all" means every skill. Nil means the CLI's default.
	Skills []string
	// Plugins are loaded in addition to those of the settings.
	Plugins []Plugin
	// ToolAliases maps tools to the tools that run in their place: {"Bash": "mcp__box__bash"}.
	ToolAliases map[string]string

	// Settings are settings in the form of the CLI's settings file. They override those of the user and
	// the project. Nil means none.
	Settings json.RawMessage
	// Sandbox is the member "sandbox" of Settings. Nil means none.
	Sandbox json.RawMessage
	// ManagedSettings are restrictions of the session, for programs that embed the CLI. An
	// administrator's settings override them. Nil means none.
	ManagedSettings json.RawMessage
	// AllowBypass allows a later change to the mode "bypassPermissions".
	AllowBypass bool
	// NoPrompts denies every call that needs a question. agent.Options.CanUseTool is not called.
	NoPrompts bool

	// AdditionalDirectories are folders that the CLI's tools may use in addition to agent.Options.Dir.
	AdditionalDirectories []string
	// ProjectConfigRoot is the checkout whose project settings apply. Empty means that of Dir.
	ProjectConfigRoot string
	// FileCheckpoints keeps copies of files before changes, for [Control.RewindFiles].
	FileCheckpoints bool
	// NoPersistence does not store the session, so that it cannot be resumed.
	NoPersistence bool
	// Title is the title of a new session. If it is empty, the CLI makes one.
	Title string
	// Mirror receives the entries that the CLI writes to transcripts, in order. Package transcript reads
	// their form. Mirror must not block for long. It may be nil, and must be nil with NoPersistence.
	Mirror func(path string, entries []json.RawMessage)

	// TaskBudget is the number of tokens that the CLI tells the model to stay within. Zero means none.
	TaskBudget int
	// Betas are beta features of the API, as in the header anthropic-beta.
	Betas []string
	// HookEvents enables the messages hook_started, hook_progress and hook_response about hooks of settings.
	HookEvents bool
	// EventHooks are hooks on any event of the CLI. See [EventHook].
	EventHooks []EventHook
	// SubagentText enables messages with the text and thinking of subagents. By default there are only
	// their tool calls.
	SubagentText bool
	// SubagentSummaries enables a summary of each running subagent about every 30 seconds.
	SubagentSummaries bool
	// PromptSuggestions enables a guess at the user's next input after each turn.
	PromptSuggestions bool
	// TaskStops leaves background tasks running after an interrupt, for programs that stop them by
	// [Control.StopTask].
	TaskStops bool
	// OnDialog answers dialogs of the kinds in DialogKinds. Nil means that there are none.
	OnDialog DialogFunc
	// DialogKinds are the kinds of dialogs that OnDialog can show.
	DialogKinds []string
	// QuestionPreview is the form of previews in the CLI's tool AskUserQuestion: "markdown" or "html".
	// Empty means the CLI's default.
	QuestionPreview string
	// Debug enables the CLI's debug log, which goes to DebugFile or else to the standard error.
	Debug     bool
	DebugFile string
}

// A Preset configures the CLI's own system prompt.
type Preset struct {
	// ExcludeDynamicSections moves the parts that depend on the user and the folder to the first input, so
	// that the prompt can be cached across users and folders.
	ExcludeDynamicSections bool
}

// PromptBoundary in agent.Options.SystemPrompt separates the beginning that is the same in all
// sessions, and can be cached across them, from the rest.
const PromptBoundary = "__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__"

// A Plugin is a plugin of the CLI.
type Plugin struct {
	// Path is the folder of the plugin.
	Path string
	// SkipMCP excludes the plugin's MCP servers.
	SkipMCP bool
}

// An AgentDefinition defines a subagent. Zero values mean the CLI's defaults.
type AgentDefinition struct {
	// Description tells the model when to use the agent.
	Description string `json:"description"`
	// Prompt is the system prompt of the agent.
	Prompt string `json:"prompt"`
	// Tools are the tools of the agent. Nil means those of the main conversation.
	Tools []string `json:"tools,omitempty"`
	// DisallowedTools are excluded from Tools.
	DisallowedTools []string `json:"disallowedTools,omitempty"`
	// Model is an alias, the ID of a model, or "inherit".
	Model string `json:"model,omitempty"`
	// MCPServers are the names of servers of the session.
	MCPServers []string `json:"mcpServers,omitempty"`
	// Skills are loaded into the context of the agent.
	Skills []string `json:"skills,omitempty"`
	// InitialPrompt is the first input if the agent runs as the main conversation.
	InitialPrompt string `json:"initialPrompt,omitempty"`
	// MaxTurns limits the number of requests to the model.
	MaxTurns int `json:"maxTurns,omitempty"`
	// AutoCompactWindow is the number of tokens at which the conversation is compacted.
	AutoCompactWindow int `json:"autoCompactWindow,omitempty"`
	// Background runs the agent without the main conversation waiting for it.
	Background bool `json:"background,omitempty"`
	// OmitClaudeMD excludes the CLAUDE.md files.
	OmitClaudeMD bool `json:"omitClaudeMd,omitempty"`
	// Memory is the scope of the memory files: "user", "project" or "local".
	Memory string `json:"memory,omitempty"`
	// Effort is "low", "medium", "high", "xhigh" or "max".
	Effort string `json:"effort,omitempty"`
	// PermissionMode is the permission mode of the agent.
	PermissionMode permission.Mode `json:"permissionMode,omitempty"`
	// Observer names up to four agents, separated by commas, that observe this agent. ObserverMessage is
	// added to their input.
	Observer        string `json:"observer,omitempty"`
	ObserverMessage string `json:"observerMessage,omitempty"`
	// CriticalReminder is repeated to the agent.
	CriticalReminder string `json:"criticalSystemReminder_EXPERIMENTAL,omitempty"`
}

// An EventHook is a hook on any event of the CLI, with input and output in the CLI's JSON. The events
// that every engine has are typed in [agent.Hooks].
//
// Events: PreToolUse, PostToolUse, PostToolUseFailure, PostToolBatch, Notification,
// UserPromptSubmit, UserPromptExpansion, SessionStart, SessionEnd, Stop, StopFailure, SubagentStart,
// SubagentStop, PreCompact, PostCompact, PreModelSwitch, PostModelSwitch, PermissionRequest,
// PermissionDenied, Setup, TeammateIdle, TaskCreated, TaskCompleted, Elicitation,
// ElicitationResult, ConfigChange, WorktreeCreate, WorktreeRemove, InstructionsLoaded, CwdChanged,
// FileChanged, DirectoryAdded, MessageDisplay, PreSkillShellCommand. docs/parity.md says
// what the CLI needs for some of them, and which two never occur.
type EventHook struct {
	// Event is the event's name.
	Event string
	// Matcher is a regular expression for the event's subject, such as a tool's name. Empty matches all.
	Matcher string
	// Timeout limits the time of the hook. Zero means [agent.DefaultHookTimeout].
	Timeout time.Duration
	// FailClosed makes an error or a panic of the hook block what the hook guards.
	FailClosed bool
	// Func receives the event's input and returns the hook's output, or nil for none.
	Func func(ctx context.Context, input json.RawMessage) (json.RawMessage, error)
}

// A Dialog is a question that the CLI asks the program to show to its user.
type Dialog struct {
	// Kind is one of Options.DialogKinds.
	Kind string
	// Payload is the content of the dialog. Its form depends on Kind.
	Payload json.RawMessage
	// ToolUseID is the tool call that the dialog belongs to. It may be empty.
	ToolUseID string
}

// A DialogFunc shows a dialog and returns the answer in the form of its kind, or nil if the user
// cancels. An error and a panic cancel the dialog. The context ends when the CLI withdraws the dialog.
type DialogFunc func(ctx context.Context, d *Dialog) (answer json.RawMessage, err error)

// An OptionError is the error for an invalid field of [Options].
type OptionError struct {
	// Field is the name of the field.
	Field string
	// Problem is what is wrong, Remedy what to do about it.
	Problem, Remedy string
}

// Error returns the field, the problem and the remedy.
func (e *OptionError) Error() string {
	return fmt.Sprintf("claude-code: Options.%s %s: %s", e.Field, e.Problem, e.Remedy)
}

// check returns an error for the first invalid option.
func (o *Options) check(run *agent.Options) error {
	for _, object := range []struct {
		field string
		value json.RawMessage
	}{{"Settings", o.Settings}, {"Sandbox", o.Sandbox}, {"ManagedSettings", o.ManagedSettings}} {
		var members map[string]json.RawMessage
		if object.value != nil && (json.Unmarshal(object.value, &members) != nil || members == nil) {
			return &OptionError{object.field, fmt.Sprintf("is %.40q", object.value), "set a JSON object"}
		}
	}
	switch {
	case len(o.Launcher) > 0 && o.Path == "":
		return &OptionError{"Launcher", "is set without Path", "set Path to the CLI as the launcher finds it"}
	case o.Preset != nil && run.SystemPrompt != "":
		return &OptionError{"Preset", "is set together with a system prompt", "put the text into AppendSystemPrompt"}
	case len(o.DialogKinds) > 0 && o.OnDialog == nil:
		return &OptionError{"DialogKinds", "is set without OnDialog", "set OnDialog"}
	case o.Mirror != nil && o.NoPersistence:
		return &OptionError{"Mirror", "is set together with NoPersistence", "set one of them: only stored entries are mirrored"}
	case o.TaskBudget < 0:
		return &OptionError{"TaskBudget", fmt.Sprintf("is %d", o.TaskBudget), "set a number of tokens, or 0 for none"}
	case o.QuestionPreview != "" && o.QuestionPreview != "markdown" && o.QuestionPreview != "html":
		return &OptionError{"QuestionPreview", fmt.Sprintf("is %q", o.QuestionPreview), `set "markdown", "html" or nothing`}
	}
	for _, list := range []struct {
		field  string
		values []string
	}{{"BuiltinTools", o.BuiltinTools}, {"Skills", o.Skills}, {"Betas", o.Betas}} {
		for _, v := range list.values {
			if v == "" || strings.ContainsAny(v, ",\n") {
				return &OptionError{list.field, fmt.Sprintf("has the entry %q", v), "set one name an entry"}
			}
		}
	}
	for i, h := range o.EventHooks {
		if h.Event == "" || h.Func == nil {
			return &OptionError{fmt.Sprintf("EventHooks[%d]", i), "lacks its Event or its Func", "set both"}
		}
	}
	return nil
}
