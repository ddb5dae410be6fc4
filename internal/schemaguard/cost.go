package schemaguard

import "github.com/santhosh-tekuri/jsonschema/v6"

// A cost is the number of steps that the evaluation of a subschema takes for itself, without the
// evaluations that it starts.
type cost struct {
	schema   *jsonschema.Schema
	fixed    int64 // for any value
	item     int64 // for each item of an array
	member   int64 // for each member of an object
	patterns int64 // for each 64 bytes of member names
	text     int64 // for each 64 bytes of a string
}

func newCost(s *jsonschema.Schema, chains map[*jsonschema.Schema]int64) *cost {
	c := &cost{schema: s, fixed: 1 + int64(len(s.Required)), item: 1, member: 1, text: 1}
	// To start the evaluation of a subschema, its constants are compared. Along a chain of
	// references the library looks for a cycle in each step.
	start := func(sub *jsonschema.Schema) int64 {
		if sub == nil {
			return 0
		}
		n := 1 + chain(sub, chains)/16
		if sub.Enum != nil {
			n += int64(len(sub.Enum.Values)) / 4
		}
		return n
	}
	for _, sub := range inPlace(s) {
		c.fixed += start(sub)
	}
	for _, names := range s.DependentRequired {
		c.fixed += int64(len(names))
	}
	for _, dep := range s.Dependencies {
		if names, ok := dep.([]string); ok {
			c.fixed += int64(len(names))
		}
	}
	for _, sub := range s.PrefixItems {
		c.fixed += start(sub)
	}
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		c.item += start(items)
	case []*jsonschema.Schema:
		for _, sub := range items {
			c.fixed += start(sub)
		}
	}
	additional, _ := s.AdditionalItems.(*jsonschema.Schema) // absent, or a bool
	c.item += start(s.Items2020) + start(additional) + start(s.Contains) + start(s.UnevaluatedItems)
	if s.UniqueItems {
		c.item += 20
	}
	for _, sub := range s.Properties {
		c.fixed += start(sub)
	}
	additional, _ = s.AdditionalProperties.(*jsonschema.Schema) // absent, or a bool
	c.member += start(additional) + start(s.PropertyNames) + start(s.UnevaluatedProperties)
	for re, sub := range s.PatternProperties {
		c.patterns += expressionCost(re)
		c.member += start(sub)
	}
	c.text += expressionCost(s.Pattern)
	return c
}

// expressionCost is the number of steps for matching 64 bytes.
func expressionCost(re jsonschema.Regexp) int64 {
	if p, ok := re.(*pattern); ok {
		return p.cost
	}
	return 0
}

// of returns the steps for one value.
func (c *cost) of(v any) int64 {
	switch v := v.(type) {
	case string:
		return c.fixed + c.text*(1+int64(len(v))/64)
	case []any:
		n := c.fixed + c.item*int64(len(v))
		if c.schema.UniqueItems {
			n += int64(countOf(v, MaxValues))
		}
		return n
	case map[string]any:
		n := c.fixed + c.member*int64(len(v))
		if c.patterns > 0 {
			for name := range v {
				n += c.patterns * (1 + int64(len(name))/64)
			}
		}
		return n
	}
	return c.fixed
}

// inPlace returns the subschemas that apply to the same value.
func inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	subs := []*jsonschema.Schema{s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else}
	if s.DynamicRef != nil {
		subs = append(subs, s.DynamicRef.Ref)
	}
	subs = append(append(append(subs, s.AllOf...), s.AnyOf...), s.OneOf...)
	for _, sub := range s.DependentSchemas {
		subs = append(subs, sub)
	}
	for _, dep := range s.Dependencies {
		if sub, ok := dep.(*jsonschema.Schema); ok {
			subs = append(subs, sub)
		}
	}
	return subs
}

// chain returns the length of the longest chain of subschemas that apply to the same value. A cycle
// ends where it begins.
func chain(s *jsonschema.Schema, known map[*jsonschema.Schema]int64) int64 {
	if n, ok := known[s]; ok {
		return n
	}
	known[s] = 0
	longest := int64(0)
	for _, sub := range inPlace(s) {
		if sub != nil {
			longest = max(longest, 1+chain(sub, known))
		}
	}
	known[s] = longest
	return longest
}
