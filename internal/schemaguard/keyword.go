package schemaguard

import (
	"fmt"
	"strconv"
)

// checkValue checks what does not look into the value: type, const, enum, format.
func (r *run) checkValue(s *rule, v uint32) bool {
	n := &r.d.nodes[v]
	if s.types != 0 && !r.hasType(s.types, v) {
		r.faultf(v, "type", "expected %s, got %s", either(s.types.names()), v)
		return false
	}
	if s.consts != nil && !r.equal(&s.consts.doc, 0, v) {
		r.faultf(v, "const", "expected %s, got %s", shorten(string(s.consts.doc.text), 60), v)
		return false
	}
	if s.enum != nil && !r.inEnum(s.enum, v) {
		r.faultf(v, "enum", "expected %s, got %s", s.enum.show(), v)
		return false
	}
	if s.format != nil && n.kind == kindString {
		if !r.spend(int64(n.end-n.start) / 16) {
			return false
		}
		if err := s.format.Validate(string(r.d.str(v))); err != nil {
			r.faultf(v, "format", "expected "+formatName(s.format.Name)+", got %s", v)
			return false
		}
	}
	return true
}

func (r *run) hasType(t typeSet, v uint32) bool {
	kind := int(r.d.nodes[v].kind)
	return t.has(kind) || kind == kindNumber && t.has(integerType) && isInteger(r.d.raw(v))
}

// isInteger is parseDecimal(text).isInt(), fast for the common case.
func isInteger(text []byte) bool {
	for _, c := range text {
		if c == '.' || c == 'e' || c == 'E' {
			return parseDecimal(text).isInt()
		}
	}
	return true
}

func (r *run) inEnum(e *enumeration, v uint32) bool {
	if e.strings != nil && r.d.nodes[v].kind == kindString {
		_, ok := e.strings[string(r.d.str(v))]
		return ok
	}
	for i := range e.values {
		if r.equal(&e.values[i].doc, 0, v) {
			return true
		}
		if r.stop != nil {
			return false
		}
	}
	return false
}

// equal reports whether value a of document d is the same JSON value as v.
func (r *run) equal(d *document, a, v uint32) bool {
	x, y := &d.nodes[a], &r.d.nodes[v]
	if x.kind != y.kind || x.size != y.size || !r.spend(1+int64(y.end-y.start)/64) {
		return false
	}
	switch x.kind {
	case kindNull:
		return true
	case kindBool:
		return string(d.raw(a)) == string(r.d.raw(v))
	case kindNumber:
		return string(d.raw(a)) == string(r.d.raw(v)) || d.number(a) == r.d.number(v)
	case kindString:
		return string(d.str(a)) == string(r.d.str(v))
	case kindArray:
		for i, j := a+1, v+1; i < x.next; i, j = d.nodes[i].next, r.d.nodes[j].next {
			if !r.equal(d, i, j) {
				return false
			}
		}
		return true
	}
	for i := a + 1; i < x.next; i = d.nodes[i].next {
		j, ok := r.member(v, string(d.key(i)))
		if !ok || !r.equal(d, i, j) {
			return false
		}
	}
	return true
}

// member finds a member of object v by its name.
func (r *run) member(v uint32, name string) (uint32, bool) {
	n := &r.d.nodes[v]
	if !r.spend(int64(n.size)) {
		return 0, false
	}
	for c := v + 1; c < n.next; c = r.d.nodes[c].next {
		if string(r.d.key(c)) == name {
			return c, true
		}
	}
	return 0, false
}

func (r *run) checkString(s *stringRule, v uint32) bool {
	text := r.d.str(v)
	if !r.spend(int64(len(text)) / 64) {
		return false
	}
	ok := true
	if s.min != nil || s.max != nil {
		length := runes(text)
		if s.min != nil && length < *s.min {
			r.faultf(v, "minLength", "expected at least "+plural(*s.min, "character")+", got %s", v)
			ok = false
		}
		if s.max != nil && length > *s.max {
			r.faultf(v, "maxLength", "expected at most "+plural(*s.max, "character")+", got "+strconv.Itoa(length), v)
			ok = false
		}
	}
	if s.pattern != nil && !r.match(s.pattern, text) {
		if r.stop != nil {
			return false
		}
		r.faultf(v, "pattern", "expected a string that matches the regular expression %s, got %s", s.pattern.source, v)
		ok = false
	}
	return ok
}

// match charges for the size of the expression as well as of the text.
func (r *run) match(p *pattern, text []byte) bool {
	if p.re == nil {
		return true
	}
	return r.spend(p.cost*(1+int64(len(text))/64)) && p.re.Match(text)
}

func (r *run) checkNumber(s *numberRule, v uint32) bool {
	n := r.d.number(v)
	if !r.spend(int64(len(n.digits)) / 8) {
		return false
	}
	ok := true
	bound := func(limit *decimal, keyword, words string, good bool) {
		if limit != nil && !good {
			r.faultf(v, keyword, "expected "+words+" "+limit.String()+", got %s", v)
			ok = false
		}
	}
	if s.min != nil {
		bound(s.min, "minimum", "at least", n.cmp(*s.min) >= 0)
	}
	if s.max != nil {
		bound(s.max, "maximum", "at most", n.cmp(*s.max) <= 0)
	}
	if s.exclusiveMin != nil {
		bound(s.exclusiveMin, "exclusiveMinimum", "more than", n.cmp(*s.exclusiveMin) > 0)
	}
	if s.exclusiveMax != nil {
		bound(s.exclusiveMax, "exclusiveMaximum", "less than", n.cmp(*s.exclusiveMax) < 0)
	}
	if s.multipleOf != nil {
		bound(s.multipleOf, "multipleOf", "a multiple of", n.multipleOf(*s.multipleOf))
	}
	return ok
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// formatName says what a format asks for, with an example where that helps.
func formatName(name string) string {
	switch name {
	case "date-time":
		return "a date and time as in RFC 3339, such as 2026-07-28T09:30:00Z"
	case "date":
		return "a date such as 2026-07-28"
	case "time":
		return "a time such as 09:30:00Z"
	case "duration":
		return "an ISO 8601 duration such as PT15M"
	case "email":
		return "an e-mail address"
	case "uri":
		return "an absolute URI"
	case "regex":
		return "a regular expression"
	}
	return "a string in the format " + name
}
