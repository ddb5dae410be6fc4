package claudecode

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/permission"
)

// verdict is the CLI's form of a permission.PromptResult.
type verdict struct {
	Behavior    permission.Behavior `json:"behavior"`
	Input       json.RawMessage     `json:"updatedInput,omitempty"`
	Permissions []permission.Update `json:"updatedPermissions,omitempty"`
	Message     string              `json:"message,omitempty"`
	Interrupt   bool                `json:"interrupt,omitempty"`
	ToolUseID   string              `json:"toolUseID,omitempty"`
}

func newVerdict(r *permission.PromptResult, toolUseID string) *verdict {
	v := &verdict{r.Behavior, r.UpdatedInput, r.UpdatedPermissions, r.Message, r.Interrupt, toolUseID}
	if v.Behavior == permission.Deny {
		v.Message = cmp.Or(v.Message, "The call was denied.") // the CLI requires a text
	}
	return v
}

// A hookMatcher registers a hook with the CLI.
type hookMatcher struct {
	Matcher   *string  `json:"matcher"`
	Callbacks []string `json:"hookCallbackIds"`
	Timeout   float64  `json:"timeout,omitempty"` // seconds
	OnFailure string   `json:"onFailure,omitempty"`
}

// A hookFunc handles the input of a hook. It returns the output in a form for JSON, or nil for none.
type hookFunc func(ctx context.Context, input json.RawMessage) (any, error)

// A hookSet has the hooks that are registered with the CLI.
type hookSet struct {
	matchers map[string][]hookMatcher // by event
	funcs    map[string]hookFunc      // by ID
}

// add adds a hook. A limit of zero is [agent.DefaultHookTimeout]. An empty matcher matches everything. If
// failClosed is set, a failure blocks what the hook guards.
func (h *hookSet) add(event, matcher string, limit time.Duration, failClosed bool, f hookFunc) {
	id := fmt.Sprintf("%s-%d", event, len(h.matchers[event]))
	m := hookMatcher{Callbacks: []string{id}, Timeout: cmp.Or(limit, agent.DefaultHookTimeout).Seconds(), OnFailure: "continue"}
	if failClosed {
		m.OnFailure = "block"
	}
	if matcher != "" {
		m.Matcher = &matcher
	}
	h.matchers[event] = append(h.matchers[event], m)
	h.funcs[id] = f
}

// wholeName returns a regular expression that matches what the matcher of a typed hook matches. Such
// a matcher matches the whole name, the CLI's a part of it.
func wholeName(matcher string) string {
	if matcher == "" || matcher == "*" {
		return ""
	}
	return "^(?:" + matcher + ")$"
}

// addTyped registers typed hooks with the CLI. skip reports inputs on which they are not run. It may be nil.
func addTyped[In, Out any](s *session, event string, hooks []agent.Hook[In, Out], skip func(*In) bool, reply func(*Out) *kit.HookReply) {
	for _, h := range hooks {
		s.hooks.add(event, wholeName(h.Matcher), h.Timeout, h.FailClosed, func(ctx context.Context, input json.RawMessage) (any, error) {
			in := new(In)
			if err := json.Unmarshal(input, in); err != nil {
				return nil, fmt.Errorf("reading the input of %s: %w", event, err)
			}
			if skip != nil && skip(in) {
				return nil, nil //nolint:nilnil // no output
			}
			out, err := kit.RunHook(ctx, s.runner, event, h, *in)
			if err != nil || out == nil {
				return nil, err
			}
			return reply(out), nil
		})
	}
}

// addEventHooks registers Options.EventHooks.
func (s *session) addEventHooks() {
	for _, h := range s.engine.opts.EventHooks {
		typed := agent.Hook[json.RawMessage, json.RawMessage]{
			Timeout: max(h.Timeout, 0),
			Func: func(ctx context.Context, input *json.RawMessage) (*json.RawMessage, error) {
				out, err := h.Func(ctx, *input)
				return &out, err
			},
		}
		s.hooks.add(h.Event, h.Matcher, typed.Timeout, h.FailClosed, func(ctx context.Context, input json.RawMessage) (any, error) {
			out, err := kit.RunHook(ctx, s.runner, h.Event, typed, input)
			switch {
			case err != nil:
				return nil, err
			case len(*out) == 0:
				return nil, nil //nolint:nilnil // no output
			case !json.Valid(*out):
				return nil, errors.New("the hook's output is not JSON")
			}
			return *out, nil
		})
	}
}

// reply returns the CLI's form of what every hook can return.
func (s *session) reply(event string, o agent.HookOutput) *kit.HookReply {
	s.noteStop(o.Stop, o.StopReason)
	r := &kit.HookReply{SystemMessage: o.SystemMessage, Specific: kit.HookSpecifics{Event: event, AdditionalContext: o.AdditionalContext}}
	if o.Stop {
		r.Continue, r.StopReason = new(bool), o.StopReason
	}
	return r
}

// noteStop notes why a hook ends the turn. The CLI reports such a turn as a success.
func (s *session) noteStop(stops bool, reasons ...string) {
	if stops {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.turn.stopped = cmp.Or(append(reasons, "a hook stopped the turn")...)
	}
}

// hookInput returns the common part of the inputs of hooks that this engine runs itself.
func (s *session) hookInput(event string) agent.HookInput {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.reported
	return agent.HookInput{SessionID: r.SessionID, CWD: r.CWD, PermissionMode: permission.Mode(r.PermissionMode), HookEventName: event}
}

// deliver passes on what a hook that this engine runs has for the user and the model.
func (s *session) deliver(o agent.HookOutput) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.AdditionalContext != "" {
		s.notices = append(s.notices, o.AdditionalContext)
	}
	s.inform("notice", "", o.SystemMessage)
}

// stopTurn returns the denial of a call whose hook ends the turn.
func (s *session) stopTurn(reason string) *permission.PromptResult {
	s.noteStop(true, reason)
	v := agent.Deny(reason)
	v.Interrupt = true
	return v
}

// A hookCall is a hook_callback request.
type hookCall struct {
	ID    string          `json:"callback_id"`
	Input json.RawMessage `json:"input"`
}

// hookCallback runs a hook of the CLI's.
func (s *session) hookCallback(ctx context.Context, q *hookCall) (any, error) {
	f := s.hooks.funcs[q.ID]
	if f == nil {
		return nil, fmt.Errorf("no hook has the id %.60q", q.ID)
	}
	input := s.inputs.inHook(q.Input)
	started := time.Now()
	out, err := f(ctx, input)
	if err != nil {
		s.opts.Logger.WarnContext(ctx, "claude-code: hook failed", "id", q.ID, "after", time.Since(started), "error", err)
		return nil, err
	}
	if out == nil {
		return json.RawMessage("{}"), nil
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	s.noteUpdatedInput(input, raw)
	return json.RawMessage(raw), nil
}

// noteUpdatedInput notes the input that a hook's output gives a call.
func (s *session) noteUpdatedInput(input, output json.RawMessage) {
	if !bytes.Contains(output, []byte("updatedInput")) {
		return
	}
	var call struct {
		ID    string          `json:"tool_use_id"`
		Input json.RawMessage `json:"tool_input"`
	}
	var reply struct {
		Specific struct {
			Updated  json.RawMessage `json:"updatedInput"`
			Decision struct {
				Updated json.RawMessage `json:"updatedInput"`
			} `json:"decision"`
		} `json:"hookSpecificOutput"`
	}
	if json.Unmarshal(input, &call) == nil && json.Unmarshal(output, &reply) == nil {
		s.inputs.replace(call.ID, call.Input, reply.Specific.Updated)
		s.inputs.replace(call.ID, call.Input, reply.Specific.Decision.Updated)
	}
}

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
		func(o *agent.HookOutput) *kit.HookReply { return s.reply("SessionStart", *o) })
	addTyped(s, "SessionEnd", h.SessionEnd, func(in *agent.SessionEnd) bool { return in.Reason != "clear" },
		func(o *agent.HookOutput) *kit.HookReply { return s.reply("SessionEnd", *o) })
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
	outs, _ := kit.RunHooks(ctx, s.runner, in.HookEventName, s.opts.Hooks.SessionStart, source, false, // guards nothing: no error
		&agent.SessionStart{HookInput: in, Source: source, Model: s.opts.Model})
	var all agent.HookOutput
	for _, o := range outs {
		s.deliver(agent.HookOutput{SystemMessage: o.SystemMessage})
		all.AdditionalContext = joinLines(all.AdditionalContext, o.AdditionalContext)
	}
	return s.reply("UserPromptSubmit", all), nil
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
		func(o *agent.HookOutput) *kit.HookReply { return s.reply("Notification", *o) })
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

// addPreToolUse registers the program's hooks on PreToolUse. The CLI runs the hooks of an event
// concurrently and uses one of the inputs that they give a call. So the program's hooks are one hook
// to it, which runs them one after the other: each gets the input that the one before it leaves. If
// hooks of settings files change the input at the same time, that is seen when the call arrives: see
// checkCall.
func (s *session) addPreToolUse(h *agent.Hooks) {
	if len(h.PreToolUse) == 0 {
		return
	}
	limit := time.Minute // for this engine's part
	var subjects []string
	for _, hook := range h.PreToolUse {
		limit += cmp.Or(hook.Timeout, agent.DefaultHookTimeout)
		subjects = append(subjects, cmp.Or(wholeName(hook.Matcher), ".*"))
	}
	// Failures of the hooks are handled here. If none of them answers, the call is blocked.
	s.hooks.add("PreToolUse", strings.Join(subjects, "|"), limit, true, func(ctx context.Context, input json.RawMessage) (any, error) {
		var in agent.PreToolUse
		if err := json.Unmarshal(input, &in); err != nil {
			return nil, fmt.Errorf("reading the input of PreToolUse: %w", err)
		}
		p := s.runPreToolUse(ctx, in)
		s.inputs.saw(in.ToolUseID, p.input)
		return p.reply(s), nil
	})
}

// A preToolUse is the combined output of the program's hooks on a call.
type preToolUse struct {
	input   json.RawMessage // as the last hook left it
	changed bool
	verdict kit.Verdict
	out     agent.HookOutput
}

// runPreToolUse runs the hooks on PreToolUse that match a call, one after the other.
func (s *session) runPreToolUse(ctx context.Context, in agent.PreToolUse) *preToolUse {
	p := new(preToolUse)
	p.input, p.verdict = kit.RunPreToolUse(ctx, s.runner, s.opts.Hooks.PreToolUse, in, func(o *agent.PreToolUseOutput, before, after json.RawMessage, changed bool) {
		p.out.SystemMessage = joinLines(p.out.SystemMessage, o.SystemMessage)
		p.out.AdditionalContext = joinLines(p.out.AdditionalContext, o.AdditionalContext)
		if o.Stop && !p.out.Stop {
			p.out.Stop, p.out.StopReason = true, o.StopReason
		}
		if changed {
			s.inputs.replace(in.ToolUseID, before, after)
			p.changed = true
		}
	})
	return p
}

// joinLines joins texts by line ends. It leaves out empty ones.
func joinLines(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "\n")
}

// reply returns the CLI's form of the output.
func (p *preToolUse) reply(s *session) *kit.HookReply {
	r := s.reply("PreToolUse", p.out)
	r.Specific.PermissionDecision, r.Specific.PermissionReason = p.verdict.Decision, p.verdict.Reason()
	if p.out.Stop { // else the CLI makes the call
		r.Specific.PermissionDecision = permission.Deny
		r.Specific.PermissionReason = cmp.Or(r.Specific.PermissionReason, p.out.StopReason, textStopped)
	}
	if p.changed {
		r.Specific.UpdatedInput = p.input
	}
	return r
}

// textStopped answers calls after a hook has stopped the turn.
const textStopped = "The turn was stopped before this tool call was made."

// checkCall runs the program's hooks once more on a call of a server in this process whose input they
// have not seen, because a hook of a settings file has changed it at the same time. It returns the
// message for the server, or the reply to a call that is not made.
func (s *session) checkCall(ctx context.Context, server string, raw json.RawMessage) (message, reply json.RawMessage) {
	c, ok := readToolsCall(raw)
	if !ok || len(s.opts.Hooks.PreToolUse) == 0 || !s.inputs.unseen(c.id, c.input) {
		return raw, nil
	}
	p := s.runPreToolUse(ctx, agent.PreToolUse{ToolHookInput: agent.ToolHookInput{
		HookInput: s.hookInput("PreToolUse"), ToolName: toolname.Full(server, c.name), ToolUseID: c.id, ToolInput: c.input,
	}})
	s.deliver(agent.HookOutput{SystemMessage: p.out.SystemMessage})
	s.deliver(agent.HookOutput{SystemMessage: p.out.AdditionalContext})
	s.inputs.saw(c.id, p.input)
	why := ""
	switch {
	case ctx.Err() != nil: // the hooks may have been cut short
		why = "The call was given up while the program's hooks looked at it."
	case p.out.Stop:
		s.noteStop(true, p.out.StopReason)
		why = cmp.Or(p.out.StopReason, textStopped)
	case p.verdict.Decision == "" || p.verdict.Decision == permission.Allow:
		if p.changed {
			raw = withInput(raw, p.input)
		}
		return raw, nil
	default:
		why = cmp.Or(p.verdict.Reason(), "A hook of the settings changed the input of this call, and the program does not allow it so.")
	}
	reply, err := json.Marshal(struct {
		Version string              `json:"jsonrpc"`
		ID      json.RawMessage     `json:"id"`
		Result  *mcp.CallToolResult `json:"result"`
	}{"2.0", c.requestID, &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: why}}, IsError: true}})
	if err != nil {
		return nil, json.RawMessage(`null`)
	}
	return nil, reply
}
