package claudecode

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/agent"
)

// sessionEndTimeout bounds the hooks on SessionEnd all together, so that Close is bounded.
const sessionEndTimeout = 5 * time.Second

// sessionStartTimeout is how long the CLI waits for the hooks on SessionStart; each has its own limit.
const sessionStartTimeout = time.Hour

// The CLI takes the registration of callbacks on SessionStart and SessionEnd and does not call them
// at the start and the end of the process, so this engine does.

// registerStart has the first input wait for the hooks on the start of the session: the CLI asks a
// callback on UserPromptSubmit before the model sees an input, and the model reads what that says.
func (s *session) registerStart(all map[string][]hookMatcher) {
	const id = "session-start"
	if len(s.opts.Hooks.SessionStart) == 0 {
		return
	}
	all["UserPromptSubmit"] = append(all["UserPromptSubmit"], hookMatcher{Callbacks: []string{id}, Timeout: sessionStartTimeout.Seconds(), OnFailure: "continue"})
	s.hooks[id] = func(ctx context.Context, input json.RawMessage) (*hookReply, error) {
		var in agent.HookInput
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, fmt.Errorf("reading the input of %s: %w", id, err)
		}
		s.mu.Lock()
		first := !s.begun
		s.begun = true
		s.mu.Unlock()
		if !first {
			return &hookReply{}, nil
		}
		return s.common("UserPromptSubmit", agent.HookOutput{AdditionalContext: s.sessionStart(ctx, in)}), nil
	}
}

// registerLater has the hooks called where the CLI does call them: when a conversation begins anew
// within the session, after it was made shorter or cleared.
func (s *session) registerLater(all map[string][]hookMatcher) {
	h := s.opts.Hooks
	register(s, all, "SessionStart", except(h.SessionStart, func(in *agent.SessionStart) bool { return in.Source == "startup" || in.Source == "resume" }),
		func(o *agent.HookOutput) *hookReply { return s.common("SessionStart", *o) })
	register(s, all, "SessionEnd", except(h.SessionEnd, func(in *agent.SessionEnd) bool { return in.Reason != "clear" }),
		func(o *agent.HookOutput) *hookReply { return s.common("SessionEnd", *o) })
}

// sessionStart runs the hooks on the start of the session and returns what the model is to read.
func (s *session) sessionStart(ctx context.Context, in agent.HookInput) string {
	in.HookEventName = "SessionStart"
	source := "startup"
	if s.opts.Resume != (agent.Resume{}) {
		source = "resume"
	}
	var texts []string
	outs, _ := callHooks(ctx, s, in.HookEventName, s.opts.Hooks.SessionStart, source, false, // guards nothing: no error
		&agent.SessionStart{HookInput: in, Source: source, Model: s.opts.Model})
	for _, o := range outs {
		s.heed(agent.HookOutput{SystemMessage: o.SystemMessage})
		if o.AdditionalContext != "" {
			texts = append(texts, o.AdditionalContext)
		}
	}
	return strings.Join(texts, "\n")
}

// sessionEnd runs the hooks on the end of a session that has begun.
func (s *session) sessionEnd() {
	const event = "SessionEnd"
	h := s.opts.Hooks
	s.mu.Lock()
	begun := s.sent
	s.mu.Unlock()
	if h == nil || len(h.SessionEnd) == 0 || !begun {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ch.ctx), sessionEndTimeout)
	defer cancel()
	in := &agent.SessionEnd{HookInput: s.hookInput(event), Reason: "other"}
	_, _ = callHooks(ctx, s, event, h.SessionEnd, in.Reason, false, in) // guards nothing: no error
}
