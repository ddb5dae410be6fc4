package mcpserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
)

// A tree is a JSON value that keeps what encoding/json loses: the order of
// members, members of one name, and the digits of numbers.
type tree struct {
	kind    json.Delim // '{', '[' or 0 for a scalar
	members []treeMember
	items   []tree
	scalar  any // string, json.Number, bool or nil
}

type treeMember struct {
	name  string
	value tree
}

// member returns the last member of that name, which is the one that counts.
func (t tree) member(name string) (tree, bool) {
	for _, m := range slices.Backward(t.members) {
		if m.name == name {
			return m.value, true
		}
	}
	return tree{}, false
}

// parseTree parses one JSON value. Valid bounds the nesting, which Decoder.Token does not.
func parseTree(raw json.RawMessage) (tree, error) {
	if !json.Valid(raw) {
		return tree{}, errors.New("not valid JSON")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return nextTree(dec)
}

func nextTree(dec *json.Decoder) (tree, error) {
	token, err := dec.Token()
	if err != nil {
		return tree{}, err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return tree{scalar: token}, nil
	}
	t := tree{kind: delim}
	for dec.More() {
		var m treeMember
		if delim == '{' {
			name, err := dec.Token()
			if err != nil {
				return tree{}, err
			}
			m.name, _ = name.(string) // always one
		}
		if m.value, err = nextTree(dec); err != nil {
			return tree{}, err
		}
		if delim == '{' {
			t.members = append(t.members, m)
		} else {
			t.items = append(t.items, m.value)
		}
	}
	_, err = dec.Token() // the end
	return t, err
}

// append writes t as JSON.
func (t tree) append(out []byte) ([]byte, error) {
	switch t.kind {
	case '{':
		out = append(out, '{')
		for i, m := range t.members {
			if i > 0 {
				out = append(out, ',')
			}
			name, err := json.Marshal(m.name)
			if err != nil {
				return nil, err
			}
			if out, err = m.value.append(append(append(out, name...), ':')); err != nil {
				return nil, err
			}
		}
		return append(out, '}'), nil
	case '[':
		out = append(out, '[')
		for i, item := range t.items {
			if i > 0 {
				out = append(out, ',')
			}
			var err error
			if out, err = item.append(out); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	}
	scalar, err := json.Marshal(t.scalar)
	return append(out, scalar...), err
}

// sort orders the members of t and of all below by their names. Those of one
// name keep their order: a reader may take the first or the last.
func (t tree) sort() {
	slices.SortStableFunc(t.members, func(a, b treeMember) int { return cmp.Compare(a.name, b.name) })
	for _, m := range t.members {
		m.value.sort()
	}
	for _, item := range t.items {
		item.sort()
	}
}

// canonicalJSON is a text that two JSON values share only if every reader takes
// them for the same: spaces, escapes and the order of members do not count, the
// digits of numbers do. What cannot be compared that way is returned as it is.
func canonicalJSON(raw json.RawMessage) []byte {
	t, err := parseTree(raw)
	if err != nil {
		return raw
	}
	t.sort()
	text, err := t.append(nil)
	if err != nil || bytes.ContainsRune(text, '\ufffd') { // several broken texts decode to this one
		return raw
	}
	return text
}
