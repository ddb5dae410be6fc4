package permission

import (
	"strings"

	"github.com/tenon-sdk/tenon/internal/toolname"
)

// An index finds the rules that cover a call without trying each.
type index struct {
	servers          *Servers
	rules            []Rule
	allow, deny, ask ruleTable
}

// A ruleTable holds the rules of one behavior by their positions in the policy.
type ruleTable struct {
	whole map[string]int        // by server key: covers every tool
	exact map[[2]string]int     // by server key and the tool's part of the rule
	globs map[string][]toolGlob // by server key: * stands for a part of the tool's name
	names map[string]int        // by the whole text: what is compared with the name that the model uses
	free  []int                 // held against the whole name, * standing for anything
}

type toolGlob struct {
	at      int
	pattern string
}

// newIndex returns an index. It looks at each rule once, and at one prefix of its text for each
// length of a server's key.
func newIndex(rules []Rule, servers *Servers) *index {
	x := &index{servers: servers, rules: rules}
	for i, r := range rules {
		switch {
		case r.text == "" || r.arguments:
		case r.behavior == Allow:
			if meant, ok := servers.allowed(r.text); ok {
				x.allow.add(i, meant)
			}
			x.allow.name(i, r.text)
		default:
			t := x.of(r.behavior)
			for _, meant := range servers.readings(r.text) {
				t.add(i, meant)
			}
			t.name(i, r.text)
			if r.glob {
				t.free = append(t.free, i)
			}
		}
	}
	return x
}

func (x *index) of(b Behavior) *ruleTable {
	switch b {
	case Allow:
		return &x.allow
	case Deny:
		return &x.deny
	}
	return &x.ask
}

func (t *ruleTable) add(at int, r reading) {
	key := r.server.Key
	switch {
	case r.whole:
		t.whole = first(t.whole, key, at)
	case strings.Contains(r.tool, "*"):
		if t.globs == nil {
			t.globs = map[string][]toolGlob{}
		}
		t.globs[key] = append(t.globs[key], toolGlob{at, r.tool})
	default:
		t.exact = first(t.exact, [2]string{key, r.tool}, at)
	}
}

func (t *ruleTable) name(at int, text string) { t.names = first(t.names, text, at) }

// first records a position unless there is an earlier one.
func first[K comparable](m map[K]int, key K, at int) map[K]int {
	if m == nil {
		m = map[K]int{}
	}
	if _, ok := m[key]; !ok {
		m[key] = at
	}
	return m
}

// find returns the position of the first rule of a behavior that covers the call, or the number of
// rules.
func (x *index) find(b Behavior, t target) int {
	table, best := x.of(b), len(x.rules)
	table.named(b, t, &best)
	if t.mcp {
		if at, ok := table.whole[t.key]; ok {
			best = min(best, at)
		}
		for _, tool := range t.parts() {
			if at, ok := table.exact[[2]string{t.key, tool}]; ok {
				best = min(best, at)
			}
		}
		for _, g := range table.globs[t.key] {
			if g.at < best && matchGlob(g.pattern, t.name) {
				best = g.at
			}
		}
	}
	for _, at := range table.free {
		if at < best && (matchGlob(x.rules[at].text, t.tool) || t.mcp && matchGlob(x.rules[at].text, t.full)) {
			best = at
		}
	}
	if b != Allow && !t.mcp && strings.HasPrefix(t.tool, mcpPrefix) {
		x.unplaced(b, t.tool, &best)
	}
	return best
}

// parts returns the names for the tool that a rule can have after its server's name.
func (t target) parts() []string {
	tool, ok := strings.CutPrefix(t.tool, t.server+toolname.Separator)
	if !ok || tool == t.name {
		return []string{t.name}
	}
	return []string{t.name, tool}
}

// named looks among the rules without *. For an MCP tool an allow rule must have the tool's hash,
// since any other name could be a tool of another server.
func (t *ruleTable) named(b Behavior, c target, best *int) {
	texts := []string{c.tool}
	if c.mcp {
		texts = append(texts, c.full+c.hash)
	}
	for _, text := range texts {
		if b == Allow && c.mcp && !c.hashed(text) {
			continue
		}
		if at, ok := t.names[text]; ok {
			*best = min(*best, at)
		}
	}
}

// unplaced looks for rules about the server of a tool without a known server. Deny and ask rules
// apply to all servers that could be meant.
func (x *index) unplaced(b Behavior, tool string, best *int) {
	for at, r := range x.rules[:*best] {
		if r.behavior == b && !r.arguments && !r.glob && strings.HasPrefix(r.text, mcpPrefix) && strings.HasPrefix(tool, r.text+toolname.Separator) {
			*best = at
			return
		}
	}
}

// meant returns what a rule for a server's tools means, or "" if it names no server.
func (x *index) meant(r Rule) []reading {
	if r.behavior == Allow {
		if one, ok := x.servers.allowed(r.text); ok {
			return []reading{one}
		}
		return nil
	}
	return x.servers.readings(r.text)
}
