package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
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
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	if all == nil {
		return nil, fmt.Errorf("got null, want an object")
	}
	into := reflect.ValueOf(v).Elem()
	known := wireFields(into.Type())
	var extra Fields
	for name, raw := range all {
		index, ok := known[name]
		switch {
		case ok:
			if err := json.Unmarshal(raw, into.FieldByIndex(index).Addr().Interface()); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		case !slices.Contains(head, name):
			if extra == nil {
				extra = make(Fields)
			}
			extra[name] = raw
		}
	}
	return extra, nil
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
