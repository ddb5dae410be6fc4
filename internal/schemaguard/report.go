package schemaguard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A report collects faults up to a limit.
type report struct {
	faults []Fault
	limit  int
	more   bool
	indent int
}

func (p *report) add(f Fault) {
	f.Indent += p.indent
	if len(p.faults) >= p.limit {
		p.more = true
		return
	}
	p.faults = append(p.faults, f)
}

func (p *report) err() error {
	return &ValidationError{Faults: slices.Clip(p.faults), More: p.more}
}

// A pathStep leads from a value to a member or an item.
type pathStep struct {
	value   uint32
	ordinal int
}

// pointer is the JSON pointer of the value at hand.
func (r *run) pointer() string {
	var b strings.Builder
	for _, step := range r.path {
		b.WriteByte('/')
		if n := &r.d.nodes[step.value]; n.keyEnd > 0 {
			b.WriteString(escapeToken(string(r.d.key(step.value))))
		} else {
			b.WriteString(strconv.Itoa(step.ordinal))
		}
	}
	return b.String()
}

// reports reports whether a fault would be listed. What is said of a fault costs
// more than to find it, and a value may have a million.
func (r *run) reports() bool {
	if r.report == nil {
		return false
	}
	if len(r.report.faults) >= r.report.limit {
		r.report.more = true
		return false
	}
	return true
}

// fault reports a fault of the value at hand.
func (r *run) fault(_ uint32, keyword, message string) {
	if r.reports() {
		r.report.add(Fault{Pointer: r.pointer(), Keyword: keyword, Message: message})
	}
}

// faultf is fault with a format; an argument that is a value is described.
func (r *run) faultf(v uint32, keyword, format string, args ...any) {
	if !r.reports() {
		return
	}
	for i, arg := range args {
		if value, ok := arg.(uint32); ok {
			args[i] = r.d.show(value)
		}
	}
	r.fault(v, keyword, fmt.Sprintf(format, args[:strings.Count(format, "%s")]...))
}

// missing reports a member that must be there.
func (r *run) missing(_ uint32, keyword, name string, s *rule) {
	if !r.reports() {
		return
	}
	message := "required, but missing"
	if want := s.expects(); want != "" {
		message += "; expected " + want
	}
	r.report.add(Fault{Pointer: r.pointer() + "/" + escapeToken(name), Keyword: keyword, Message: message})
}

// unexpected reports a member or an item that must not be there.
func (r *run) unexpected(c uint32, ordinal int, keyword string, o *objectRule) {
	if !r.reports() {
		return
	}
	r.path = append(r.path, pathStep{c, ordinal})
	defer func() { r.path = r.path[:len(r.path)-1] }()
	if r.d.nodes[c].keyEnd == 0 {
		r.fault(c, keyword, "there must be no item here")
		return
	}
	message := "unknown property"
	if o != nil {
		message += allowed(string(r.d.key(c)), o.propertiesInUse)
	}
	r.fault(c, keyword, message)
}

// allowed names the properties that there are instead, the likely one first.
func allowed(name string, known []string) string {
	const many = 20
	best, least := "", 3
	for _, k := range known {
		d := distance(k, name)
		if strings.EqualFold(k, name) {
			d = 0
		}
		if d < least {
			best, least = k, d
		}
	}
	switch {
	case best != "":
		return "; did you mean " + strconv.Quote(best) + "?"
	case len(known) == 0:
		return "; none is allowed here"
	case len(known) > many:
		return "; allowed are " + quoted(known[:many]) + " and more"
	}
	return "; allowed are " + quoted(known)
}

func quoted(names []string) string {
	var parts []string
	for _, n := range names {
		parts = append(parts, strconv.Quote(shorten(n, 60)))
	}
	return strings.Join(parts, ", ")
}

// distance is the number of edits between two short names, 3 if more than 2.
func distance(a, b string) int {
	const far, most = 3, 64
	if len(a) > most || len(b) > most || len(a)-len(b) >= far || len(b)-len(a) >= far || len(a) < far || len(b) < far {
		return far
	}
	var table [most + 1]int
	row := table[:len(b)+1]
	for j := range row {
		row[j] = min(j, far)
	}
	for i := range len(a) { // only what can be below far is computed
		from, to := max(i-far, 0), min(i+far+1, len(b))
		diagonal, least := row[from], far
		row[from] = far
		if from == 0 {
			row[0] = min(i+1, far)
			least = row[0]
		}
		for j := from; j < to; j++ {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1, far)
			least = min(least, row[j+1])
		}
		if to < len(b) {
			row[to+1] = far
		}
		if least >= far {
			return far
		}
	}
	return row[len(b)]
}

// expects describes what a rule asks for, in a few words; "" if that is not easily said.
func (s *rule) expects() string {
	if s == nil || s.always != nil || s.broken != nil {
		return ""
	}
	want := ""
	description := s.description
	s = s.resolved()
	if description == "" {
		description = s.description
	}
	switch {
	case s.consts != nil:
		want = shorten(string(s.consts.doc.text), 60)
	case s.enum != nil:
		want = s.enum.show()
	case s.types != 0:
		want = either(s.types.names())
	}
	if want != "" && description != "" {
		want += " (" + shorten(description, 120) + ")"
	}
	return want
}

func (e *enumeration) show() string {
	const many = 20
	var parts []string
	for i := range e.values {
		if i == many {
			return "one of " + strings.Join(parts, ", ") + " and more"
		}
		parts = append(parts, shorten(string(e.values[i].doc.text), 60))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "one of " + strings.Join(parts, ", ")
}

func either(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

func ordinals(format string, i, j int) string { return fmt.Sprintf(format, i, j) }

// noAlternative reports that none of several rules is satisfied: by the types
// alone if these are wrong, else by the faults of the alternative that is closest.
func (r *run) noAlternative(keyword string, subs []*rule, v uint32) {
	if !r.reports() {
		return
	}
	var types typeSet
	best, bestScore := -1, 0
	var closest report
	onlyTypes := true
	saved, savedPath := r.report, len(r.path)
	for i, sub := range subs {
		trial := report{limit: saved.limit}
		r.report = &trial
		r.check(sub, v, nil)
		if r.stop != nil {
			break
		}
		here := r.pointer()
		if len(trial.faults) == 1 && trial.faults[0].Keyword == "type" && trial.faults[0].Pointer == here {
			types |= sub.resolved().types
			continue
		}
		onlyTypes = false
		if score := trial.score(here); best < 0 || score > bestScore {
			best, bestScore, closest = i, score, trial
		}
	}
	r.report, r.path = saved, r.path[:savedPath]
	if r.stop != nil {
		return
	}
	if onlyTypes && types != 0 {
		r.faultf(v, keyword, "expected %s, got %s", either(types.names()), v)
		return
	}
	r.fault(v, keyword, fmt.Sprintf("matches none of the %d allowed forms; the closest, form %d, has these faults", len(subs), best+1))
	r.report.indent++
	for _, f := range closest.faults {
		r.report.add(f)
	}
	r.report.indent--
}

// resolved follows plain references to where the types are.
func (s *rule) resolved() *rule {
	for i := 0; i < 8 && s.types == 0 && s.enum == nil && s.consts == nil && s.ref != nil; i++ {
		s = s.ref
	}
	return s
}

// score says how close the value came: faults that lie deeper, and fewer of
// them, are better; a wrong constant names another form.
func (p *report) score(here string) int {
	score := 1000 - 10*len(p.faults)
	for _, f := range p.faults {
		if f.Keyword == "const" || f.Keyword == "enum" {
			score -= 200
		}
		if f.Pointer == here && (f.Keyword == "type" || f.Keyword == "false") {
			score -= 500
		}
	}
	return score
}
