package native

import (
	"slices"

	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

// A boundPolicy is a policy that knows the servers of the run, and what it was made from.
type boundPolicy struct {
	*permission.Policy
	from     *permission.Policy
	servers  *permission.Servers
	hosts    []*mcphost.Host
	revision []uint64
}

// permissions is the policy in force, for the servers that there are now.
func (s *session) permissions() *permission.Policy { return s.rules().Policy }

// knownServers are the servers that rules may name.
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

// ruleServers are the servers of the hosts, those of a project's files as foreign.
func ruleServers(hosts []*mcphost.Host) []permission.Server {
	var list []permission.Server
	for _, h := range hosts {
		for _, st := range h.Status() {
			list = append(list, permission.Server{Key: st.Name, Foreign: st.Scope == string(mcpconfig.ScopeProject)})
		}
	}
	return list
}
