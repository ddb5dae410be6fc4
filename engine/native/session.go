package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/engine/native/internal/messages"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
	"github.com/tenon-sdk/tenon/toolresult"
)

const (
	// outboxSize is how many messages wait for the program before the session pauses.
	outboxSize = 64
	// endWait is how long Close waits for the session's goroutine before it closes the servers, and closeWait
	// how long after that.
	endWait   = 2 * time.Second
	closeWait = 10 * time.Second
)

// errInterrupted is the cause of a turn's end by Interrupt.
var errInterrupted = errors.New("native: interrupted")

// Open starts a session. Its servers begin to connect at once. Open looks for the credential and makes no
// request.
func (e *Engine) Open(ctx context.Context, o *agent.Options) (agent.Session, error) {
	if fields := unsupported(o); len(fields) > 0 {
		return nil, &agent.UnsupportedError{Engine: e.Name(), Fields: fields}
	}
	if o.Dir == "" {
		o.Dir, _ = os.Getwd() // empty if it is not known
	}
	found, err := kit.ReadFiles(o)
	if err != nil {
		return nil, err
	}
	found.Apply(o)
	kit.NoteVariables(o, outputRetriesProblem(o.Env))
	if o.PermissionMode == permission.ModeAuto { // of a settings file
		o.PermissionMode = permission.ModeDefault
		o.ConfigProblems = append(o.ConfigProblems, agent.MCPServerError{Type: "invalid_config", Message: "defaultMode: " + noClassifier})
	}
	s := &session{
		engine: e, opts: o, env: environ(o.Env), shared: o.Host, settings: found.Settings,
		done: make(chan struct{}), out: make(chan agent.Message, outboxSize), wake: make(chan struct{}, 1),
		quarantined: map[string]string{}, misspelt: map[string]bool{}, totals: map[string]agent.ModelUsage{}, cost: o.HistoryUsage.CostUSD,
		finder: toolset.NewFinder(o, environ(o.Env).get), store: toolresult.NewStore(e.opts.ResultsDir, 0),
	}
	s.hooks = &kit.HookRunner{Logger: o.Logger, Detach: true, Failed: func(event string, err error) {
		s.warn("hook_callback_failed", "A %s hook failed, and the run goes on without it: %v", event, err)
	}}
	o.ConfigProblems = append(o.ConfigProblems, s.addToolHooks(found.Settings.Hooks)...)
	if o.Thinking != nil && o.Thinking.Type == "enabled" {
		s.thoughts = transcript.AllThoughts // models with a budget need the thoughts of other models as well
	}
	if s.api, err = e.connect(s.env); err != nil {
		return nil, err
	}
	s.wantModel, s.fallbacks = s.resolveModel(o.Model), fallbackModels(o.FallbackModel)
	if err := s.checkBudget(append(s.fallbacks, s.wantModel)...); err != nil {
		return nil, err
	}
	if len(o.History) > 0 {
		s.history, s.given = transcript.Load(ctx, o.History, append([]string{s.wantModel}, s.fallbacks...)...)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.accepted, s.given.Resumed = s.history.Position(), true
		s.adoptResults(o.History)
		o.History = nil // s.history has it
	}
	if s.output, err = newStructured(ctx, o.OutputSchema, s.env); err != nil {
		return nil, err
	}
	if len(o.MCPServers) > 0 {
		if s.own, err = kit.NewHost(o, o.MCPServers); err != nil {
			return nil, err
		}
	}
	s.life, s.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	var problems []permission.Problem
	s.policy, problems = permission.NewPolicy(&permission.Options{
		Allow: o.AllowedTools, Deny: o.DisallowedTools, Ask: o.AskTools, Mode: o.PermissionMode, Tools: found.Policies,
	})
	if s.own != nil {
		s.own.Start(s.life) // it outlives Open
	}
	// Close ends it and waits for done.
	go s.run(problems) // it outlives Open
	return s, nil
}

// noClassifier is why there is no auto mode.
const noClassifier = "auto mode needs the classifier of the Claude Code CLI, which this engine does not have; the mode stays as it was"

// unsupported returns the options that this engine does not have.
func unsupported(o *agent.Options) []string {
	var fields []string
	add := func(isSet bool, field string) {
		if isSet {
			fields = append(fields, field)
		}
	}
	h := cmp.Or(o.Hooks, new(agent.Hooks))
	add(o.Resume != (agent.Resume{}), "Resume")
	add(o.PermissionMode == permission.ModeAuto, "PermissionMode")
	add(len(h.PreCompact) > 0, "Hooks.PreCompact")
	add(len(h.PostCompact) > 0, "Hooks.PostCompact")
	return fields
}

// resolveModel returns the ID of a model. An empty name means the default.
func (s *session) resolveModel(name string) string {
	return messages.ModelOf(cmp.Or(name, s.engine.opts.DefaultModel, s.env.get("ANTHROPIC_MODEL"), s.settings.Model, DefaultModel))
}

// checkBudget returns an error if there is a budget and a model without a known price.
func (s *session) checkBudget(models ...string) error {
	if s.opts.MaxBudgetUSD == 0 {
		return nil
	}
	for _, m := range models {
		if _, ok := s.engine.priceOf(m); m != "" && !ok {
			return &agent.OptionError{
				Field: "MaxBudgetUSD", Problem: fmt.Sprintf("cannot be kept with model %q, whose price is not known", m),
				Remedy: "give its price in native.Options.Prices, or set no budget",
			}
		}
	}
	return nil
}

// Send queues an input.
func (s *session) Send(ctx context.Context, in *agent.Input) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if in == nil || !slices.ContainsFunc(in.Content, func(b agent.Block) bool {
		b = transcript.Known(b)
		t, isText := b.(*agent.TextBlock)
		return b != nil && (!isText || !transcript.IsBlank(t.Text))
	}) {
		return agent.ErrEmptyInput
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.life.Err() != nil:
		return agent.ErrClosed
	case s.ended:
		return errors.New("native: input after EndInput")
	case s.opts.MaxQueuedInputs > 0 && len(s.inbox) >= s.opts.MaxQueuedInputs:
		return fmt.Errorf("native: %w: %d of them: wait for a result, or raise Options.MaxQueuedInputs", agent.ErrTooManyInputs, len(s.inbox))
	}
	s.inbox = append(s.inbox, in)
	s.notify()
	return nil
}

// EndInput ends the session once all inputs are answered.
func (s *session) EndInput() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return agent.ErrClosed
	}
	s.ended = true
	s.notify()
	return nil
}

// Receive returns the next message.
func (s *session) Receive(ctx context.Context) (agent.Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.life.Err() != nil {
		return nil, agent.ErrClosed
	}
	select {
	case m, ok := <-s.out:
		switch {
		case ok:
			return m, nil
		case s.err != nil:
			return nil, s.err
		case s.life.Err() != nil:
			return nil, agent.ErrClosed
		}
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.life.Done():
		return nil, agent.ErrClosed
	}
}

// Interrupt stops the running turn, or the turn that the next input is about to begin.
func (s *session) Interrupt(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return agent.ErrClosed
	}
	switch {
	case s.interrupt != nil:
		s.interrupt(errInterrupted)
	case s.busy || len(s.inbox) > 0:
		s.interrupted = true
	}
	return ctx.Err()
}

// SetModel changes the model from the next request on.
func (s *session) SetModel(ctx context.Context, model string) error {
	model = s.resolveModel(model)
	if err := s.checkBudget(model); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return agent.ErrClosed
	}
	s.wantModel, s.fallback = model, 0
	return ctx.Err()
}

// SetPermissionMode changes the mode from the next decision on.
func (s *session) SetPermissionMode(ctx context.Context, mode permission.Mode) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return agent.ErrClosed
	}
	if mode == permission.ModeAuto {
		return &agent.UnsupportedError{Engine: s.engine.Name(), Fields: []string{"PermissionMode"}, Remedy: noClassifier}
	}
	policy, err := s.policy.WithMode(mode)
	if err != nil {
		return err
	}
	s.policy = policy
	return ctx.Err()
}

// MCPStatus returns the state of the servers of both hosts.
func (s *session) MCPStatus(ctx context.Context) ([]mcphost.ServerStatus, error) {
	if s.life.Err() != nil {
		return nil, agent.ErrClosed
	}
	return s.serverStatus(), ctx.Err()
}

// hostOf returns the host of a server in an open session.
func (s *session) hostOf(name string) (*mcphost.Host, error) {
	if s.life.Err() != nil {
		return nil, agent.ErrClosed
	}
	return s.findHost(name)
}

// ReconnectMCPServer makes one attempt to connect.
func (s *session) ReconnectMCPServer(ctx context.Context, name string) error {
	h, err := s.hostOf(name)
	if err != nil {
		return err
	}
	return h.Reconnect(ctx, name)
}

// SetMCPServerEnabled switches a server off or on.
func (s *session) SetMCPServerEnabled(ctx context.Context, name string, on bool) error {
	h, err := s.hostOf(name)
	if err != nil {
		return err
	}
	return h.SetEnabled(ctx, name, on)
}

// SetMCPServers replaces the session's own servers. Those of a shared host stay.
func (s *session) SetMCPServers(ctx context.Context, configs map[string]mcphost.ServerConfig) (mcphost.SetResult, error) {
	h, err := s.ownHost()
	if err != nil {
		return mcphost.SetResult{}, err
	}
	return h.SetServers(ctx, maps.Clone(configs))
}

// ownHost returns the session's own host. It makes the host when it is first needed.
func (s *session) ownHost() (*mcphost.Host, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return nil, agent.ErrClosed
	}
	if s.own == nil {
		h, err := kit.NewHost(s.opts, nil)
		if err != nil {
			return nil, err
		}
		h.Start(s.life)
		s.own = h
	}
	return s.own, nil
}

// Close ends the session and waits for its end. The hooks on SessionEnd run before the servers are closed.
func (s *session) Close() error {
	var err error
	s.closing.Do(func() {
		s.mu.Lock()
		s.stop(agent.ErrClosed)
		own := s.own
		s.mu.Unlock()
		ended := s.stopped(endWait)
		if ended && s.started {
			s.sessionEnd()
		}
		if own != nil {
			err = own.Close()
		}
		if !ended && !s.stopped(closeWait) {
			err = errors.Join(err, fmt.Errorf("native: the session did not stop within %v", closeWait))
		}
		err = errors.Join(err, s.store.Close())
	})
	return err
}

// next waits for an input. It returns nil when the session is over.
func (s *session) next() *agent.Input {
	for {
		s.mu.Lock()
		var in *agent.Input
		if s.busy = len(s.inbox) > 0; s.busy {
			in = s.inbox[0]
			s.inbox = slices.Delete(s.inbox, 0, 1)
		}
		over := s.busy || s.ended
		s.mu.Unlock()
		if over {
			return in
		}
		select {
		case <-s.wake:
		case <-s.life.Done():
			return nil
		}
	}
}

// waiting removes and returns the inputs that wait.
func (s *session) waiting() []*agent.Input {
	s.mu.Lock()
	defer s.mu.Unlock()
	inbox := s.inbox
	s.inbox = nil
	return inbox
}

func (s *session) queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.inbox)
}

// fallbackModels returns the models of a list that is separated by commas.
func fallbackModels(list string) []string {
	var models []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			models = append(models, messages.ModelOf(name))
		}
	}
	return models
}
