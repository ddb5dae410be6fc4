package schemaguard

// The bound on work: a constant for the schema and a factor for the value.
const (
	baseSteps    = 2_000_000
	stepsPerNode = 64
	stepsPerByte = 4
)

// A run is one evaluation of a program on a document.
type run struct {
	p     *program
	d     *document
	steps int64
	max   int // depth
	depth int
	stop  error // why there will be no verdict

	refs   []activeRef // references that are being followed on the value at hand
	scope  []*resource // entered, outermost first; only for a dynamic program
	path   []pathStep  // to the value at hand; only for a run that reports
	report *report     // nil while only the verdict counts
}

type activeRef struct {
	rule  *rule
	value uint32
}

// validate runs again on a value that is not valid, to say where and why.
func (p *program) validate(d *document, l Limits) error {
	r := run{p: p, d: d, max: l.Depth, steps: budget(d)}
	ok := r.check(p.root, 0, nil)
	if ok && r.stop == nil {
		return nil
	}
	if r.steps < 0 {
		return r.stop
	}
	again := run{p: p, d: d, max: l.Depth, steps: budget(d), report: &report{limit: l.Faults}}
	again.check(p.root, 0, nil)
	switch {
	case r.stop != nil && again.stop != nil:
		return again.stop // it knows the place
	case r.stop != nil:
		return r.stop
	case len(again.report.faults) == 0:
		again.report.add(Fault{Message: "the value does not match the schema, got " + d.show(0)})
	}
	return again.report.err()
}

func budget(d *document) int64 {
	return baseSteps + stepsPerNode*int64(len(d.nodes)) + stepsPerByte*int64(len(d.text))
}

// spend takes n steps from the budget and reports whether they were there.
func (r *run) spend(n int64) bool {
	if r.steps -= n; r.steps >= 0 {
		return true
	}
	r.halt(&LimitError{})
	return false
}

func (r *run) halt(err error) {
	if r.stop == nil {
		r.stop = err
	}
}

// check reports whether value v satisfies rule s. If marks is not nil, the
// members or items that s evaluates are marked there.
func (r *run) check(s *rule, v uint32, marks *marks) bool {
	if r.stop != nil || !r.spend(1) {
		return false
	}
	if s.broken != nil {
		r.halt(&SchemaError{Pointer: r.pointer(), Err: s.broken})
		return false
	}
	if s.always != nil {
		if !*s.always {
			r.fault(v, "false", "nothing is allowed here")
		}
		return *s.always
	}
	if s.target {
		// Those that are being followed on this value are the last ones.
		for i := len(r.refs) - 1; i >= 0 && r.refs[i].value == v; i-- {
			if r.refs[i].rule == s {
				r.fault(v, "$ref", "the schema refers to itself without end here")
				return false
			}
			r.steps--
		}
		r.refs = append(r.refs, activeRef{s, v})
		defer func() { r.refs = r.refs[:len(r.refs)-1] }()
	}
	if r.p.dynamic && s.resource != nil && (len(r.scope) == 0 || r.scope[len(r.scope)-1] != s.resource) {
		r.scope = append(r.scope, s.resource)
		defer func() { r.scope = r.scope[:len(r.scope)-1] }()
	}
	return r.evaluate(s, v, marks)
}

func (r *run) evaluate(s *rule, v uint32, m *marks) bool {
	if s.refOnly {
		return r.check(s.ref, v, m)
	}
	if !r.checkValue(s, v) {
		return false
	}
	if m == nil && (s.unevaluatedProperties != nil || s.unevaluatedItems != nil) {
		m = r.newMarks(v)
	}
	ok := true
	if s.ref != nil {
		ok = r.inPlace(s.ref, v, m)
	}
	switch kind := r.d.nodes[v].kind; {
	case kind == kindObject && s.object != nil:
		ok = r.checkObject(s.object, v, m) && ok
	case kind == kindArray && s.array != nil:
		ok = r.checkArray(s.array, v, m) && ok
	case kind == kindString && s.str != nil:
		ok = r.checkString(s.str, v) && ok
	case kind == kindNumber && s.number != nil:
		ok = r.checkNumber(s.number, v) && ok
	}
	if !ok && r.report == nil {
		return false
	}
	if s.recursiveRef != nil {
		ok = r.inPlace(r.recursive(s), v, m) && ok
	}
	if s.dynamicRef != nil {
		ok = r.inPlace(r.dynamic(s), v, m) && ok
	}
	ok = r.combine(s, v, m) && ok
	if s.unevaluatedProperties != nil || s.unevaluatedItems != nil {
		ok = r.checkUnevaluated(s, v, m) && ok
	}
	return ok && r.stop == nil
}

// inPlace checks v against another rule, whose marks count if it is satisfied.
func (r *run) inPlace(s *rule, v uint32, m *marks) bool {
	if m == nil {
		return r.check(s, v, nil)
	}
	inner := r.newMarks(v)
	if !r.check(s, v, inner) {
		return false
	}
	m.merge(inner)
	return true
}

// descend checks a member or an item against a rule.
func (r *run) descend(s *rule, child uint32, ordinal int) bool {
	if r.depth >= r.max {
		if r.report != nil {
			r.path = append(r.path, pathStep{child, ordinal})
			defer func() { r.path = r.path[:len(r.path)-1] }()
		}
		r.halt(&LimitError{Pointer: r.pointer(), Depth: r.max})
		return false
	}
	r.depth++
	if r.report != nil {
		r.path = append(r.path, pathStep{child, ordinal})
	}
	ok := r.check(s, child, nil)
	if r.report != nil {
		r.path = r.path[:len(r.path)-1]
	}
	r.depth--
	return ok
}

// recursive resolves $recursiveRef: if its target's resource says $recursiveAnchor,
// to the outermost resource in scope that does.
func (r *run) recursive(s *rule) *rule {
	target := s.recursiveRef
	if target.resource == nil || !target.resource.recursive || target.resource.root != target {
		return target
	}
	for _, res := range r.scope {
		if res.recursive {
			return res.root
		}
	}
	return target
}

// dynamic resolves $dynamicRef: if its target has that $dynamicAnchor, to the
// outermost resource in scope that has one of that name.
func (r *run) dynamic(s *rule) *rule {
	if s.dynamicAnchor != "" {
		for _, res := range r.scope {
			if target := res.anchors[s.dynamicAnchor]; target != nil {
				return target
			}
		}
	}
	return s.dynamicRef
}

// combine checks the rules that apply to the same value.
func (r *run) combine(s *rule, v uint32, m *marks) bool {
	ok := true
	if s.not != nil && r.quiet(s.not, v, nil) && r.stop == nil {
		r.faultf(v, "not", "the value is of a form that is excluded here, got %s", v)
		ok = false
	}
	for _, sub := range s.allOf {
		if !r.inPlace(sub, v, m) {
			if ok = false; r.report == nil {
				return false
			}
		}
	}
	if len(s.anyOf) > 0 && !r.checkAny(s.anyOf, v, m) {
		ok = false
	}
	if len(s.oneOf) > 0 && !r.checkOne(s.oneOf, v, m) {
		ok = false
	}
	if s.ifRule == nil || !ok && r.report == nil {
		return ok
	}
	then := s.elseRule
	if r.quiet(s.ifRule, v, m) {
		then = s.thenRule
	}
	if then != nil && !r.inPlace(then, v, m) {
		return false
	}
	return ok
}

// quiet is inPlace without a report: the verdict decides what is checked next.
func (r *run) quiet(s *rule, v uint32, m *marks) bool {
	saved := r.report
	r.report = nil
	ok := r.inPlace(s, v, m)
	r.report = saved
	return ok
}

func (r *run) checkAny(subs []*rule, v uint32, m *marks) bool {
	matched := false
	for _, sub := range subs {
		if r.quiet(sub, v, m) {
			if matched = true; m == nil {
				return true // with marks, all alternatives are evaluated
			}
		}
		if r.stop != nil {
			return false
		}
	}
	if !matched && r.report != nil {
		r.noAlternative("anyOf", subs, v)
	}
	return matched
}

func (r *run) checkOne(subs []*rule, v uint32, m *marks) bool {
	first := -1
	for i, sub := range subs {
		ok := false
		if first < 0 {
			ok = r.quiet(sub, v, m)
		} else {
			ok = r.quiet(sub, v, nil)
		}
		switch {
		case r.stop != nil:
			return false
		case ok && first >= 0:
			r.fault(v, "oneOf", ordinals("matches alternatives %d and %d, but must match exactly one", first+1, i+1))
			return false
		case ok:
			first = i
		}
	}
	if first < 0 && r.report != nil {
		r.noAlternative("oneOf", subs, v)
	}
	return first >= 0
}

// marks records which members or items of one value were evaluated.
type marks struct {
	all  bool
	each []bool // by position; nil while none is
	size uint32
}

func (r *run) newMarks(v uint32) *marks { return &marks{size: r.d.nodes[v].size} }

func (m *marks) mark(i int) {
	if m == nil || m.all {
		return
	}
	if m.each == nil {
		m.each = make([]bool, m.size)
	}
	m.each[i] = true
}

func (m *marks) markAll() {
	if m != nil {
		m.all = true
	}
}

func (m *marks) marked(i int) bool { return m.all || m.each != nil && m.each[i] }

func (m *marks) merge(inner *marks) {
	if inner.all {
		m.all = true
	}
	for i, ok := range inner.each {
		if ok {
			m.mark(i)
		}
	}
}

func (r *run) checkUnevaluated(s *rule, v uint32, m *marks) bool {
	n := &r.d.nodes[v]
	sub, keyword := s.unevaluatedProperties, "unevaluatedProperties"
	if n.kind == kindArray {
		sub, keyword = s.unevaluatedItems, "unevaluatedItems"
	}
	if sub == nil || n.kind < kindArray || !r.spend(int64(n.size)) {
		return r.stop == nil
	}
	ok := true
	i := 0
	for c := v + 1; c < n.next; c = r.d.nodes[c].next {
		if !m.marked(i) {
			if sub.always != nil && !*sub.always {
				ok = false
				r.unexpected(c, i, keyword, nil)
			} else {
				ok = r.descend(sub, c, i) && ok
			}
			if !ok && r.report == nil {
				return false
			}
		}
		i++
	}
	m.markAll()
	return ok
}
