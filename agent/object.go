package agent

import (
	"bytes"
	"encoding/json"
	"errors"
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

// Fields holds the JSON fields of a value that its struct has no name for. They survive decoding and
// encoding.
type Fields map[string]json.RawMessage

// NullString is a string whose empty value is null in JSON.
type NullString string

// MarshalJSON implements [json.Marshaler].
func (s NullString) MarshalJSON() ([]byte, error) {
	if s == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(s))
}

// A structInfo describes a struct type for decodeObject and encodeObject.
type structInfo struct {
	fields map[string][]int // the index of each field, by its JSON name
	plain  reflect.Type     // a pointer to the same struct without methods
}

var structInfos sync.Map // of reflect.Type to structInfo

func infoOf(t reflect.Type) structInfo {
	if info, ok := structInfos.Load(t); ok {
		return info.(structInfo)
	}
	info := structInfo{fields: map[string][]int{}}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			info.fields[name] = f.Index
		}
	}
	if t.Name() != "" {
		info.plain = reflect.PointerTo(reflect.StructOf(slices.Collect(t.Fields())))
	}
	structInfos.Store(t, info)
	return info
}

// decodeObject decodes a JSON object into the struct that v points to. Fields match by their exact
// names. The fields that the struct has no name for go to its field Extra, except those of head.
// It does not use json.Unmarshal for the object because each nested message would be read once more
// at every level above it.
func decodeObject(data []byte, v any, head ...string) error {
	object := reflect.ValueOf(v).Elem()
	fields := infoOf(object.Type()).fields
	var extra Fields
	var failure error
	err := visitObject(data, func(name []byte, value json.RawMessage) {
		index, ok := fields[string(name)]
		switch {
		case ok:
			if err := decodeValue(value, object.FieldByIndex(index).Addr().Interface()); err != nil {
				failure = fmt.Errorf("%s: %w", name, err)
			}
		case !slices.Contains(head, string(name)):
			if extra == nil {
				extra = Fields{}
			}
			extra[string(name)] = bytes.Clone(value)
		}
	})
	if field := object.FieldByName("Extra"); field.IsValid() {
		field.Set(reflect.ValueOf(extra))
	}
	if err != nil {
		return err
	}
	return failure
}

// visitObject calls visit for each member of a JSON object. It may call visit again for members that
// it has visited. Name and value are valid during the call.
func visitObject(data []byte, visit func(name []byte, value json.RawMessage)) error {
	if utf8.Valid(data) && jsonscan.Object(data, visit) == nil {
		return nil
	}
	// The scanner refuses invalid UTF-8, which encoding/json replaces.
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	if members == nil {
		return errors.New("got null, want an object")
	}
	for name, value := range members {
		visit([]byte(name), value)
	}
	return nil
}

// decodeValue decodes a valid JSON value. It has fast paths for the most frequent types.
func decodeValue(raw json.RawMessage, v any) error {
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

// encodeObject encodes the struct that v points to as a JSON object. The names and values of head
// come first, then the fields of the struct, then its Extra fields in the order of their names. An
// extra field does not replace another one.
func encodeObject(v any, head ...string) ([]byte, error) {
	object := reflect.ValueOf(v)
	extra, _ := object.Elem().FieldByName("Extra").Interface().(Fields)
	plain := object.Convert(infoOf(object.Type().Elem()).plain)
	return joinObject(plain.Interface(), extra, head...)
}

// joinObject is encodeObject for a pointer to a struct without methods.
func joinObject(v any, extra Fields, head ...string) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(make([]byte, 0, len(body)+64))
	comma := func() {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
	}
	b.WriteByte('{')
	for pair := range slices.Chunk(head, 2) {
		comma()
		fmt.Fprintf(b, "%q:%q", pair[0], pair[1])
	}
	if inner := body[1 : len(body)-1]; len(inner) > 0 {
		comma()
		b.Write(inner)
	}
	fields := infoOf(reflect.TypeOf(v).Elem()).fields
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if _, known := fields[name]; known || len(extra[name]) == 0 || slices.Contains(head, name) {
			continue
		}
		key, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		comma()
		b.Write(key)
		b.WriteByte(':')
		b.Write(extra[name])
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// orEmpty returns a slice that is not nil, which JSON writes as [].
func orEmpty[E any](s []E) []E {
	if s == nil {
		return []E{}
	}
	return s
}

// isNil reports whether v is nil or a nil pointer.
func isNil(v any) bool {
	r := reflect.ValueOf(v)
	return !r.IsValid() || r.Kind() == reflect.Pointer && r.IsNil()
}
