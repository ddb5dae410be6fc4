package claudecode

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/subproc"
	"github.com/tenon-sdk/tenon/mcphost"
)

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
		_ = s.Close() //nolint:contextcheck // it ends the session, whose life is not that of ctx
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
	s.readers.Go(func() { //nolint:contextcheck // requests of the CLI outlive Open
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
		return s.mcpMessage(ctx, request)
	case "can_use_tool":
		return s.canUseTool(ctx, request)
	case "hook_callback":
		return s.hookCallback(ctx, request)
	case "elicitation":
		return s.elicit(ctx, request)
	case "request_user_dialog":
		return s.dialog(ctx, request)
	}
	return nil, fmt.Errorf("%w: %.60q", errUnknownRequest, subtype)
}

// addHooks registers the hooks of the program and of this engine.
func (s *session) addHooks() {
	s.hooks.add("UserPromptSubmit", "", 0, false, s.beginTurn)
	s.addResourceRules()
	h := s.opts.Hooks
	common := func(event string) func(*agent.HookOutput) *hookReply {
		return func(o *agent.HookOutput) *hookReply { return s.reply(event, *o) }
	}
	s.addSessionHooks(h)
	s.addPreToolUse(h)
	addTyped(s, "PostToolUse", h.PostToolUse, nil, func(o *agent.PostToolUseOutput) *hookReply {
		r := s.reply("PostToolUse", o.HookOutput).block(o.Feedback != "", o.Feedback)
		r.Specific.UpdatedOutput = o.UpdatedOutput
		return r
	})
	addTyped(s, "PostToolUseFailure", h.PostToolUseFailure, nil, common("PostToolUseFailure"))
	addTyped(s, "PostToolBatch", h.PostToolBatch, nil, common("PostToolBatch"))
	// The CLI asks these hooks and CanUseTool at the same time, and the first answer wins. Where
	// CanUseTool is asked, runPermissionHooks runs the hooks before it.
	if s.opts.PermissionPromptTool != "" {
		addTyped(s, "PermissionRequest", h.PermissionRequest, nil, func(o *agent.PermissionRequestOutput) *hookReply {
			r := s.reply("PermissionRequest", o.HookOutput)
			if o.Verdict != nil {
				r.Specific.Decision = newVerdict(o.Verdict, "")
			}
			return r
		})
	}
	addTyped(s, "UserPromptSubmit", h.UserPromptSubmit, nil, func(o *agent.PromptOutput) *hookReply {
		s.noteStop(o.Block || o.Stop, o.Reason, o.StopReason)
		return s.reply("UserPromptSubmit", o.HookOutput).block(o.Block, o.Reason)
	})
	addTyped(s, "Stop", h.Stop, nil, func(o *agent.StopOutput) *hookReply {
		return s.reply("Stop", o.HookOutput).block(o.Block, o.Reason)
	})
	s.addNotificationHooks(h)
	addTyped(s, "PreCompact", h.PreCompact, nil, func(o *agent.PreCompactOutput) *hookReply {
		return s.reply("PreCompact", o.HookOutput).block(o.Block, o.Reason)
	})
	addTyped(s, "PostCompact", h.PostCompact, nil, common("PostCompact"))
	s.addEventHooks()
}
