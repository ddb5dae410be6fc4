package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tenon-sdk/tenon/internal/jsonscan"
)

// Fields holds the JSON fields of a value that this package has no name for.
// They survive a decode and encode round trip. Nil means none.
type Fields map[string]json.RawMessage

// NullString is a string whose empty value is null in JSON.
type NullString string

// MarshalJSON returns null for the empty string.
func (s NullString) MarshalJSON() ([]byte, error) {
	if s == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(s))
}

// wireFields maps the JSON names of a struct type's fields to where they are.
func wireFields(t reflect.Type) map[string][]int {
	if known, ok := wireFieldsCache.Load(t); ok {
		return known.(map[string][]int)
	}
	known := make(map[string][]int)
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			known[name] = f.Index
		}
	}
	wireFieldsCache.Store(t, known)
	return known
}

// wireFieldsCache maps a struct type to its JSON names. It only ever grows by a fixed set of types.
var wireFieldsCache sync.Map

// decodeWire decodes the object data into v, a pointer to a struct without methods, and
// returns the fields that the struct has no name for, without those of head, which the encoder
// writes by itself. Names count by their exact spelling: encoding/json alone would take "UUID" for "uuid".
//
// Each field is decoded by itself, which reads the object once and not twice: messages nest, and
// what reads each level twice reads the innermost one sixteen times.
func decodeWire(data []byte, v any, head ...string) (Fields, error) {
	var extra Fields
	err := decodeMembers(data, v, func(m member) {
		if slices.Contains(head, string(m.name)) {
			return
		}
		if extra == nil {
			extra = make(Fields)
		}
		extra[string(m.name)] = bytes.Clone(m.value)
	})
	return extra, err
}

// decodeHead decodes of the object data what the struct that v points to has names for.
func decodeHead(data []byte, v any) error { return decodeMembers(data, v, func(member) {}) }

// decodeMembers decodes the object data into the struct that v points to, and hands on what that has no name for.
func decodeMembers(data []byte, v any, other func(member)) error {
	scratch := takeScratch()
	defer scratch.putBack()
	members, err := scratch.membersOf(data)
	if err != nil {
		return err
	}
	into := reflect.ValueOf(v).Elem()
	known := wireFields(into.Type())
	for i, m := range members {
		index, ok := known[string(m.name)]
		switch {
		case shadowed(members, i):
		case !ok:
			other(m)
		default:
			if err := decodeField(m.value, into.FieldByIndex(index).Addr().Interface()); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
		}
	}
	return nil
}

// A member is one member of a JSON object, as slices of what was read.
type member struct {
	name  []byte
	value json.RawMessage
}

// A scratch has room for the members of an object while it is looked at. Messages nest, and each
// level wants its own.
type scratch struct{ room []member }

// scratchRoom is how many members a scratch that is kept has room for; few objects have more.
const scratchRoom = 64

var scratches = sync.Pool{New: func() any { return &scratch{make([]member, 0, scratchRoom)} }}

func takeScratch() *scratch {
	s, _ := scratches.Get().(*scratch)
	return s
}

// putBack lets go of what was read.
func (s *scratch) putBack() {
	clear(s.room)
	if s.room = s.room[:0]; cap(s.room) <= scratchRoom {
		scratches.Put(s)
	}
}

// membersOf returns the members of an object, in their order, until the scratch is put back.
func (s *scratch) membersOf(data []byte) ([]member, error) {
	err := jsonscan.Object(data, func(name []byte, value json.RawMessage) {
		s.room = append(s.room, member{name, value})
	})
	if err == nil && utf8.Valid(data) {
		return s.room, nil
	}
	// What the scanner refuses, or does not mend as encoding/json does.
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	if all == nil {
		return nil, fmt.Errorf("got null, want an object")
	}
	s.room = s.room[:0]
	for name, value := range all {
		s.room = append(s.room, member{[]byte(name), value})
	}
	return s.room, nil
}

// shadowed reports whether a later member has the name of members[i]: the last one counts.
func shadowed(members []member, i int) bool {
	return slices.ContainsFunc(members[i+1:], func(m member) bool { return bytes.Equal(m.name, members[i].name) })
}

// textOf returns the text of a member; false if it is no string.
func textOf(members []member, name string) (text string, present, ok bool) {
	for i := len(members) - 1; i >= 0; i-- {
		if string(members[i].name) == name {
			err := decodeField(members[i].value, &text)
			return text, true, err == nil
		}
	}
	return "", false, false
}

// decodeField decodes one value, which is valid JSON. Most are of a few types, for which
// encoding/json would read it twice more.
func decodeField(raw json.RawMessage, v any) error {
	switch v := v.(type) {
	case *string:
		if text, ok := jsonscan.Text(raw); ok {
			*v = text
			return nil
		}
	case *NullString:
		if text, ok := jsonscan.Text(raw); ok {
			*v = NullString(text)
			return nil
		}
	case *int64:
		if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
			*v = n
			return nil
		}
	case *json.RawMessage:
		*v = bytes.Clone(raw)
		return nil
	case json.Unmarshaler:
		return v.UnmarshalJSON(raw)
	}
	return json.Unmarshal(raw, v)
}

// encodeWire encodes v, a struct without methods, as an object: "type" first unless kind is
// empty, then the fields of v, then those of extra that v does not have, in the order of their names.
func encodeWire(kind string, v any, extra Fields) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(body) < 2 || body[0] != '{' {
		return nil, fmt.Errorf("agent: %T encodes as %.20s, want an object", v, body)
	}
	var b bytes.Buffer
	b.Grow(len(body) + 64)
	b.WriteByte('{')
	if kind != "" {
		fmt.Fprintf(&b, "%q:%q", "type", kind)
	}
	if inner := body[1 : len(body)-1]; len(inner) > 0 {
		comma(&b)
		b.Write(inner)
	}
	known := wireFields(reflect.Indirect(reflect.ValueOf(v)).Type())
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if _, ok := known[name]; ok || len(extra[name]) == 0 || kind != "" && name == "type" {
			continue
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		comma(&b)
		b.Write(key)
		b.WriteByte(':')
		b.Write(extra[name])
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func comma(b *bytes.Buffer) {
	if b.Len() > 1 {
		b.WriteByte(',')
	}
}
