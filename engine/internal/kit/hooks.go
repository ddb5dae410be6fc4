package kit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/permission"
)

// Guard calls a function of the program. A panic in it is logged and returned as an error.
func Guard[T any](log *slog.Logger, name string, f func() (T, error)) (out T, err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic in a function of the program", "function", name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("%s panicked", name)
		}
	}()
	return f()
}

// GuardDetached is [Guard] for a function that may ignore its context. If ctx ends before f returns,
// GuardDetached leaves f behind and returns the cause.
func GuardDetached[T any](ctx context.Context, log *slog.Logger, name string, f func() (T, error)) (T, error) {
	type outcome struct {
		v   T
		err error
	}
	done := make(chan outcome, 1) // the goroutine ends with f
	go func() {
		v, err := Guard(log, name, f)
		done <- outcome{v, err}
	}()
	select {
	case o := <-done:
		return o.v, o.err
	case <-ctx.Done():
		var zero T
		return zero, context.Cause(ctx)
	}
}

// A HookRunner runs the hooks of a session.
type HookRunner struct {
	Logger *slog.Logger
	// Detach leaves hooks behind that ignore their contexts.
	Detach bool
	// Failed reports the error of a hook that blocks nothing.
	Failed func(event string, err error)
}

var errHookTimeout = errors.New("the hook ran out of time")

// RunHook runs a hook within its time limit. A panic in it is an error.
func RunHook[In, Out any](ctx context.Context, r *HookRunner, event string, h agent.Hook[In, Out], in In) (*Out, error) {
	limit := cmp.Or(h.Timeout, agent.DefaultHookTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w after %v", errHookTimeout, limit))
	defer cancel()
	call := func() (*Out, error) { return h.Func(ctx, &in) }
	var out *Out
	var err error
	if r.Detach {
		out, err = GuardDetached(ctx, r.Logger, "hook "+event, call)
	} else {
		out, err = Guard(r.Logger, "hook "+event, call)
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out, err
}

// RunHooks runs the hooks whose matchers match subject, concurrently, each with a copy of in. It returns
// their outputs in the order of the hooks. An empty subject matches all hooks. The error is that of hooks
// whose failure blocks what they guard: those with FailClosed and, if guards is set, those that ran out
// of time. Errors after the end of ctx are ignored.
func RunHooks[In, Out any](ctx context.Context, r *HookRunner, event string, hooks []agent.Hook[In, Out], subject string, guards bool, in *In) (outs []*Out, err error) {
	all, errs := make([]*Out, len(hooks)), make([]error, len(hooks))
	var wg sync.WaitGroup
	for i, h := range hooks {
		if subject == "" || agent.MatchTool(h.Matcher, subject) {
			wg.Go(func() { all[i], errs[i] = RunHook(ctx, r, event, h, *in) })
		}
	}
	wg.Wait()
	for i, h := range hooks {
		switch {
		case errs[i] == nil && all[i] != nil:
			outs = append(outs, all[i])
		case errs[i] == nil || ctx.Err() != nil: // no output, or nobody who waits for it
		case h.FailClosed || guards && errors.Is(errs[i], errHookTimeout):
			err = fmt.Errorf("%s hook error: %w", event, errs[i])
			r.Logger.WarnContext(ctx, "hook failed", "event", event, "error", errs[i])
		default:
			r.Failed(event, errs[i])
		}
	}
	return outs, err
}

// RunPreToolUse runs hooks before a call, one after the other: each gets the input as the one before it
// leaves it. It returns the last input and what the hooks decide. It calls use with each output, and with
// the inputs before and after it.
func RunPreToolUse(ctx context.Context, r *HookRunner, hooks []agent.Hook[agent.PreToolUse, agent.PreToolUseOutput], in agent.PreToolUse,
	use func(o *agent.PreToolUseOutput, before, after json.RawMessage, changed bool),
) (input json.RawMessage, v Verdict) {
	for i := range hooks {
		outs, err := RunHooks(ctx, r, "PreToolUse", hooks[i:i+1], in.ToolName, true, &in)
		for _, o := range outs {
			after, changed := v.Take(o, in.ToolInput)
			use(o, in.ToolInput, after, changed)
			in.ToolInput = after
		}
		if err != nil {
			v.Add(permission.Deny, err.Error())
		}
	}
	return in.ToolInput, v
}

// PermissionPrompt is the type of the notification that someone is asked about a call.
const PermissionPrompt = "permission_prompt"

// PermissionNotification returns that notification for a call of a tool.
func PermissionNotification(in agent.HookInput, tool string) *agent.Notification {
	return &agent.Notification{HookInput: in, Message: "Permission is needed to use " + tool, Title: "Permission needed", Type: PermissionPrompt}
}

// A HookReply is the output of a hook in Claude Code's JSON.
type HookReply struct {
	Continue      *bool         `json:"continue,omitempty"`
	StopReason    string        `json:"stopReason,omitempty"`
	SystemMessage string        `json:"systemMessage,omitempty"`
	Decision      string        `json:"decision,omitempty"` // "approve" or "block"
	Reason        string        `json:"reason,omitempty"`
	Specific      HookSpecifics `json:"hookSpecificOutput,omitzero"`
}

// HookSpecifics are the members that only some events have.
type HookSpecifics struct {
	Event              string              `json:"hookEventName"`
	AdditionalContext  string              `json:"additionalContext,omitempty"`
	PermissionDecision permission.Behavior `json:"permissionDecision,omitempty"`
	PermissionReason   string              `json:"permissionDecisionReason,omitempty"`
	UpdatedInput       json.RawMessage     `json:"updatedInput,omitempty"`
	UpdatedOutput      json.RawMessage     `json:"updatedToolOutput,omitempty"`
	UpdatedMCPOutput   json.RawMessage     `json:"updatedMCPToolOutput,omitempty"`
	Decision           json.RawMessage     `json:"decision,omitempty"`
}

// Block makes the reply block what the hook guards.
func (r *HookReply) Block(is bool, reason string) *HookReply {
	if is {
		r.Decision, r.Reason = "block", reason
	}
	return r
}
