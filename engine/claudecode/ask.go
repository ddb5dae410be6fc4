package claudecode

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/permission"
)

// A toolQuestion is the CLI's question whether a tool call may run.
type toolQuestion struct {
	ToolName  string          `json:"tool_name"`
	ToolUseID string          `json:"tool_use_id"`
	Input     json.RawMessage `json:"input"`
	Server    struct {
		Name   string `json:"name"`
		Source string `json:"source"`
	} `json:"mcp_server"`
	Reason      string              `json:"decision_reason"`
	ReasonType  string              `json:"decision_reason_type"`
	Suggestions []permission.Update `json:"permission_suggestions"`
	Title       string              `json:"title"`
	DisplayName string              `json:"display_name"`
	Description string              `json:"description"`
	BlockedPath string              `json:"blocked_path"`
	AgentID     string              `json:"agent_id"`
}

// canUseTool asks the program's hooks, and then the program. An error, a panic and no verdict deny
// the call, and so does a program that gave nobody to ask.
func (s *session) canUseTool(ctx context.Context, request json.RawMessage) (any, error) {
	q := new(toolQuestion)
	if err := json.Unmarshal(request, q); err != nil {
		return nil, fmt.Errorf("reading can_use_tool: %w", err)
	}
	q.Input = s.args.restore(q.ToolUseID, q.Input)
	if s.allowedByRule(ctx, q) {
		return newVerdict(agent.Allow(), q.ToolUseID), nil
	}
	v, err := s.permissionHooks(ctx, q)
	if err == nil && v == nil && s.opts.CanUseTool != nil {
		v, err = s.askProgram(ctx, q)
	}
	switch {
	case err != nil:
		v = s.denial(q, fmt.Sprintf("Tool permission request failed: %v. %s was not run.", err, q.ToolName))
	case v == nil:
		v = s.denial(q, s.nobodyToAsk(ctx, q))
	case v.Behavior == permission.Allow && isEmptyObject(v.UpdatedInput) && !isEmptyObject(q.Input):
		if !s.servers.has(q.Server.Name) {
			v = s.denial(q, "The call was allowed with no arguments at all, which the Claude Code CLI cannot do for this tool.")
			break
		}
		s.args.empty(q.ToolUseID)
	}
	s.keepReplaced(q.ToolUseID, q.Input, v.UpdatedInput)
	if v.Behavior == permission.Allow { // the program has seen the input, or made it
		input := q.Input
		if v.UpdatedInput != nil {
			input = v.UpdatedInput
		}
		s.args.allowed(q.ToolUseID, input)
	}
	return newVerdict(v, q.ToolUseID), nil
}

// askProgram asks Options.CanUseTool.
func (s *session) askProgram(ctx context.Context, q *toolQuestion) (*permission.PromptResult, error) {
	r := &agent.ToolRequest{
		ToolName: q.ToolName, Server: q.Server.Name, Source: q.Server.Source, ToolUseID: q.ToolUseID,
		Input: q.Input, Reason: q.Reason, Suggestions: q.Suggestions,
		Description: q.Description, BlockedPath: q.BlockedPath, AgentID: q.AgentID,
	}
	t := s.toolOf(ctx, q)
	r.Tool, r.Annotations, r.ReadOnly, r.Title = t.name, t.annotations, t.readOnly(), cmp.Or(q.Title, t.title, q.DisplayName)
	s.awaitShown(ctx, q.ToolUseID)
	told := s.notify(ctx, q)
	v, err := contained(s, "CanUseTool", func() (*permission.PromptResult, error) { return s.opts.CanUseTool(ctx, r) })
	if stop := told(); stop != nil {
		return stop, nil
	}
	switch {
	case err != nil:
		return nil, err
	case v == nil:
		return nil, errors.New("the callback gave no verdict")
	case v.Behavior != permission.Allow && v.Behavior != permission.Deny:
		return nil, fmt.Errorf("unknown behavior %q", v.Behavior)
	}
	return v, nil
}

// denial denies a call that nobody has looked at, and says so in a message of its own.
func (s *session) denial(q *toolQuestion, text string) *permission.PromptResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := agent.NewSystem("permission_denied", s.told.SessionID, uuid.NewString(), struct {
		ToolName  string `json:"tool_name"`
		ToolUseID string `json:"tool_use_id"`
		AgentID   string `json:"agent_id,omitempty"`
		Type      string `json:"decision_reason_type,omitempty"`
		Reason    string `json:"decision_reason,omitempty"`
		Message   string `json:"message"`
	}{q.ToolName, q.ToolUseID, q.AgentID, q.ReasonType, q.Reason, text})
	if err == nil {
		s.deliver(m, len(text))
	}
	return agent.Deny(text)
}

// nobodyToAsk is what the model and the program read about a call that would have to be asked
// about; the text names the tool and allowedTools (requirement D86).
func (s *session) nobodyToAsk(ctx context.Context, q *toolQuestion) string {
	s.mu.Lock()
	mode := permission.Mode(s.told.PermissionMode)
	s.mu.Unlock()
	// What is faulty in the rules is the CLI's to say.
	p, _ := permission.NewPolicy(&permission.Options{Allow: s.opts.AllowedTools, Ask: s.opts.AskTools, Mode: mode})
	p = p.WithServers(knownServers(s.opts))
	t := s.toolOf(ctx, q)
	r := permission.Request{Tool: q.ToolName, Server: q.Server.Name, ToolName: t.name, ReadOnly: t.readOnly()}
	if d := p.Decide(r); d.Message != "" {
		return d.Message
	}
	r.Hook, r.HookReason = permission.Ask, q.Reason
	return p.Decide(r).Message
}

// permissionHooks runs the hooks on PermissionRequest, all that match at the same time. Nil
// without an error leaves the question open. A denial beats an approval.
func (s *session) permissionHooks(ctx context.Context, q *toolQuestion) (*permission.PromptResult, error) {
	h := s.opts.Hooks
	if h == nil || len(h.PermissionRequest) == 0 || s.opts.PermissionPromptTool != "" {
		return nil, nil
	}
	in := &agent.PermissionRequest{ToolHookInput: agent.ToolHookInput{
		HookInput: s.hookInput("PermissionRequest"), ToolName: q.ToolName, ToolUseID: q.ToolUseID, ToolInput: q.Input,
	}}
	outs, err := callHooks(ctx, s, "PermissionRequest", h.PermissionRequest, q.ToolName, true, in)
	var verdict *permission.PromptResult
	for _, o := range outs {
		s.heed(agent.HookOutput{SystemMessage: o.SystemMessage})
		if o.Stop {
			return s.stopTurn(o.StopReason), err
		}
		if o.Verdict != nil && (verdict == nil || o.Verdict.Behavior != permission.Allow) {
			verdict = o.Verdict
		}
	}
	return verdict, err
}

// hookInput is what every hook is told that this engine calls by itself.
func (s *session) hookInput(event string) agent.HookInput {
	s.mu.Lock()
	defer s.mu.Unlock()
	return agent.HookInput{SessionID: s.told.SessionID, CWD: s.told.CWD, PermissionMode: permission.Mode(s.told.PermissionMode), HookEventName: event}
}

// callHooks calls the hooks that match the subject, at the same time, and returns what they say in the order of
// the list. The error is that of a hook whose failure blocks what it guards.
func callHooks[In, Out any](ctx context.Context, s *session, event string, hooks []agent.Hook[In, Out], subject string, guards bool, in *In) ([]*Out, error) {
	outs, errs := make([]*Out, len(hooks)), make([]error, len(hooks))
	var wg sync.WaitGroup
	for i, h := range hooks {
		if !agent.MatchTool(h.Matcher, subject) {
			continue
		}
		wg.Go(func() {
			limit := h.Timeout
			if limit == 0 {
				limit = agent.DefaultHookTimeout
			}
			ctx, cancel := context.WithTimeoutCause(ctx, limit, errHookTimeout)
			defer cancel()
			mine := *in // a hook that changes its input changes nobody else's
			out, err := contained(s, "hook "+event, func() (*Out, error) { return h.Func(ctx, &mine) })
			if err != nil {
				s.opts.Logger.WarnContext(ctx, "claude-code: hook failed", "event", event, "error", err)
			}
			outs[i] = out
			if err != nil && guards && (h.FailClosed || errors.Is(err, errHookTimeout)) {
				errs[i] = fmt.Errorf("%s hook: %w", event, err)
			}
		})
	}
	wg.Wait()
	var said []*Out
	for _, o := range outs {
		if o != nil {
			said = append(said, o)
		}
	}
	return said, errors.Join(errs...)
}

// isEmptyObject reports whether raw is {}.
func isEmptyObject(raw json.RawMessage) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(raw, &members) == nil && members != nil && len(members) == 0
}
