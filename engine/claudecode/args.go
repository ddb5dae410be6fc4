package claudecode

import (
	"cmp"
	"fmt"
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

// args is the CLI's command line. It is pure, and holds nothing secret: what is goes over stdin.
// Flags are --flag=value in one word, so that a value may begin with a dash.
func args(e *Options, o *agent.Options) []string {
	a := []string{
		"--output-format=stream-json", "--verbose", "--input-format=stream-json", "--await-initialize",
		"--include-partial-messages", // see arguments
	}
	add := func(flag, value string) {
		if value != "" {
			a = append(a, "--"+flag+"="+value)
		}
	}
	a = append(a, resumeArgs(o)...)
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
	add("allowedTools", strings.Join(allowed(e, o), ","))
	add("disallowedTools", strings.Join(o.DisallowedTools, ","))
	for _, dir := range o.AdditionalDirectories {
		add("add-dir", dir)
	}
	// Without anyone to ask, this engine says no: the CLI's own words do not name allowedTools.
	add("permission-prompt-tool", cmp.Or(o.PermissionPromptTool, "stdio"))
	a = append(a, earlyFields(e, o)...)
	a = append(a, "--tools="+strings.Join(builtinTools(e, o), ","), "--setting-sources="+strings.Join(settingSources(e, o), ","))
	if inherit := e.InheritMCPServers || len(o.SettingSources) > 0; !inherit || o.StrictMCPConfig {
		a = append(a, "--strict-mcp-config")
	}
	add("json-schema", string(o.OutputSchema))
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

// settingSources are the configuration files that the CLI reads.
func settingSources(e *Options, o *agent.Options) []string {
	if o.SettingSources == nil {
		return e.SettingSources
	}
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

// childEnv is the CLI's environment.
func childEnv(e *Options, o *agent.Options) []string {
	over := o.Env
	if o.ToolSearch != "" {
		over = maps.Clone(over)
		if over == nil {
			over = map[string]string{}
		}
		over["ENABLE_TOOL_SEARCH"] = string(o.ToolSearch)
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
	for name, value := range ownEnv(e) {
		set(name, value)
	}
	if o.MaxTokens > 0 {
		set("CLAUDE_CODE_MAX_OUTPUT_TOKENS", strconv.Itoa(o.MaxTokens))
	}
	return env
}

// unsupported names the options that this engine cannot honour.
func unsupported(o *agent.Options) []string {
	var fields []string
	no := func(is bool, field string) {
		if is {
			fields = append(fields, field)
		}
	}
	no(o.Stderr != nil, "Stderr") // the CLI keeps its servers' output to itself
	no(o.MaxToolConcurrency != agent.DefaultMaxToolConcurrency, "MaxToolConcurrency")
	for name, config := range o.MCPServers {
		for _, f := range unsupportedServer(config) {
			fields = append(fields, fmt.Sprintf("MCPServers[%q].%s", name, f))
		}
	}
	slices.Sort(fields)
	return fields
}

// isDisabled reports whether a server is not to be connected at the start.
func isDisabled(config mcphost.ServerConfig) bool {
	switch c := config.(type) {
	case mcphost.Stdio:
		return c.Disabled
	case mcphost.HTTP:
		return c.Disabled
	case mcphost.SSE:
		return c.Disabled
	case mcphost.InProcessServer:
		return c.Disabled
	}
	return false
}

func unsupportedServer(config mcphost.ServerConfig) []string {
	var fields []string
	no := func(is bool, field string) {
		if is {
			fields = append(fields, field)
		}
	}
	common := func(c mcphost.Common) {
		no(c.ConnectTimeout != 0, "ConnectTimeout") // MCP_TIMEOUT in Options.Env rules all of them
		no(c.IdleTimeout != 0, "IdleTimeout")
		no(len(c.ToolTimeouts) > 0, "ToolTimeouts")
		no(c.Required, "Required")
		no(c.MaxMessageBytes != 0, "MaxMessageBytes")
		no(c.Roots != nil, "Roots")
	}
	remote := func(h mcphost.HTTP) {
		no(h.HTTPClient != nil, "HTTPClient")
		no(h.HeadersFunc != nil, "HeadersFunc")
		no(h.Auth != nil, "Auth")
		common(h.Common)
	}
	switch c := config.(type) {
	case mcphost.Stdio:
		no(c.CleanEnv, "CleanEnv")
		no(c.Dir != "", "Dir")
		common(c.Common)
	case mcphost.HTTP:
		remote(c)
	case mcphost.SSE:
		remote(mcphost.HTTP(c))
	case mcphost.InProcessServer:
		common(c.Common)
	default:
		no(true, fmt.Sprintf("(%T)", config))
	}
	return fields
}
