package permission

import (
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/internal/toolname"
)

// Named picks those of the servers, given by registration key, that the rules name: by the exact name of a tool
// of theirs, or by mcp__SERVER__*. No other form names a server: neither mcp__SERVER nor a
// prefix. A rule names the server that it would allow as an allow rule: see [Servers]. The order of servers is kept.
//
// A host waits for a named server before the first turn.
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
