package native

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/permission"
)

const (
	// sessionEndTimeout bounds all hooks on SessionEnd together, so that Close is bounded.
	sessionEndTimeout = 2 * time.Second
	// interruptHookTimeout bounds the hooks on a call that was interrupted.
	interruptHookTimeout = time.Second
)

// runHooks runs hooks that block nothing and have no output of their own.
func runHooks[In any](ctx context.Context, t *turn, event string, hooks []agent.Hook[In, agent.HookOutput], subject string, in *In) {
	outs, _ := kit.RunHooks(ctx, t.s.hooks, event, hooks, subject, false, in)
	for _, o := range outs {
		t.apply(event, *o)
	}
}

// apply applies what the output of every hook can have.
func (t *turn) apply(event string, o agent.HookOutput) {
	t.s.inform(o.SystemMessage, "")
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

// hookContext is the form in which the model reads a hook's context.
func hookContext(event, text string) string {
	return fmt.Sprintf("<system-reminder>\n%s hook additional context: %s\n</system-reminder>", event, text)
}

// addContext adds the hooks' context to the conversation.
func (t *turn) addContext() {
	t.mu.Lock()
	texts := t.context
	t.context = nil
	t.mu.Unlock()
	for _, text := range texts {
		t.s.tell(text)
	}
}

// hookStopped returns the result of a turn that a hook stopped, or nil.
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

// preToolUse runs hooks before a call. It returns the call's arguments and what the hooks decide.
func (t *turn) preToolUse(c *call, args json.RawMessage, hooks []agent.Hook[agent.PreToolUse, agent.PreToolUseOutput]) (json.RawMessage, kit.Verdict) {
	const event = "PreToolUse"
	return kit.RunPreToolUse(t.ctx, t.s.hooks, hooks, agent.PreToolUse{ToolHookInput: t.toolInput(event, c, args)},
		func(o *agent.PreToolUseOutput, _, _ json.RawMessage, _ bool) { t.apply(event, o.HookOutput) })
}

// permissionRequest runs the hooks that may answer in place of the program: first those of settings files,
// then the program's. It returns the current arguments. Nil without an error leaves the question open.
func (t *turn) permissionRequest(c *call, args json.RawMessage) (*permission.PromptResult, json.RawMessage, error) {
	v, err := t.requestHooks(c, args, t.s.fileHooks.PermissionRequest)
	if err != nil {
		return nil, args, err
	}
	if v != nil && v.Behavior == permission.Allow && v.UpdatedInput != nil {
		if !kit.IsObject(v.UpdatedInput) {
			return v, args, nil // ask refuses it
		}
		// The program's hooks have seen other arguments.
		var guards kit.Verdict
		args, guards = t.preToolUse(c, v.UpdatedInput, t.s.programHooks.PreToolUse)
		switch guards.Decision {
		case "", permission.Allow:
			allowed := *v
			allowed.UpdatedInput = nil
			v = &allowed
		case permission.Ask:
			v = nil
		default:
			return &permission.PromptResult{Behavior: permission.Deny, Message: guards.Reason()}, args, nil
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

// requestHooks runs hooks on PermissionRequest. A denial takes precedence over an approval.
func (t *turn) requestHooks(c *call, args json.RawMessage, hooks []agent.Hook[agent.PermissionRequest, agent.PermissionRequestOutput]) (*permission.PromptResult, error) {
	const event = "PermissionRequest"
	outs, err := kit.RunHooks(t.ctx, t.s.hooks, event, hooks, c.use.Name, true, &agent.PermissionRequest{ToolHookInput: t.toolInput(event, c, args)})
	var verdict *permission.PromptResult
	for _, o := range outs {
		t.apply(event, o.HookOutput)
		if o.Verdict != nil && (verdict == nil || o.Verdict.Behavior != permission.Allow) {
			verdict = o.Verdict
		}
	}
	return verdict, err
}

// notify runs the hooks on the notification that someone is asked about a call.
func (t *turn) notify(c *call) {
	in := kit.PermissionNotification(t.s.hookInput("Notification"), c.use.Name)
	runHooks(t.ctx, t, "Notification", t.s.opts.Hooks.Notification, in.Type, in)
}

// postToolUse runs the hooks after a call and lets them change its answer.
func (t *turn) postToolUse(c *call, args json.RawMessage, took time.Duration, a *answer) *answer {
	hooks := t.s.opts.Hooks
	if a.result.IsError {
		const event = "PostToolUseFailure"
		ctx, cancel := t.ctx, context.CancelFunc(func() {})
		interrupted := t.ctx.Err() != nil
		if interrupted { // the hooks run nevertheless
			ctx, cancel = context.WithTimeout(context.WithoutCancel(t.ctx), interruptHookTimeout)
		}
		defer cancel()
		runHooks(ctx, t, event, hooks.PostToolUseFailure, c.use.Name, &agent.PostToolUseFailure{
			ToolHookInput: t.toolInput(event, c, args), Error: a.result.Text(), DurationMS: took.Milliseconds(), IsInterrupt: interrupted,
		})
		return a
	}
	const event = "PostToolUse"
	in := &agent.PostToolUse{ToolHookInput: t.toolInput(event, c, args), ToolResponse: a.raw, DurationMS: took.Milliseconds()}
	outs, err := kit.RunHooks(t.ctx, t.s.hooks, event, hooks.PostToolUse, c.use.Name, false, in)
	if err != nil {
		return errorAnswer(c, err.Error())
	}
	for _, o := range outs {
		t.apply(event, o.HookOutput)
		t.apply(event, agent.HookOutput{AdditionalContext: o.Feedback})
		if o.UpdatedOutput != nil {
			a.result.Content, a.plain = t.cleanContent(c, o.UpdatedOutput), nil
		}
	}
	return a
}

// cleanContent returns the output of a hook as the API accepts it in a result.
func (t *turn) cleanContent(c *call, content agent.Content) agent.Content {
	out, repairs := transcript.CleanResult(t.ctx, content)
	for _, r := range repairs {
		if r.Kind != agent.RepairEmpty {
			t.s.warn("hook_output", "The output that a PostToolUse hook gave %s was changed, so that the model can be sent it: %s.", c.use.Name, r.Detail)
			break // the first is enough
		}
	}
	if len(out) == 0 {
		return noOutput(c)
	}
	return t.fitContent(c, out)
}

// postToolBatch runs the hooks after all calls of a response.
func (t *turn) postToolBatch(calls []*call, answers []*answer) {
	const event = "PostToolBatch"
	in := &agent.PostToolBatch{HookInput: t.s.hookInput(event)}
	for i, c := range calls {
		in.ToolCalls = append(in.ToolCalls, agent.BatchCall{ToolName: c.use.Name, ToolUseID: c.use.ID, ToolInput: c.use.Input, ToolResponse: answers[i].raw})
	}
	runHooks(t.ctx, t, event, t.s.opts.Hooks.PostToolBatch, "", in)
}

// promptBlocked runs the hooks on an input. It returns why they block the input, or "".
func (t *turn) promptBlocked(in *agent.Input) string {
	const event = "UserPromptSubmit"
	outs, err := kit.RunHooks(t.ctx, t.s.hooks, event, t.s.opts.Hooks.UserPromptSubmit, "", false,
		&agent.UserPromptSubmit{HookInput: t.s.hookInput(event), Prompt: in.Content.Text()})
	for _, o := range outs {
		t.apply(event, o.HookOutput)
		if o.Block {
			return "The prompt was blocked by a UserPromptSubmit hook: " + o.Reason
		}
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// stopBlocked runs the hooks on the end of an answer. If the model has to go on, it returns the text for it.
func (t *turn) stopBlocked(answerText string) string {
	const event = "Stop"
	in := &agent.Stop{HookInput: t.s.hookInput(event), StopHookActive: t.continued > 0, LastAssistantMessage: answerText}
	outs, _ := kit.RunHooks(t.ctx, t.s.hooks, event, t.s.opts.Hooks.Stop, "", false, in)
	var reasons []string
	for _, o := range outs {
		t.apply(event, o.HookOutput)
		if o.Block {
			reasons = append(reasons, o.Reason)
		}
	}
	if len(reasons) == 0 {
		return ""
	}
	return "Stop hook feedback: " + strings.Join(reasons, "; ")
}

// sessionStart runs the hooks before the first turn and returns their context for the model.
func (s *session) sessionStart() []string {
	const event = "SessionStart"
	in := &agent.SessionStart{HookInput: s.hookInput(event), Source: s.given.Source(), Model: s.wantedModel()}
	outs, _ := kit.RunHooks(s.life, s.hooks, event, s.opts.Hooks.SessionStart, in.Source, false, in)
	var texts []string
	for _, o := range outs {
		s.inform(o.SystemMessage, "")
		if o.AdditionalContext != "" {
			texts = append(texts, hookContext(event, o.AdditionalContext))
		}
	}
	return texts
}

// sessionEnd runs the hooks on the end of a session that has begun.
func (s *session) sessionEnd() {
	const event = "SessionEnd"
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.life), sessionEndTimeout)
	defer cancel()
	in := &agent.SessionEnd{HookInput: s.hookInput(event), Reason: "other"}
	_, _ = kit.RunHooks(ctx, s.hooks, event, s.opts.Hooks.SessionEnd, in.Reason, false, in)
}
