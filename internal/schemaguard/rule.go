package schemaguard

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A program is a compiled schema.
type program struct {
	root        *rule
	dynamic     bool // there are dynamic references: rules have resources
	unevaluated bool // some rule asks which members or items others have evaluated
	defaults    bool // some property has one
	unchecked   []string
}

// A rule is one subschema.
type rule struct {
	location string // in the library
	resource *resource

	always  *bool // a schema that is true or false
	broken  error // why the rule cannot be evaluated
	target  bool  // of a reference, so it may be part of a cycle
	types   typeSet
	consts  *constant
	enum    *enumeration
	format  *jsonschema.Format
	refOnly bool // up to draft-07 nothing beside $ref counts

	ref, recursiveRef, dynamicRef *rule
	dynamicAnchor                 string // of the target of dynamicRef

	not, ifRule, thenRule, elseRule *rule
	allOf, anyOf, oneOf             []*rule

	object *objectRule
	array  *arrayRule
	str    *stringRule
	number *numberRule

	unevaluatedItems, unevaluatedProperties *rule

	description string
}

type typeSet uint8

const integerType = len(kindNames) // beside the kinds of values

func (t typeSet) has(i int) bool { return t&(1<<i) != 0 }

// names lists the types with their articles.
func (t typeSet) names() []string {
	words := [...]string{"null", "a boolean", "a number", "a string", "an array", "an object", "an integer"}
	var names []string
	for _, i := range [...]int{kindString, kindNumber, integerType, kindBool, kindArray, kindObject, kindNull} {
		if t.has(i) {
			names = append(names, words[i])
		}
	}
	return names
}

type objectRule struct {
	min, max        *int
	required        []string
	names           map[string]member
	patterns        []patternRule
	additional      *rule
	noAdditional    bool
	propertyNames   *rule
	dependencies    []dependency
	propertiesInUse []string // names of properties, sorted
	defaults        map[string][]byte
}

// A member is what an object rule says about one name.
type member struct {
	rule     *rule // nil: only required
	required int   // index into required, or -1
}

type patternRule struct {
	pattern *pattern
	rule    *rule
}

type dependency struct {
	keyword, name string
	required      []string
	rule          *rule
}

type arrayRule struct {
	min, max                 *int
	unique                   bool
	prefix                   []*rule
	rest                     *rule // items after prefix
	noRest                   bool
	restKeyword              string
	contains                 *rule
	minContains, maxContains *int
	containsEvaluates        bool
}

type stringRule struct {
	min, max *int
	pattern  *pattern
}

type numberRule struct {
	min, max, exclusiveMin, exclusiveMax, multipleOf *decimal
}

// A constant is a value of a schema.
type constant struct{ doc document }

type enumeration struct {
	values  []constant
	strings map[string]struct{} // the strings among them, if there are many
}

// A builder makes rules of the library's schemas.
type builder struct {
	known       map[string]any // documents beside the schema
	rules       map[*jsonschema.Schema]*rule
	order       []*rule
	pending     []*jsonschema.Schema // declared, not yet filled
	dynamic     bool
	unevaluated bool
	defaults    bool
}

// rule returns the rule for s, filled, with all that s leads to. It does not
// recurse: a schema may be a chain of thousands.
func (b *builder) rule(s *jsonschema.Schema) *rule {
	r := b.declare(s)
	for len(b.pending) > 0 {
		next := b.pending[len(b.pending)-1]
		b.pending = b.pending[:len(b.pending)-1]
		b.fill(b.rules[next], next)
	}
	return r
}

// declare returns the rule for s, which may yet have to be filled.
func (b *builder) declare(s *jsonschema.Schema) *rule {
	if s == nil {
		return nil
	}
	r := b.rules[s]
	if r == nil {
		r = &rule{location: s.Location}
		b.rules[s] = r
		b.order = append(b.order, r)
		b.pending = append(b.pending, s)
	}
	return r
}

func (b *builder) list(schemas []*jsonschema.Schema) []*rule {
	var rules []*rule
	for _, s := range schemas {
		rules = append(rules, b.declare(s))
	}
	return rules
}

// target declares the target of a reference.
func (b *builder) target(s *jsonschema.Schema) *rule {
	r := b.declare(s)
	if r != nil {
		r.target = true
	}
	return r
}

// outside says why a place outside the schema cannot be evaluated; nil for a metaschema.
func (b *builder) outside(location string) error {
	base, _, _ := strings.Cut(location, "#")
	if _, ok := b.known[base]; ok {
		return nil
	}
	switch {
	case base == rootURL, strings.Contains(base, "://json-schema.org/"):
		return nil
	case base == tooDeepURL:
		return errTooDeep
	}
	return &remoteError{url: base}
}

func (b *builder) fill(r *rule, s *jsonschema.Schema) {
	if r.broken = b.outside(s.Location); r.broken != nil {
		return
	}
	if r.always = s.Bool; s.Bool != nil {
		return
	}
	r.description = s.Description
	if r.ref = b.target(s.Ref); r.ref != nil && s.DraftVersion < 2019 {
		r.refOnly = true
		return
	}
	if r.recursiveRef = b.target(s.RecursiveRef); r.recursiveRef != nil {
		b.dynamic = true
	}
	if s.DynamicRef != nil {
		b.dynamic = true
		r.dynamicRef = b.target(s.DynamicRef.Ref)
		if s.DynamicRef.Anchor != "" && s.DynamicRef.Ref.DynamicAnchor == s.DynamicRef.Anchor {
			r.dynamicAnchor = s.DynamicRef.Anchor
		}
	}
	r.types = types(s.Types)
	if s.Const != nil {
		r.consts = newConstant(*s.Const)
	}
	r.enum = newEnumeration(s.Enum)
	r.format = s.Format
	r.not, r.ifRule = b.declare(s.Not), b.declare(s.If)
	r.thenRule, r.elseRule = b.declare(s.Then), b.declare(s.Else)
	r.allOf, r.anyOf, r.oneOf = b.list(s.AllOf), b.list(s.AnyOf), b.list(s.OneOf)
	r.unevaluatedItems = b.declare(s.UnevaluatedItems)
	r.unevaluatedProperties = b.declare(s.UnevaluatedProperties)
	b.unevaluated = b.unevaluated || r.unevaluatedItems != nil || r.unevaluatedProperties != nil
	r.object, r.array = b.object(s), b.array(s)
	if p, _ := s.Pattern.(*pattern); s.MinLength != nil || s.MaxLength != nil || p != nil {
		r.str = &stringRule{min: s.MinLength, max: s.MaxLength, pattern: p}
	}
	n := numberRule{
		min: ratDecimal(s.Minimum), max: ratDecimal(s.Maximum), multipleOf: ratDecimal(s.MultipleOf),
		exclusiveMin: ratDecimal(s.ExclusiveMinimum), exclusiveMax: ratDecimal(s.ExclusiveMaximum),
	}
	if n != (numberRule{}) {
		r.number = &n
	}
}

func types(t *jsonschema.Types) typeSet {
	if t == nil {
		return 0
	}
	var set typeSet
	for _, name := range t.ToStrings() {
		if i := slices.Index(kindNames[:], name); i >= 0 {
			set |= 1 << i
		} else {
			set |= 1 << integerType
		}
	}
	return set
}

func (b *builder) object(s *jsonschema.Schema) *objectRule {
	o := &objectRule{
		min: s.MinProperties, max: s.MaxProperties, required: s.Required,
		propertyNames: b.declare(s.PropertyNames), propertiesInUse: slices.Sorted(maps.Keys(s.Properties)),
	}
	o.additional, o.noAdditional = b.additional(s.AdditionalProperties)
	if len(s.Properties)+len(s.Required) > 0 {
		o.names = make(map[string]member, len(s.Properties))
	}
	for _, name := range o.propertiesInUse {
		o.names[name] = member{rule: b.declare(s.Properties[name]), required: -1}
		if def := s.Properties[name].Default; def != nil {
			if c := newConstant(*def); c != nil {
				if o.defaults == nil {
					o.defaults = map[string][]byte{}
				}
				o.defaults[name], b.defaults = c.doc.text, true
			}
		}
	}
	o.required = slices.Compact(slices.Sorted(slices.Values(s.Required)))
	for i, name := range o.required {
		o.names[name] = member{rule: o.names[name].rule, required: i}
	}
	for p, sub := range s.PatternProperties {
		if p, ok := p.(*pattern); ok {
			o.patterns = append(o.patterns, patternRule{p, b.declare(sub)})
		}
	}
	slices.SortFunc(o.patterns, func(a, b patternRule) int { return strings.Compare(a.pattern.source, b.pattern.source) })
	b.dependencies(o, s)
	if o.min == nil && o.max == nil && o.names == nil && o.patterns == nil && o.additional == nil &&
		!o.noAdditional && o.propertyNames == nil && o.dependencies == nil {
		return nil
	}
	return o
}

func (b *builder) dependencies(o *objectRule, s *jsonschema.Schema) {
	for name, dep := range s.Dependencies {
		switch dep := dep.(type) {
		case []string:
			o.dependencies = append(o.dependencies, dependency{"dependencies", name, dep, nil})
		case *jsonschema.Schema:
			o.dependencies = append(o.dependencies, dependency{"dependencies", name, nil, b.declare(dep)})
		}
	}
	for name, required := range s.DependentRequired {
		o.dependencies = append(o.dependencies, dependency{"dependentRequired", name, required, nil})
	}
	for name, sub := range s.DependentSchemas {
		o.dependencies = append(o.dependencies, dependency{"dependentSchemas", name, nil, b.declare(sub)})
	}
	slices.SortFunc(o.dependencies, func(a, b dependency) int { return strings.Compare(a.keyword+a.name, b.keyword+b.name) })
}

// additional reads additionalProperties and additionalItems: a bool or a schema.
func (b *builder) additional(v any) (sub *rule, none bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return b.declare(trueSchema), false
		}
		return nil, true
	case *jsonschema.Schema:
		return b.declare(v), false
	}
	return nil, false
}

var trueSchema = func() *jsonschema.Schema {
	t := true
	return &jsonschema.Schema{Location: rootURL, Bool: &t}
}()

func (b *builder) array(s *jsonschema.Schema) *arrayRule {
	a := &arrayRule{
		min: s.MinItems, max: s.MaxItems, unique: s.UniqueItems,
		contains: b.declare(s.Contains), minContains: s.MinContains, maxContains: s.MaxContains,
		containsEvaluates: s.DraftVersion >= 2020,
	}
	if s.DraftVersion >= 2020 {
		a.prefix, a.rest, a.restKeyword = b.list(s.PrefixItems), b.declare(s.Items2020), "items"
	} else {
		switch items := s.Items.(type) {
		case *jsonschema.Schema:
			a.rest, a.restKeyword = b.declare(items), "items"
		case []*jsonschema.Schema:
			a.prefix, a.restKeyword = b.list(items), "additionalItems"
			a.rest, a.noRest = b.additional(s.AdditionalItems)
		}
	}
	if a.min == nil && a.max == nil && !a.unique && a.contains == nil && a.prefix == nil && a.rest == nil && !a.noRest {
		return nil
	}
	return a
}

func newConstant(v any) *constant {
	text, err := json.Marshal(v) // json.Number keeps its text
	if err != nil {
		return nil
	}
	c := new(constant)
	if err := c.doc.parse(text); err != nil {
		return nil
	}
	return c
}

func newEnumeration(e *jsonschema.Enum) *enumeration {
	if e == nil {
		return nil
	}
	const many = 16
	var en enumeration
	for _, v := range e.Values {
		if s, ok := v.(string); ok && len(e.Values) > many {
			if en.strings == nil {
				en.strings = map[string]struct{}{}
			}
			en.strings[s] = struct{}{}
		}
		if c := newConstant(v); c != nil {
			en.values = append(en.values, *c)
		}
	}
	return &en
}
