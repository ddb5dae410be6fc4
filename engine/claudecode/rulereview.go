package claudecode

import (
	"context"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

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
