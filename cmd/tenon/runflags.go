package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native"
	"github.com/tenon-sdk/tenon/internal/file"
	"github.com/tenon-sdk/tenon/permission"
)

// runFlags are the flags of 'tenon run'. Flags of the Claude Code CLI have its names.
type runFlags struct {
	serverFlags
	o                   agent.Options // what flags set in them
	allowed, disallowed ruleList
	permissionMode      string
	jsonSchema          string
	inputFormat, format string
	engineName          string
	claudePath          string
	offline, verbose    bool
}

var (
	permissionModes = []string{"default", "acceptEdits", "plan", "bypassPermissions", "dontAsk", "auto"}
	inputFormats    = []string{"text", "stream-json"}
	outputFormats   = []string{"text", "json", "stream-json"}
)

// The engines of --engine.
const (
	engineNative = "native"
	engineClaude = "claude-code"
)

func (f *runFlags) register(fs *pflag.FlagSet) {
	f.serverFlags.register(fs)
	fs.Var(&f.allowed, "allowedTools", "tools that run without a question: full names, mcp__SERVER or mcp__SERVER__*, separated by commas or blanks; may be repeated (also --allowed-tools)")
	fs.Var(&f.disallowed, "disallowedTools", "tools that the model does not get to see (also --disallowed-tools)")
	fs.StringVar(&f.permissionMode, "permission-mode", "", "the stance to calls that no rule settles, `MODE` one of "+strings.Join(permissionModes, ", "))
	fs.StringVar(&f.promptTool, "permission-prompt-tool", "", "the MCP `TOOL` that is asked about such calls")
	fs.StringVar(&f.o.Model, "model", "", "the `MODEL` to ask (default ANTHROPIC_MODEL, else "+native.DefaultModel+")")
	fs.StringVar(&f.o.FallbackModel, "fallback-model", "", "the `MODEL` that takes over for a turn when the first is overloaded or not there; or several, separated by commas, tried in order")
	fs.IntVar(&f.o.MaxTurns, "max-turns", 0, "ask the model at most `N` times (default no limit)")
	fs.Float64Var(&f.o.MaxBudgetUSD, "max-budget-usd", 0, "stop once the estimated cost has reached `USD` (default no limit)")
	fs.StringVar(&f.o.SystemPrompt, "system-prompt", "", "the system prompt `TEXT`")
	fs.StringVar(&f.o.AppendSystemPrompt, "append-system-prompt", "", "`TEXT` after the system prompt")
	fs.StringVar(&f.jsonSchema, "json-schema", "", "the JSON `SCHEMA` of an object that the answer has to match, in place or @FILE")
	fs.StringVar(&f.o.Effort, "effort", "", "how much work the model puts in, `LEVEL` one of low, medium, high, xhigh, max")
	fs.StringVar(&f.o.SessionID, "session-id", "", "the session's `UUID` (default a new one)")
	fs.StringVar(&f.more, "settings", "", "more settings, above those of --setting-sources: the path of a `FILE`, or JSON given in place")
	fs.StringArrayVar(&f.o.AdditionalDirectories, "add-dir", nil, "a `DIRECTORY` beside the current one that servers are told about as a root; may be repeated")
	fs.StringVar(&f.inputFormat, "input-format", "text", "`FORMAT` of standard input: "+strings.Join(inputFormats, ", "))
	fs.StringVar(&f.format, "output-format", "text", "`FORMAT` of standard output: "+strings.Join(outputFormats, ", "))
	fs.BoolVar(&f.o.IncludePartialMessages, "include-partial-messages", false, "with stream-json: also the pieces of the model's answer as they come")
	fs.BoolVar(&f.offline, "offline", false, "ask no model: make the tool calls that the prompt spells out")
	fs.StringVar(&f.engineName, "engine", engineNative, "what runs the agent, `ENGINE` one of native (this program) and claude-code (the Claude Code CLI)")
	fs.StringVar(&f.claudePath, "claude-path", "", "with --engine claude-code: the CLI's executable `FILE` (default claude on the PATH, or where its installers put it)")
	fs.BoolVar(&f.verbose, "verbose", false, "say on standard error what happens: servers and what they write there, tool calls, usage")
	fs.BoolP("print", "p", false, "does nothing: 'tenon run' always prints")
	fs.Lookup("print").Hidden = true
}

func (f *runFlags) check(args []string) error {
	for _, choice := range []struct {
		flag, kind, value string
		known             []string
	}{
		{"--output-format", "format", f.format, outputFormats},
		{"--input-format", "format", f.inputFormat, inputFormats},
		{"--engine", "engine", f.engineName, []string{engineNative, engineClaude}},
	} {
		if !slices.Contains(choice.known, choice.value) {
			return usagef("%s: unknown %s %q; give %s", choice.flag, choice.kind, choice.value, orList(choice.known))
		}
	}
	if _, err := permission.ParseMode(f.permissionMode); err != nil {
		return usagef("--permission-mode: unknown mode %q; give %s", f.permissionMode, orList(permissionModes))
	}
	switch {
	case f.inputFormat == "stream-json" && f.format != "stream-json":
		return usagef("--input-format stream-json needs --output-format stream-json; add it")
	case f.inputFormat == "stream-json" && len(args) > 0:
		return usagef("no PROMPT goes with --input-format stream-json: what is asked comes on standard input")
	case f.claudePath != "" && f.engineName != engineClaude:
		return usagef("--claude-path has no effect without --engine claude-code; add it")
	case f.o.IncludePartialMessages && f.format != "stream-json":
		return usagef("--include-partial-messages has no effect without --output-format stream-json; add it")
	}
	return nil
}

// options returns the agent's options by the flags and the environment.
func (f *runFlags) options(ctx context.Context, p *process, v *view, srv *servers) (*agent.Options, error) {
	schema, err := schemaArg(ctx, p, f.jsonSchema)
	if err != nil {
		return nil, err
	}
	for _, dir := range f.o.AdditionalDirectories {
		switch info, err := os.Stat(dir); {
		case err != nil:
			return nil, usagef("--add-dir %s: %v", dir, file.Cause(err))
		case !info.IsDir():
			return nil, usagef("--add-dir %s: it is no directory", dir)
		}
	}
	o := f.o
	o.Env = srv.environment(p)
	o.OutputSchema = schema
	o.MCPServers = srv.configs
	o.StrictMCPConfig = true // MCPServers has them all
	o.AllowedTools = slices.Concat(f.allowed, srv.rules[permission.AlwaysAllow])
	o.DisallowedTools = slices.Concat(f.disallowed, srv.rules[permission.AlwaysDeny])
	o.AskTools = srv.rules[permission.AlwaysAsk]
	o.PermissionMode = permission.Mode(f.permissionMode)
	o.PermissionPromptTool = f.promptTool
	o.Settings = f.more
	o.SettingSources = []agent.SettingSource{} // nil would mean all
	for _, s := range f.sources {
		o.SettingSources = append(o.SettingSources, agent.SettingSource(s))
	}
	o.TrustFile = f.trust.trusts
	for _, pr := range srv.problems {
		o.ConfigProblems = append(o.ConfigProblems, agent.MCPServerError{Name: pr.Server, Message: problemText(pr)})
	}
	if f.verbose {
		o.Stderr = v.stderr
		o.Logger = slog.New(logHandler{v.reporter, ""})
	}
	return &o, nil
}

// schemaArg reads the value of --json-schema: JSON in place, or @FILE.
func schemaArg(ctx context.Context, p *process, arg string) (json.RawMessage, error) {
	name, isFile := strings.CutPrefix(arg, "@")
	data := []byte(arg)
	if isFile {
		var err error
		if data, err = readNamed(ctx, name); err != nil {
			return nil, usagef("--json-schema: reading %s: %v", name, file.Cause(err))
		}
	}
	if len(data) == 0 {
		return nil, nil
	}
	if err := checkObject(data); err != nil {
		return nil, usagef("--json-schema is not a JSON object: %v", err)
	}
	return data, nil
}
