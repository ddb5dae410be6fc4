package schemaguard

import (
	"hash/maphash"
	"slices"
	"strconv"
)

func (r *run) checkObject(o *objectRule, v uint32, m *marks) bool {
	n := &r.d.nodes[v]
	if !r.spend(int64(n.size) + int64(len(o.required))) {
		return false
	}
	ok := true
	size := int(n.size)
	if o.min != nil && size < *o.min {
		r.faultf(v, "minProperties", "expected at least "+properties(*o.min)+", got "+strconv.Itoa(size), v)
		ok = false
	}
	if o.max != nil && size > *o.max {
		r.faultf(v, "maxProperties", "expected at most "+properties(*o.max)+", got "+strconv.Itoa(size), v)
		ok = false
	}
	var small [4]uint64 // bits of the required names that are there
	seen := small[:]
	if words := (len(o.required) + 63) / 64; words > len(small) {
		seen = make([]uint64, words)
	}
	i := 0
	for c := v + 1; c < n.next; c = r.d.nodes[c].next {
		if !r.checkMember(o, c, i, m, seen) {
			if ok = false; r.report == nil || r.stop != nil {
				return false
			}
		}
		i++
	}
	for i, name := range o.required {
		if seen[i/64]&(1<<(i%64)) == 0 {
			r.missing(v, "required", name, o.names[name].rule)
			ok = false
		}
	}
	if !ok && r.report == nil {
		return false
	}
	for i := range o.dependencies {
		ok = r.checkDependency(&o.dependencies[i], o, v, m) && ok
	}
	return ok
}

// checkMember checks the member c, the i-th of its object.
func (r *run) checkMember(o *objectRule, c uint32, i int, m *marks, seen []uint64) bool {
	key := r.d.key(c)
	ok, known := true, false
	if mem, found := o.names[string(key)]; found {
		if mem.required >= 0 {
			seen[mem.required/64] |= 1 << (mem.required % 64)
		}
		if mem.rule != nil {
			known = true
			ok = r.descend(mem.rule, c, i)
		}
	}
	for p := range o.patterns {
		if r.match(o.patterns[p].pattern, key) {
			known = true
			ok = r.descend(o.patterns[p].rule, c, i) && ok
		}
	}
	if !known {
		if o.noAdditional {
			r.unexpected(c, i, "additionalProperties", o)
			return false
		}
		if o.additional != nil {
			known = true
			ok = r.descend(o.additional, c, i)
		}
	}
	if known {
		m.mark(i)
	}
	if o.propertyNames != nil {
		ok = r.checkName(o.propertyNames, c, i) && ok
	}
	return ok
}

// checkName checks a member's name against a rule for names.
func (r *run) checkName(s *rule, c uint32, i int) bool {
	name := r.d.text[r.d.nodes[c].keyStart:r.d.nodes[c].keyEnd]
	inner := document{text: name, nodes: []node{{end: uint32(len(name)), next: 1, kind: kindString, escaped: r.d.nodes[c].keyEscaped}}}
	sub := run{p: r.p, d: &inner, steps: r.steps, max: r.max, depth: r.depth, scope: r.scope}
	if r.report != nil {
		sub.report = &report{limit: r.report.limit}
	}
	ok := sub.check(s, 0, nil)
	r.steps = sub.steps
	if sub.stop != nil {
		r.halt(sub.stop)
		return false
	}
	if !ok && r.report != nil {
		r.path = append(r.path, pathStep{c, i})
		for _, f := range sub.report.faults {
			r.report.add(Fault{Pointer: r.pointer(), Keyword: "propertyNames", Message: "the name is wrong: " + f.Message, Indent: f.Indent})
		}
		r.path = r.path[:len(r.path)-1]
	}
	return ok
}

func (r *run) checkDependency(dep *dependency, o *objectRule, v uint32, m *marks) bool {
	if _, ok := r.member(v, dep.name); !ok {
		return r.stop == nil
	}
	if dep.rule != nil {
		return r.inPlace(dep.rule, v, m)
	}
	ok := true
	for _, name := range dep.required {
		if _, found := r.member(v, name); !found && r.stop == nil {
			r.missing(v, dep.keyword, name, o.names[name].rule)
			ok = false
		}
	}
	return ok && r.stop == nil
}

func (r *run) checkArray(a *arrayRule, v uint32, m *marks) bool {
	n := &r.d.nodes[v]
	if !r.spend(int64(n.size)) {
		return false
	}
	ok := true
	size := int(n.size)
	if a.min != nil && size < *a.min {
		r.faultf(v, "minItems", "expected at least "+plural(*a.min, "item")+", got "+strconv.Itoa(size), v)
		ok = false
	}
	if a.max != nil && size > *a.max {
		r.faultf(v, "maxItems", "expected at most "+plural(*a.max, "item")+", got "+strconv.Itoa(size), v)
		ok = false
	}
	if a.unique && size > 1 && !r.checkUnique(v) {
		ok = false
	}
	if !ok && r.report == nil {
		return false
	}
	i := 0
	for c := v + 1; c < n.next; c = r.d.nodes[c].next {
		good := true
		switch {
		case i < len(a.prefix):
			good = r.descend(a.prefix[i], c, i)
			m.mark(i)
		case a.rest != nil:
			good = r.descend(a.rest, c, i)
			m.mark(i)
		case a.noRest:
			r.unexpected(c, i, a.restKeyword, nil)
			good = false
		}
		if !good {
			if ok = false; r.report == nil || r.stop != nil {
				return false
			}
		}
		i++
	}
	if a.contains != nil {
		ok = r.checkContains(a, v, m) && ok
	}
	return ok
}

func (r *run) checkContains(a *arrayRule, v uint32, m *marks) bool {
	n := &r.d.nodes[v]
	saved := r.report
	r.report = nil
	matched, i := 0, 0
	for c := v + 1; c < n.next && r.stop == nil; c = r.d.nodes[c].next {
		if r.descend(a.contains, c, i) {
			matched++
			if a.containsEvaluates {
				m.mark(i)
			}
		}
		i++
	}
	r.report = saved
	least := 1
	if a.minContains != nil {
		least = *a.minContains
	}
	switch {
	case r.stop != nil:
		return false
	case matched < least:
		r.faultf(v, "contains", "expected at least "+plural(least, "item")+" of the required form, got "+strconv.Itoa(matched), v)
		return false
	case a.maxContains != nil && matched > *a.maxContains:
		r.faultf(v, "maxContains", "expected at most "+plural(*a.maxContains, "item")+" of that form, got "+strconv.Itoa(matched), v)
		return false
	}
	return true
}

// checkUnique compares only items with the same hash.
func (r *run) checkUnique(v uint32) bool {
	n := &r.d.nodes[v]
	if !r.spend(int64(n.end-n.start) / 8) {
		return false
	}
	seed := maphash.MakeSeed()
	type item struct {
		hash    uint64
		value   uint32
		ordinal int
	}
	items := make([]item, 0, n.size)
	for c := v + 1; c < n.next; c = r.d.nodes[c].next {
		items = append(items, item{r.d.hash(seed, c), c, len(items)})
	}
	slices.SortStableFunc(items, func(a, b item) int {
		switch {
		case a.hash < b.hash:
			return -1
		case a.hash > b.hash:
			return 1
		}
		return 0
	})
	for i := 1; i < len(items); i++ {
		for j := i - 1; j >= 0 && items[j].hash == items[i].hash; j-- {
			if r.equal(r.d, items[j].value, items[i].value) {
				r.fault(v, "uniqueItems", ordinals("items %d and %d are equal, but all must differ", items[j].ordinal, items[i].ordinal))
				return false
			}
			if r.stop != nil {
				return false
			}
		}
	}
	return true
}

// hash gives equal values equal hashes.
func (d *document) hash(seed maphash.Seed, v uint32) uint64 {
	n := &d.nodes[v]
	switch n.kind {
	case kindNumber:
		num := d.number(v)
		return maphash.Comparable(seed, num)
	case kindString:
		return maphash.Bytes(seed, d.str(v)) ^ 1
	case kindArray:
		h := uint64(n.size)
		for c := v + 1; c < n.next; c = d.nodes[c].next {
			h = h*1099511628211 + d.hash(seed, c)
		}
		return h
	case kindObject:
		h := ^uint64(n.size)
		for c := v + 1; c < n.next; c = d.nodes[c].next {
			h += (maphash.Bytes(seed, d.key(c)) | 1) * (d.hash(seed, c) | 1)
		}
		return h
	}
	return maphash.Bytes(seed, d.raw(v)) ^ 2
}

func properties(n int) string {
	if n == 1 {
		return "1 property"
	}
	return strconv.Itoa(n) + " properties"
}
