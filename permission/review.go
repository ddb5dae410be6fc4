package permission

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/internal/editdistance"
	"github.com/tenon-sdk/tenon/internal/toolname"
)

// reviewBudget limits the work of a review, in comparisons of characters. Beyond it rules are
// reported without a correction, and rules with * not at all.
const reviewBudget = 16 << 20

// Review compares the policy with the existing tools and reports what can only be a mistake, with
// the nearest name if there is one: a rule or policy for a tool that its server does not have, a
// rule for a server whose name is nearly that of an existing one, and an allow rule that could mean
// several servers. The servers are those of [Policy.WithServers]. Review skips the tools of servers
// in unlisted, which are connecting or have failed.
//
// It does not report a rule for a server unlike any other, which may be added later. The work is
// limited. If ctx ends, Review returns the problems found so far.
func (p *Policy) Review(ctx context.Context, tools []Request, unlisted ...string) []Problem {
	if p == nil {
		return nil
	}
	r := newReview(ctx, p, tools, unlisted)
	var problems []Problem
	for _, rule := range p.rules {
		if ctx.Err() != nil {
			return problems
		}
		if rule.arguments {
			continue // reported when it was parsed
		}
		if message, instead := r.rule(rule); message != "" {
			problems = append(problems, Problem{Rule: rule.text, Behavior: rule.behavior, Message: message, Instead: instead})
		}
	}
	return append(problems, r.policies(p.tools)...)
}

// A review has the tools and servers that rules are compared with.
type review struct {
	ctx      context.Context
	index    *index
	unlisted map[string]bool
	byKey    map[string]*reviewed // servers that have listed their tools
	names    map[string]bool      // of all tools, as the model writes them
	others   []string             // names of tools that are not of a server
	servers  []string             // mcp__SERVER of those known
	left     int                  // of reviewBudget
}

// A reviewed server has its tools by their normalized names and by those that the model uses.
type reviewed struct {
	tools map[string]bool
	names []string // the keys of tools
	full  []string // names as the model writes them
}

func newReview(ctx context.Context, p *Policy, tools []Request, unlisted []string) *review {
	r := &review{ctx: ctx, unlisted: map[string]bool{}, byKey: map[string]*reviewed{}, names: make(map[string]bool, len(tools)), left: reviewBudget}
	for _, key := range unlisted {
		r.unlisted[key] = true
	}
	servers := p.servers()
	if servers == nil {
		servers = NewServers()
	}
	extra := slices.Clone(servers.list)
	for _, c := range tools {
		t := c.target()
		r.names[t.tool] = true
		if !t.mcp {
			r.others = append(r.others, t.tool)
			continue
		}
		s := r.byKey[t.key]
		if s == nil {
			s = &reviewed{tools: map[string]bool{}}
			r.byKey[t.key] = s
			extra = append(extra, Server{Key: t.key})
		}
		r.names[t.full+t.hash] = true
		for _, part := range t.parts() {
			if !s.tools[part] {
				s.tools[part] = true
				s.names = append(s.names, part)
			}
		}
		s.full = append(s.full, t.tool)
	}
	r.index = &index{servers: NewServers(extra...), rules: p.rules}
	for _, s := range r.index.servers.list {
		r.servers = append(r.servers, toolname.Server(s.Key))
		if r.byKey[s.Key] == nil {
			r.byKey[s.Key] = &reviewed{}
		}
	}
	return r
}

// rule returns what is wrong with a rule and the correction, both "" if it is right.
func (r *review) rule(rule Rule) (message, instead string) {
	if r.names[rule.text] && rule.behavior != Allow {
		return "", ""
	}
	meant := r.index.meant(rule)
	switch {
	case rule.behavior == Allow && len(meant) == 0 && len(r.index.servers.readings(rule.text)) > 0 && !r.named(rule.text):
		return r.unclear(rule.text)
	case len(meant) > 0:
		return r.tool(rule, meant)
	case r.names[rule.text]:
		return "", ""
	}
	if !strings.HasPrefix(rule.text, mcpPrefix) {
		if instead = r.nearest(rule.text, r.others); instead != "" {
			return "covers no tool that there is", instead
		}
		return "", ""
	}
	if rule.glob && rule.behavior != Allow && !strings.HasSuffix(rule.text, "__*") {
		return "", "" // * may stand for any part: it is about what comes, too
	}
	return r.server(rule.text)
}

// named reports whether a text is the name of a tool with its hash, which is unique.
func (r *review) named(text string) bool {
	return r.names[text] && len(text) > len(toolname.Hash("", "")) && text[len(text)-len(toolname.Hash("", ""))] == '_'
}

// unclear reports an allow rule that could mean several servers.
func (r *review) unclear(text string) (message, instead string) {
	keys := map[string]bool{}
	for _, m := range r.index.servers.readings(text) {
		keys[m.server.Key] = true
	}
	return fmt.Sprintf("could mean several servers (%s) and allows nothing", strings.Join(slices.Sorted(maps.Keys(keys)), ", ")),
		"it for servers whose keys are told apart by A-Z a-z 0-9 _ -"
}

// tool checks that the servers of a rule have a tool for it.
func (r *review) tool(rule Rule, meant []reading) (message, instead string) {
	for _, m := range meant {
		s := r.byKey[m.server.Key]
		if r.unlisted[m.server.Key] || m.whole || s.tools[m.tool] {
			return "", ""
		}
		if strings.Contains(m.tool, "*") {
			for _, name := range s.names {
				if r.spend(len(name)) || matchGlob(m.tool, name) {
					return "", ""
				}
			}
		}
	}
	if rule.glob && rule.behavior != Allow {
		return "", ""
	}
	if s := r.byKey[meant[0].server.Key]; len(s.full) > 0 {
		instead = r.nearest(rule.text, s.full)
	}
	return fmt.Sprintf("covers no tool that server %q has", meant[0].server.Key), instead
}

// server looks for the server that a rule for an unknown server was meant for.
func (r *review) server(text string) (message, instead string) {
	bare, whole := strings.CutSuffix(text, "__*")
	near := r.nearest(bare, r.servers)
	if near != "" {
		return "names no server that there is", near + "__*"
	}
	if whole || !strings.Contains(bare[len(mcpPrefix):], toolname.Separator) {
		return "", ""
	}
	// The tool's name can be anything, so the part before each "__" is compared.
	for at := range boundaries(bare) {
		if near = r.nearest(bare[:at], r.servers); near != "" {
			return "names no server that there is", near + bare[at:]
		}
	}
	return "", ""
}

// boundaries returns the positions of the first four "__" after mcp__.
func boundaries(text string) func(func(int) bool) {
	return func(yield func(int) bool) {
		at := len(mcpPrefix)
		for range 4 {
			i := strings.Index(text[at:], toolname.Separator)
			if i < 0 || !yield(at+i) {
				return
			}
			at += i + 1
		}
	}
}

// policies reports policies for tools that their servers do not have.
func (r *review) policies(of map[string]map[string]ToolPolicy) []Problem {
	var problems []Problem
	for _, server := range slices.Sorted(maps.Keys(of)) {
		if r.ctx.Err() != nil {
			return problems
		}
		s := r.byKey[server]
		if s == nil || r.unlisted[server] {
			continue
		}
		for _, tool := range slices.Sorted(maps.Keys(of[server])) {
			if !s.tools[toolname.Normalize(tool)] {
				problems = append(problems, Problem{
					Rule: string(of[server][tool]), Message: fmt.Sprintf("permission policy for tool %q, which server %q does not have", tool, server),
				})
			}
		}
	}
	return problems
}

// spend subtracts from the budget and reports whether it is used up.
func (r *review) spend(n int) bool {
	if r.left >= 0 {
		r.left -= n + 1
	}
	return r.left < 0
}

// nearest returns the name nearest to a text, or "" if none is near.
func (r *review) nearest(text string, names []string) string {
	text = strings.TrimRight(text, "*_")
	best, least := "", max(2, len(text)/6)
	if len(text) < 8 && !strings.HasPrefix(text, mcpPrefix) {
		least = 1 // three letters of four are like too many names
	}
	for _, name := range names {
		cost := 0
		near := text != "" && name != "" && max(len(text), len(name)) <= maxNearest && max(len(text)-len(name), len(name)-len(text)) <= least
		if near {
			cost = len(text) * min(len(name), 2*least+1)
		}
		if r.spend(cost) {
			return best
		}
		if !near {
			continue
		}
		d := editdistance.Distance(text, name, least)
		if d <= least && (best == "" || d < least || name < best) {
			best, least = name, d
		}
	}
	return best
}

// maxNearest is the length beyond which names are not compared.
const maxNearest = 300
