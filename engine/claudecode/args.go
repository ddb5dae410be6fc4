package claudecode

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

// argLimit is how many bytes a list may have on the command line, whose length systems bound. A longer one
// goes over stdin.
const argLimit = 4 << 10

// tooLong reports whether a list does not go on the command line.
func tooLong(list []string) bool {
	n := 0
	for _, s := range list {
		n += len(s) + 1
	}
	return n > argLimit
}

// directories are the folders beside the session's own.
func directories(e *Options, o *agent.Options) []string {
	return slices.Concat(o.AdditionalDirectories, e.AdditionalDirectories)
}

// args is the CLI's command line. It is pure, and holds nothing secret: what is goes over stdin.
// Flags are --flag=value in one word, so that a value may begin with a dash. stream says whether the
// CLI is to repeat the model's stream.
func args(e *Options, o *agent.Options, stream bool) []string {
	a := []string{"--output-format=stream-json", "--verbose", "--input-format=stream-json", "--await-initialize"}
	if stream {
		a = append(a, "--include-partial-messages")
	}
	add := func(flag, value string) {
		if value != "" {
			a = append(a, "--"+flag+"="+value)
		}
	}
	a = append(a, resumeArgs(o)...)
	if o.ReplayUserMessages {
		a = append(a, "--replay-user-messages")
	}
	add("model", o.Model)
	add("fallback-model", o.FallbackModel)
	if o.MaxTurns > 0 {
		add("max-turns", strconv.Itoa(o.MaxTurns))
	}
	if o.MaxBudgetUSD > 0 {
		add("max-budget-usd", strconv.FormatFloat(o.MaxBudgetUSD, 'f', -1, 64))
	}
	add("effort", o.Effort)
	a = append(a, thinkingArgs(o.Thinking)...)
	add("permission-mode", string(o.PermissionMode))
	if o.PermissionMode == permission.ModeBypassPermissions || e.AllowBypass {
		a = append(a, "--allow-dangerously-skip-permissions")
	}
	if rules := allowed(e, o); !tooLong(rules) {
		add("allowedTools", strings.Join(rules, ","))
	}
	if dirs := directories(e, o); !tooLong(dirs) {
		for _, dir := range dirs {
			add("add-dir", dir)
		}
	}
	// Without anyone to ask, this engine says no: the CLI's own words do not name allowedTools.
	add("permission-prompt-tool", cmp.Or(o.PermissionPromptTool, "stdio"))
	a = append(a, earlyFields(e, o)...)
	a = append(a, "--tools="+strings.Join(builtinTools(e, o), ","), "--setting-sources="+strings.Join(settingSources(o), ","))
	if o.StrictMCPConfig || o.SettingSources != nil && len(o.SettingSources) == 0 {
		a = append(a, "--strict-mcp-config")
	}
	a = append(a, ownArgs(e)...)
	return append(a, e.ExtraArgs...)
}

func thinkingArgs(t *agent.Thinking) []string {
	if t == nil {
		return nil
	}
	a := []string{"--thinking=" + t.Type}
	if t.Type == "enabled" {
		a = []string{"--max-thinking-tokens=" + strconv.Itoa(t.BudgetTokens)}
	}
	if t.Display != "" {
		a = append(a, "--thinking-display="+t.Display)
	}
	return a
}

// settingSources are the configuration files that the CLI reads itself: none that the program did not name.
func settingSources(o *agent.Options) []string {
	sources := make([]string, len(o.SettingSources))
	for i, source := range o.SettingSources {
		sources[i] = string(source)
	}
	return sources
}

// nesting are variables that tell a CLI that it runs inside of another one.
var nesting = []string{"CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SSE_PORT", "NODE_OPTIONS", "DEBUG"}

// environ is this process's environment with over laid over it and without the traces of a CLI
// that this program may have been started by.
func environ(over map[string]string) []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		_, replaced := over[name]
		return replaced || slices.Contains(nesting, name)
	})
	names := make([]string, 0, len(over))
	for name := range over {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		env = append(env, name+"="+over[name])
	}
	return env
}

// builtinTools are the CLI's own tools that the model gets: those that were asked for, and what an option needs.
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

// maxToolUse is the CLI's variable for how many calls run at once; its own default is 10.
const maxToolUse = "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY"

// childEnv is the CLI's environment. What an option says wins over a variable.
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
	set := func(name, value string) {
		if !slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") }) {
			env = append(env, name+"="+value)
		}
	}
	set("CLAUDE_CODE_ENTRYPOINT", "sdk-go")
	// The state "idle" is the real end of work, and only sent to those who ask for it.
	set("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1")
	// Servers of the CLI's own do not inherit what it has: those that this process configures are given
	// all but the model's credentials by it, see serverEnv.
	set("CLAUDE_CODE_MCP_ALLOWLIST_ENV", "1")
	for name, value := range ownEnv(e) {
		set(name, value)
	}
	set(maxToolUse, strconv.Itoa(agent.DefaultMaxToolConcurrency))
	return env
}

// serverEnv is the environment of a server that the CLI starts: this process's without the credentials of
// the model, and the entry's, which may name them.
func (s *session) serverEnv(entry map[string]string) map[string]string {
	env := map[string]string{}
	for _, kv := range os.Environ() {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" || slices.Contains(nesting, name) || mcphost.IsModelCredential(name, s.lookupEnv) {
			continue
		}
		if hasReference(value) { // the CLI expands those; this one it can only have from its own environment
			if _, other := s.opts.Env[name]; other || strings.ContainsAny(name, ":}") {
				continue
			}
			value = "${" + name + "}"
		}
		env[name] = value
	}
	maps.Copy(env, entry)
	return env
}

// hasReference reports whether the CLI would expand a text.
func hasReference(text string) bool { return strings.Contains(text, "${") }

// lookupEnv looks a variable of the run up: in its options, then in this process's environment.
func (s *session) lookupEnv(name string) (string, bool) {
	if v, ok := s.opts.Env[name]; ok {
		return v, true
	}
	return os.LookupEnv(name)
}

// commonOf is what all kinds of configurations have.
func commonOf(config mcphost.ServerConfig) mcphost.Common {
	switch c := config.(type) {
	case mcphost.Stdio:
		return c.Common
	case mcphost.HTTP:
		return c.Common
	case mcphost.SSE:
		return c.Common
	case mcphost.InProcessServer:
		return c.Common
	case mcphost.Invalid:
		return c.Common
	}
	return mcphost.Common{}
}

// isDisabled reports whether a server is not to be connected at the start.
func isDisabled(config mcphost.ServerConfig) bool { return commonOf(config).Disabled }
