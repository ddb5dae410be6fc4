package claudecode

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/permission"
)

// verdict is a permission.PromptResult on the wire.
type verdict struct {
	Behavior    permission.Behavior `json:"behavior"`
	Input       json.RawMessage     `json:"updatedInput,omitempty"`
	Permissions []permission.Update `json:"updatedPermissions,omitempty"`
	Message     string              `json:"message,omitempty"`
	Interrupt   bool                `json:"interrupt,omitempty"`
	ToolUseID   string              `json:"toolUseID,omitempty"`
}

func newVerdict(r *permission.PromptResult, toolUseID string) *verdict {
	v := &verdict{
		Behavior: r.Behavior, Input: r.UpdatedInput, Permissions: r.UpdatedPermissions,
		Message: r.Message, Interrupt: r.Interrupt, ToolUseID: toolUseID,
	}
	if v.Behavior == permission.Deny && v.Message == "" {
		v.Message = "The call was denied." // the CLI wants a text
	}
	return v
}

// contained calls f; a panic in it is an error, and its stack goes to the log.
func contained[T any](s *session, what string, f func() (T, error)) (out T, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.opts.Logger.Error("claude-code: panic", "in", what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("%s panicked", what)
		}
	}()
	return f()
}

// A hookFunc decodes a hook's input, calls the hook, and returns its output on the wire.
type hookFunc func(ctx context.Context, input json.RawMessage) (*hookReply, error)

// hookMatcher announces the hooks of an event.
type hookMatcher struct {
	Matcher   *string  `json:"matcher"`
	Callbacks []string `json:"hookCallbackIds"`
	Timeout   float64  `json:"timeout,omitempty"` // seconds
	OnFailure string   `json:"onFailure,omitempty"`
}

// hookReply is the CLI's form of what a hook says.
type hookReply struct {
	Continue      *bool          `json:"continue,omitempty"`
	StopReason    string         `json:"stopReason,omitempty"`
	SystemMessage string         `json:"systemMessage,omitempty"`
	Decision      string         `json:"decision,omitempty"`
	Reason        string         `json:"reason,omitempty"`
	Specific      *hookSpecifics `json:"hookSpecificOutput,omitempty"`
}

type hookSpecifics struct {
	Event              string              `json:"hookEventName"`
	AdditionalContext  string              `json:"additionalContext,omitempty"`
	PermissionDecision permission.Behavior `json:"permissionDecision,omitempty"`
	PermissionReason   string              `json:"permissionDecisionReason,omitempty"`
	UpdatedInput       json.RawMessage     `json:"updatedInput,omitempty"`
	UpdatedOutput      agent.Content       `json:"updatedMCPToolOutput,omitempty"`
	Decision           *verdict            `json:"decision,omitempty"`
}

// common is what every hook can say.
func (s *session) common(event string, o agent.HookOutput) *hookReply {
	s.noteBlock(o.Stop, o.StopReason)
	r := &hookReply{SystemMessage: o.SystemMessage, Specific: &hookSpecifics{Event: event, AdditionalContext: o.AdditionalContext}}
	if o.Stop {
		no := false
		r.Continue, r.StopReason = &no, o.StopReason
	}
	return r
}

func block(r *hookReply, is bool, reason string) *hookReply {
	if is {
		r.Decision, r.Reason = "block", reason
	}
	return r
}

// noteBlock keeps why a hook ends the turn: the CLI reports such a turn as a success.
func (s *session) noteBlock(is bool, reasons ...string) {
	if is {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stopped = cmp.Or(append(reasons, "a hook stopped the turn")...)
	}
}

// registerHooks gives each hook an id and announces it.
func (s *session) registerHooks() map[string][]hookMatcher {
	all := map[string][]hookMatcher{}
	s.registerTurn(all)
	s.registerResources(all)
	h := s.opts.Hooks
	if h == nil {
		return all
	}
	s.registerStart(all)
	s.registerLater(all)
	s.registerGuards(all)
	register(s, all, "PostToolUse", h.PostToolUse, func(o *agent.PostToolUseOutput) *hookReply {
		r := block(s.common("PostToolUse", o.HookOutput), o.Feedback != "", o.Feedback)
		r.Specific.UpdatedOutput = o.UpdatedOutput
		return r
	})
	plain := func(event string) func(*agent.HookOutput) *hookReply {
		return func(o *agent.HookOutput) *hookReply { return s.common(event, *o) }
	}
	register(s, all, "PostToolUseFailure", h.PostToolUseFailure, plain("PostToolUseFailure"))
	register(s, all, "PostToolBatch", h.PostToolBatch, plain("PostToolBatch"))
	// The CLI asks the program and these hooks at the same time, and the first answer wins. Where the
	// program is asked, it is by permissionHooks that they come first.
	if s.opts.PermissionPromptTool != "" {
		registerPermissionHooks(s, all, h)
	}
	register(s, all, "UserPromptSubmit", h.UserPromptSubmit, func(o *agent.PromptOutput) *hookReply {
		s.noteBlock(o.Block || o.Stop, o.Reason, o.StopReason)
		return block(s.common("UserPromptSubmit", o.HookOutput), o.Block, o.Reason)
	})
	register(s, all, "Stop", h.Stop, func(o *agent.StopOutput) *hookReply {
		return block(s.common("Stop", o.HookOutput), o.Block, o.Reason)
	})
	s.registerNotification(all)
	register(s, all, "PreCompact", h.PreCompact, func(o *agent.PreCompactOutput) *hookReply {
		return block(s.common("PreCompact", o.HookOutput), o.Block, o.Reason)
	})
	register(s, all, "PostCompact", h.PostCompact, plain("PostCompact"))
	return all
}

func registerPermissionHooks(s *session, all map[string][]hookMatcher, h *agent.Hooks) {
	register(s, all, "PermissionRequest", h.PermissionRequest, func(o *agent.PermissionRequestOutput) *hookReply {
		r := s.common("PermissionRequest", o.HookOutput)
		if o.Verdict != nil {
			r.Specific.Decision = newVerdict(o.Verdict, "")
		}
		return r
	})
}

func register[In, Out any](s *session, all map[string][]hookMatcher, event string, hooks []agent.Hook[In, Out], reply func(*Out) *hookReply) {
	for i, h := range hooks {
		id := fmt.Sprintf("%s-%d", event, i)
		limit := h.Timeout
		if limit == 0 {
			limit = agent.DefaultHookTimeout
		}
		m := hookMatcher{Callbacks: []string{id}, Timeout: limit.Seconds(), OnFailure: "continue"}
		if h.FailClosed {
			m.OnFailure = "block"
		}
		if h.Matcher != "" && h.Matcher != "*" {
			whole := "^(?:" + h.Matcher + ")$" // ours match the whole name, the CLI's a part of it
			m.Matcher = &whole
		}
		all[event] = append(all[event], m)
		s.hooks[id] = func(ctx context.Context, input json.RawMessage) (*hookReply, error) {
			in := new(In)
			if err := json.Unmarshal(input, in); err != nil {
				return nil, fmt.Errorf("reading the input of %s: %w", event, err)
			}
			ctx, cancel := context.WithTimeoutCause(ctx, limit, errHookTimeout)
			defer cancel()
			out, err := contained(s, "hook "+event, func() (*Out, error) { return h.Func(ctx, in) })
			if err != nil || out == nil {
				return &hookReply{}, err
			}
			return reply(out), nil
		}
	}
}

var errHookTimeout = errors.New("the hook ran out of time")

func (s *session) hookCallback(ctx context.Context, request json.RawMessage) (any, error) {
	var q struct {
		ID    string          `json:"callback_id"`
		Input json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(request, &q); err != nil {
		return nil, fmt.Errorf("reading hook_callback: %w", err)
	}
	input := s.args.inHook(q.Input)
	if raw := s.rawHooks[q.ID]; raw != nil {
		out, err := raw(ctx, input)
		s.keepReplacedRaw(input, out)
		return out, err
	}
	hook := s.hooks[q.ID]
	if hook == nil {
		return nil, fmt.Errorf("no hook has the id %.60q", q.ID)
	}
	started := time.Now()
	out, err := hook(ctx, input)
	if err != nil {
		s.opts.Logger.WarnContext(ctx, "claude-code: hook failed", "id", q.ID, "after", time.Since(started), "error", err)
	}
	if out != nil && out.Specific != nil {
		s.keepReplacedIn(input, out.Specific.UpdatedInput)
		if verdict := out.Specific.Decision; verdict != nil {
			s.keepReplacedIn(input, verdict.Input)
		}
	}
	return out, err
}

// keepReplaced keeps the digits of the arguments that the program gives a call, which it was told of.
// What it hands on that the CLI may have rounded is no more certain than before.
func (s *session) keepReplaced(id string, told, updated json.RawMessage) {
	if len(updated) == 0 || handsOn(updated, told) && !s.args.certain(id, told) {
		return
	}
	s.args.replaced(id, updated)
}

// keepReplacedIn is keepReplaced for a hook, whose input is about the call.
func (s *session) keepReplacedIn(input, updated json.RawMessage) {
	if len(updated) == 0 {
		return
	}
	var call struct {
		ID    string          `json:"tool_use_id"`
		Input json.RawMessage `json:"tool_input"`
	}
	if json.Unmarshal(input, &call) == nil {
		s.keepReplaced(call.ID, call.Input, updated)
	}
}

// keepReplacedRaw is keepReplacedIn for a hook that answers in the CLI's own JSON.
func (s *session) keepReplacedRaw(input, output json.RawMessage) {
	if !bytes.Contains(output, []byte("updatedInput")) {
		return
	}
	var reply struct {
		Specific struct {
			Updated  json.RawMessage `json:"updatedInput"`
			Decision struct {
				Updated json.RawMessage `json:"updatedInput"`
			} `json:"decision"`
		} `json:"hookSpecificOutput"`
	}
	if json.Unmarshal(output, &reply) == nil {
		s.keepReplacedIn(input, reply.Specific.Updated)
		s.keepReplacedIn(input, reply.Specific.Decision.Updated)
	}
}
