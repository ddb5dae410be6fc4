package permission

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Options configures a [Policy]. The zero value, like a nil pointer, asks about every call.
type Options struct {
	// Allow, Deny and Ask are rules in the forms of [ParseRule].
	Allow, Deny, Ask []string
	// Mode is the mode. Empty means [ModeDefault].
	Mode Mode
	// Tools are policies for tools, by the server's key and the tool's name.
	Tools map[string]map[string]ToolPolicy
}

// A Problem is a rule, mode, policy or update that is invalid or a mistake.
type Problem struct {
	// Rule is the text.
	Rule string
	// Behavior is the list of the rule. It is empty for a mode, policy or update.
	Behavior Behavior
	// Message says what is wrong.
	Message string
	// Instead is a correction, or empty.
	Instead string
}

// String returns the problem in one line.
func (p Problem) String() string {
	s := fmt.Sprintf("%q: %s", p.Rule, p.Message)
	if p.Behavior != "" {
		s = fmt.Sprintf("%s rule %s", p.Behavior, s)
	}
	if p.Instead != "" {
		s += "; write " + p.Instead
	}
	return s
}

// A Policy decides calls. It is immutable and safe for concurrent use. A nil Policy is that of nil
// [Options].
type Policy struct {
	mode  Mode
	rules []Rule // in the order given: deny, ask, allow of the options, then those of updates
	tools map[string]map[string]ToolPolicy
	// index depends on rules and the known servers.
	index *index
}

// NewPolicy returns a policy. Invalid parts are reported and left out, except that an invalid mode
// becomes [ModeDefault] and an invalid policy for a tool [AlwaysAsk], so that a mistake never
// allows a call.
func NewPolicy(o *Options) (*Policy, []Problem) {
	if o == nil {
		o = &Options{}
	}
	var problems []Problem
	p := &Policy{mode: ModeDefault, tools: make(map[string]map[string]ToolPolicy, len(o.Tools))}
	if m, err := ParseMode(string(o.Mode)); err != nil {
		problems = append(problems, Problem{Rule: string(o.Mode), Message: "unknown mode; the run is in default mode", Instead: modeList})
	} else {
		p.mode = m
	}
	for _, list := range []struct {
		behavior Behavior
		rules    []string
	}{{Deny, o.Deny}, {Ask, o.Ask}, {Allow, o.Allow}} {
		for _, text := range list.rules {
			r, problem := parseReported(text, list.behavior)
			if problem != nil {
				problems = append(problems, *problem)
			}
			if r.text != "" {
				p.rules = append(p.rules, r)
			}
		}
	}
	for _, server := range slices.Sorted(maps.Keys(o.Tools)) {
		p.tools[server] = maps.Clone(o.Tools[server])
		for _, tool := range slices.Sorted(maps.Keys(p.tools[server])) {
			switch v := p.tools[server][tool]; v {
			case AlwaysAllow, AlwaysAsk, AlwaysDeny:
			default:
				p.tools[server][tool] = AlwaysAsk
				problems = append(problems, Problem{
					Rule:    string(v),
					Message: fmt.Sprintf("unknown permission policy for tool %q of server %q; each call is asked about", tool, server),
					Instead: "always_allow, always_ask or always_deny",
				})
			}
		}
	}
	p.index = newIndex(p.rules, nil)
	return p, problems
}

// WithServers returns the policy for a run with the given servers. Without it only the server of
// the call is known, and a rule may have a meaning that it does not have with other servers.
func (p *Policy) WithServers(servers *Servers) *Policy {
	next := &Policy{mode: ModeDefault}
	if p != nil {
		*next = *p
	}
	next.index = newIndex(next.rules, servers)
	return next
}

// parseReported parses a rule. It returns the zero rule if that is left out.
func parseReported(text string, b Behavior) (Rule, *Problem) {
	r, err := ParseRule(text, b)
	if err != nil {
		p := &Problem{Rule: text, Behavior: b, Message: err.Error()}
		if re := (*RuleError)(nil); errors.As(err, &re) {
			p.Message, p.Instead = re.Message, re.Instead
		}
		return Rule{}, p
	}
	r.origin = DestinationCLIArg
	if r.arguments {
		return r, &Problem{Rule: text, Behavior: b, Message: "looks at arguments, which only the Claude Code CLI does for its own tools; here it matches nothing"}
	}
	return r, nil
}

// Mode returns the mode.
func (p *Policy) Mode() Mode {
	if p == nil {
		return ModeDefault
	}
	return p.mode
}

// servers returns the servers of the policy.
func (p *Policy) servers() *Servers {
	if p == nil || p.index == nil {
		return nil
	}
	return p.index.servers
}

// Rules returns the rules of one behavior in order.
func (p *Policy) Rules(b Behavior) []string {
	if p == nil {
		return nil
	}
	var out []string
	for _, r := range p.rules {
		if r.behavior == b {
			out = append(out, r.text)
		}
	}
	return out
}

// match returns the first rule of a behavior that covers the call.
func (p *Policy) match(b Behavior, c Request) (Rule, bool) {
	if p == nil || len(p.rules) == 0 {
		return Rule{}, false
	}
	x := p.index
	if c.isMCP() && !x.servers.has(c.Server) {
		x = newIndex(p.rules, x.servers.with(c.Server))
	}
	best := len(p.rules)
	for _, t := range c.targets() {
		best = min(best, x.find(b, t))
	}
	if best == len(p.rules) {
		return Rule{}, false
	}
	return p.rules[best], true
}

// toolPolicy returns the server's policy for the tool, or "".
func (p *Policy) toolPolicy(c Request) ToolPolicy {
	if p == nil || c.Resource {
		return ""
	}
	return p.tools[c.Server][c.ToolName]
}
