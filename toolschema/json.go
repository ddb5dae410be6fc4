package toolschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// A JSON value in this package is nil, a bool, a number, a string, a []any or an *object.

// A number is kept as it is written.
type number string

// An object keeps the order of its members. Keys are unique.
type object struct {
	members []member
	index   map[string]int // set when there are many members
}

type member struct {
	key   string
	value any
}

// manyMembers is the size above which an object has an index.
const manyMembers = 16

func newObject(members ...member) *object { return &object{members: members} }

func (o *object) find(key string) int {
	if o == nil {
		return -1
	}
	if o.index != nil {
		if i, ok := o.index[key]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(o.members, func(m member) bool { return m.key == key })
}

func (o *object) get(key string) (any, bool) {
	if i := o.find(key); i >= 0 {
		return o.members[i].value, true
	}
	return nil, false
}

// set replaces the value of a key, or appends it.
func (o *object) set(key string, v any) {
	if i := o.find(key); i >= 0 {
		o.members[i].value = v
		return
	}
	o.members = append(o.members, member{key, v})
	switch {
	case o.index != nil:
		o.index[key] = len(o.members) - 1
	case len(o.members) > manyMembers:
		o.reindex()
	}
}

func (o *object) reindex() {
	o.index = nil
	if len(o.members) > manyMembers {
		o.index = make(map[string]int, len(o.members))
		for i, m := range o.members {
			o.index[m.key] = i
		}
	}
}

func (o *object) remove(keys ...string) {
	n := len(o.members)
	o.members = slices.DeleteFunc(o.members, func(m member) bool { return slices.Contains(keys, m.key) })
	if len(o.members) != n {
		o.reindex()
	}
}

// removeAll removes many members at once.
func (o *object) removeAll(keys map[string]bool) {
	n := len(o.members)
	o.members = slices.DeleteFunc(o.members, func(m member) bool { return keys[m.key] })
	if len(o.members) != n {
		o.reindex()
	}
}

// object returns the member of that name if it is an object, or nil.
func (o *object) object(key string) *object {
	v, _ := o.get(key)
	obj, _ := v.(*object)
	return obj
}

func (o *object) text(key string) string {
	v, _ := o.get(key)
	s, _ := v.(string)
	return s
}

// A parser parses JSON of any depth with a limited stack.
type parser struct {
	data  []byte
	at    int
	depth int
	limit int
	// cut counts the values below the depth limit, which are read as null.
	cut int
	// mangled reports text with invalid Unicode, which was replaced.
	mangled bool
}

// errSyntax reports invalid JSON.
var errSyntax = errors.New("is no valid JSON")

// tooDeep is in place of a value below the depth limit.
type tooDeep struct{}

// parseJSON parses a document. Values nested deeper than limit become tooDeep.
func parseJSON(data []byte, limit int) (v any, p *parser, err error) {
	p = &parser{data: data, limit: limit}
	v, err = p.value()
	if err != nil {
		return nil, p, err
	}
	if p.space(); p.at < len(p.data) {
		return nil, p, errSyntax
	}
	return v, p, nil
}

func (p *parser) space() {
	for p.at < len(p.data) && (p.data[p.at] == ' ' || p.data[p.at] == '\n' || p.data[p.at] == '\t' || p.data[p.at] == '\r') {
		p.at++
	}
}

// peek returns the next byte that is no space, or zero at the end.
func (p *parser) peek() byte {
	if p.space(); p.at < len(p.data) {
		return p.data[p.at]
	}
	return 0
}

func (p *parser) value() (any, error) {
	switch c := p.peek(); c {
	case '{', '[':
		if p.depth >= p.limit {
			p.cut++
			return tooDeep{}, p.skip()
		}
		p.depth++
		defer func() { p.depth-- }()
		p.at++
		if c == '{' {
			return p.object()
		}
		return p.array()
	case '"':
		return p.text()
	default:
		return p.literal()
	}
}

func (p *parser) object() (any, error) {
	o := &object{}
	if p.peek() == '}' {
		p.at++
		return o, nil
	}
	for {
		if p.peek() != '"' {
			return nil, errSyntax
		}
		key, err := p.text()
		if err != nil {
			return nil, err
		}
		if p.peek() != ':' {
			return nil, errSyntax
		}
		p.at++
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		o.set(key, v) // of several with one key the last counts, as for every parser
		switch p.peek() {
		case ',':
			p.at++
		case '}':
			p.at++
			return o, nil
		default:
			return nil, errSyntax
		}
	}
}

func (p *parser) array() (any, error) {
	list := []any{}
	if p.peek() == ']' {
		p.at++
		return list, nil
	}
	for {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		switch p.peek() {
		case ',':
			p.at++
		case ']':
			p.at++
			return list, nil
		default:
			return nil, errSyntax
		}
	}
}

// text reads a string. It replaces invalid Unicode by U+FFFD.
func (p *parser) text() (string, error) {
	end, escaped := stringEnd(p.data, p.at)
	if end < 0 {
		return "", errSyntax
	}
	raw := p.data[p.at:end]
	p.at = end
	if !escaped && utf8.Valid(raw) {
		return string(raw[1 : len(raw)-1]), nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", errSyntax
	}
	if strings.ContainsRune(s, 0) { // which some who read it do not take
		s, p.mangled = strings.ReplaceAll(s, "\x00", "\ufffd"), true
	}
	if strings.ContainsRune(s, utf8.RuneError) && !bytes.Contains(raw, []byte("\ufffd")) && !bytes.Contains(bytes.ToLower(raw), []byte(`\ufffd`)) {
		p.mangled = true
	}
	return s, nil
}

// stringEnd returns the end of a string, or -1 if it does not end or has a control character.
func stringEnd(data []byte, at int) (end int, escaped bool) {
	for i := at + 1; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			return i + 1, escaped
		case c == '\\':
			escaped = true
			i++
		case c < ' ':
			return -1, false
		}
	}
	return -1, false
}

func (p *parser) literal() (any, error) {
	start := p.at
	for p.at < len(p.data) && strings.IndexByte("+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", p.data[p.at]) >= 0 {
		p.at++
	}
	raw := p.data[start:p.at]
	switch string(raw) {
	case "null":
		return nil, nil
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	if len(raw) == 0 || !json.Valid(raw) {
		return nil, errSyntax
	}
	return number(raw), nil
}

// skip skips an object or array.
func (p *parser) skip() error {
	depth := 0
	for p.at < len(p.data) {
		switch p.data[p.at] {
		case '"':
			end, _ := stringEnd(p.data, p.at)
			if end < 0 {
				return errSyntax
			}
			p.at = end
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		p.at++
		if depth == 0 {
			return nil
		}
	}
	return errSyntax
}

// appendJSON appends a value in one line. Equal values have equal bytes.
func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return fmt.Append(b, v)
	case number:
		return append(b, v...)
	case string:
		return appendString(b, v)
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, e)
		}
		return append(b, ']')
	case *object:
		b = append(b, '{')
		for i, m := range v.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, m.key), ':')
			b = appendJSON(b, m.value)
		}
		return append(b, '}')
	}
	return append(b, "{}"...) // tooDeep, where it was left
}

const hexDigits = "0123456789abcdef"

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	done := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c != 0x7f {
			continue
		}
		b = append(b, s[done:i]...)
		done = i + 1
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\t':
			b = append(b, '\\', 't')
		case c == '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(b, s[done:]...), '"')
}

// json writes a value and counts what it takes.
func (m *mender) json(v any) []byte {
	b := appendJSON(nil, v)
	m.spend(1 + len(b)/8)
	return b
}

// equalJSON reports whether two values have the same JSON.
func (m *mender) equalJSON(a, b any) bool {
	m.spend(1)
	switch av := a.(type) {
	case nil, bool, number, string:
		return a == b
	case []any:
		bv, ok := b.([]any)
		return ok && slices.EqualFunc(av, bv, m.equalJSON)
	case *object:
		bv, ok := b.(*object)
		return ok && (av == bv || slices.EqualFunc(av.members, bv.members, func(x, y member) bool { return x.key == y.key && m.equalJSON(x.value, y.value) }))
	}
	return a == b // tooDeep
}
