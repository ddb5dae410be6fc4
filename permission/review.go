package permission

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Review holds the policy against the tools that there are and reports what can only be a
// mistake: a rule or per-tool policy that covers none of them, and an allow rule that covers tools of more
// than one server, where the keys and names happen to run together. Call it when every server
// has listed its tools; before that, rules for those still connecting would be reported too.
func (p *Policy) Review(tools []Request) []Problem {
	if p == nil {
		return nil
	}
	targets := make([]target, len(tools))
	for i, c := range tools {
		targets[i] = c.target()
	}
	var problems []Problem
	for _, r := range p.rules {
		if r.arguments {
			continue // reported when it was parsed
		}
		servers := map[string]bool{}
		covered := false
		for i, t := range targets {
			if r.match(t) {
				covered = true
				servers[tools[i].Server] = true
			}
		}
		switch {
		case !covered:
			problems = append(problems, Problem{Rule: r.text, Behavior: r.behavior, Message: "covers no tool that there is", Instead: nearest(r.text, targets)})
		case r.behavior == Allow && len(servers) > 1:
			problems = append(problems, Problem{
				Rule: r.text, Behavior: r.behavior,
				Message: fmt.Sprintf("covers tools of several servers (%s): their keys run together", strings.Join(slices.Sorted(maps.Keys(servers)), ", ")),
				Instead: "the full name of each tool that is meant",
			})
		}
	}
	return append(problems, p.reviewPolicies(tools)...)
}

func (p *Policy) reviewPolicies(tools []Request) []Problem {
	have := make(map[[2]string]bool, len(tools))
	for _, c := range tools {
		have[[2]string{c.Server, c.ToolName}] = true
	}
	var problems []Problem
	for _, server := range slices.Sorted(maps.Keys(p.tools)) {
		for _, tool := range slices.Sorted(maps.Keys(p.tools[server])) {
			if !have[[2]string{server, tool}] {
				problems = append(problems, Problem{
					Rule: string(p.tools[server][tool]), Message: fmt.Sprintf("permission policy for tool %q, which server %q does not have", tool, server),
				})
			}
		}
	}
	return problems
}

// nearest is the tool or server name that differs least from a rule without being far from it, or empty.
func nearest(rule string, targets []target) string {
	rule = strings.TrimRight(rule, "*_")
	best, least := "", max(2, len(rule)/6)
	for _, t := range targets {
		for _, s := range []string{t.server, t.tool} {
			if d := distance(rule, s, least+1); d < least || d == least && (best == "" || s < best) {
				best, least = s, d
			}
		}
	}
	if best == "" {
		return ""
	}
	for _, t := range targets {
		if best == t.server {
			return best + "__*"
		}
	}
	return best
}

// distance is the number of edits that make a into b, or bound if there are that many or more.
func distance(a, b string, bound int) int {
	if a == "" || b == "" || max(len(a), len(b))-min(len(a), len(b)) >= bound {
		return bound
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return min(row[len(b)], bound)
}
