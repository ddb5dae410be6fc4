package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/permission"
)

// sessionEndTimeout bounds the hooks on SessionEnd all together, so that Close is bounded.
const sessionEndTimeout = 2 * time.Second

// interruptHookTimeout bounds the hooks on a call that was interrupted.
const interruptHookTimeout = time.Second

// hookResult is what the hooks of one event came to.
type hookResult[Out any] struct {
	outs []*Out // in the order of the hooks; those that had nothing to say are left out
	// blocked is why the hooks block what they guard by having failed; empty if they do not.
	blocked string
}

// callHooks runs the hooks of one event that match, all at the same time. subject is what matchers
// look at; empty for an event that has none. guards says that a hook which runs out of time blocks.
func callHooks[In, Out any](ctx context.Context, s *session, event string, hooks []agent.Hook[In, Out], subject string, guards bool, in *In) hookResult[Out] {
	outs := make([]*Out, len(hooks))
	errs := make([]error, len(hooks))
	var wg sync.WaitGroup
	for i, h := range hooks {
		if subject != "" && !agent.MatchTool(h.Matcher, subject) {
			continue
		}
		wg.Go(func() {
			timeout := h.Timeout
			if timeout == 0 {
				timeout = agent.DefaultHookTimeout
			}
			ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%w after %v", errHookTimeout, timeout))
			defer cancel()
			copied := *in // each hook has its own
			outs[i], errs[i] = guarded(ctx, s, event+" hook", func(ctx context.Context) (*Out, error) { return h.Func(ctx, &copied) })
			if errs[i] != nil && ctx.Err() != nil {
				errs[i] = context.Cause(ctx)
			}
		})
	}
	wg.Wait()
	var r hookResult[Out]
	for i, h := range hooks {
		switch {
		case errs[i] == nil && outs[i] != nil:
			r.outs = append(r.outs, outs[i])
		case errs[i] == nil || ctx.Err() != nil: // nothing to say, or nobody to say it to
		case h.FailClosed || guards && errors.Is(errs[i], errHookTimeout):
			r.blocked = fmt.Sprintf("%s hook error: %v", event, errs[i])
		default:
			s.warn("hook_callback_failed", "A %s hook failed, and the run goes on without it: %v", event, errs[i])
		}
	}
	return r
}

var errHookTimeout = errors.New("ran out of time")

// heed takes in what every hook can say, and returns the context for the model.
func (t *turn) heed(event string, o agent.HookOutput) {
	if o.SystemMessage != "" {
		t.s.note("informational", informational{Content: o.SystemMessage, Level: "notice"})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if o.AdditionalContext != "" {
		t.context = append(t.context, hookContext(event, o.AdditionalContext))
	}
	if o.Stop && t.stoppedBy == "" {
		t.stoppedBy = fmt.Sprintf("The turn was stopped by a %s hook", event)
		if o.StopReason != "" {
			t.stoppedBy += ": " + o.StopReason
		}
		t.stopped.Store(true)
	}
}

// hookContext is how a hook's context reads for the model.
func hookContext(event, text string) string {
	return fmt.Sprintf("<system-reminder>\n%s hook additional context: %s\n</system-reminder>", event, text)
}

// takeContext adds what hooks have for the model to the conversation.
func (t *turn) takeContext() {
	t.mu.Lock()
	texts := t.context
	t.context = nil
	t.mu.Unlock()
	for _, text := range texts {
		t.s.tell(text)
	}
}

// hookStopped is the result of a turn that a hook stopped, or nil.
func (t *turn) hookStopped() *agent.Result {
	t.mu.Lock()
	why := t.stoppedBy
	t.mu.Unlock()
	if why == "" {
		return nil
	}
	return t.result(agent.SubtypeErrorDuringExecution, agent.ReasonHookStopped, why)
}

func (s *session) hookInput(event string) agent.HookInput {
	return agent.HookInput{SessionID: s.opts.SessionID, CWD: s.opts.Dir, PermissionMode: s.permissions().Mode(), HookEventName: event}
}

func (t *turn) toolInput(event string, c *call, args json.RawMessage) agent.ToolHookInput {
	return agent.ToolHookInput{HookInput: t.s.hookInput(event), ToolName: c.use.Name, ToolUseID: c.use.ID, ToolInput: args}
}

// preToolUse runs the hooks before a call. It returns the call's arguments and what the hooks decide.
func (t *turn) preToolUse(c *call, args json.RawMessage) (json.RawMessage, permission.Behavior, string) {
	if t.s.opts.Hooks == nil {
		return args, "", ""
	}
	return t.guardInput(c, args, t.s.opts.Hooks.PreToolUse)
}

// guardInput runs hooks before a call, one after the other: each sees the arguments as those before it
// have changed them, so that the tool gets what the last one saw or made.
func (t *turn) guardInput(c *call, args json.RawMessage, hooks []agent.Hook[agent.PreToolUse, agent.PreToolUseOutput]) (json.RawMessage, permission.Behavior, string) {
	const event = "PreToolUse"
	var v kit.Verdict
	for i := range hooks {
		r := callHooks(t.ctx, t.s, event, hooks[i:i+1], c.use.Name, true, &agent.PreToolUse{ToolHookInput: t.toolInput(event, c, args)})
		for _, o := range r.outs {
			t.heed(event, o.HookOutput)
			args, _ = v.Take(o, args)
		}
		if r.blocked != "" {
			v.Add(permission.Deny, r.blocked)
		}
	}
	return args, v.Decision, v.Reason()
}

// permissionRequest lets hooks answer before anyone is asked: first those of settings files, then the
// program's. It returns the arguments as they are now. A nil verdict means that the question is open.
func (t *turn) permissionRequest(c *call, args json.RawMessage) (*permission.PromptResult, json.RawMessage, error) {
	v, err := t.requestHooks(c, args, t.s.fileHooks.PermissionRequest)
	if err != nil {
		return nil, args, err
	}
	if v != nil && v.Behavior == permission.Allow && v.UpdatedInput != nil {
		if !kit.IsObject(v.UpdatedInput) {
			return v, args, nil // refused where verdicts are
		}
		// The program's guards saw other arguments.
		changed, decision, reason := t.guardInput(c, v.UpdatedInput, t.s.programHooks.PreToolUse)
		switch args = changed; decision {
		case "", permission.Allow:
			allowed := *v
			allowed.UpdatedInput = nil
			v = &allowed
		case permission.Ask:
			v = nil
		default:
			return &permission.PromptResult{Behavior: permission.Deny, Message: reason}, args, nil
		}
	}
	own, err := t.requestHooks(c, args, t.s.programHooks.PermissionRequest)
	if err != nil {
		return nil, args, err
	}
	if own != nil && (v == nil || v.Behavior == permission.Allow) {
		v = own
	}
	return v, args, nil
}

// requestHooks runs hooks that may answer in place of whoever would be asked.
func (t *turn) requestHooks(c *call, args json.RawMessage, hooks []agent.Hook[agent.PermissionRequest, agent.PermissionRequestOutput]) (*permission.PromptResult, error) {
	const event = "PermissionRequest"
	if len(hooks) == 0 {
		return nil, nil
	}
	r := callHooks(t.ctx, t.s, event, hooks, c.use.Name, true, &agent.PermissionRequest{ToolHookInput: t.toolInput(event, c, args)})
	var verdict *permission.PromptResult
	for _, o := range r.outs {
		t.heed(event, o.HookOutput)
		if o.Verdict != nil && (verdict == nil || o.Verdict.Behavior != permission.Allow) {
			verdict = o.Verdict
		}
	}
	if r.blocked != "" {
		return nil, errors.New(r.blocked)
	}
	return verdict, nil
}

// permissionPrompt is the type of the notification that someone is asked about a call.
const permissionPrompt = "permission_prompt"

// notify runs the hooks that tell a person that someone is asked about a call.
func (t *turn) notify(c *call) {
	const event = "Notification"
	hooks := t.s.opts.Hooks
	if hooks == nil || len(hooks.Notification) == 0 {
		return
	}
	in := &agent.Notification{
		HookInput: t.s.hookInput(event), Message: "Permission is needed to use " + c.use.Name, Title: "Permission needed", Type: permissionPrompt,
	}
	for _, o := range callHooks(t.ctx, t.s, event, hooks.Notification, in.Type, false, in).outs {
		t.heed(event, *o)
	}
}

// postToolUse runs the hooks after a call and lets them change its answer.
func (t *turn) postToolUse(c *call, args json.RawMessage, took time.Duration, a answer) answer {
	hooks := t.s.opts.Hooks
	if hooks == nil {
		return a
	}
	if a.result.IsError {
		const event = "PostToolUseFailure"
		in := &agent.PostToolUseFailure{ToolHookInput: t.toolInput(event, c, args), Error: a.result.Text(), DurationMS: took.Milliseconds(), IsInterrupt: t.ctx.Err() != nil}
		ctx, cancel := t.ctx, context.CancelFunc(func() {})
		if in.IsInterrupt { // the turn is over, and its hooks hear of it all the same
			ctx, cancel = context.WithTimeout(context.WithoutCancel(t.ctx), interruptHookTimeout)
		}
		defer cancel()
		for _, o := range callHooks(ctx, t.s, event, hooks.PostToolUseFailure, c.use.Name, false, in).outs {
			t.heed(event, *o)
		}
		return a
	}
	const event = "PostToolUse"
	in := &agent.PostToolUse{ToolHookInput: t.toolInput(event, c, args), ToolResponse: a.raw, DurationMS: took.Milliseconds()}
	r := callHooks(t.ctx, t.s, event, hooks.PostToolUse, c.use.Name, false, in)
	if r.blocked != "" {
		return errorAnswer(c, r.blocked)
	}
	for _, o := range r.outs {
		t.heed(event, o.HookOutput)
		if o.Feedback != "" {
			t.heed(event, agent.HookOutput{AdditionalContext: o.Feedback})
		}
		if o.UpdatedOutput != nil {
			a.result.Content, a.plain = t.cleanContent(c, o.UpdatedOutput), nil
		}
	}
	return a
}

// cleanContent is what hooks have put in the place of a result, with what the API takes of it: a block that
// it refuses would cost the result, and the turn.
func (t *turn) cleanContent(c *call, content agent.Content) agent.Content {
	out, repairs := transcript.CleanResult(t.ctx, content)
	for _, r := range repairs {
		if r.Kind != agent.RepairEmpty {
			t.s.warn("hook_output", "The output that a PostToolUse hook gave %s was changed, so that the model can be sent it: %s.", c.use.Name, r.Detail)
			break // one faulty hook is enough to know of
		}
	}
	if len(out) == 0 {
		return agent.TextContent(fmt.Sprintf("(%s completed with no output)", c.use.Name))
	}
	return t.fitContent(c, out)
}

// postToolBatch runs the hooks after all calls of a response.
func (t *turn) postToolBatch(calls []*call, answers []answer) {
	const event = "PostToolBatch"
	hooks := t.s.opts.Hooks
	if hooks == nil || len(hooks.PostToolBatch) == 0 {
		return
	}
	in := &agent.PostToolBatch{HookInput: t.s.hookInput(event)}
	for i, c := range calls {
		in.ToolCalls = append(in.ToolCalls, agent.BatchCall{ToolName: c.use.Name, ToolUseID: c.use.ID, ToolInput: c.use.Input, ToolResponse: answers[i].raw})
	}
	for _, o := range callHooks(t.ctx, t.s, event, hooks.PostToolBatch, "", false, in).outs {
		t.heed(event, *o)
	}
}

// promptBlocked runs the hooks on an input. It returns why the input must not reach the model; empty if it may.
func (t *turn) promptBlocked(in *agent.Input) string {
	const event = "UserPromptSubmit"
	hooks := t.s.opts.Hooks
	if hooks == nil || len(hooks.UserPromptSubmit) == 0 {
		return ""
	}
	r := callHooks(t.ctx, t.s, event, hooks.UserPromptSubmit, "", false, &agent.UserPromptSubmit{HookInput: t.s.hookInput(event), Prompt: in.Content.Text()})
	for _, o := range r.outs {
		t.heed(event, o.HookOutput)
		if o.Block {
			return "The prompt was blocked by a UserPromptSubmit hook: " + o.Reason
		}
	}
	return r.blocked
}

// stopBlocked runs the hooks on the end of an answer. It returns what the model is told if it has to go on.
func (t *turn) stopBlocked(answerText string) string {
	const event = "Stop"
	hooks := t.s.opts.Hooks
	if hooks == nil || len(hooks.Stop) == 0 {
		return ""
	}
	in := &agent.Stop{HookInput: t.s.hookInput(event), StopHookActive: t.goneOn > 0, LastAssistantMessage: answerText}
	var reasons []string
	for _, o := range callHooks(t.ctx, t.s, event, hooks.Stop, "", false, in).outs {
		t.heed(event, o.HookOutput)
		if o.Block {
			reasons = append(reasons, o.Reason)
		}
	}
	if len(reasons) == 0 {
		return ""
	}
	return "Stop hook feedback: " + strings.Join(reasons, "; ")
}

// sessionStart runs the hooks before the first turn and returns the context that they have for the model.
func (s *session) sessionStart() []string {
	const event = "SessionStart"
	if s.opts.Hooks == nil {
		return nil
	}
	var texts []string
	in := &agent.SessionStart{HookInput: s.hookInput(event), Source: s.given.Source(), Model: s.wantedModel()}
	for _, o := range callHooks(s.life, s, event, s.opts.Hooks.SessionStart, in.Source, false, in).outs {
		if o.SystemMessage != "" {
			s.note("informational", informational{Content: o.SystemMessage, Level: "notice"})
		}
		if o.AdditionalContext != "" {
			texts = append(texts, hookContext(event, o.AdditionalContext))
		}
	}
	return texts
}

// sessionEnd runs the hooks on the end of a session that has begun.
func (s *session) sessionEnd() {
	const event = "SessionEnd"
	if s.opts.Hooks == nil || len(s.opts.Hooks.SessionEnd) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.life), sessionEndTimeout)
	defer cancel()
	in := &agent.SessionEnd{HookInput: s.hookInput(event), Reason: "other"}
	callHooks(ctx, s, event, s.opts.Hooks.SessionEnd, in.Reason, false, in)
}
