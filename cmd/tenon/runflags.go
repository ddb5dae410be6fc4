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
	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/permission"
)

// runFlags are the flags of 'tenon run'. Where the Claude Code CLI has a flag for a thing, it is called the same.
type runFlags struct {
	serverFlags
	allowed, disallowed ruleList
	permissionMode      string
	model, fallback     string
	maxTurns            int
	maxBudget           float64
	systemPrompt        string
	appendSystemPrompt  string
	jsonSchema          string
	sessionID           string
	effort              string
	addDirs             []string
	inputFormat         string
	format              string
	partial             bool
	offline             bool
	engineName          string
	claudePath          string
	verbose             bool
	print               bool
}

var permissionModes = []string{"default", "acceptEdits", "plan", "bypassPermissions", "dontAsk", "auto"}

var inputFormats = []string{"text", "stream-json"}

// The engines of --engine.
const (
	engineNative = "native"
	engineClaude = "claude-code"
)

var engineNames = []string{engineNative, engineClaude}

var outputFormats = []string{"text", "json", "stream-json"}

func (f *runFlags) register(fs *pflag.FlagSet) {
	f.serverFlags.register(fs)
	fs.Var(&f.allowed, "allowedTools", "tools that run without a question: full names, mcp__SERVER or mcp__SERVER__*, separated by commas or blanks; may be repeated (also --allowed-tools)")
	fs.Var(&f.disallowed, "disallowedTools", "tools that the model does not get to see (also --disallowed-tools)")
	fs.StringVar(&f.permissionMode, "permission-mode", "", "the stance to calls that no rule settles, `MODE` one of "+strings.Join(permissionModes, ", "))
	fs.StringVar(&f.promptTool, "permission-prompt-tool", "", "the MCP `TOOL` that is asked about such calls")
	fs.StringVar(&f.model, "model", "", "the `MODEL` to ask (default ANTHROPIC_MODEL, else "+native.DefaultModel+")")
	fs.StringVar(&f.fallback, "fallback-model", "", "the `MODEL` that takes over for a turn when the first is overloaded or not there; or several, separated by commas, tried in order")
	fs.IntVar(&f.maxTurns, "max-turns", 0, "ask the model at most `N` times (default no limit)")
	fs.Float64Var(&f.maxBudget, "max-budget-usd", 0, "stop once the estimated cost has reached `USD` (default no limit)")
	fs.StringVar(&f.systemPrompt, "system-prompt", "", "the system prompt `TEXT`")
	fs.StringVar(&f.appendSystemPrompt, "append-system-prompt", "", "`TEXT` after the system prompt")
	fs.StringVar(&f.jsonSchema, "json-schema", "", "the JSON `SCHEMA` of an object that the answer has to match, in place or @FILE")
	fs.StringVar(&f.effort, "effort", "", "how much work the model puts in, `LEVEL` one of low, medium, high, xhigh, max")
	fs.StringVar(&f.sessionID, "session-id", "", "the session's `UUID` (default a new one)")
	fs.StringVar(&f.more, "settings", "", "more settings, above those of --setting-sources: the path of a `FILE`, or JSON given in place")
	fs.StringArrayVar(&f.addDirs, "add-dir", nil, "a `DIRECTORY` beside the current one that servers are told about as a root; may be repeated")
	fs.StringVar(&f.inputFormat, "input-format", "text", "`FORMAT` of standard input: "+strings.Join(inputFormats, ", "))
	fs.StringVar(&f.format, "output-format", "text", "`FORMAT` of standard output: "+strings.Join(outputFormats, ", "))
	fs.BoolVar(&f.partial, "include-partial-messages", false, "with stream-json: also the pieces of the model's answer as they come")
	fs.BoolVar(&f.offline, "offline", false, "ask no model: make the tool calls that the prompt spells out")
	fs.StringVar(&f.engineName, "engine", engineNative, "what runs the agent, `ENGINE` one of native (this program) and claude-code (the Claude Code CLI)")
	fs.StringVar(&f.claudePath, "claude-path", "", "with --engine claude-code: the CLI's executable `FILE` (default claude on the PATH, or where its installers put it)")
	fs.BoolVar(&f.verbose, "verbose", false, "say on standard error what happens: servers and what they write there, tool calls, usage")
	fs.BoolVarP(&f.print, "print", "p", false, "does nothing: 'tenon run' always prints")
	fs.Lookup("print").Hidden = true
}

func (f *runFlags) check() error {
	if !slices.Contains(outputFormats, f.format) {
		return usagef("--output-format: unknown format %q; give %s", f.format, orList(outputFormats))
	}
	switch {
	case !slices.Contains(inputFormats, f.inputFormat):
		return usagef("--input-format: unknown format %q; give %s", f.inputFormat, orList(inputFormats))
	case f.inputFormat == "stream-json" && f.format != "stream-json":
		return usagef("--input-format stream-json needs --output-format stream-json; add it")
	}
	if _, err := permission.ParseMode(f.permissionMode); err != nil {
		return usagef("--permission-mode: unknown mode %q; give %s", f.permissionMode, orList(permissionModes))
	}
	if !slices.Contains(engineNames, f.engineName) {
		return usagef("--engine: unknown engine %q; give %s", f.engineName, orList(engineNames))
	}
	if f.claudePath != "" && f.engineName != engineClaude {
		return usagef("--claude-path has no effect without --engine claude-code; add it")
	}
	if f.partial && f.format != "stream-json" {
		return usagef("--include-partial-messages has no effect without --output-format stream-json; add it")
	}
	return nil
}

// options are the agent's options that the flags and the environment come to.
func (f *runFlags) options(ctx context.Context, p *process, v *view, srv *servers) (*agent.Options, error) {
	schema, err := schemaArg(ctx, p, f.jsonSchema)
	if err != nil {
		return nil, err
	}
	for _, dir := range f.addDirs {
		switch info, err := os.Stat(p.path(dir)); {
		case err != nil:
			return nil, usagef("--add-dir %s: %v", dir, pathCause(err))
		case !info.IsDir():
			return nil, usagef("--add-dir %s: it is no directory", dir)
		}
	}
	env := srv.environment(p)
	o := &agent.Options{
		Model:                  f.model,
		FallbackModel:          f.fallback,
		SystemPrompt:           f.systemPrompt,
		AppendSystemPrompt:     f.appendSystemPrompt,
		MaxTurns:               f.maxTurns,
		MaxBudgetUSD:           f.maxBudget,
		Effort:                 f.effort,
		OutputSchema:           schema,
		MCPServers:             srv.configs,
		AllowedTools:           slices.Concat(f.allowed, srv.rules[permission.AlwaysAllow]),
		DisallowedTools:        slices.Concat(f.disallowed, srv.rules[permission.AlwaysDeny]),
		AskTools:               srv.rules[permission.AlwaysAsk],
		PermissionMode:         permission.Mode(f.permissionMode),
		PermissionPromptTool:   f.promptTool,
		IncludePartialMessages: f.partial,
		Env:                    env,
		Dir:                    p.dir,
		StrictMCPConfig:        true, // MCPServers has them all
		SettingSources:         f.settingSources(),
		TrustFile:              f.trust.trusts,
		Settings:               f.more,
		AdditionalDirectories:  f.addDirs,
		SessionID:              f.sessionID,
		ConfigProblems:         configErrors(srv.problems),
	}
	if f.verbose {
		o.Stderr = v.stderr.line
		o.Logger = slog.New(v.report)
	}
	return o, nil
}

// settingSources are the sources of --setting-sources; none is not the same as all.
func (f *runFlags) settingSources() []agent.SettingSource {
	sources := []agent.SettingSource{}
	for _, s := range f.sources.names {
		sources = append(sources, agent.SettingSource(s))
	}
	return sources
}

// configErrors are the problems in the form of the init message.
func configErrors(problems []mcpconfig.Problem) []agent.MCPServerError {
	var errs []agent.MCPServerError
	for _, pr := range problems {
		errs = append(errs, agent.MCPServerError{Name: pr.Server, Message: problemText(pr)})
	}
	return errs
}

// schemaArg reads the value of --json-schema: JSON in place, or @FILE.
func schemaArg(ctx context.Context, p *process, arg string) (json.RawMessage, error) {
	name, isFile := strings.CutPrefix(arg, "@")
	data := []byte(arg)
	if isFile {
		var err error
		if data, err = readNamed(ctx, p.path(name)); err != nil {
			return nil, usagef("--json-schema: reading %s: %v", name, pathCause(err))
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
