// Package claudecode runs agents on the Claude Code CLI. It starts the CLI as a child process and
// drives it over its control protocol. A program that uses package agent works on this engine as it
// does on engine/native, with servers in this process.
//
//	for msg, err := range agent.Query(ctx, claudecode.New(nil), "How many of AB-00017 are left?", opts) {
//
// The CLI is found on the PATH or where its installers put it. A CLI in the checkout that the program
// runs in is never used unless Options.Path names it. A session is one process. It sees the servers
// and settings that the program gives it, and those of the machine that agent.Options.SettingSources
// names. Without named sources, the CLI reads no configuration file: this package reads what a
// project's files may say without trust and passes it on. Server configurations travel over the
// child's stdin, never in its arguments.
//
// Package event decodes messages that only the CLI has. Package transcript reads stored sessions.
package claudecode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/internal/subproc"
	"github.com/tenon-sdk/tenon/mcphost"
)

const (
	// closeGrace is how long the CLI has to exit by itself, and again after it was asked to.
	closeGrace = time.Second
	// closeWait is how long Close waits for callbacks and servers that ignore their contexts.
	closeWait = 10 * time.Second
	// callWait is how long a question about a call waits for the message with the call.
	callWait = time.Second
)

// An Engine runs agents on the CLI. It is safe for concurrent use and needs no closing: each session
// is a process of its own.
type Engine struct {
	opts Options
	// grace, patience and callWait are closeGrace, closeWait and callWait except in tests.
	grace, patience, callWait time.Duration
}

// New returns an engine. It does no I/O. The slices and maps in o must not be modified afterwards.
func New(o *Options) *Engine {
	e := &Engine{grace: closeGrace, patience: closeWait, callWait: callWait}
	if o != nil {
		e.opts = *o
	}
	return e
}

// Name returns "claude-code".
func (e *Engine) Name() string { return "claude-code" }

// Versions of the CLI (requirements D23, D30, D66).
const (
	// oldest is the oldest version that this engine supports.
	oldest = "2.1.332"
	// startupWaitSince is the first version with CLAUDE_CODE_MCP_STARTUP_WAIT_MS.
	startupWaitSince = "2.1.274"
)

// versionWait limits the time for asking a CLI that did not start for its version.
const versionWait = 10 * time.Second

// A VersionError is the error of a CLI that did not start because it is too old.
type VersionError struct {
	Path string
	// Version is the version of the CLI, Least the oldest version that this package supports.
	Version, Least string
	// Err is the error of the start.
	Err error
}

// Error returns both versions and the remedy.
func (e *VersionError) Error() string {
	return fmt.Sprintf("claude-code: the CLI %s has version %s, and at least %s is needed: install a newer one (npm install -g @anthropic-ai/claude-code@latest; "+
		"npm takes an old one if Node.js is too old for the others) or name it in Options.Path\n%v", e.Path, e.Version, e.Least, e.Err)
}

// Unwrap returns the error of the start.
func (e *VersionError) Unwrap() error { return e.Err }

// withVersion returns a VersionError for err, the error of the start, if the CLI is too old.
func (e *Engine) withVersion(ctx context.Context, path string, o *agent.Options, err error) error {
	if pe, ok := errors.AsType[*ProcessError](err); !ok || pe.Exit == "" || ctx.Err() != nil {
		return err
	}
	version, _, _ := strings.Cut(e.askVersion(ctx, path, o), " ")
	if !olderThan(version, oldest) {
		return err
	}
	return &VersionError{Path: path, Version: version, Least: oldest, Err: err}
}

// askVersion returns what the CLI prints for --version, or "".
func (e *Engine) askVersion(ctx context.Context, path string, o *agent.Options) string {
	ctx, cancel := context.WithTimeout(ctx, versionWait)
	defer cancel()
	name, words := command(&e.opts, path, []string{"--version"})
	proc, err := subproc.Start(ctx, subproc.Options{Command: name, Args: words, Env: childEnv(&e.opts, o), Dir: o.Dir, Grace: e.grace})
	if err != nil {
		return ""
	}
	stop := context.AfterFunc(ctx, func() { _ = proc.Close() })
	defer stop()
	_ = proc.Stdin.Close()
	out, err := io.ReadAll(io.LimitReader(proc.Stdout, 200))
	_ = proc.Close()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// warnOfVersion logs, once for each session, what the CLI is too old for.
func (s *session) warnOfVersion(ctx context.Context, version string) {
	startupWait, _ := kit.Lookup(s.opts.Env)("CLAUDE_CODE_MCP_STARTUP_WAIT_MS")
	switch {
	case version == "":
	case olderThan(version, startupWaitSince) && startupWait != "":
		s.opts.Logger.WarnContext(ctx, "claude-code: CLAUDE_CODE_MCP_STARTUP_WAIT_MS has no effect on this CLI", "version", version, "needs", startupWaitSince)
	case olderThan(version, oldest):
		s.opts.Logger.WarnContext(ctx, "claude-code: this CLI is older than what the engine is tested on", "version", version, "tested", oldest)
	}
}

// olderThan compares versions number by number. A version that cannot be read is not older.
func olderThan(version, than string) bool {
	var all [2][3]int
	for i, text := range []string{version, than} {
		if _, err := fmt.Sscanf(text, "%d.%d.%d", &all[i][0], &all[i][1], &all[i][2]); err != nil {
			return false
		}
	}
	return slices.Compare(all[0][:], all[1][:]) < 0
}

var _ agent.Engine = (*Engine)(nil)

// Open starts the CLI and initializes the session. Open itself connects servers that the CLI cannot
// connect as they are configured (with logins, computed headers, an HTTP client, limits other than
// that of a call, a directory or an environment of their own), and with Options.Stderr all child
// processes, and presents them to the CLI. It waits for them as a first turn does. The error is a
// [NotFoundError], a [VersionError], a [ProcessError], the error of a required server, or that of ctx.
func (e *Engine) Open(ctx context.Context, o *agent.Options) (agent.Session, error) {
	if err := unsupported(e.Name(), o); err != nil {
		return nil, err
	}
	if err := e.opts.check(o); err != nil {
		return nil, err
	}
	run, err := e.withFiles(o)
	if err != nil {
		return nil, err
	}
	path := e.opts.Path
	if len(e.opts.Launcher) == 0 {
		if path, err = find(path, o.Dir, environ(o.Env)); err != nil {
			return nil, err
		}
	}
	s := newSession(run, o)
	if err := s.start(ctx, path); err != nil {
		_ = s.Close() // it ends the session, whose life is not that of ctx
		return nil, e.withVersion(ctx, path, o, err)
	}
	o.Logger.Log(ctx, slog.LevelDebug, "claude-code: session started", "path", path, "pid", s.proc.PID())
	return s, nil
}

// unsupported returns an error for options that the CLI cannot apply: it continues only conversations
// that it has stored.
func unsupported(engine string, o *agent.Options) error {
	field := "HistoryUsage"
	if o.HistoryUsage == (agent.HistoryUsage{}) {
		if len(o.History) == 0 {
			return nil
		}
		field = "History"
	}
	return &agent.UnsupportedError{
		Engine: engine, Fields: []string{field},
		Remedy: "the CLI keeps its conversations itself: go on with one by Options.Resume, or use engine/native",
	}
}

// start starts the CLI and initializes the session.
func (s *session) start(ctx context.Context, path string) error {
	s.path = path
	s.connect(ctx)
	configs, err := s.servers.connect(ctx, s.opts.MCPServers)
	if err != nil {
		return err
	}
	request, err := s.initRequest(configs)
	if err != nil {
		return err
	}
	// The digits of numbers are in the stream alone. Without numbers, the CLI saves a tenth of its time.
	stream := s.opts.IncludePartialMessages || s.opts.OutputSchema != nil && allowsNumbers(s.opts.OutputSchema) || s.servers.takeNumbers(ctx)
	if err := s.startProcess(ctx, stream); err != nil {
		return err
	}
	if err := s.servers.wait(ctx); err != nil {
		return err
	}
	if err := s.ch.request(ctx, "initialize", request, &s.init); err != nil {
		return err
	}
	close(s.servers.initialized)
	s.warnOfVersion(ctx, s.init.Version)
	s.warnOfRejected(ctx)
	return s.disableServers(ctx)
}

// initRequest returns the first request of a session with these servers.
func (s *session) initRequest(configs map[string]mcphost.ServerConfig) (*initRequest, error) {
	r, err := newInitRequest(&s.engine.opts, s.opts)
	if err != nil {
		return nil, err
	}
	if r.MCPServers, err = s.servers.cliConfigs(configs); err != nil {
		return nil, err
	}
	s.addHooks()
	r.Hooks = s.hooks.matchers
	r.SDKServers, r.SDKConfigs = s.servers.attach(configs)
	return r, nil
}

// connect makes the session's channel and servers.
func (s *session) connect(ctx context.Context) {
	s.ch = newChannel(ctx)
	s.ch.handle, s.ch.message, s.ch.invalid, s.ch.streamed = s.serve, s.handleLine, s.logInvalid, s.opts.IncludePartialMessages
	s.ch.mayRead = func() { s.inbox.awaitSpace(s.ch.ctx, s.ch.waits, s.ch.asked) }
	s.servers = newServers(s.opts, s.inputs, s.ch)
}

// startProcess starts the CLI and the goroutines that read and write.
func (s *session) startProcess(ctx context.Context, stream bool) error {
	e := s.engine
	name, words := command(&e.opts, s.path, args(&e.opts, s.opts, stream))
	proc, err := subproc.Start(ctx, subproc.Options{
		Command: name, Args: words, Env: childEnv(&e.opts, s.opts), Dir: s.opts.Dir, Grace: e.grace, OnStderr: e.opts.Stderr,
	})
	if err != nil {
		return &ProcessError{Path: s.path, Err: err}
	}
	s.proc = proc
	s.ch.wg.Go(s.write)
	s.readers.Go(func() { // requests of the CLI outlive Open
		s.ch.read(proc.Stdout)
		s.exited()
	})
	return nil
}

// write writes to the CLI until the session ends.
func (s *session) write() {
	defer s.proc.Stdin.Close()
	err := s.ch.write(s.proc.Stdin, s.closing)
	if err == nil {
		return
	}
	select {
	case <-s.ch.ctx.Done(): // the error of the session is that of the CLI's exit
	case <-time.After(s.engine.grace):
		s.ch.cancel(fmt.Errorf("claude-code: the CLI %s takes no more input: %w", s.path, err))
	}
}

// disableServers disables the servers that are configured so. The CLI's configuration has no member for it.
func (s *session) disableServers(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(s.opts.MCPServers)) {
		if commonOf(s.opts.MCPServers[name]).Disabled {
			if err := s.SetMCPServerEnabled(ctx, name, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// serve answers a request of the CLI, once the program has caught up with the messages.
func (s *session) serve(ctx context.Context, subtype string, request json.RawMessage) (any, error) {
	if err := s.inbox.awaitRoom(ctx); err != nil {
		return nil, err
	}
	switch subtype {
	case "mcp_message":
		return answer(ctx, subtype, request, s.mcpMessage)
	case "can_use_tool":
		return answer(ctx, subtype, request, s.canUseTool)
	case "hook_callback":
		return answer(ctx, subtype, request, s.hookCallback)
	case "elicitation":
		return answer(ctx, subtype, request, s.elicit)
	case "request_user_dialog":
		return answer(ctx, subtype, request, s.dialog)
	}
	return nil, fmt.Errorf("%w: %.60q", errUnknownRequest, subtype)
}

// answer decodes a request and answers it by f.
func answer[T any](ctx context.Context, subtype string, request json.RawMessage, f func(context.Context, *T) (any, error)) (any, error) {
	q := new(T)
	if err := json.Unmarshal(request, q); err != nil {
		return nil, fmt.Errorf("reading %s: %w", subtype, err)
	}
	return f(ctx, q)
}

// addHooks registers the hooks of the program and of this engine.
func (s *session) addHooks() {
	s.hooks.add("UserPromptSubmit", "", 0, false, s.beginTurn)
	s.addResourceRules()
	h := s.opts.Hooks
	common := func(event string) func(*agent.HookOutput) *kit.HookReply {
		return func(o *agent.HookOutput) *kit.HookReply { return s.reply(event, *o) }
	}
	s.addSessionHooks(h)
	s.addPreToolUse(h)
	addTyped(s, "PostToolUse", h.PostToolUse, nil, func(o *agent.PostToolUseOutput) *kit.HookReply {
		r := s.reply("PostToolUse", o.HookOutput).Block(o.Feedback != "", o.Feedback)
		if len(o.UpdatedOutput) > 0 {
			r.Specific.UpdatedMCPOutput = encode(o.UpdatedOutput, nil)
		}
		return r
	})
	addTyped(s, "PostToolUseFailure", h.PostToolUseFailure, nil, common("PostToolUseFailure"))
	addTyped(s, "PostToolBatch", h.PostToolBatch, nil, common("PostToolBatch"))
	// The CLI asks these hooks and CanUseTool at the same time, and the first answer wins. Where
	// CanUseTool is asked, runPermissionHooks runs the hooks before it.
	if s.opts.PermissionPromptTool != "" {
		addTyped(s, "PermissionRequest", h.PermissionRequest, nil, func(o *agent.PermissionRequestOutput) *kit.HookReply {
			r := s.reply("PermissionRequest", o.HookOutput)
			if o.Verdict != nil {
				r.Specific.Decision = encode(newVerdict(o.Verdict, ""), nil)
			}
			return r
		})
	}
	addTyped(s, "UserPromptSubmit", h.UserPromptSubmit, nil, func(o *agent.PromptOutput) *kit.HookReply {
		s.noteStop(o.Block || o.Stop, o.Reason, o.StopReason)
		return s.reply("UserPromptSubmit", o.HookOutput).Block(o.Block, o.Reason)
	})
	addTyped(s, "Stop", h.Stop, nil, func(o *agent.StopOutput) *kit.HookReply {
		return s.reply("Stop", o.HookOutput).Block(o.Block, o.Reason)
	})
	s.addNotificationHooks(h)
	addTyped(s, "PreCompact", h.PreCompact, nil, func(o *agent.PreCompactOutput) *kit.HookReply {
		return s.reply("PreCompact", o.HookOutput).Block(o.Block, o.Reason)
	})
	addTyped(s, "PostCompact", h.PostCompact, nil, common("PostCompact"))
	s.addEventHooks()
}
