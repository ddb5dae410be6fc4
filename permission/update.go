package permission

import (
	"fmt"
	"slices"
	"strings"
)

// A Destination says where to store an update of the permissions. A [Policy] only tells rules apart
// by it; storing is up to the program.
type Destination string

// The destinations.
const (
	DestinationSession         Destination = "session"
	DestinationLocalSettings   Destination = "localSettings"
	DestinationProjectSettings Destination = "projectSettings"
	DestinationUserSettings    Destination = "userSettings"
	// DestinationCLIArg is that of the rules of [Options], which updates cannot change.
	DestinationCLIArg Destination = "cliArg"
)

// An UpdateType is the kind of an [Update].
type UpdateType string

// The types of updates that change a [Policy]. The CLI also has addDirectories and
// removeDirectories, which [Policy.Apply] reports.
const (
	AddRules     UpdateType = "addRules"
	ReplaceRules UpdateType = "replaceRules"
	RemoveRules  UpdateType = "removeRules"
	SetMode      UpdateType = "setMode"
)

// An Update is a change of the permissions during a run, in the form of the Claude Code CLI.
type Update struct {
	Type UpdateType `json:"type"`
	// Rules and Behavior are for addRules, replaceRules and removeRules.
	Rules    []UpdateRule `json:"rules,omitempty"`
	Behavior Behavior     `json:"behavior,omitempty"`
	// Mode is for setMode.
	Mode Mode `json:"mode,omitempty"`
	// Directories are for addDirectories and removeDirectories.
	Directories []string `json:"directories,omitempty"`
	// Destination is where to store the update. Empty means [DestinationSession].
	Destination Destination `json:"destination,omitempty"`
}

// An UpdateRule is a rule of an [Update].
type UpdateRule struct {
	ToolName    string `json:"toolName"`
	RuleContent string `json:"ruleContent,omitempty"`
}

// String returns the rule in the form of [ParseRule].
func (r UpdateRule) String() string {
	if r.RuleContent == "" {
		return r.ToolName
	}
	return r.ToolName + "(" + r.RuleContent + ")"
}

// Apply returns a policy with the updates applied in order. It leaves out and reports an update
// that is invalid or would change the rules of [Options].
func (p *Policy) Apply(updates ...Update) (*Policy, []Problem) {
	next := &Policy{mode: ModeDefault}
	if p != nil {
		*next = *p
		next.rules = slices.Clone(p.rules)
	}
	var problems []Problem
	for _, u := range updates {
		problems = append(problems, next.apply(u)...)
	}
	next.index = newIndex(next.rules, p.servers())
	return next, problems
}

// apply applies one update in place.
func (p *Policy) apply(u Update) []Problem {
	if u.Destination == "" {
		u.Destination = DestinationSession
	}
	switch u.Type {
	case SetMode:
		m, err := ParseMode(string(u.Mode))
		if err != nil || u.Mode == "" {
			return []Problem{{Rule: string(u.Mode), Message: "setMode with an unknown mode", Instead: modeList}}
		}
		p.mode = m
		return nil
	case AddRules, ReplaceRules, RemoveRules:
	default:
		return []Problem{{Rule: string(u.Type), Message: "this kind of update changes no permission of a tool", Instead: "addRules, replaceRules, removeRules or setMode"}}
	}
	switch u.Behavior {
	case Allow, Deny, Ask:
	default:
		return []Problem{{Rule: string(u.Behavior), Message: fmt.Sprintf("%s with an unknown behavior", u.Type), Instead: "allow, deny or ask"}}
	}
	if u.Destination == DestinationCLIArg && u.Type != AddRules {
		return []Problem{{Rule: string(u.Destination), Behavior: u.Behavior, Message: fmt.Sprintf("%s cannot change the rules that the program gave", u.Type)}}
	}
	mine := func(r Rule) bool { return r.behavior == u.Behavior && r.origin == u.Destination }
	switch u.Type {
	case RemoveRules:
		return p.remove(u.Rules, mine, u.Behavior)
	case ReplaceRules:
		p.rules = slices.DeleteFunc(p.rules, mine)
	}
	return p.add(u)
}

// add appends the rules of u that p does not have.
func (p *Policy) add(u Update) []Problem {
	var problems []Problem
	for _, ur := range u.Rules {
		r, problem := parseReported(ur.String(), u.Behavior)
		if problem != nil {
			problems = append(problems, *problem)
		}
		r.origin = u.Destination
		if r.text != "" && !slices.Contains(p.rules, r) {
			p.rules = append(p.rules, r)
		}
	}
	return problems
}

// remove removes rules with the update's destination and behavior.
func (p *Policy) remove(rules []UpdateRule, mine func(Rule) bool, b Behavior) []Problem {
	var problems []Problem
	for _, ur := range rules {
		text := strings.TrimSpace(ur.String())
		before := len(p.rules)
		p.rules = slices.DeleteFunc(p.rules, func(r Rule) bool { return mine(r) && r.text == text })
		if len(p.rules) == before {
			problems = append(problems, Problem{Rule: text, Behavior: b, Message: "removeRules finds no such rule at its destination"})
		}
	}
	return problems
}

// WithMode returns the policy with another mode.
func (p *Policy) WithMode(m Mode) (*Policy, error) {
	mode, err := ParseMode(string(m))
	if err != nil {
		return nil, err
	}
	next, _ := p.Apply()
	next.mode = mode
	return next, nil
}

// Suggest returns the updates to offer with a permission question: one that always allows the tool,
// stored in the local settings.
func (p *Policy) Suggest(c Request) []Update {
	return []Update{{
		Type: AddRules, Rules: []UpdateRule{{ToolName: p.nameFor(c)}}, Behavior: Allow, Destination: DestinationLocalSettings,
	}}
}

// nameFor returns an allow rule for the tool alone: its name or, if that would mean a tool of
// another server, its original name with its hash.
func (p *Policy) nameFor(c Request) string {
	if p.servers().Names(c.Tool, c) {
		return c.Tool
	}
	t := c.target()
	return t.full + t.hash
}
