package permission

import (
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/internal/toolname"
)

// Named returns the servers, given by key, that the rules name: by the full name of a tool or by
// mcp__SERVER__*. Neither mcp__SERVER nor a prefix names a server. A rule names the server that it
// would name as an allow rule; see [Servers]. The order of servers is kept.
//
// A host waits for these servers before the first turn.
func Named(servers []string, rules ...string) []string {
	list := make([]Server, len(servers))
	for i, key := range servers {
		list[i].Key = key
	}
	known := NewServers(list...)
	named := map[string]bool{}
	for _, rule := range rules {
		rule = strings.TrimSpace(rule)
		r, ok := known.allowed(rule)
		exact := r.tool == "*" || !r.whole && r.tool != "" && r.tool == toolname.Normalize(r.tool)
		if ok && exact {
			named[r.server.Key] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(servers), func(key string) bool { return !named[key] })
}
