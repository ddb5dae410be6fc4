package claudecode

import (
	"cmp"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/permission"
)

// argList collects flags. A flag and its value are one argument, because values may begin with a dash.
type argList []string

// on adds a flag without a value.
func (a *argList) on(is bool, flag string) {
	if is {
		*a = append(*a, "--"+flag)
	}
}

// text adds a flag unless its value is empty.
func (a *argList) text(flag, value string) {
	if value != "" {
		*a = append(*a, "--"+flag+"="+value)
	}
}

// number adds a flag unless its value is zero or less.
func (a *argList) number(flag string, n int) {
	if n > 0 {
		a.text(flag, strconv.Itoa(n))
	}
}

// args returns the CLI's arguments. It is pure. Secrets are not in the arguments: they travel over
// stdin. stream reports whether the CLI repeats the model's stream.
func args(e *Options, o *agent.Options, stream bool) []string {
	a := argList{"--output-format=stream-json", "--verbose", "--input-format=stream-json", "--await-initialize"}
	a.on(stream, "include-partial-messages")
	a.resume(o)
	a.on(o.ReplayUserMessages, "replay-user-messages")
	a.text("model", o.Model)
	a.text("fallback-model", o.FallbackModel)
	a.number("max-turns", o.MaxTurns)
	if o.MaxBudgetUSD > 0 {
		a.text("max-budget-usd", strconv.FormatFloat(o.MaxBudgetUSD, 'f', -1, 64))
	}
	a.text("effort", o.Effort)
	if t := o.Thinking; t != nil {
		if t.Type == "enabled" {
			a.text("max-thinking-tokens", strconv.Itoa(t.BudgetTokens))
		} else {
			a.text("thinking", t.Type)
		}
		a.text("thinking-display", t.Display)
	}
	a.text("permission-mode", string(o.PermissionMode))
	a.on(o.PermissionMode == permission.ModeBypassPermissions || e.AllowBypass, "allow-dangerously-skip-permissions")
	if rules := allowed(e, o); !tooLong(rules) {
		a.text("allowedTools", strings.Join(rules, ","))
	}
	if dirs := directories(e, o); !tooLong(dirs) {
		for _, dir := range dirs {
			a.text("add-dir", dir)
		}
	}
	// Without anyone to ask, this engine denies calls: the CLI's own denial does not name allowedTools.
	a.text("permission-prompt-tool", cmp.Or(o.PermissionPromptTool, "stdio"))
	a.early(e, o)
	var sources []string
	for _, source := range o.SettingSources {
		sources = append(sources, string(source))
	}
	a = append(a, "--tools="+strings.Join(builtinTools(e, o), ","), "--setting-sources="+strings.Join(sources, ","))
	a.on(o.StrictMCPConfig || o.SettingSources != nil && len(o.SettingSources) == 0, "strict-mcp-config")
	a.own(e)
	return append(a, e.ExtraArgs...)
}

// resume adds the flags of the stored session that is continued, or of the new session's ID.
func (a *argList) resume(o *agent.Options) {
	r := &o.Resume
	a.text("resume", r.ID)
	a.on(r.Latest, "continue")
	a.on(r.Fork, "fork-session")
	a.text("resume-session-at", r.At)
	a.text("resume-drops-turn", r.DropsTurn)
	if r.ID == "" && !r.Latest || r.Fork {
		a.text("session-id", o.SessionID)
	}
}

// early adds the flags that name the fields of initialize that the CLI has to read before all else.
func (a *argList) early(e *Options, o *agent.Options) {
	var fields []string
	if hasSettings(e, o) {
		fields = append(fields, "settings")
	}
	if len(o.DisallowedTools) > 0 {
		fields = append(fields, "disallowedTools")
	}
	a.text("initialize-fields", strings.Join(fields, ","))
	a.on(e.ManagedSettings != nil, "managed-settings-in-initialize")
}

// own adds the flags of the engine's options.
func (a *argList) own(e *Options) {
	a.text("agent", e.Agent)
	a.text("project-config-root", e.ProjectConfigRoot)
	a.text("betas", strings.Join(e.Betas, ","))
	a.number("task-budget", e.TaskBudget)
	if e.NoPrompts {
		a.text("permission-prompts", "none")
	}
	a.on(e.NoPersistence, "no-session-persistence")
	a.on(e.Mirror != nil, "session-mirror")
	a.on(e.HookEvents, "include-hook-events")
	a.text("debug-file", e.DebugFile)
	a.on(e.Debug && e.DebugFile == "", "debug-to-stderr")
}

// command returns the command that runs the CLI: the CLI itself, or the launcher with it.
func command(e *Options, path string, args []string) (name string, words []string) {
	words = slices.Concat(e.Launcher, []string{path}, args)
	return words[0], words[1:]
}

// argLimit bounds the length of a list on the command line, in bytes, because systems bound the
// command line. A longer list travels over stdin.
const argLimit = 4 << 10

// tooLong reports whether a list is too long for the command line.
func tooLong(list []string) bool {
	n := 0
	for _, s := range list {
		n += len(s) + 1
	}
	return n > argLimit
}

// directories returns the additional folders of the session.
func directories(e *Options, o *agent.Options) []string {
	return slices.Concat(o.AdditionalDirectories, e.AdditionalDirectories)
}

// allowed returns the rules for calls that need no question, with the skills that are enabled, and
// without the rules that allowedByRule applies.
func allowed(e *Options, o *agent.Options) []string {
	all := slices.DeleteFunc(slices.Clone(o.AllowedTools), knownServers(o).Ambiguous)
	for _, skill := range e.Skills {
		rule := "Skill(" + skill + ")"
		if skill == "all" {
			rule = "Skill"
		}
		if !slices.Contains(all, rule) {
			all = append(all, rule)
		}
	}
	return all
}

// builtinTools returns the CLI's own tools that the model gets: those of the options, and ToolSearch if
// an option needs it.
func builtinTools(e *Options, o *agent.Options) []string {
	const search = "ToolSearch"
	switch o.ToolSearch {
	case "", "0", "auto:100", agent.ToolSearchOff:
		return e.BuiltinTools
	}
	if slices.Contains(e.BuiltinTools, search) || slices.Contains(e.BuiltinTools, "default") {
		return e.BuiltinTools
	}
	return append(slices.Clone(e.BuiltinTools), search)
}

// nesting are variables that tell a CLI that it runs inside another CLI.
var nesting = []string{"CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SSE_PORT", "NODE_OPTIONS", "DEBUG"}

// environ returns the environment of this process, overridden by over and without the variables of a
// CLI that may have started this program.
func environ(over map[string]string) []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		_, replaced := over[name]
		return replaced || slices.Contains(nesting, name)
	})
	for _, name := range slices.Sorted(maps.Keys(over)) {
		env = append(env, name+"="+over[name])
	}
	return env
}

// maxToolUse is the CLI's variable for the number of concurrent calls. The CLI's default is 10.
const maxToolUse = "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY"

// childEnv returns the CLI's environment. Options override variables.
func childEnv(e *Options, o *agent.Options) []string {
	over := map[string]string{}
	maps.Copy(over, o.Env)
	if o.ToolSearch != "" {
		over["ENABLE_TOOL_SEARCH"] = string(o.ToolSearch)
	}
	if o.MaxToolConcurrency != agent.DefaultMaxToolConcurrency {
		over[maxToolUse] = strconv.Itoa(o.MaxToolConcurrency)
	}
	if o.MaxTokens > 0 {
		over["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] = strconv.Itoa(o.MaxTokens)
	}
	env := environ(over)
	setDefault := func(name, value string) {
		if variable(env, name) == "" && !slices.Contains(env, name+"=") {
			env = append(env, name+"="+value)
		}
	}
	setDefault("CLAUDE_CODE_ENTRYPOINT", "sdk-go")
	// The CLI sends the state "idle", which is the end of all work, only on request.
	setDefault("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1")
	// Servers do not inherit the CLI's environment: serverEnv gives them all but the model's credentials.
	setDefault("CLAUDE_CODE_MCP_ALLOWLIST_ENV", "1")
	setDefault(maxToolUse, strconv.Itoa(agent.DefaultMaxToolConcurrency))
	if e.FileCheckpoints {
		setDefault("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true")
	}
	if e.QuestionPreview != "" {
		setDefault("CLAUDE_CODE_QUESTION_PREVIEW_FORMAT", e.QuestionPreview)
	}
	return env
}

// variable returns the value of a variable, of which the last entry applies, or "".
func variable(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if n, value, _ := strings.Cut(kv, "="); sameVariable(n, name) {
			return value
		}
	}
	return ""
}

func sameVariable(a, b string) bool {
	return a == b || runtime.GOOS == "windows" && strings.EqualFold(a, b)
}
