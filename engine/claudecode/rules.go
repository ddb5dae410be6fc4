package claudecode

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/permission"
)

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
		return &hookReply{Specific: &hookSpecifics{Event: "PreToolUse", PermissionDecision: d.Behavior, PermissionReason: d.Message}}, nil
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
