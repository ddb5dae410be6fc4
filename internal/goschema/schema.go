package goschema

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"strings"
	"time"

	"github.com/invopop/jsonschema"
)

// Use is the direction of values of a type.
type Use int

const (
	// Input is for types that JSON is decoded into.
	Input Use = iota
	// Output is for types that are encoded. A nil slice or map may be null.
	Output
)

// maxInline is the number of schemas that are written out. Beyond it, named types are
// written once, with references to them.
const maxInline = 2000

// maxParts is the number of schemas that one type may consist of.
const maxParts = 20_000

// errInline reports that maxInline is exceeded.
var errInline = errors.New("too large to be written out")

// An Error reports a type that has no schema.
type Error struct {
	Type  reflect.Type
	Field string // the path of Go field names to it; "" at the root
	Err   error
}

func (e *Error) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("type %s: %v", e.Type, e.Err)
	}
	return fmt.Sprintf("field %s of type %s: %v", e.Field, e.Type, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// For returns the schema of t. The error is an [*Error].
func For(t reflect.Type, use Use) (json.RawMessage, error) {
	w := walker{use: use}
	schema, err := w.root(t)
	if errors.Is(err, errInline) {
		w = walker{use: use, refer: true}
		schema, err = w.root(t)
	}
	return schema, err
}

// A walker derives one schema.
type walker struct {
	use    Use
	refer  bool // to named types, which are written once
	made   int
	path   []string
	open   []reflect.Type // named types in progress
	names  map[reflect.Type]string
	taken  map[string]bool // the names in names
	counts map[string]int  // of names with the same base
	defs   jsonschema.Definitions
}

func (w *walker) root(t reflect.Type) (text json.RawMessage, err error) {
	defer func() {
		if r := recover(); r != nil {
			text, err = nil, w.fail(t, fmt.Errorf("it panicked while it was described: %v", r))
		}
	}()
	w.names, w.taken, w.counts, w.defs = map[reflect.Type]string{}, map[string]bool{}, map[string]int{}, jsonschema.Definitions{}
	for t.Kind() == reflect.Pointer && t.Name() == "" {
		t = t.Elem()
	}
	s, err := w.schema(t)
	if err != nil {
		return nil, err
	}
	if name, ok := strings.CutPrefix(s.Ref, defsPrefix); ok { // the root must say its type itself
		s = copyOf(w.defs[name])
		if !w.refersTo(name) {
			delete(w.defs, name)
		}
	}
	s.Version, s.ID = "", ""
	if types, ok := s.Extras["type"].([]string); ok && len(types) == 2 { // the whole is never null
		s.Type = types[0]
		delete(s.Extras, "type")
	}
	if len(w.defs) > 0 {
		s.Definitions = w.defs
	}
	text, err = json.Marshal(s)
	if err != nil {
		return nil, w.fail(t, err)
	}
	return text, nil
}

const defsPrefix = "#/$defs/"

func (w *walker) refersTo(name string) bool {
	text, err := json.Marshal(w.defs)
	return err != nil || strings.Contains(string(text), `"`+defsPrefix+name+`"`)
}

func copyOf(s *jsonschema.Schema) *jsonschema.Schema {
	c := *s
	c.Extras = maps.Clone(s.Extras)
	return &c
}

func (w *walker) fail(t reflect.Type, err error) error {
	return &Error{Type: t, Field: strings.Join(w.path, "."), Err: err}
}

// schema returns the schema of t, or a reference to it.
func (w *walker) schema(t reflect.Type) (*jsonschema.Schema, error) {
	switch w.made++; {
	case !w.refer && w.made > maxInline:
		return nil, errInline
	case w.made > maxParts:
		return nil, w.fail(t, fmt.Errorf("the whole has more than %d parts", maxParts))
	}
	if s, err := w.special(t); s != nil || err != nil {
		return s, err
	}
	if t.Name() == "" || !mayRecur(t) {
		return w.plain(t)
	}
	if name, ok := w.names[t]; ok {
		return &jsonschema.Schema{Ref: defsPrefix + name}, nil
	}
	for _, open := range w.open {
		if open == t {
			if t.Kind() == reflect.Pointer {
				return nil, w.fail(t, fmt.Errorf("a pointer to itself has no JSON form"))
			}
			w.names[t] = w.nameFor(t)
			return &jsonschema.Schema{Ref: defsPrefix + w.names[t]}, nil
		}
	}
	w.open = append(w.open, t)
	s, err := w.plain(t)
	w.open = w.open[:len(w.open)-1]
	if err != nil {
		return nil, err
	}
	if w.refer && w.names[t] == "" {
		w.names[t] = w.nameFor(t)
	}
	if name, ok := w.names[t]; ok {
		w.defs[name] = s
		return &jsonschema.Schema{Ref: defsPrefix + name}, nil
	}
	return s, nil
}

func mayRecur(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Slice, reflect.Array, reflect.Map, reflect.Pointer:
		return true
	}
	return false
}

// nameFor returns an unused name for a definition.
func (w *walker) nameFor(t reflect.Type) string {
	clean := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, t.Name()[strings.LastIndexAny(t.Name(), "/")+1:])
	for name := clean; ; {
		_, defined := w.defs[name]
		if !defined && !w.taken[name] {
			w.taken[name] = true
			return name
		}
		w.counts[clean]++
		name = fmt.Sprintf("%s_%d", clean, w.counts[clean]+1)
	}
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
	rawType      = reflect.TypeFor[json.RawMessage]()
	numberType   = reflect.TypeFor[json.Number]()
	bigIntType   = reflect.TypeFor[big.Int]()

	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// The methods by which a type describes itself.
type (
	// describer returns the schema as JSON.
	describer interface{ JSONSchema() json.RawMessage }
	// schemaDescriber returns the schema in the type of invopop/jsonschema.
	schemaDescriber interface{ JSONSchema() *jsonschema.Schema }
	// lister returns the values of the type.
	lister interface{ JSONSchemaEnum() []any }
)

// has reports whether t or a pointer to it has the methods of an interface.
func has(t, iface reflect.Type) bool {
	return t.Implements(iface) || t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(iface)
}

// special returns the schema of a type whose JSON form is not that of its kind, nil for
// other types.
func (w *walker) special(t reflect.Type) (*jsonschema.Schema, error) {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return nil, nil
	}
	switch t {
	case timeType:
		return &jsonschema.Schema{Type: "string", Format: "date-time"}, nil
	case durationType:
		return &jsonschema.Schema{Type: "integer", Description: "a duration in nanoseconds; 1000000000 is one second"}, nil
	case rawType:
		return anything(), nil
	case numberType:
		return &jsonschema.Schema{Type: "number"}, nil
	case bigIntType:
		return &jsonschema.Schema{Type: "integer"}, nil
	}
	switch d := reflect.New(t).Interface().(type) {
	case describer:
		return w.selfMade(t, d.JSONSchema())
	case schemaDescriber:
		return w.described(d.JSONSchema()), nil
	case lister:
		return w.listed(t, d.JSONSchemaEnum())
	}
	return w.encoded(t), nil
}

// encoded returns the schema of a type that encodes itself, nil for other types.
func (w *walker) encoded(t reflect.Type) *jsonschema.Schema {
	fromJSON, fromText := jsonUnmarshaler, textUnmarshaler
	if w.use == Output {
		fromJSON, fromText = jsonMarshaler, textMarshaler
	}
	switch {
	case has(t, fromJSON):
		return anything()
	case has(t, fromText):
		return &jsonschema.Schema{Type: "string"}
	}
	return nil
}

// described returns a schema that a type describes itself with. Its definitions move to
// the root.
func (w *walker) described(s *jsonschema.Schema) *jsonschema.Schema {
	if s == nil {
		return anything()
	}
	s = copyOf(s)
	for name, def := range s.Definitions {
		w.defs[name] = def
	}
	s.Definitions, s.Version, s.ID = nil, "", ""
	return s
}

// anything returns the schema {}, which readers know better than true.
func anything() *jsonschema.Schema { return &jsonschema.Schema{Extras: map[string]any{}} }

// plain returns the schema of a type by its kind.
func (w *walker) plain(t reflect.Type) (*jsonschema.Schema, error) {
	switch t.Kind() {
	case reflect.Pointer:
		s, err := w.schema(t.Elem())
		if err != nil {
			return nil, err
		}
		return nullable(s), nil
	case reflect.Struct:
		return w.structure(t)
	case reflect.Slice, reflect.Array:
		return w.sequence(t)
	case reflect.Map:
		return w.dictionary(t)
	case reflect.Interface:
		if w.use == Input && t.NumMethod() > 0 {
			return nil, w.fail(t, fmt.Errorf("JSON cannot be read into an interface with methods"))
		}
		return anything(), nil
	}
	s := scalar(t)
	if s == nil {
		return nil, w.fail(t, fmt.Errorf("a %s has no JSON form", t.Kind()))
	}
	return s, nil
}

func scalar(t reflect.Type) *jsonschema.Schema {
	switch t.Kind() {
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}
	case reflect.String:
		return &jsonschema.Schema{Type: "string"}
	case reflect.Float32, reflect.Float64:
		return &jsonschema.Schema{Type: "number"}
	case reflect.Int, reflect.Int64:
		return &jsonschema.Schema{Type: "integer"}
	case reflect.Int8, reflect.Int16, reflect.Int32:
		limit := int64(1) << (t.Bits() - 1)
		return &jsonschema.Schema{Type: "integer", Minimum: number(-limit), Maximum: number(limit - 1)}
	case reflect.Uint, reflect.Uint64, reflect.Uintptr:
		return &jsonschema.Schema{Type: "integer", Minimum: "0"}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return &jsonschema.Schema{Type: "integer", Minimum: "0", Maximum: number(int64(1)<<t.Bits() - 1)}
	}
	return nil
}

func number(n int64) json.Number { return json.Number(fmt.Sprint(n)) }

func (w *walker) sequence(t reflect.Type) (*jsonschema.Schema, error) {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && !has(t.Elem(), jsonMarshaler) && !has(t.Elem(), textMarshaler) {
		s := &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}
		return w.maybeNull(s), nil
	}
	items, err := w.schema(t.Elem())
	if err != nil {
		return nil, err
	}
	s := &jsonschema.Schema{Type: "array", Items: items}
	if t.Kind() == reflect.Array {
		n := uint64(t.Len())
		s.MinItems, s.MaxItems = &n, &n
		return s, nil
	}
	return w.maybeNull(s), nil
}

func (w *walker) dictionary(t reflect.Type) (*jsonschema.Schema, error) {
	key := t.Key()
	numeric := key.Kind() >= reflect.Int && key.Kind() <= reflect.Uintptr
	asText := has(key, textUnmarshaler)
	if w.use == Output {
		asText = has(key, textMarshaler)
	}
	if key.Kind() != reflect.String && !numeric && !asText {
		return nil, w.fail(t, fmt.Errorf("a map with keys of type %s has no JSON form", key))
	}
	value, err := w.schema(t.Elem())
	if err != nil {
		return nil, err
	}
	s := &jsonschema.Schema{Type: "object", AdditionalProperties: value}
	if numeric && !asText {
		s.PropertyNames = &jsonschema.Schema{Pattern: `^-?[0-9]+$`}
	}
	return w.maybeNull(s), nil
}

// maybeNull allows null for what Go may write as null.
func (w *walker) maybeNull(s *jsonschema.Schema) *jsonschema.Schema {
	if w.use == Output {
		return nullable(s)
	}
	return s
}

// nullable allows null beside what s allows. It may change s.
func nullable(s *jsonschema.Schema) *jsonschema.Schema {
	switch {
	case s.Type != "":
		if s.Extras == nil {
			s.Extras = map[string]any{}
		}
		s.Extras["type"] = []string{s.Type, "null"}
		s.Type = ""
		if len(s.Enum) > 0 {
			s.Enum = append(s.Enum, nil)
		}
		return s
	case s.Ref != "" || len(s.AnyOf)+len(s.OneOf)+len(s.AllOf)+len(s.Enum) > 0 || len(s.Extras) > 0 && s.Extras["type"] == nil:
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s, {Type: "null"}}}
	}
	return s // null is allowed already
}
