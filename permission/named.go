package permission

import (
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/internal/toolname"
)

// Named picks those of the servers, given by registration key, that the rules name: by the exact name of a tool
// of theirs, or by mcp__SERVER__*. No other form names a server: neither mcp__SERVER nor a
// prefix. A name that could belong to two servers names both. The order of servers is kept.
//
// A host waits for a named server before the first turn.
func Named(servers []string, rules ...string) []string {
	var out []string
	for _, s := range servers {
		prefix := toolname.Server(s) + "__"
		if slices.ContainsFunc(rules, func(r string) bool { return names(strings.TrimSpace(r), prefix) }) {
			out = append(out, s)
		}
	}
	return out
}

// names reports whether a rule is an exact name or the wildcard of the server with that prefix.
func names(rule, prefix string) bool {
	rest, ok := strings.CutPrefix(rule, prefix)
	if !ok || rest == "" {
		return false
	}
	return rest == "*" || rest == toolname.Normalize(rest)
}
