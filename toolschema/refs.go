package toolschema

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// defsKeys are the keywords for definitions at the root.
var defsKeys = []string{"$defs", "definitions"}

// refKeys are the keywords that refer to another schema.
var refKeys = []string{"$ref", "$dynamicRef", "$recursiveRef"}

// A resolver rewrites every reference to "#", "#/$defs/NAME" or "#/definitions/NAME", and removes
// those that have no target or are circular.
type resolver struct {
	m    *mender
	root *object
	// places are the schemas named by $id, $anchor or $dynamicAnchor, by their URI.
	places map[string]*object
	// refs maps a schema with a reference to its target; order has their order.
	refs  map[*object]*object
	order []*object
	// hints are names for the targets, by how they are referred to.
	hints map[*object]string
	// used are keywords of the root for definitions with another name. They are removed when their
	// schemas have moved.
	used map[string]bool
	// seen are the visited schemas, depth is the number of those being visited.
	seen  map[*object]bool
	depth int
	// at are the positions of the schemas in order.
	at map[*object]int
}

// maxChain limits how many schemas, each referred to or contained by the one before, are visited at
// a time.
const maxChain = 20_000

// resolve rewrites all references.
func (m *mender) resolve(root *object) {
	if !m.mentionsRefs(root) {
		return
	}
	r := &resolver{m: m, root: root, places: map[string]*object{}, refs: map[*object]*object{}, seen: map[*object]bool{}, hints: map[*object]string{}, used: map[string]bool{}, at: map[*object]int{}}
	r.objectify()
	r.collect(root, &url.URL{}, 0)
	r.find(root, root)
	state := make(map[*object]int, len(r.order))
	for _, o := range r.order {
		if state[o] == 0 {
			r.breakCircles(o, state) // every circle has a schema with a reference in it
		}
	}
	r.write()
}

// objectify rewrites boolean definitions to objects, so that references can point to them.
func (r *resolver) objectify() {
	for _, k := range defsKeys {
		defs := r.root.object(k)
		if defs == nil {
			continue
		}
		r.m.spend(len(defs.members))
		for i, d := range defs.members {
			switch d.value {
			case true:
				defs.members[i].value = &object{}
			case false:
				defs.members[i].value = newObject(member{"not", &object{}})
			}
		}
	}
}

// mentionsRefs reports whether a value has a reference. Most schemas have none.
func (m *mender) mentionsRefs(v any) bool {
	m.spend(1)
	switch v := v.(type) {
	case *object:
		for _, e := range v.members {
			if e.key == "$ref" || e.key == "$dynamicRef" || e.key == "$recursiveRef" || m.mentionsRefs(e.value) {
				return true
			}
		}
	case []any:
		for _, e := range v {
			if m.mentionsRefs(e) {
				return true
			}
		}
	}
	return false
}

// collect finds the targets that have a URI. long is the length of the base's.
func (r *resolver) collect(o *object, base *url.URL, long int) {
	r.m.spend(1 + len(o.members))
	id := o.text("$id")
	if id == "" && strings.Contains(o.text("id"), "://") { // draft-04
		id = o.text("id")
	}
	if id != "" {
		if u, err := base.Parse(strings.TrimSuffix(id, "#")); err == nil {
			base = u
			uri := base.String()
			long = len(uri)
			r.place(uri, o)
		}
		r.m.spend((long + len(id)) / 8)
	}
	for _, k := range []string{"$anchor", "$dynamicAnchor"} {
		if a := o.text(k); a != "" {
			r.m.spend((long + len(a)) / 8)
			u := *base
			u.Fragment = a
			r.place(u.String(), o)
		}
	}
	children(o, func(_, _ string, sub any) {
		if s, ok := sub.(*object); ok {
			r.collect(s, base, long)
		}
	})
}

func (r *resolver) place(uri string, o *object) {
	if _, taken := r.places[uri]; !taken {
		r.places[uri] = o
	}
}

// find resolves the references of a schema and its subschemas. resource is the schema that a
// fragment is relative to.
func (r *resolver) find(o, resource *object) {
	if r.seen[o] {
		return
	}
	r.seen[o] = true
	r.m.spend(1 + len(o.members))
	if r.depth++; r.depth > maxChain {
		panic(overrun{fmt.Sprintf("its schema has a chain of more than %d references", maxChain)})
	}
	defer func() { r.depth-- }()
	if id := o.text("$id"); o != r.root && id != "" && !strings.HasPrefix(id, "#") {
		resource = o
	}
	for _, k := range refKeys {
		v, ok := o.get(k)
		if !ok {
			continue
		}
		o.remove(k)
		ref, _ := v.(string)
		target := r.target(ref, resource)
		switch _, has := r.refs[o]; {
		case target == nil:
			r.dangling(o, ref, k)
		case has:
			r.m.loosen(k, "reference", "a second reference is taken out")
		default:
			if k != "$ref" {
				r.m.mend(k, "dialect", "%s is written as $ref", k)
			}
			r.hint(target, ref)
			r.refs[o] = target
			r.at[o] = len(r.order)
			r.order = append(r.order, o)
			r.find(target, r.root) // it may stand where no schema is looked for
		}
	}
	children(o, func(key, name string, sub any) {
		if s, ok := sub.(*object); ok {
			r.m.push(key, name)
			r.find(s, resource)
			r.m.pop(key, name)
		}
	})
}

// hint records a name for a target, and its position if that is no keyword.
func (r *resolver) hint(t *object, ref string) {
	last := ref[strings.LastIndexAny(ref, "/#")+1:]
	if _, err := strconv.Atoi(last); err != nil && legalKey(last) && r.hints[t] == "" {
		r.hints[t] = last
	}
	if pointer, ok := strings.CutPrefix(ref, "#/"); ok {
		first, _, _ := strings.Cut(pointer, "/")
		if _, known := keywords[first]; !known && first != "dependencies" && first != "additionalItems" {
			r.used[first] = true
		}
	}
}

// dangling removes a reference without a target, and mentions it in the description.
func (r *resolver) dangling(o *object, ref, key string) {
	r.m.loosened[o] = true
	r.m.loosen(key, "reference", "%q leads nowhere in this schema and is taken out", shorten(ref))
	if _, has := o.get("description"); !has && ref != "" {
		o.set("description", "As defined by "+shorten(ref)+".")
	}
}

// target returns the schema that a reference means, or nil. It fetches nothing.
func (r *resolver) target(ref string, resource *object) *object {
	if ref == "#" {
		return resource
	}
	r.m.spend(1 + len(ref)/4)
	if pointer, ok := strings.CutPrefix(ref, "#/"); ok {
		if t := follow(resource, pointer); t != nil {
			return t
		}
		return follow(r.root, pointer) // written for the whole document, though an $id stands between
	}
	base := &url.URL{}
	if id := resource.text("$id"); id != "" {
		r.m.spend(len(id) / 8)
		if u, err := url.Parse(strings.TrimSuffix(id, "#")); err == nil {
			base = u
		}
	}
	u, err := base.Parse(ref)
	if err != nil || ref == "" {
		return nil
	}
	if t := r.places[strings.TrimSuffix(u.String(), "#")]; t != nil {
		return t
	}
	pointer, isPointer := strings.CutPrefix(u.EscapedFragment(), "/")
	u.Fragment, u.RawFragment = "", ""
	if t := r.places[u.String()]; t != nil && isPointer {
		return follow(t, pointer)
	}
	return nil
}

// follow resolves a JSON pointer in a URI fragment.
func follow(o *object, pointer string) *object {
	var at any = o
	for part := range strings.SplitSeq(pointer, "/") {
		if plain, err := url.PathUnescape(part); err == nil {
			part = plain
		}
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		switch v := at.(type) {
		case *object:
			at, _ = v.get(part)
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			at = v[i]
		default:
			return nil
		}
	}
	t, _ := at.(*object)
	return t
}

// breakCircles removes references that lead back to a schema for the same value, which would never
// end.
func (r *resolver) breakCircles(o *object, state map[*object]int) (closed bool) {
	state[o] = 1
	r.m.spend(1 + len(o.members))
	if t := r.refs[o]; t != nil && (state[t] == 1 || state[t] == 0 && r.breakCircles(t, state)) {
		delete(r.refs, o)
		r.m.loosened[o] = true
		r.m.loosen("$ref", "reference", "a reference that leads back to itself is taken out")
	}
	children(o, func(key, _ string, sub any) {
		if s, ok := sub.(*object); ok && inPlace[key] {
			closed = closed || state[s] == 1
			if state[s] == 0 {
				closed = r.breakCircles(s, state) || closed
			}
		}
	})
	state[o] = 2
	return closed
}

// write writes the references by the names of definitions.
func (r *resolver) write() {
	r.legalizeNames()
	names := map[*object]string{r.root: "#"}
	taken, next := map[string]bool{}, map[string]int{}
	for _, k := range defsKeys {
		if defs := r.root.object(k); defs != nil {
			for _, d := range defs.members {
				taken[d.key] = true
				if t, ok := d.value.(*object); ok && names[t] == "" {
					names[t] = "#/" + k + "/" + d.key
				}
			}
		}
	}
	for _, o := range r.order {
		if t := r.refs[o]; t != nil && names[t] == "" {
			names[t] = r.move(t, taken, next)
		}
	}
	for _, o := range r.order {
		if t := r.refs[o]; t != nil {
			r.m.spend(1 + len(o.members))
			o.members = append([]member{{"$ref", names[t]}}, o.members...)
			o.reindex()
		}
	}
	if len(r.used) > 0 {
		r.root.removeAll(r.used)
	}
}

// legalizeNames renames definitions so that references need no escapes.
func (r *resolver) legalizeNames() {
	for _, k := range defsKeys {
		defs := r.root.object(k)
		if defs == nil {
			continue
		}
		taken := make(map[string]bool, len(defs.members))
		for _, d := range defs.members {
			taken[d.key] = true
		}
		for i, d := range defs.members {
			r.m.spend(1 + len(d.key)/8)
			if legalKey(d.key) {
				continue
			}
			name := plainAlias(d.key)
			for n := 0; taken[name]; n++ {
				r.m.spend(1 + len(d.key)/8)
				name = hashedAlias(d.key, n)
			}
			taken[name] = true
			defs.members[i].key = name
		}
		defs.reindex()
	}
}

// move moves a schema to the definitions and leaves a reference. next has the next free number for
// each name.
func (r *resolver) move(t *object, taken map[string]bool, next map[string]int) string {
	hint := cmp.Or(r.hints[t], "shared")
	name, stem := hint, fmt.Sprintf("%.50s", hint)
	for i := max(next[stem], 2); taken[name]; i++ {
		r.m.spend(1)
		name = stem + "_" + index(i)
		next[stem] = i + 1
	}
	taken[name] = true
	defs := r.root.object("$defs")
	if defs == nil {
		defs = &object{}
		r.root.set("$defs", defs)
	}
	ref := "#/$defs/" + name
	def := &object{members: t.members, index: t.index}
	defs.set(name, def)
	if own := r.refs[t]; own != nil { // its own reference goes with it
		r.refs[def] = own
		delete(r.refs, t)
		i := r.at[t]
		r.order[i], r.at[def] = def, i
	}
	t.members, t.index = []member{{"$ref", ref}}, nil
	r.m.mend("$ref", "reference", "a schema that is referred to where it stands has become the definition %s", name)
	return ref
}
