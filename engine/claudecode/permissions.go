package claudecode

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/claudecode/event"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/permission"
)

// A toolQuestion is a can_use_tool request: may this call be made?
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

// canUseTool answers a can_use_tool request by the program's hooks on PermissionRequest, and then by
// CanUseTool. An error, a panic or no verdict denies the call, and so does a program without either.
func (s *session) canUseTool(ctx context.Context, q *toolQuestion) (any, error) {
	q.Input = s.inputs.restore(q.ToolUseID, q.Input)
	if s.allowedByRule(ctx, q) {
		return newVerdict(agent.Allow(), q.ToolUseID), nil
	}
	v, err := s.runPermissionHooks(ctx, q)
	if err == nil && v == nil && s.opts.CanUseTool != nil {
		v, err = s.askProgram(ctx, q)
	}
	switch {
	case err != nil:
		v = s.deny(q, fmt.Sprintf("Tool permission request failed: %v. %s was not run.", err, q.ToolName))
	case v == nil:
		v = s.deny(q, s.nobodyToAsk(ctx, q))
	case v.Behavior == permission.Allow && isEmptyObject(v.UpdatedInput) && !isEmptyObject(q.Input):
		if s.servers.find(q.Server.Name) == nil {
			v = s.deny(q, "The call was allowed with no arguments at all, which the Claude Code CLI cannot do for this tool.")
			break
		}
		s.inputs.empty(q.ToolUseID)
	}
	s.inputs.replace(q.ToolUseID, q.Input, v.UpdatedInput)
	if v.Behavior == permission.Allow {
		input := q.Input
		if v.UpdatedInput != nil {
			input = v.UpdatedInput
		}
		s.inputs.approved(q.ToolUseID, input)
	}
	return newVerdict(v, q.ToolUseID), nil
}

// allowedByRule reports whether an allow rule that the CLI does not have allows a call. The CLI cuts
// names at the first "__" and would apply such a rule to another server's tools as well. It asks about
// the calls instead. Questions of rules and hooks have no suggestions, and no rule answers them.
func (s *session) allowedByRule(ctx context.Context, q *toolQuestion) bool {
	servers := knownServers(s.opts)
	withheld := slices.DeleteFunc(slices.Clone(s.opts.AllowedTools), func(rule string) bool { return !servers.Ambiguous(rule) })
	if len(withheld) == 0 || q.Server.Name == "" || len(q.Suggestions) == 0 {
		return false
	}
	p := policy(s.opts, permission.Options{Allow: withheld, Ask: s.opts.AskTools, Deny: s.opts.DisallowedTools})
	return p.Decide(permission.Request{Tool: q.ToolName, Server: q.Server.Name, ToolName: s.definition(ctx, q.Server.Name, q.ToolName).name}).Behavior == permission.Allow
}

// askProgram asks Options.CanUseTool.
func (s *session) askProgram(ctx context.Context, q *toolQuestion) (*permission.PromptResult, error) {
	r := &agent.ToolRequest{
		ToolName: q.ToolName, Server: q.Server.Name, Source: q.Server.Source, ToolUseID: q.ToolUseID,
		Input: q.Input, Reason: q.Reason, Suggestions: q.Suggestions,
		Description: q.Description, BlockedPath: q.BlockedPath, AgentID: q.AgentID,
	}
	d := s.definition(ctx, q.Server.Name, q.ToolName)
	r.Tool, r.Annotations, r.ReadOnly, r.Title = d.name, d.annotations, d.readOnly(), cmp.Or(q.Title, d.title, q.DisplayName)
	s.inbox.awaitShown(ctx, q.ToolUseID, s.engine.callWait)
	wait := s.notify(ctx, q)
	v, err := kit.Guard(s.opts.Logger, "CanUseTool", func() (*permission.PromptResult, error) { return s.opts.CanUseTool(ctx, r) })
	if stop := wait(); stop != nil {
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

// deny denies a call that nobody has looked at, and gives the program a message about it.
func (s *session) deny(q *toolQuestion, text string) *permission.PromptResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.putSystem("permission_denied", event.PermissionDenied{
		ToolName: q.ToolName, ToolUseID: q.ToolUseID, AgentID: q.AgentID, ReasonType: q.ReasonType, Reason: q.Reason, Message: text,
	}, len(text))
	return agent.Deny(text)
}

// nobodyToAsk returns the reason for denying a call that nobody can be asked about. It names the tool
// and allowedTools (requirement D86).
func (s *session) nobodyToAsk(ctx context.Context, q *toolQuestion) string {
	s.mu.Lock()
	mode := permission.Mode(s.reported.PermissionMode)
	s.mu.Unlock()
	p := policy(s.opts, permission.Options{Allow: s.opts.AllowedTools, Ask: s.opts.AskTools, Mode: mode})
	d := s.definition(ctx, q.Server.Name, q.ToolName)
	r := permission.Request{Tool: q.ToolName, Server: q.Server.Name, ToolName: d.name, ReadOnly: d.readOnly()}
	if decision := p.Decide(r); decision.Message != "" {
		return decision.Message
	}
	r.Hook, r.HookReason = permission.Ask, q.Reason
	return p.Decide(r).Message
}

// runPermissionHooks runs the hooks on PermissionRequest. A denial takes precedence over an approval.
// Nil without an error leaves the question open.
func (s *session) runPermissionHooks(ctx context.Context, q *toolQuestion) (*permission.PromptResult, error) {
	if s.opts.PermissionPromptTool != "" { // the CLI runs them
		return nil, nil //nolint:nilnil // as documented
	}
	in := &agent.PermissionRequest{ToolHookInput: agent.ToolHookInput{
		HookInput: s.hookInput("PermissionRequest"), ToolName: q.ToolName, ToolUseID: q.ToolUseID, ToolInput: q.Input,
	}}
	outs, err := kit.RunHooks(ctx, s.runner, "PermissionRequest", s.opts.Hooks.PermissionRequest, q.ToolName, true, in)
	var verdict *permission.PromptResult
	for _, o := range outs {
		s.deliver(agent.HookOutput{SystemMessage: o.SystemMessage})
		if o.Stop {
			return s.stopTurn(o.StopReason), err
		}
		if o.Verdict != nil && (verdict == nil || o.Verdict.Behavior != permission.Allow) {
			verdict = o.Verdict
		}
	}
	return verdict, err
}

// isEmptyObject reports whether raw is {}.
func isEmptyObject(raw json.RawMessage) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(raw, &members) == nil && members != nil && len(members) == 0
}

// An elicitation is an elicitation request of a server that the CLI connects.
type elicitation struct {
	Server  string          `json:"mcp_server_name"`
	Message string          `json:"message"`
	Mode    string          `json:"mode"`
	URL     string          `json:"url"`
	ID      string          `json:"elicitation_id"`
	Schema  json.RawMessage `json:"requested_schema"`
}

// elicit answers an elicitation. The CLI tells its servers that a user can be asked. Without anyone to ask,
// the user declines.
func (s *session) elicit(ctx context.Context, q *elicitation) (any, error) {
	ask := kit.Elicit(s.opts)
	if ask == nil {
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	p := &mcp.ElicitParams{Message: q.Message, Mode: q.Mode, URL: q.URL, ElicitationID: q.ID}
	if len(q.Schema) > 0 {
		p.RequestedSchema = q.Schema
	}
	return ask(ctx, q.Server, p)
}

// A dialogRequest is a request_user_dialog request.
type dialogRequest struct {
	Kind      string          `json:"dialog_kind"`
	Payload   json.RawMessage `json:"payload"`
	ToolUseID string          `json:"tool_use_id"`
}

// dialog answers a dialog by Options.OnDialog. Without that, the protocol requires no answer.
func (s *session) dialog(ctx context.Context, q *dialogRequest) (any, error) {
	show := s.engine.opts.OnDialog
	if show == nil {
		return nil, errUnanswered
	}
	answer, err := kit.Guard(s.opts.Logger, "OnDialog", func() (json.RawMessage, error) {
		return show(ctx, (*Dialog)(q))
	})
	if err != nil {
		s.opts.Logger.WarnContext(ctx, "claude-code: OnDialog failed", "kind", q.Kind, "error", err)
	}
	if err != nil || answer == nil {
		return map[string]string{"behavior": "cancelled"}, nil //nolint:nilerr // it has been logged
	}
	return struct {
		Behavior string          `json:"behavior"`
		Result   json.RawMessage `json:"result"`
	}{"completed", answer}, nil
}

// knownServers returns the servers that rules can name.
func knownServers(o *agent.Options) *permission.Servers {
	var list []permission.Server
	for _, key := range kit.ServerNames(o) {
		list = append(list, permission.Server{Key: key, Foreign: commonOf(o.MCPServers[key]).Scope == string(mcpconfig.ScopeProject)})
	}
	return permission.NewServers(list...)
}

// policy returns a policy of the session's rules with its servers. The CLI reports faulty rules.
func policy(o *agent.Options, rules permission.Options) *permission.Policy {
	p, _ := permission.NewPolicy(&rules)
	return p.WithServers(knownServers(o))
}

// resourceTools are the CLI's own tools for resources of servers. The CLI does not apply rules about a
// server to them.
var resourceTools = []string{"ListMcpResourcesTool", "ReadMcpResourceTool"}

// addResourceRules registers a hook that applies restricting rules to the resource tools, if the model
// has them.
func (s *session) addResourceRules() {
	builtin := s.engine.opts.BuiltinTools
	has := func(name string) bool { return slices.Contains(builtin, name) }
	if !has("default") && !slices.ContainsFunc(resourceTools, has) || len(s.opts.AskTools)+len(s.opts.DisallowedTools) == 0 {
		return
	}
	s.hooks.add("PreToolUse", wholeName(strings.Join(resourceTools, "|")), 0, true, func(_ context.Context, input json.RawMessage) (any, error) {
		var call struct {
			Tool  string `json:"tool_name"`
			Input struct {
				Server string `json:"server"`
			} `json:"tool_input"`
		}
		if err := json.Unmarshal(input, &call); err != nil {
			return nil, err
		}
		d := s.resourceRule(call.Tool, call.Input.Server)
		if d.Behavior == permission.Allow {
			return nil, nil //nolint:nilnil // no output
		}
		return &kit.HookReply{Specific: kit.HookSpecifics{Event: "PreToolUse", PermissionDecision: d.Behavior, PermissionReason: d.Message}}, nil
	})
}

// resourceRule returns what the rules decide about the resources of a server, or of all servers if
// server is empty.
func (s *session) resourceRule(tool, server string) permission.Decision {
	names := []string{server}
	if server == "" {
		names = kit.ServerNames(s.opts)
	}
	p := policy(s.opts, permission.Options{Allow: []string{tool}, Ask: s.opts.AskTools, Deny: s.opts.DisallowedTools})
	strictest := permission.Decision{Behavior: permission.Allow}
	for _, name := range names {
		d := p.Decide(permission.Request{Tool: tool, Server: name, Resource: true, ReadOnly: true})
		if kit.Stricter(strictest.Behavior, d.Behavior) != strictest.Behavior {
			strictest = d
		}
	}
	return strictest
}

// reviewRules reviews the rules at the beginning of a turn, until every server has connected or
// failed. The caller holds s.mu.
func (s *session) reviewRules() {
	r := &s.review
	isMCP := func(rule string) bool { return strings.HasPrefix(rule, toolname.Prefix) }
	o := s.opts
	if r.done || r.running || !slices.ContainsFunc(slices.Concat(o.AllowedTools, o.DisallowedTools, o.AskTools), isMCP) {
		return
	}
	r.running = true
	s.ch.spawn(func() {
		problems, done := s.ruleProblems(s.ch.ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		r.done, r.running = done, false
		for _, p := range problems {
			if text := p.String(); strings.HasPrefix(p.Rule, toolname.Prefix) && !r.reported[text] {
				r.reported[text] = true
				s.opts.Logger.WarnContext(s.ch.ctx, "permission rule", "problem", text)
				s.warn("permission_rule", "Permission rule: %s", text)
			}
		}
		s.endIfQuiet()
	})
}

// ruleProblems returns the problems of the rules, and whether no more can follow.
func (s *session) ruleProblems(ctx context.Context) (problems []permission.Problem, done bool) {
	status, err := s.MCPStatus(ctx)
	if err != nil {
		return nil, false
	}
	r, o := kit.Review(status), s.opts
	p, _ := permission.NewPolicy(&permission.Options{Allow: o.AllowedTools, Deny: o.DisallowedTools, Ask: o.AskTools}) // the CLI reports faulty rules
	return p.WithServers(permission.NewServers(r.Servers...)).Review(ctx, r.Tools, r.Unlisted...), r.Settled
}
