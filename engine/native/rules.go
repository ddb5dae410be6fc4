package native

import (
	"context"
	"slices"

	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

// A boundPolicy is a policy with the servers of the run, and what it was made from.
type boundPolicy struct {
	*permission.Policy
	from     *permission.Policy
	servers  *permission.Servers
	hosts    []*mcphost.Host
	revision []uint64
}

// permissions returns the current policy for the current servers.
func (s *session) permissions() *permission.Policy { return s.rules().Policy }

// knownServers returns the servers that rules may name.
func (s *session) knownServers() *permission.Servers { return s.rules().servers }

func (s *session) rules() boundPolicy {
	hosts := s.hosts()
	revision := make([]uint64, len(hosts))
	for i, h := range hosts {
		revision[i] = h.Revision() // before the servers: it may be too old, and not too new
	}
	s.mu.Lock()
	policy, bound := s.policy, s.bound
	s.mu.Unlock()
	same := slices.Equal(bound.hosts, hosts) && slices.Equal(bound.revision, revision)
	if bound.servers != nil && same && bound.from == policy {
		return bound
	}
	next := boundPolicy{from: policy, servers: bound.servers, hosts: hosts, revision: revision}
	if next.servers == nil || !same {
		next.servers = permission.NewServers(ruleServers(hosts)...)
	}
	next.Policy = policy.WithServers(next.servers)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.policy != policy { // changed meanwhile: the next one who asks makes it
		return next
	}
	s.bound = next
	return next
}

// requestOf returns a call of a tool, by its full name, for the rules.
func (s *session) requestOf(name string) permission.Request {
	for _, h := range s.hosts() {
		if mt, ok := h.Tool(name); ok {
			return (&toolset.Tool{Tool: mt, Host: h}).Request()
		}
	}
	return permission.Request{Tool: name}
}

// reviewRules warns once of each rule that can only be a mistake, as far as the connected servers show.
func (s *session) reviewRules(ctx context.Context) {
	policy := s.permissions()
	if policy == s.reviewed {
		return
	}
	var unlisted []string
	var tools []permission.Request
	for _, st := range s.servers() {
		if st.Status != mcphost.StatusConnected {
			unlisted = append(unlisted, st.Name)
		}
		for _, r := range st.Rejected {
			tools = append(tools, permission.Request{Tool: toolname.Full(r.Server, r.Name), Server: r.Server, ToolName: r.Name})
		}
		for _, mt := range st.Tools {
			tools = append(tools, (&toolset.Tool{Tool: mt}).Request())
		}
	}
	for _, own := range []string{toolset.SearchTool, readTool, listResourcesTool, readResourceTool, outputTool} {
		tools = append(tools, permission.Request{Tool: own})
	}
	problems := policy.Review(ctx, tools, unlisted...)
	if ctx.Err() != nil || s.permissions() != policy {
		return // the servers have changed: the next request reviews again
	}
	s.reviewed = policy
	for _, p := range problems {
		of := string(p.Behavior) + " " + p.Rule
		if p.Behavior == "" { // of a tool's policy, which the message names
			of += p.Message
		}
		if !s.misspelt[of] {
			s.misspelt[of] = true
			s.warn("permission_rule", "Permission rule: %s", p)
		}
	}
}

// ruleServers returns the servers of hosts. Those of a project's files are foreign.
func ruleServers(hosts []*mcphost.Host) []permission.Server {
	var list []permission.Server
	for _, h := range hosts {
		for _, st := range h.Status() {
			list = append(list, permission.Server{Key: st.Name, Foreign: st.Scope == string(mcpconfig.ScopeProject)})
		}
	}
	return list
}
