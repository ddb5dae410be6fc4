package claudecode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/subproc"
	"github.com/tenon-sdk/tenon/permission"
)

const (
	// closeGrace is how long the CLI has to end by itself.
	closeGrace = time.Second
	// closeWait bounds the wait of Close for callbacks and servers of the program; it is over at
	// once unless one of them does not heed its context.
	closeWait = 10 * time.Second
)

// A ProcessError is a CLI that could not be started or ended without having said how the run went.
type ProcessError struct {
	Path string
	Exit string // "exit status 1", "signal: killed"; empty if it never ran
	// Stderr is the end of what it wrote there.
	Stderr string
	Err    error
}

// Error gives the exit and the last line of stderr.
func (e *ProcessError) Error() string {
	s := "claude-code: the CLI " + e.Path
	switch {
	case e.Exit != "":
		s += " ended: " + e.Exit
	case e.Err != nil:
		s += " could not be started: " + e.Err.Error()
	}
	if tail := strings.TrimSpace(e.Stderr); tail != "" {
		s += "\n" + tail
	}
	return s
}

// Unwrap returns the cause.
func (e *ProcessError) Unwrap() error { return e.Err }

// A session is one CLI process.
type session struct {
	engine  *Engine
	opts    *agent.Options
	path    string
	proc    *subproc.Proc
	ch      *channel
	servers *servers
	hooks   map[string]hookFunc
	// rawHooks are the hooks of Options.EventHooks.
	rawHooks map[string]rawHookFunc
	welcome  Initialization // constant once the session has started
	args     *arguments
	ids      *inputIDs

	answered  chan struct{} // closed by the first result
	closing   chan struct{} // closed by the last input: stdin is let go of
	endStdin  sync.Once
	readers   sync.WaitGroup // the goroutine that reads, which ends all others
	closeOnce sync.Once

	mu    sync.Mutex // guards the rest
	queue []queued
	// queueSize is what the queue holds, in bytes.
	queueSize  int
	introduced bool            // messages may be received
	handed     []string        // calls in the message that the program has taken last
	shown      map[string]bool // calls of this turn that the program knows of
	read       chan struct{}   // closed and replaced when the program takes a message
	arrived    chan struct{}   // holds a token when queue or over changed
	over       error           // why nothing more will come; nil while it may
	ended      bool            // no input will follow
	waiting    map[string]bool
	idle       bool
	// expected is the input that is why idle is false, as long as the CLI has said nothing of its own.
	expected string
	failed   bool // the last result was an error
	results  int
	closed   bool
	unplaced int             // inputs whose end only a result can tell
	asked    map[string]bool // the model's messages of this turn
	silent   silence
	told     told
	stopped  string // why a hook ended the turn
	begun    bool   // the hooks on SessionStart were called
	sent     bool   // there was an input
	turning  bool   // the CLI has begun a turn and given no result
	// interruptNext is set when the CLI was told to interrupt a turn that it had not begun.
	interruptNext bool
	clock         *turnClock // nil without a turn, or a limit
	review        ruleReview
	notices       []string // what hooks on Notification have for the model
}

// told is what the CLI last said of the session.
type told struct{ SessionID, CWD, PermissionMode string }

func newSession(e *Engine, o *agent.Options) *session {
	return &session{
		engine: e, opts: o, answered: make(chan struct{}), closing: make(chan struct{}), arrived: make(chan struct{}, 1), read: make(chan struct{}), waiting: map[string]bool{}, idle: true,
		told: told{SessionID: o.SessionID, CWD: o.Dir, PermissionMode: string(o.PermissionMode)},
		args: newArguments(), ids: newInputIDs(), asked: map[string]bool{}, shown: map[string]bool{}, review: ruleReview{told: map[string]bool{}}, silent: silence{awaited: true},
	}
}

// start starts the CLI and shakes hands.
func (s *session) start(ctx context.Context, path string) error {
	s.path = path
	s.ch = newChannel(ctx)
	s.ch.handle, s.ch.message, s.ch.mayRead = s.serve, s.hear, s.mayRead
	s.servers = newServers(s)
	s.hooks, s.rawHooks = map[string]hookFunc{}, map[string]rawHookFunc{}
	var err error
	if s.servers.configs, err = s.servers.byHost(ctx, s.opts.MCPServers); err != nil {
		return err
	}
	command, words := s.engine.opts.command(path, args(&s.engine.opts, s.opts, s.needsStream(ctx)))
	proc, err := subproc.Start(ctx, subproc.Options{
		Command: command, Args: words, Env: childEnv(&s.engine.opts, s.opts), Dir: s.opts.Dir,
		Grace: s.engine.grace, OnStderr: s.engine.opts.Stderr,
	})
	if err != nil {
		return &ProcessError{Path: path, Err: err}
	}
	s.proc = proc
	s.ch.out.try = proc.TryWrite
	s.ch.wg.Go(s.write)
	s.readers.Go(func() { //nolint:contextcheck // requests of the CLI live as long as it does, not as long as Open
		s.ch.read(proc.Reader(), s.noise)
		s.gone()
	})
	if err := s.servers.wait(ctx); err != nil {
		return err
	}
	hello, err := s.hello(ctx)
	if err != nil {
		return err
	}
	if err := s.ch.request(ctx, "initialize", hello, &s.welcome); err != nil {
		return err
	}
	s.servers.met(ctx, &s.welcome)
	s.warnOfVersion(ctx, s.welcome.Version)
	s.warnOfLost(ctx)
	return s.switchOff(ctx)
}

// switchOff switches the servers off that are configured so; the CLI's configuration has no member for it.
func (s *session) switchOff(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(s.opts.MCPServers)) {
		if !isDisabled(s.opts.MCPServers[name]) {
			continue
		}
		if err := s.SetMCPServerEnabled(ctx, name, false); err != nil {
			return err
		}
	}
	return nil
}

// hello is the initialize request.
func (s *session) hello(ctx context.Context) (any, error) {
	own, err := newOwnHello(&s.engine.opts, s.opts)
	if err != nil {
		return nil, err
	}
	external, err := s.servers.external(s.servers.configs)
	if err != nil {
		return nil, err
	}
	names, configs := s.servers.attach(s.servers.withShared(s.servers.configs))
	return struct {
		Hooks        map[string][]hookMatcher   `json:"hooks,omitempty"`
		SDKServers   []string                   `json:"sdkMcpServers,omitempty"`
		SDKConfigs   map[string]sdkServer       `json:"sdkMcpServerConfigs,omitempty"`
		Manifests    map[string]manifest        `json:"sdkMcpServerManifests,omitempty"`
		MCPServers   map[string]json.RawMessage `json:"mcpServers,omitempty"`
		SystemPrompt []string                   `json:"systemPrompt,omitempty"`
		JSONSchema   json.RawMessage            `json:"jsonSchema,omitempty"`
		ownHello
	}{
		Hooks: s.registerEventHooks(s.registerHooks()), SDKServers: names, SDKConfigs: configs,
		Manifests: s.servers.manifests(ctx), MCPServers: external,
		SystemPrompt: systemPrompt(&s.engine.opts, s.opts), JSONSchema: s.opts.OutputSchema, ownHello: own,
	}, nil
}

// serve answers the CLI's requests.
func (s *session) serve(ctx context.Context, subtype string, request json.RawMessage) (any, error) {
	if err := s.room(ctx); err != nil {
		return nil, err
	}
	switch subtype {
	case "mcp_message":
		return s.servers.message(ctx, request)
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

// write is the goroutine that writes what is not written at once.
func (s *session) write() {
	defer s.proc.Stdin.Close()
	err := s.ch.out.write(s.ch.ctx, s.proc.Stdin, s.closing)
	if err == nil {
		return
	}
	late := time.NewTimer(s.engine.grace)
	defer late.Stop()
	select {
	case <-s.ch.ctx.Done(): // the reader saw the CLI's end, and says why
	case <-late.C:
		s.ch.cancel(fmt.Errorf("claude-code: the CLI %s takes no more input: %w", s.path, err))
	}
}

func (s *session) noise(line []byte) {
	s.opts.Logger.Debug("claude-code: a line that is no message", "line", fmt.Sprintf("%.200q", line))
}

// hear takes a message for the program.
func (s *session) hear(kind string, line json.RawMessage) {
	switch kind {
	case "transcript_mirror":
		s.mirror(line)
		return
	case "stream_event":
		s.args.streamed(line)
		if !s.opts.IncludePartialMessages {
			return
		}
	}
	m, err := agent.DecodeMessage(line)
	if err != nil {
		s.noise(line)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.follow(kind, m) {
		s.deliver(m, len(line))
	}
	if s.idle && len(s.waiting) == 0 {
		s.turnEnds()
	}
	s.maybeLetGo()
}

// maybeLetGo closes stdin when the run has really ended: every input is
// answered and the CLI says that it is idle, background agents included.
// Closing it at the first result would break the calls of those.
func (s *session) maybeLetGo() {
	if s.ended && s.idle && len(s.waiting) == 0 && !s.review.running {
		s.endStdin.Do(func() { close(s.closing) })
	}
}

func (s *session) wake() {
	select {
	case s.arrived <- struct{}{}:
	default:
	}
}

// gone runs when the CLI's output has ended: everything that waits ends with it.
func (s *session) gone() {
	select {
	case <-s.proc.Exited():
	case <-time.After(s.engine.grace):
	}
	s.proc.AwaitExit(s.ch.ctx, s.engine.grace)
	var end error = &ProcessError{Path: s.path, Stderr: s.proc.Stderr(), Exit: "its output ended"}
	select {
	case <-s.proc.Exited():
		end = &ProcessError{Path: s.path, Exit: s.proc.Exit().String(), Stderr: s.proc.Stderr()}
	default:
	}
	s.ch.cancel(end)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended && len(s.waiting) == 0 && (s.results > 0 || s.unplaced == 0) {
		end = io.EOF
	}
	if s.over == nil {
		s.over = end
	}
	s.wake()
}

func (s *session) Send(ctx context.Context, in *agent.Input) error {
	line := struct {
		Type    string `json:"type"`
		UUID    string `json:"uuid"`
		Message struct {
			Role    string        `json:"role"`
			Content agent.Content `json:"content"`
		} `json:"message"`
		Parent   *string `json:"parent_tool_use_id"`
		Verbatim bool    `json:"client_composed,omitempty"`
	}{Type: "user", UUID: in.UUID, Verbatim: s.engine.opts.VerbatimPrompts}
	if line.UUID == "" {
		line.UUID = s.ids.next()
	}
	line.Message.Role, line.Message.Content = "user", in.Content
	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		return agent.ErrClosed
	case s.ended:
		s.mu.Unlock()
		return errors.New("claude-code: Send after EndInput")
	case s.opts.MaxQueuedInputs > 0 && len(s.waiting) >= s.opts.MaxQueuedInputs:
		s.mu.Unlock()
		return fmt.Errorf("claude-code: %w: %d of them: wait for a result, or raise Options.MaxQueuedInputs", agent.ErrTooManyInputs, len(s.waiting))
	}
	s.waiting[line.UUID] = true
	s.unplaced++
	if s.idle {
		s.idle, s.expected = false, line.UUID
	}
	s.turnStarts()
	s.sent = true
	s.mu.Unlock()
	if err := s.ch.post(ctx, &line); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.forget(line.UUID)
		return err
	}
	return nil
}

// forget takes an input back that was not sent. The caller holds s.mu.
func (s *session) forget(id string) {
	delete(s.waiting, id)
	s.unplaced--
	if s.expected == id {
		s.idle, s.expected = true, ""
	}
	if len(s.waiting) == 0 {
		s.interruptNext = false
		s.turnEnds()
	}
	s.maybeLetGo()
}

func (s *session) Receive(ctx context.Context) (agent.Message, error) {
	for {
		s.mu.Lock()
		s.asksForMore()
		switch {
		case s.closed:
			s.mu.Unlock()
			return nil, agent.ErrClosed
		case len(s.queue) > 0 && (s.introduced || s.over != nil):
			m := s.take()
			s.mu.Unlock()
			return m, nil
		case s.over != nil:
			err := s.over
			s.mu.Unlock()
			s.wake() // the next caller sees it, too
			return nil, err
		}
		s.mu.Unlock()
		select {
		case <-s.arrived:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (s *session) EndInput() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return agent.ErrClosed
	}
	s.ended = true
	s.maybeLetGo()
	return nil
}

func (s *session) control(ctx context.Context, subtype string, fields, result any) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return agent.ErrClosed
	}
	return s.ch.request(ctx, subtype, fields, result)
}

func (s *session) SetModel(ctx context.Context, model string) error {
	fields := map[string]*string{"model": nil}
	if model != "" {
		fields["model"] = &model
	}
	return s.control(ctx, "set_model", fields, nil)
}

func (s *session) SetPermissionMode(ctx context.Context, mode permission.Mode) error {
	if _, err := permission.ParseMode(string(mode)); err != nil {
		return fmt.Errorf("claude-code: %w", err)
	}
	return s.control(ctx, "set_permission_mode", map[string]permission.Mode{"mode": mode}, nil)
}

// ContextUsage asks the CLI, which has each category counted by the API.
func (s *session) ContextUsage(ctx context.Context) (*agent.ContextUsage, error) {
	u := new(agent.ContextUsage)
	if err := s.control(ctx, "get_context_usage", nil, u); err != nil {
		return nil, err
	}
	return u, nil
}

// Close ends the process: its stdin is closed, then it is asked to terminate, then killed. What it is
// waiting for from us is given up first. A callback or a server of the program that does not return
// within 10 s after that is left behind, which is an error.
func (s *session) Close() error {
	var err error
	s.closeOnce.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.turnEnds()
		s.wake()
		s.mu.Unlock()
		if s.ch == nil {
			return
		}
		s.ch.cancel(agent.ErrClosed)
		s.endStdin.Do(func() { close(s.closing) })
		if s.proc != nil {
			if err := s.proc.Close(); err != nil {
				s.opts.Logger.Warn("claude-code: closing the CLI", "error", err)
			}
		}
		ended := within(s.engine.patience, func() {
			s.servers.close()
			s.ch.end(agent.ErrClosed)
			s.readers.Wait()
		})
		if !ended {
			err = fmt.Errorf("claude-code: a callback or a server of the program did not return within %v after its context had ended", s.engine.patience)
			return
		}
		s.sessionEnd()
	})
	return err
}

// within calls f and reports whether it has returned in time. If not, it goes on.
func within(limit time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-done:
		return true
	case <-late.C:
		return false
	}
}
