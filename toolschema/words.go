package toolschema

import (
	"slices"
	"strings"
)

const (
	// maxWords limits a schema quoted in a description, in characters.
	maxWords = 300
	// maxSets limits the sets of arguments in one rule, maxRules the length of all rules in
	// characters.
	maxSets  = 12
	maxRules = 2000
)

// rule adds a sentence to the description, once.
func (m *mender) rule(s string) {
	if m.ruleSize > 4*maxRules { // what follows is cut in any case
		return
	}
	if !slices.Contains(m.rules, s) {
		m.rules = append(m.rules, s)
		m.ruleSize += len(s)
	}
}

// ruleText returns as many rules as fit.
func (m *mender) ruleText() string {
	s := strings.Join(m.rules, " ")
	s, _ = truncate(s, maxRules)
	return s
}

// inWords describes a schema in a sentence.
func (m *mender) inWords(v any) string {
	s, _ := truncate(string(m.json(v)), maxWords)
	return s
}

// setOf names the arguments that an alternative requires.
func (f *flattener) setOf(sub any, alt arguments) string {
	var parts []string
	needed := make(map[string]bool, len(alt.required))
	for _, r := range alt.required {
		needed[r] = true
	}
	f.m.spend(len(alt.required) + len(alt.props.members))
	add := func(key string) {
		if len(parts) > maxSets {
			return // what follows is cut in any case
		}
		p, _ := alt.props.get(key)
		o, _ := p.(*object)
		if vals, _, ok := valuesOf(o); ok && len(vals) <= 4 {
			said := make([]string, len(vals))
			for i, v := range vals {
				said[i] = f.m.inWords(v)
			}
			key += " = " + strings.Join(said, " or ")
		}
		parts = append(parts, key)
	}
	for _, r := range alt.required {
		add(r)
	}
	for _, p := range alt.props.members {
		o, _ := p.value.(*object)
		vals, _, constant := valuesOf(o)
		required := needed[p.key]
		if !required && (len(alt.required) == 0 || constant && len(vals) == 1) {
			add(p.key)
		}
	}
	title := ""
	if o, ok := sub.(*object); ok {
		if title = o.text("title"); title != "" {
			title, _ = truncate(title, 60)
			title += ": "
		}
	}
	if len(parts) > maxSets {
		parts = append(parts[:maxSets], "…")
	}
	return title + "{" + strings.Join(parts, ", ") + "}"
}

func valuesOf(o *object) ([]any, *object, bool) {
	if o == nil {
		return nil, nil, false
	}
	return values(o)
}

// distinct removes duplicates.
func distinct(items []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(items, func(s string) bool {
		before := seen[s]
		seen[s] = true
		return before
	})
}

// orList joins alternatives.
func orList(items []string) string {
	if n := len(items); n > maxSets {
		return strings.Join(items[:maxSets], " or ") + " or one of " + index(n-maxSets) + " more"
	}
	return strings.Join(items, " or ")
}
