package claudecode

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/permission"
)

// permissionPrompt is the type of the notification that someone is asked about a call.
const permissionPrompt = "permission_prompt"

// The CLI tells of a question only after six seconds without an answer, so this engine tells of it
// by itself, when it is put, and keeps the CLI's own from the hooks. What they have for the model
// goes in with the results of the calls, which is the next place where the CLI takes it.

// registerNotification has the hooks called on all notifications but that one.
func (s *session) registerNotification(all map[string][]hookMatcher) {
	hooks := s.opts.Hooks.Notification
	if len(hooks) == 0 {
		return
	}
	ours := s.opts.CanUseTool != nil
	register(s, all, "Notification", except(hooks, func(in *agent.Notification) bool { return ours && in.Type == permissionPrompt }),
		func(o *agent.HookOutput) *hookReply { return s.common("Notification", *o) })
	if !ours {
		return
	}
	const id = "notification-context"
	all["PostToolBatch"] = append(all["PostToolBatch"], hookMatcher{Callbacks: []string{id}, Timeout: agent.DefaultHookTimeout.Seconds(), OnFailure: "continue"})
	s.rawHooks[id] = s.noticeContext
}

// except returns the hooks so that they are not called on inputs that this engine has called them on.
func except[In, Out any](hooks []agent.Hook[In, Out], known func(*In) bool) []agent.Hook[In, Out] {
	out := make([]agent.Hook[In, Out], len(hooks))
	for i, h := range hooks {
		out[i] = h
		out[i].Func = func(ctx context.Context, in *In) (*Out, error) {
			if known(in) {
				return nil, nil //nolint:nilnil // nothing to say
			}
			return h.Func(ctx, in)
		}
	}
	return out
}

// notify runs the hooks that tell a person of a question, beside the question, which does not wait
// for them. The function that it returns waits, and returns the denial of a hook that ends the turn.
func (s *session) notify(ctx context.Context, q *toolQuestion) (wait func() *permission.PromptResult) {
	const event = "Notification"
	h := s.opts.Hooks
	if h == nil || len(h.Notification) == 0 {
		return func() *permission.PromptResult { return nil }
	}
	in := &agent.Notification{
		HookInput: s.hookInput(event), Message: "Permission is needed to use " + q.ToolName, Title: "Permission needed", Type: permissionPrompt,
	}
	var stop *permission.PromptResult
	var told sync.WaitGroup
	told.Go(func() {
		outs, _ := callHooks(ctx, s, event, h.Notification, in.Type, false, in) // guards nothing: no error
		for _, o := range outs {
			s.heed(*o)
			if o.Stop {
				stop = s.stopTurn(o.StopReason)
			}
		}
	})
	return func() *permission.PromptResult {
		told.Wait()
		return stop
	}
}

// stopTurn is the denial of a call whose hook ends the turn.
func (s *session) stopTurn(reason string) *permission.PromptResult {
	s.noteBlock(true, reason)
	v := agent.Deny(reason)
	v.Interrupt = true
	return v
}

// heed takes what a hook that this engine calls has for the user and the model.
func (s *session) heed(o agent.HookOutput) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.AdditionalContext != "" {
		s.notices = append(s.notices, o.AdditionalContext)
	}
	s.inform("notice", "", o.SystemMessage)
}

// warn tells the program of something that the run survives. The caller holds s.mu.
func (s *session) warn(tag, format string, args ...any) {
	s.inform("warning", tag, fmt.Sprintf(format, args...))
}

// inform tells the program something in a message of its own. The caller holds s.mu.
func (s *session) inform(level, tag, text string) {
	if text == "" {
		return
	}
	m, err := agent.NewSystem("informational", s.told.SessionID, uuid.NewString(), struct {
		Content string `json:"content"`
		Level   string `json:"level"`
		Tag     string `json:"tag,omitempty"`
	}{text, level, tag})
	if err == nil {
		s.deliver(m, len(text))
	}
}

// noticeContext answers the internal hook with what the notifications' hooks have for the model.
func (s *session) noticeContext(context.Context, json.RawMessage) (json.RawMessage, error) {
	s.mu.Lock()
	text := strings.Join(s.notices, "\n")
	s.notices = nil
	s.mu.Unlock()
	if text == "" {
		return json.RawMessage("{}"), nil
	}
	return json.Marshal(s.common("PostToolBatch", agent.HookOutput{AdditionalContext: text}))
}
