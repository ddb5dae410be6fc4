package toolschema

import (
	"slices"
	"strings"
)

const (
	// maxMerged limits the schemas visited to merge the alternatives of a root.
	maxMerged = 2000
	// maxAlternatives limits the schemas of a merged property.
	maxAlternatives = 20
)

// rootKeys are not allowed at the root, or are better described in words.
var rootKeys = []string{"$ref", "allOf", "anyOf", "oneOf", "if", "then", "else", "not"}

// rootType makes the root an object. It reports false if the arguments can be no object.
func (m *mender) rootType(o *object) (reason string, ok bool) {
	t, has := o.get("type")
	switch {
	case !has:
		m.mend("type", "root", "is missing; arguments are always an object")
	case t == any("object"):
		return "", true
	default:
		if list, isList := t.([]any); !isList || !slices.Contains(list, any("object")) {
			return "its arguments are to be " + string(appendJSON(nil, t)) + ", but arguments are always an object", false
		}
		m.mend("type", "root", "is written as \"object\"; arguments are always an object")
	}
	if !has { // first, as everybody writes it
		o.members = append([]member{{"type", "object"}}, o.members...)
		o.reindex()
		return "", true
	}
	o.set("type", "object")
	return "", true
}

// flattenRoot merges the alternatives of a cleaned root into one object with optional properties,
// and describes the rules in words.
func (m *mender) flattenRoot(o *object) (reason string, ok bool) {
	if !slices.ContainsFunc(rootKeys, func(k string) bool { return o.find(k) >= 0 }) {
		m.rootProperties(o)
		return "", true
	}
	f := &flattener{m: m, root: o, active: map[*object]bool{}}
	all := f.flatten(o)
	if all.impossible {
		return "none of the alternatives at the root of its schema is an object", false
	}
	for _, k := range rootKeys {
		if o.find(k) >= 0 {
			m.mend(k, "root", "merged into the properties; the rule is said in the description")
		}
	}
	o.remove(rootKeys...)
	for _, kw := range all.others {
		if o.find(kw.key) < 0 {
			o.set(kw.key, kw.value)
		}
	}
	o.set("properties", all.props)
	if len(all.required) > 0 {
		list := make([]any, len(all.required))
		for i, r := range all.required {
			list[i] = r
		}
		o.set("required", list)
	}
	m.pruneDefinitions(o)
	return "", true
}

func (m *mender) rootProperties(o *object) {
	if o.object("properties") == nil {
		m.mend("properties", "root", "is missing and is written as {}")
		o.set("properties", &object{})
	}
}

// Arguments are the constraints of a schema on an object.
type arguments struct {
	props    *object
	required []string
	// others are the keywords for the whole object.
	others []member
	// impossible is a schema that no object matches.
	impossible bool
}

// A flattener merges the schemas of a root.
type flattener struct {
	m    *mender
	root *object
	// active are the schemas being merged.
	active map[*object]bool
	count  int
}

// flatten returns the constraints of a schema on an object, with all alternatives merged.
func (f *flattener) flatten(v any) arguments {
	o, ok := v.(*object)
	if !ok {
		return arguments{props: &object{}, impossible: v == any(false)}
	}
	if f.count++; f.count > maxMerged || f.active[o] {
		return arguments{props: &object{}}
	}
	f.active[o] = true
	defer delete(f.active, o)
	f.m.spend(1 + 2*len(o.members))
	out := arguments{props: &object{}, impossible: !mayBeObject(o)}
	if own := o.object("properties"); own != nil {
		f.m.spend(2 * len(own.members))
		for _, p := range own.members {
			out.props.set(p.key, p.value)
		}
	}
	out.required = f.texts(o, "required")
	for _, kw := range o.members {
		switch shape := keywords[kw.key]; {
		case slices.Contains(rootKeys, kw.key), shape == isUnknown, kw.key == "type", kw.key == "properties", kw.key == "required",
			kw.key == "$defs", kw.key == "definitions", kw.key == "title", kw.key == "description", kw.key == "enum", kw.key == "const":
		default:
			out.others = append(out.others, kw)
		}
	}
	if ref := o.text("$ref"); ref != "" {
		f.and(&out, f.flatten(f.lookup(ref)), true)
	}
	if list, ok := o.list("allOf"); ok {
		for _, sub := range list {
			f.and(&out, f.flatten(sub), len(list) == 1)
		}
	}
	f.choose(o, "anyOf", &out)
	f.choose(o, "oneOf", &out)
	f.condition(o, &out)
	if not, ok := o.get("not"); ok {
		f.m.rule("Not allowed: " + f.m.inWords(not) + ".")
	}
	return out
}

// lookup returns a definition.
func (f *flattener) lookup(ref string) any {
	if ref == "#" {
		return f.root
	}
	for _, k := range defsKeys {
		if name, ok := strings.CutPrefix(ref, "#/"+k+"/"); ok {
			if def, ok := f.root.object(k).get(name); ok {
				return def
			}
		}
	}
	return true
}

// mayBeObject reports whether the types of a schema permit an object.
func mayBeObject(o *object) bool {
	t, ok := o.get("type")
	if !ok || t == any("object") {
		return true
	}
	list, _ := t.([]any)
	return slices.Contains(list, any("object"))
}

func (f *flattener) texts(o *object, key string) []string {
	list, _ := o.list(key)
	f.m.spend(len(list))
	out := make([]string, 0, len(list))
	seen := make(map[string]bool, len(list))
	for _, e := range list {
		if s, ok := e.(string); ok && !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// and adds further constraints. Keywords that close an object concern the properties of one schema,
// and are kept only if there is one.
func (f *flattener) and(a *arguments, b arguments, alone bool) {
	f.m.spend(1 + 2*len(b.props.members) + len(a.required) + len(b.required) + len(a.others)*len(b.others))
	a.impossible = a.impossible || b.impossible
	for _, p := range b.props.members {
		if have, ok := a.props.get(p.key); ok {
			a.props.set(p.key, f.both(have, p.value))
		} else {
			a.props.set(p.key, p.value)
		}
	}
	a.required = union(a.required, b.required)
	for _, kw := range b.others {
		closes := kw.key == "additionalProperties" || kw.key == "unevaluatedProperties" || kw.key == "propertyNames"
		if (alone || !closes) && !slices.ContainsFunc(a.others, func(m member) bool { return m.key == kw.key }) {
			a.others = append(a.others, kw)
		}
	}
}

// union returns a and the elements of b that it does not have.
func union(a, b []string) []string {
	if len(b) == 0 {
		return a
	}
	have := make(map[string]bool, len(a)+len(b))
	for _, s := range a {
		have[s] = true
	}
	for _, s := range b {
		if !have[s] {
			have[s] = true
			a = append(a, s)
		}
	}
	return a
}

// both returns a schema for values that match a and b.
func (f *flattener) both(a, b any) any {
	switch {
	case isAnything(b) || f.same(a, b):
		return a
	case isAnything(a):
		return b
	}
	return f.combine("allOf", a, b)
}

// combine adds b to a under a keyword, once.
func (f *flattener) combine(key string, a, b any) any {
	list := []any{a}
	if o, ok := a.(*object); ok && len(o.members) == 1 && o.members[0].key == key {
		list, _ = o.list(key)
	}
	if slices.ContainsFunc(list, func(have any) bool { return f.same(have, b) }) {
		return a
	}
	if len(list) >= maxAlternatives {
		return &object{} // more than a model would read
	}
	return newObject(member{key, append(slices.Clone(list), b)})
}

// same reports whether two schemas are identical or have the same JSON.
func (f *flattener) same(a, b any) bool {
	ao, aok := a.(*object)
	bo, bok := b.(*object)
	if aok && bok && (ao == bo || len(ao.members) != len(bo.members)) {
		return ao == bo
	}
	return f.m.equalJSON(a, b)
}

func isAnything(v any) bool {
	o, ok := v.(*object)
	return v == any(true) || ok && len(o.members) == 0
}

// choose merges alternatives: the properties of any are optional, those required by all stay
// required.
func (f *flattener) choose(o *object, key string, out *arguments) {
	list, ok := o.list(key)
	if !ok {
		return
	}
	var possible []arguments
	var said []string
	for i, sub := range list {
		alt := f.flatten(sub)
		if alt.impossible {
			f.m.push(key, index(i))
			f.m.loosen("", "root", "an alternative that is no object is taken out")
			f.m.pop(key, index(i))
			continue
		}
		possible = append(possible, alt)
		said = append(said, f.setOf(sub, alt))
	}
	if len(possible) == 0 {
		out.impossible = true
		return
	}
	f.or(out, possible)
	if len(possible) == 1 {
		return // it has become what holds
	}
	said = distinct(said)
	switch {
	case len(said) == 1, key == "anyOf" && slices.Contains(said, "{}"): // nothing to choose
	case key == "oneOf":
		f.m.rule("Give exactly one of these sets of arguments: " + orList(said) + ".")
	default:
		f.m.rule("Give at least one of these sets of arguments: " + orList(said) + ".")
	}
}

// or adds alternatives.
func (f *flattener) or(a *arguments, alternatives []arguments) {
	props := &object{}
	made := enums{}
	needs := map[string]int{} // how many alternatives require it
	for _, alt := range alternatives {
		f.m.spend(1 + 2*len(alt.props.members) + len(alt.required))
		for _, p := range alt.props.members {
			if have, ok := props.get(p.key); ok {
				props.set(p.key, f.either(have, p.value, made))
			} else {
				props.set(p.key, p.value)
			}
		}
		for _, r := range alt.required {
			needs[r]++
		}
	}
	common := slices.DeleteFunc(slices.Clone(alternatives[0].required), func(r string) bool { return needs[r] < len(alternatives) })
	merged := arguments{props: props, required: common}
	if len(alternatives) == 1 {
		merged.others = alternatives[0].others
	} else if allClosed(alternatives) {
		merged.others = []member{{"additionalProperties", false}}
	}
	f.and(a, merged, true)
}

// allClosed reports whether no alternative accepts other properties.
func allClosed(alternatives []arguments) bool {
	for _, alt := range alternatives {
		if !slices.ContainsFunc(alt.others, func(m member) bool { return m.key == "additionalProperties" && m.value == any(false) }) {
			return false
		}
	}
	return true
}

// enums are the merged enumerations with their values.
type enums map[*object]map[string]bool

// either returns a schema for values that match a or b. Constants and enumerations become one
// enumeration.
func (f *flattener) either(a, b any, made enums) any {
	if isAnything(a) || f.same(a, b) {
		return a
	}
	if isAnything(b) {
		return b
	}
	if merged, ok := f.oneEnum(a, b, made); ok {
		return merged
	}
	return f.combine("anyOf", a, b)
}

// oneEnum merges two schemas that differ only in their constant values.
func (f *flattener) oneEnum(a, b any, made enums) (any, bool) {
	ao, aok := a.(*object)
	bo, bok := b.(*object)
	if !aok || !bok {
		return nil, false
	}
	av, arest, aok := values(ao)
	bv, brest, bok := values(bo)
	if !aok || !bok || !f.m.equalJSON(arest, brest) {
		return nil, false
	}
	have, mine := made[ao], made[ao] != nil
	if !mine {
		have = make(map[string]bool, len(av))
		for _, v := range av {
			have[string(f.m.json(v))] = true
		}
		ao = newObject(slices.Clone(ao.members)...)
		ao.remove("const")
		made[ao] = have
		av = slices.Clone(av)
	}
	for _, v := range bv {
		if text := string(f.m.json(v)); !have[text] {
			have[text] = true
			av = append(av, v)
		}
	}
	ao.set("enum", av)
	return ao, true
}

// values returns the constant values of a schema, and its type.
func values(o *object) (vals []any, rest *object, ok bool) {
	rest = &object{}
	for _, kw := range o.members {
		switch kw.key {
		case "const":
			vals, ok = []any{kw.value}, true
		case "enum":
			vals, ok = kw.value.([]any)
		case "description", "title", "default", "examples":
		default:
			rest.set(kw.key, kw.value)
		}
	}
	return vals, rest, ok
}

// condition merges then and else as optional properties.
func (f *flattener) condition(o *object, out *arguments) {
	cond, ok := o.get("if")
	if !ok {
		return
	}
	var alternatives []arguments
	var parts []string
	for _, k := range []string{"then", "else"} {
		sub, has := o.get(k)
		if !has {
			continue
		}
		alt := f.flatten(sub)
		word := "then "
		if k == "else" {
			word = "otherwise "
		}
		if alt.impossible {
			parts = append(parts, word+"no call is right")
			continue
		}
		parts = append(parts, word+"give "+f.setOf(sub, alt))
		alternatives = append(alternatives, alt)
	}
	if len(alternatives) > 0 {
		for i := range alternatives {
			alternatives[i].required, alternatives[i].others = nil, nil
		}
		f.or(out, alternatives)
	}
	if len(parts) > 0 {
		f.m.rule("If " + f.m.inWords(cond) + " holds, " + strings.Join(parts, ", ") + ".")
	}
}

// pruneDefinitions removes definitions without references.
func (m *mender) pruneDefinitions(root *object) {
	used := map[string]bool{}
	var mark func(v any)
	mark = func(v any) {
		o, ok := v.(*object)
		if !ok {
			return
		}
		m.spend(1 + len(o.members))
		if ref := o.text("$ref"); ref != "" && !used[ref] {
			used[ref] = true
			mark((&flattener{root: root}).lookup(ref))
		}
		children(o, func(key, _ string, sub any) {
			if o != root || !slices.Contains(defsKeys, key) {
				mark(sub)
			}
		})
	}
	mark(root)
	for _, k := range defsKeys {
		defs := root.object(k)
		if defs == nil {
			continue
		}
		defs.members = slices.DeleteFunc(defs.members, func(d member) bool { return !used["#/"+k+"/"+d.key] })
		defs.reindex()
		if len(defs.members) == 0 {
			root.remove(k)
		}
	}
}
