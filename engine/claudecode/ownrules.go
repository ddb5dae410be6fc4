package claudecode

import (
	"context"
	"maps"
	"slices"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/permission"
)

// serverNames are the servers that the program gave, sorted.
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

// knownServers are those by which a rule finds the one that it names.
func knownServers(o *agent.Options) *permission.Servers {
	var list []permission.Server
	for _, key := range serverNames(o) {
		list = append(list, permission.Server{Key: key, Foreign: commonOf(o.MCPServers[key]).Scope == string(mcpconfig.ScopeProject)})
	}
	return permission.NewServers(list...)
}

// ownRules are the allow rules that the CLI, which cuts names at the first "__", would apply to another server's
// tools as well. It is not given them: it asks about the calls, and allowedByRule answers.
func ownRules(o *agent.Options) []string {
	servers := knownServers(o)
	return slices.DeleteFunc(slices.Clone(o.AllowedTools), func(rule string) bool { return !servers.Ambiguous(rule) })
}

// allowedByRule reports whether a call that no rule of the CLI's settled is allowed by one that was kept from it. A
// question that a rule or a hook asks has no suggestions, and is not settled by a rule.
func (s *session) allowedByRule(ctx context.Context, q *toolQuestion) bool {
	own := ownRules(s.opts)
	if len(own) == 0 || q.Server.Name == "" || len(q.Suggestions) == 0 {
		return false
	}
	p, _ := permission.NewPolicy(&permission.Options{Allow: own, Ask: s.opts.AskTools, Deny: s.opts.DisallowedTools})
	call := permission.Request{Tool: q.ToolName, Server: q.Server.Name, ToolName: s.toolOf(ctx, q).name}
	return p.WithServers(knownServers(s.opts)).Decide(call).Behavior == permission.Allow
}
