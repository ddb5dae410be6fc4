package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/claudecode"
	"github.com/tenon-sdk/tenon/engine/native"
)

const runLong = `Ask a Claude model one question. It answers with the tools of the configured MCP servers, as far as they
are allowed; the answer goes to standard output.

PROMPT is one argument (quote it). "-" or no PROMPT reads it from standard input; text piped in beside a PROMPT
is put after it.

Tools do not run unless a rule or the permission mode allows them: --allowedTools mcp__files allows all tools of
the server "files", --allowedTools mcp__files__read_file one of them. What was not allowed to run, and what went
wrong with a server, a tool or a configuration entry, stands on standard error and, with --output-format
stream-json, in the init message.

With --offline no model is asked and no key is needed: each @mcp__SERVER__TOOL {JSON} in the prompt becomes a
call of that tool, calls on one line at the same time, lines one after another, and the answer reads the results
back. It shows that servers and permissions work.

With --input-format stream-json what is asked comes on standard input, one JSON object a line, in the form of
the Claude Code CLI: {"type":"user","message":{"role":"user","content":"…"}}. Each is answered in turn, or taken
into the turn that runs. Control requests on standard input interrupt the turn, change the model or the permission
mode, and ask for the servers' state (interrupt, set_model, set_permission_mode, mcp_status, get_context_usage).

Beside servers, the settings files of Claude Code are read: ~/.claude/settings.json, .claude/settings.json and
.claude/settings.local.json, as far as they concern a run: permission rules and mode, environment, model,
directories, and hooks of type mcp_tool.

With --engine claude-code the Claude Code CLI runs the agent: it asks the model, with the login or key that it
has, connects the servers and reads the settings. It has no tools but those of the servers.

Output formats:
  text         the answer
  json         the result message: answer, usage, cost, permission denials
  stream-json  every message as it comes, one JSON object a line, as the Claude Code CLI writes them`

const runEnvironment = `
Environment:
  ANTHROPIC_API_KEY     the key for the Messages API
  ANTHROPIC_AUTH_TOKEN  a bearer token in its place
  ANTHROPIC_BASE_URL    another address of the Messages API: a gateway or a local server
  ANTHROPIC_MODEL       the model unless --model names one
  MCP_TIMEOUT           milliseconds that a server has to connect (30000); a server that --allowedTools or an
                        offline prompt names is waited for as long, the others for at most 2 seconds;
                        CLAUDE_CODE_MCP_STARTUP_WAIT_MS sets another wait, in milliseconds
  MCP_TOOL_TIMEOUT      milliseconds that a tool call may take (600000)
  NO_COLOR, TERM=dumb   no colours and no escape sequences`

const runExample = `  tenon run "Which of the files here is the largest?" --allowedTools mcp__files
  git diff | tenon run "Write a commit message for this change."
  tenon run --offline '@mcp__calc__add {"a": 1, "b": 2}' --mcp-config servers.json --allowedTools mcp__calc`

func newRunCommand(p *process) *cobra.Command {
	f := new(runFlags)
	c := &cobra.Command{
		Use:     "run [PROMPT] [flags]",
		Short:   "Ask a model, with tools from MCP servers",
		Long:    runLong + "\n" + runEnvironment,
		Example: runExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c.Context(), p, args)
		},
	}
	f.register(c.Flags())
	return c
}

// interruptWait is how long an interrupted turn has to end with a result, before the session is closed.
const interruptWait = 3 * time.Second

func (f *runFlags) run(ctx context.Context, p *process, args []string) error {
	if err := f.check(args); err != nil {
		return err
	}
	prompt, streamed := "", f.inputFormat == "stream-json"
	var err error
	if !streamed {
		if prompt, err = readPrompt(ctx, p, args); err != nil {
			return err
		}
	}
	srv, err := f.servers(ctx, p, projectStart{run: true})
	if err != nil {
		return err
	}
	pr := startProgress(p)
	defer pr.stop()
	v := &view{reporter: newReporter(p, pr), format: f.format, verbose: f.verbose, offline: f.offline, names: map[string]string{}}
	defer v.close()
	opts, err := f.options(ctx, p, v, srv)
	if err != nil {
		return err
	}
	engine, free, err := f.engine(v, opts)
	if err != nil {
		return err
	}
	defer free()
	client, err := agent.Open(ctx, engine, opts)
	if err != nil {
		return openError(err)
	}
	defer client.Close()
	p.kill.set(func() []int {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		status, _ := client.MCPStatus(bounded) // without a status no process is known
		return processIDs(status)
	})
	if !streamed {
		v.waitFor(ctx, client, f.needed(slices.Sorted(maps.Keys(srv.configs)), prompt), waitLimit(srv.environment(p)))
		v.expect(prompt)
		if err := client.SendInput(ctx, agent.Text(prompt)); err != nil {
			return err
		}
		if err := client.EndInput(); err != nil {
			return err
		}
	}
	return v.converse(ctx, client, streamed, opts.ConfigProblems)
}

// converse prints the messages of the run until it ends. When ctx ends, the turn is interrupted and
// has interruptWait to end. A run that ends before its init message reports the problems of the
// configuration, which that message has.
func (v *view) converse(ctx context.Context, client *agent.Client, streamed bool, problems []agent.MCPServerError) error {
	live, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		v.interrupt(ctx, live, client)
		end()
	})
	defer func() {
		end()
		if !stop() {
			<-interrupted
		}
	}()
	defer v.progress.follow(func() { v.showConnecting(live, client) })()
	stopInput := func() error { return nil }
	if streamed {
		stopInput = v.listen(live, client)
		defer func() { _ = stopInput() }() // its error matters after the last message only
	}
	for m, err := range client.Messages(live) {
		if err != nil {
			if !v.started { // a problem of the configuration may be the cause
				for _, e := range problems {
					v.warn(oneLine(e.Message))
				}
			}
			v.reportCalls()
			return err
		}
		if err := v.message(m); err != nil {
			return err
		}
	}
	v.progress.stop()
	err := v.finish(live, client)
	if errors.Is(err, agent.ErrNoResult) {
		if nothing := stopInput(); nothing != nil {
			return nothing
		}
	}
	return err
}

// listen handles standard input during the run. The function that it returns ends that, and returns
// an error if no message came. It may be called twice.
func (v *view) listen(live context.Context, client *agent.Client) (stop func() error) {
	ctx, cancel := context.WithCancel(live)
	in := &streamInput{view: v, client: client}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := in.read(ctx); err != nil {
			in.complain("%v", err)
		}
	})
	return func() error {
		cancel()
		wg.Wait()
		return in.nothing()
	}
}

// interrupt ends the turn, and waits until the run has ended or interruptWait is over. It does not
// wait if there is no turn, or no reader of the output.
func (v *view) interrupt(ctx, live context.Context, client *agent.Client) {
	sig, ok := errors.AsType[*signalError](context.Cause(ctx))
	if ok && sig.sig == syscall.SIGPIPE || !v.turn.Load() {
		return
	}
	v.progress.set("stopping; Ctrl-C again ends at once")
	bounded, cancel := context.WithTimeout(live, interruptWait)
	defer cancel()
	if client.Interrupt(bounded) == nil {
		<-bounded.Done()
	}
}

// openError turns an error of opening the session into one of the command line, if it is one.
func openError(err error) error {
	if errors.Is(err, native.ErrNoCredentials) {
		return usagef("no ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN in the environment; set one, or add --offline to run without a model")
	}
	if nf, ok := errors.AsType[*claudecode.NotFoundError](err); ok {
		if nf.Path != "" {
			return usagef("--claude-path: %v", nf.Err)
		}
		return usagef("the Claude Code CLI was not found; install the npm package @anthropic-ai/claude-code, or give its executable with --claude-path (looked for: %s)", strings.Join(nf.Searched, ", "))
	}
	oe, ok := errors.AsType[*agent.OptionError](err)
	if !ok {
		return err
	}
	if oe.Field == "MaxBudgetUSD" && strings.Contains(oe.Problem, "price") {
		return usagef("--max-budget-usd %s; leave it out, or ask a model whose price is known", oe.Problem)
	}
	if flag, ok := flagOf[oe.Field]; ok {
		return usagef("%s %s: %s", flag, oe.Problem, oe.Remedy)
	}
	return err
}

// flagOf are the flags that set fields of the agent's options.
var flagOf = map[string]string{
	"Model": "--model", "FallbackModel": "--fallback-model", "MaxTurns": "--max-turns", "MaxBudgetUSD": "--max-budget-usd",
	"PermissionMode": "--permission-mode", "PermissionPromptTool": "--permission-prompt-tool", "SessionID": "--session-id",
	"OutputSchema": "--json-schema", "Effort": "--effort", "AllowedTools": "--allowedTools", "DisallowedTools": "--disallowedTools",
	"Settings": "--settings",
}
