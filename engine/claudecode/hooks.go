package claudecode

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
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
	v := &verdict{
		Behavior: r.Behavior, Input: r.UpdatedInput, Permissions: r.UpdatedPermissions,
		Message: r.Message, Interrupt: r.Interrupt, ToolUseID: toolUseID,
	}
	if v.Behavior == permission.Deny && v.Message == "" {
		v.Message = "The call was denied." // the CLI requires a text
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

// hookReply is the CLI's form of a hook's output.
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

// block makes a reply block what the hook guards.
func (r *hookReply) block(is bool, reason string) *hookReply {
	if is {
		r.Decision, r.Reason = "block", reason
	}
	return r
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
func addTyped[In, Out any](s *session, event string, hooks []agent.Hook[In, Out], skip func(*In) bool, reply func(*Out) *hookReply) {
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
func (s *session) reply(event string, o agent.HookOutput) *hookReply {
	s.noteStop(o.Stop, o.StopReason)
	r := &hookReply{SystemMessage: o.SystemMessage, Specific: &hookSpecifics{Event: event, AdditionalContext: o.AdditionalContext}}
	if o.Stop {
		no := false
		r.Continue, r.StopReason = &no, o.StopReason
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

// hookCallback answers a hook_callback request.
func (s *session) hookCallback(ctx context.Context, request json.RawMessage) (any, error) {
	var q struct {
		ID    string          `json:"callback_id"`
		Input json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(request, &q); err != nil {
		return nil, fmt.Errorf("reading hook_callback: %w", err)
	}
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
