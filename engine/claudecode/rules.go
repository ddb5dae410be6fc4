package claudecode

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

// serverNames returns the names of the servers that the program gave, sorted.
func serverNames(o *agent.Options) []string {
	names := slices.Collect(maps.Keys(o.MCPServers))
	if o.Host != nil {
		for _, st := range o.Host.Status() {
			names = append(names, st.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// knownServers returns the servers that rules can name.
func knownServers(o *agent.Options) *permission.Servers {
	var list []permission.Server
	for _, key := range serverNames(o) {
		list = append(list, permission.Server{Key: key, Foreign: commonOf(o.MCPServers[key]).Scope == string(mcpconfig.ScopeProject)})
	}
	return permission.NewServers(list...)
}

// policy returns a policy of the session's rules with its servers. The CLI reports faulty rules.
func policy(o *agent.Options, rules permission.Options) *permission.Policy {
	p, _ := permission.NewPolicy(&rules)
	return p.WithServers(knownServers(o))
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
	return p.Decide(permission.Request{Tool: q.ToolName, Server: q.Server.Name, ToolName: s.definition(ctx, q).name}).Behavior == permission.Allow
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
	s.hooks.add("PreToolUse", wholeName(strings.Join(resourceTools, "|")), agent.DefaultHookTimeout, true, func(_ context.Context, input json.RawMessage) (any, error) {
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
		return &hookReply{Specific: &hookSpecifics{Event: "PreToolUse", PermissionDecision: d.Behavior, PermissionReason: d.Message}}, nil
	})
}

// resourceRule returns what the rules decide about the resources of a server, or of all servers if
// server is empty.
func (s *session) resourceRule(tool, server string) permission.Decision {
	names := []string{server}
	if server == "" {
		names = serverNames(s.opts)
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

// A ruleReview finds rules for tools that do not exist, which the CLI does not report.
type ruleReview struct {
	done     bool // there is nothing more to find
	running  bool // the CLI must not end yet
	reported map[string]bool
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
	done = true
	var tools []permission.Request
	var unlisted []string
	servers := make([]permission.Server, 0, len(status))
	for _, st := range status {
		servers = append(servers, permission.Server{Key: st.Name, Foreign: st.Scope == string(mcpconfig.ScopeProject)})
		if st.Status != mcphost.StatusConnected {
			unlisted = append(unlisted, st.Name)
			done = done && st.Status != mcphost.StatusPending
		}
		for _, r := range st.Rejected { // their absence is reported elsewhere
			tools = append(tools, permission.Request{Tool: toolname.Full(st.Name, r.Name), Server: st.Name, ToolName: r.Name})
		}
		for _, t := range st.Tools {
			tools = append(tools, permission.Request{Tool: t.FullName, Server: st.Name, ToolName: t.Name})
		}
	}
	o := s.opts
	p, _ := permission.NewPolicy(&permission.Options{Allow: o.AllowedTools, Deny: o.DisallowedTools, Ask: o.AskTools}) // the CLI reports faulty rules
	return p.WithServers(permission.NewServers(servers...)).Review(ctx, tools, unlisted...), done
}
