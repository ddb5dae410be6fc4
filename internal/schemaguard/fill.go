package schemaguard

import "encoding/json"

// Fill sets the defaults of what is missing in a value and validates the
// result, as [Schema.Validate] does. Defaults are those that properties have
// directly or by way of $ref, in objects that are there. A value that has them all is
// returned as it is.
func (s *Schema) Fill(data json.RawMessage, l Limits) (json.RawMessage, error) {
	p, err := s.program()
	if err != nil {
		return nil, err
	}
	d := borrow()
	defer d.giveBack()
	if err := d.parse(data); err != nil {
		return nil, &SyntaxError{Err: err}
	}
	if p.defaults && d.lacks(0, p.root) {
		data = d.fill(make([]byte, 0, len(data)+64), 0, p.root)
		if err := d.parse(data); err != nil {
			return nil, &SyntaxError{Err: err}
		}
	}
	return data, p.validate(d, l.withDefaults())
}

// lacks reports whether a default has to be set in v or below.
func (d *document) lacks(v uint32, s *rule) bool {
	s = s.filled()
	n := &d.nodes[v]
	switch {
	case s == nil:
	case n.kind == kindObject && s.object != nil:
		for name := range s.object.defaults {
			if !d.hasMember(v, name) {
				return true
			}
		}
		for c := v + 1; c < n.next; c = d.nodes[c].next {
			if m, ok := s.object.names[string(d.key(c))]; ok && m.rule != nil && d.lacks(c, m.rule) {
				return true
			}
		}
	case n.kind == kindArray && s.array != nil && s.array.rest != nil:
		i := 0
		for c := v + 1; c < n.next; c = d.nodes[c].next {
			if i >= len(s.array.prefix) && d.lacks(c, s.array.rest) {
				return true
			}
			i++
		}
	}
	return false
}

// fill appends v with its defaults to out.
func (d *document) fill(out []byte, v uint32, s *rule) []byte {
	s = s.filled()
	n := &d.nodes[v]
	switch {
	case s != nil && n.kind == kindObject && s.object != nil:
		out = append(out, '{')
		first := len(out)
		for _, name := range s.object.propertiesInUse {
			if def, ok := s.object.defaults[name]; ok && !d.hasMember(v, name) {
				out = separate(out, first)
				out = append(append(appendString(out, name), ':'), def...)
			}
		}
		for c := v + 1; c < n.next; c = d.nodes[c].next {
			out = separate(out, first)
			out = append(append(out, d.text[d.nodes[c].keyStart:d.nodes[c].keyEnd]...), ':')
			out = d.fill(out, c, s.object.names[string(d.key(c))].rule)
		}
		return append(out, '}')
	case s != nil && n.kind == kindArray && s.array != nil && s.array.rest != nil:
		out = append(out, '[')
		first, i := len(out), 0
		for c := v + 1; c < n.next; c = d.nodes[c].next {
			out = separate(out, first)
			if i < len(s.array.prefix) {
				out = append(out, d.raw(c)...)
			} else {
				out = d.fill(out, c, s.array.rest)
			}
			i++
		}
		return append(out, ']')
	}
	return append(out, d.raw(v)...)
}

func separate(out []byte, first int) []byte {
	if len(out) > first {
		return append(out, ',')
	}
	return out
}

func appendString(out []byte, s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil {
		return append(out, `""`...)
	}
	return append(out, quoted...)
}

func (d *document) hasMember(v uint32, name string) bool {
	n := &d.nodes[v]
	for c := v + 1; c < n.next; c = d.nodes[c].next {
		if string(d.key(c)) == name {
			return true
		}
	}
	return false
}

// filled is the rule whose defaults count for s: its own, or those of what it
// refers to.
func (s *rule) filled() *rule {
	for i := 0; s != nil && i < 8 && s.object == nil && s.array == nil; i++ {
		s = s.ref
	}
	return s
}
