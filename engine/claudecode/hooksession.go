package claudecode

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/permission"
)

const (
	// sessionEndTimeout bounds all hooks on SessionEnd together, so that Close is bounded.
	sessionEndTimeout = 5 * time.Second
	// sessionStartTimeout is how long the CLI waits for the hooks on SessionStart. Each has its own limit.
	sessionStartTimeout = time.Hour
)

// addSessionHooks registers the hooks on SessionStart and SessionEnd. The CLI runs such callbacks only
// when a conversation begins anew within a session, after it was compacted or cleared, and not when
// the process starts and ends. The first input waits for the hooks on the start of the session: the
// CLI runs hooks on UserPromptSubmit before the model sees an input, and adds their context for it.
func (s *session) addSessionHooks(h *agent.Hooks) {
	if len(h.SessionStart) > 0 {
		s.hooks.add("UserPromptSubmit", "", sessionStartTimeout, false, s.startHooks)
	}
	addTyped(s, "SessionStart", h.SessionStart, func(in *agent.SessionStart) bool { return in.Source == "startup" || in.Source == "resume" },
		func(o *agent.HookOutput) *hookReply { return s.reply("SessionStart", *o) })
	addTyped(s, "SessionEnd", h.SessionEnd, func(in *agent.SessionEnd) bool { return in.Reason != "clear" },
		func(o *agent.HookOutput) *hookReply { return s.reply("SessionEnd", *o) })
}

// startHooks runs the hooks on the start of the session before its first input.
func (s *session) startHooks(ctx context.Context, input json.RawMessage) (any, error) {
	var in agent.HookInput
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, fmt.Errorf("reading the input of UserPromptSubmit: %w", err)
	}
	s.mu.Lock()
	started := s.started
	s.started = true
	s.mu.Unlock()
	if started {
		return nil, nil //nolint:nilnil // no output
	}
	in.HookEventName = "SessionStart"
	source := "startup"
	if s.opts.Resume != (agent.Resume{}) {
		source = "resume"
	}
	var texts []string
	outs, _ := kit.RunHooks(ctx, s.runner, in.HookEventName, s.opts.Hooks.SessionStart, source, false, // guards nothing: no error
		&agent.SessionStart{HookInput: in, Source: source, Model: s.opts.Model})
	for _, o := range outs {
		s.deliver(agent.HookOutput{SystemMessage: o.SystemMessage})
		if o.AdditionalContext != "" {
			texts = append(texts, o.AdditionalContext)
		}
	}
	return s.reply("UserPromptSubmit", agent.HookOutput{AdditionalContext: strings.Join(texts, "\n")}), nil
}

// runSessionEnd runs the hooks on the end of a session that had an input.
func (s *session) runSessionEnd() {
	const event = "SessionEnd"
	s.mu.Lock()
	used := s.used
	s.mu.Unlock()
	if !used {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ch.ctx), sessionEndTimeout)
	defer cancel()
	in := &agent.SessionEnd{HookInput: s.hookInput(event), Reason: "other"}
	_, _ = kit.RunHooks(ctx, s.runner, event, s.opts.Hooks.SessionEnd, in.Reason, false, in) // guards nothing: no error
}

// addNotificationHooks registers the hooks on Notification. The CLI notifies of a question only after
// six seconds without an answer. If CanUseTool answers, this engine runs the hooks itself as soon as
// there is a question, and not on the CLI's notification. Their context for the model goes with the
// results of the calls, which is the next place where the CLI accepts any.
func (s *session) addNotificationHooks(h *agent.Hooks) {
	if len(h.Notification) == 0 {
		return
	}
	ours := s.opts.CanUseTool != nil
	addTyped(s, "Notification", h.Notification, func(in *agent.Notification) bool { return ours && in.Type == kit.PermissionPrompt },
		func(o *agent.HookOutput) *hookReply { return s.reply("Notification", *o) })
	if !ours {
		return
	}
	s.hooks.add("PostToolBatch", "", 0, false, func(context.Context, json.RawMessage) (any, error) {
		s.mu.Lock()
		text := strings.Join(s.notices, "\n")
		s.notices = nil
		s.mu.Unlock()
		if text == "" {
			return nil, nil //nolint:nilnil // no output
		}
		return s.reply("PostToolBatch", agent.HookOutput{AdditionalContext: text}), nil
	})
}

// notify runs the hooks on the notification of a question. The question does not wait for them. The
// returned function does, and returns the denial of a hook that ends the turn.
func (s *session) notify(ctx context.Context, q *toolQuestion) (wait func() *permission.PromptResult) {
	const event = "Notification"
	in := kit.PermissionNotification(s.hookInput(event), q.ToolName)
	var stop *permission.PromptResult
	var wg sync.WaitGroup
	wg.Go(func() {
		outs, _ := kit.RunHooks(ctx, s.runner, event, s.opts.Hooks.Notification, in.Type, false, in) // guards nothing: no error
		for _, o := range outs {
			s.deliver(*o)
			if o.Stop {
				stop = s.stopTurn(o.StopReason)
			}
		}
	})
	return func() *permission.PromptResult {
		wg.Wait()
		return stop
	}
}
