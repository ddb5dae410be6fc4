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

// A ruleReview is about rules for tools that are not there. The CLI says nothing of those.
type ruleReview struct {
	done    bool            // there is no more to find out
	running bool            // and the CLI is kept until it is over
	told    map[string]bool // what was reported
}

// reviewRules looks at the rules at the beginning of a turn, until every server has connected or failed. The
// caller holds s.mu.
func (s *session) reviewRules() {
	r := &s.review
	isMCP := func(rule string) bool { return strings.HasPrefix(rule, toolname.Prefix) }
	o := s.opts
	if r.done || r.running || !slices.ContainsFunc(slices.Concat(o.AllowedTools, o.DisallowedTools, o.AskTools), isMCP) {
		return
	}
	r.running = true
	s.ch.spawn(func() {
		problems, done := s.reviewed(s.ch.ctx)
		for _, p := range problems {
			s.opts.Logger.WarnContext(s.ch.ctx, "permission rule", "problem", p.String())
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		r.done, r.running = done, false
		for _, p := range problems {
			s.warn("permission_rule", "Permission rule: %s", p)
		}
		s.maybeLetGo()
	})
}

// reviewed returns what is new, and whether there is no more to come.
func (s *session) reviewed(ctx context.Context) (problems []permission.Problem, done bool) {
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
		for _, r := range st.Rejected { // that these are not there is told already
			tools = append(tools, permission.Request{Tool: toolname.Full(st.Name, r.Name), Server: st.Name, ToolName: r.Name})
		}
		for _, t := range st.Tools {
			tools = append(tools, permission.Request{Tool: t.FullName, Server: st.Name, ToolName: t.Name})
		}
	}
	o := s.opts
	p, _ := permission.NewPolicy(&permission.Options{Allow: o.AllowedTools, Deny: o.DisallowedTools, Ask: o.AskTools}) // faulty rules are the CLI's to report
	for _, problem := range p.WithServers(permission.NewServers(servers...)).Review(ctx, tools, unlisted...) {
		text := problem.String()
		if strings.HasPrefix(problem.Rule, toolname.Prefix) && !s.review.told[text] {
			s.review.told[text] = true
			problems = append(problems, problem)
		}
	}
	return problems, done
}
