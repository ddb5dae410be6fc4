package claudecode

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/permission"
)

// Options configures an engine. The zero value, like a nil pointer, means the defaults. What a
// program says on every engine is in [agent.Options]; here is what only the CLI knows. Making
// an engine costs nothing: sessions that differ in these options have engines of their own.
type Options struct {
	// Path is the CLI's executable. Empty means that it is looked for on the PATH and where its installers
	// put it, but not in the checkout of agent.Options.Dir; see [NotFoundError].
	Path string
	// Launcher is a command that starts the CLI in place of the system: {"docker", "run", "-i",
	// "image"}, say, or {"node", "--max-old-space-size=4096"}. Path (which must then be set, and is
	// not looked at) and the CLI's arguments follow it. It must hand stdin, stdout and signals on.
	Launcher []string
	// BuiltinTools are the CLI's own tools that the model gets, such as "Bash" and "Read"; "default"
	// stands for all. Nil means none: the model has the program's tools, as on every engine.
	BuiltinTools []string
	// ExtraArgs are passed to the CLI as they are, last.
	ExtraArgs []string
	// Stderr gets each line that the CLI writes to its standard error. Nil means none; the end of it
	// is in the error of a run that failed all the same.
	Stderr func(line string)

	// Preset is the CLI's own system prompt in place of agent.Options.SystemPrompt, which must then
	// be empty; AppendSystemPrompt is added to it. Nil means the program's prompt, or none.
	Preset *Preset
	// FreshPrompt has the system prompt made anew for each request. Without it the CLI may record the
	// first one with the session and send that for as long as the conversation lives.
	FreshPrompt bool
	// PlanInstructions replace what the CLI tells the model to do in the mode "plan".
	PlanInstructions string
	// VerbatimPrompts keeps the CLI from expanding @path and slash commands in the program's inputs.
	VerbatimPrompts bool

	// Agents are subagents by name, which the model calls with the CLI's tool "Agent".
	Agents map[string]AgentDefinition
	// Agent is the agent that the main conversation runs as. Empty means none.
	Agent string
	// Skills are the skills that are switched on; "all" stands for every one. Nil leaves it to the CLI.
	Skills []string
	// Plugins are loaded from folders.
	Plugins []Plugin
	// ToolAliases name the tool that is run in place of another: {"Bash": "mcp__box__bash"}.
	ToolAliases map[string]string

	// Settings are settings of the CLI in the form of its settings file, above those of the user and
	// the project. They travel over stdin. Nil means none.
	Settings json.RawMessage
	// Sandbox is the member "sandbox" of those settings. Nil means none.
	Sandbox json.RawMessage
	// ManagedSettings are settings that restrict what the session may do, for programs that embed the
	// CLI. An administrator's own stand above them. Nil means none.
	ManagedSettings json.RawMessage
	// AllowBypass lets the session be switched to the mode "bypassPermissions" later.
	AllowBypass bool
	// NoPrompts has the CLI deny whatever would be asked about; agent.Options.CanUseTool is not called.
	NoPrompts bool

	// AdditionalDirectories are folders beside agent.Options.Dir that the CLI's tools may use.
	AdditionalDirectories []string
	// ProjectConfigRoot is the checkout whose project settings count in place of Dir's. Empty means Dir's.
	ProjectConfigRoot string
	// FileCheckpoints keeps copies of files before they change, for [Control.RewindFiles].
	FileCheckpoints bool
	// NoPersistence keeps the session off the disk: it can not be resumed.
	NoPersistence bool
	// Title is a new session's title. Empty means that the CLI makes one.
	Title string
	// Mirror gets what the CLI has just written to its transcripts, in order; see [Transcripts] for
	// their form. It must not block for long. Nil means none; it excludes NoPersistence.
	Mirror func(path string, entries []json.RawMessage)

	// TaskBudget is a number of tokens that the model is told to make do with. Zero means none.
	TaskBudget int
	// Betas are beta features of the API, by their header's values.
	Betas []string
	// HookEvents adds the messages hook_started, hook_progress and hook_response of the CLI's own hooks.
	HookEvents bool
	// EventHooks are hooks on any event that the CLI knows; see [EventHook].
	EventHooks []EventHook
	// SubagentText passes on what subagents say and think, and not only their tool calls.
	SubagentText bool
	// SubagentSummaries has the CLI sum up, about every 30 seconds, what a running subagent does.
	SubagentSummaries bool
	// PromptSuggestions has the CLI guess the user's next input after each turn.
	PromptSuggestions bool
	// TaskStops says that the program can stop single background tasks by [Control.StopTask]: an
	// interrupt then leaves them running.
	TaskStops bool
	// OnDialog answers the CLI's dialogs of the kinds in DialogKinds. Nil means that there are none.
	OnDialog DialogFunc
	// DialogKinds are the kinds of dialog that OnDialog can show. It needs OnDialog.
	DialogKinds []string
	// QuestionPreview is the form of previews in the CLI's tool AskUserQuestion: "markdown" or "html". Empty leaves it to the CLI.
	QuestionPreview string
	// Debug has the CLI write its debug log, to DebugFile if that is set and to its stderr otherwise.
	Debug     bool
	DebugFile string
}

// A Preset is the CLI's own system prompt.
type Preset struct {
	// ExcludeDynamicSections moves what differs between users and folders into the first input, so
	// that the prompt is the same for all and can be cached across them.
	ExcludeDynamicSections bool
}

// PromptBoundary divides, in agent.Options.SystemPrompt, what is the same in all sessions, and can
// be cached across them, from what follows and is not.
const PromptBoundary = "__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__"

// A Plugin is a folder with a plugin of the CLI.
type Plugin struct {
	// Path is the folder.
	Path string
	// SkipMCP leaves the plugin's MCP servers out.
	SkipMCP bool
}

// An AgentDefinition is a subagent. Zero values leave it to the CLI.
type AgentDefinition struct {
	// Description tells the model when to use the agent.
	Description string `json:"description"`
	// Prompt is the agent's system prompt.
	Prompt string `json:"prompt"`
	// Tools are the tools that it gets. Nil means those of the main conversation.
	Tools []string `json:"tools,omitempty"`
	// DisallowedTools are taken from these.
	DisallowedTools []string `json:"disallowedTools,omitempty"`
	// Model is an alias, a model's ID, or "inherit".
	Model string `json:"model,omitempty"`
	// MCPServers are names of servers of the session.
	MCPServers []string `json:"mcpServers,omitempty"`
	// Skills are loaded into its context.
	Skills []string `json:"skills,omitempty"`
	// InitialPrompt is the first input when it runs as the main conversation.
	InitialPrompt string `json:"initialPrompt,omitempty"`
	// MaxTurns is how many times the model may be asked.
	MaxTurns int `json:"maxTurns,omitempty"`
	// AutoCompactWindow is the number of tokens at which its conversation is compacted.
	AutoCompactWindow int `json:"autoCompactWindow,omitempty"`
	// Background runs it without the main conversation waiting for it.
	Background bool `json:"background,omitempty"`
	// OmitClaudeMD leaves the CLAUDE.md files out.
	OmitClaudeMD bool `json:"omitClaudeMd,omitempty"`
	// Memory is the scope of its memory files: "user", "project" or "local".
	Memory string `json:"memory,omitempty"`
	// Effort is "low", "medium", "high", "xhigh" or "max".
	Effort string `json:"effort,omitempty"`
	// PermissionMode is its mode.
	PermissionMode permission.Mode `json:"permissionMode,omitempty"`
	// Observer names up to four agents, separated by commas, that watch it; ObserverMessage is added to what they get.
	Observer        string `json:"observer,omitempty"`
	ObserverMessage string `json:"observerMessage,omitempty"`
	// CriticalReminder is repeated to it.
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

func (o *Options) clone() Options {
	c := *o
	c.Launcher = slices.Clone(o.Launcher)
	c.BuiltinTools = slices.Clone(o.BuiltinTools)
	c.ExtraArgs = slices.Clone(o.ExtraArgs)
	c.Agents = maps.Clone(o.Agents)
	c.Skills = slices.Clone(o.Skills)
	c.Plugins = slices.Clone(o.Plugins)
	c.ToolAliases = maps.Clone(o.ToolAliases)
	c.Settings = slices.Clone(o.Settings)
	c.Sandbox = slices.Clone(o.Sandbox)
	c.ManagedSettings = slices.Clone(o.ManagedSettings)
	c.AdditionalDirectories = slices.Clone(o.AdditionalDirectories)
	c.Betas = slices.Clone(o.Betas)
	c.EventHooks = slices.Clone(o.EventHooks)
	c.DialogKinds = slices.Clone(o.DialogKinds)
	if o.Preset != nil {
		preset := *o.Preset
		c.Preset = &preset
	}
	return c
}

// An OptionError is a field of [Options] that cannot be used as it is.
type OptionError struct {
	// Field is the field's name in Options.
	Field string
	// Problem says what is wrong, Remedy what to do about it.
	Problem, Remedy string
}

// Error names the field, the problem and the remedy.
func (e *OptionError) Error() string {
	return fmt.Sprintf("claude-code: Options.%s %s: %s", e.Field, e.Problem, e.Remedy)
}

// check reports the first option that cannot be used together with the run's.
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
		return &OptionError{"Mirror", "is set together with NoPersistence", "set one of them: only what was written is mirrored"}
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
