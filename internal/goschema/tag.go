package goschema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/tenon-sdk/tenon/internal/schemaguard"
)

// A tag holds the content of the struct tags of a field.
type tag struct {
	description                  string
	required, optional, nullable bool
	deprecated                   bool
	keywords                     []keyword
}

type keyword struct{ name, value string }

// flags lists the keywords that need no value.
var flags = []string{"required", "optional", "nullable", "deprecated", "readOnly", "writeOnly", "uniqueItems"}

// valued lists the keywords that need one.
var valued = []string{
	"title", "description", "enum", "default", "example", "format", "pattern", "minLength", "maxLength",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
	"minProperties", "maxProperties", "x-mcp-header",
}

// onItems lists the keywords that apply to the items of a slice.
var onItems = []string{
	"enum", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
}

// parseTag reads the tags jsonschema and jsonschema_description.
func parseTag(text, description string) (tag, error) {
	t := tag{description: description}
	if text == "" {
		return t, nil
	}
	parts := strings.Split(text, ",")
	if first, _, ok := isKeyword(parts[0]); !ok {
		if first != "" {
			return t, fmt.Errorf("the jsonschema tag has the unknown keyword %q; a plain description must not begin with a word and =", first)
		}
		if t.description == "" {
			t.description = text
		}
		return t, nil
	}
	for _, part := range parts {
		name, value, ok := isKeyword(part)
		if ok {
			t.keywords = append(t.keywords, keyword{name, value})
			continue
		}
		if err := t.keywords[len(t.keywords)-1].extend(name, part); err != nil {
			return t, err
		}
	}
	return t, t.take()
}

// prose lists the keywords whose value may have commas without backslashes.
var prose = []string{"title", "description", "pattern", "default", "example"}

// extend adds the part after a comma to the value before it. Name is the text before =
// in the part, if it looks like a keyword.
func (k *keyword) extend(name, part string) error {
	inside, escaped := strings.CutSuffix(k.value, `\`)
	switch {
	case escaped:
	case name != "" && slices.Contains(flags, name):
		return fmt.Errorf("the jsonschema tag says %s, want true or false", part)
	case name != "":
		return fmt.Errorf("the jsonschema tag has the unknown keyword %q; a comma that belongs to the value of %s is written as a backslash and a comma", name, k.name)
	case slices.Contains(flags, k.name):
		return fmt.Errorf("the jsonschema tag has the unknown keyword %q", part)
	case !slices.Contains(prose, k.name) && !strings.HasPrefix(k.value, "[") && !strings.HasPrefix(k.value, "{"):
		return fmt.Errorf("the jsonschema tag has the unknown keyword %q after %s; of several values each has its own %s=, and a comma that belongs to the value is written as a backslash and a comma", part, k.name, k.name)
	}
	k.value = inside + "," + part
	return nil
}

// isKeyword splits a part of a tag. If it is not a keyword, name is the text before =,
// if it looks like one.
func isKeyword(part string) (name, value string, ok bool) {
	name, value, hasValue := strings.Cut(part, "=")
	if slices.Contains(flags, name) && (!hasValue || value == "true" || value == "false") {
		return name, value, true
	}
	if hasValue && slices.Contains(valued, name) {
		return name, value, true
	}
	if !hasValue && slices.Contains(valued, name) {
		return name, value, true // its value is missing: take reports it
	}
	if !hasValue || name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		name = ""
	}
	return name, value, false
}

// take moves the keywords for the field, not its type, into fields of t.
func (t *tag) take() error {
	var rest []keyword
	seen := map[string]bool{}
	for _, k := range t.keywords {
		if seen[k.name] && k.name != "enum" && k.name != "example" && k.name != "default" {
			return fmt.Errorf("the jsonschema tag has the keyword %q twice", k.name)
		}
		seen[k.name] = true
		on := k.value != "false"
		switch k.name {
		case "description":
			if t.description == "" {
				t.description = k.value
			}
		case "required":
			t.required = on
		case "optional":
			t.optional = on
		case "nullable":
			t.nullable = on
		case "deprecated":
			t.deprecated = on
		default:
			rest = append(rest, k)
		}
	}
	t.keywords = rest
	if t.required && t.optional {
		return fmt.Errorf("the jsonschema tag says both required and optional")
	}
	return nil
}

// apply adds the tag to the schema of a field of the type.
func (t *tag) apply(s *jsonschema.Schema, typ reflect.Type, quoted bool) (*jsonschema.Schema, error) {
	if s.Extras != nil || s.Ref != "" {
		s = copyOf(s)
	}
	if t.description != "" {
		if s.Description != "" {
			s.Description = t.description + " (" + s.Description + ")"
		} else {
			s.Description = t.description
		}
	}
	s.Deprecated = s.Deprecated || t.deprecated
	var defaults []string
	for _, k := range t.keywords {
		if k.name == "default" {
			defaults = append(defaults, k.value)
			continue
		}
		on, onType := s, typ
		if s.Items != nil && slices.Contains(onItems, k.name) {
			on, onType = s.Items, typ.Elem()
		}
		if quoted {
			onType = reflect.TypeFor[string]()
		}
		if err := k.fits(on); err != nil {
			return nil, err
		}
		if err := k.set(on, onType); err != nil {
			return nil, err
		}
	}
	if len(defaults) == 0 {
		return s, nil
	}
	if quoted {
		typ = reflect.TypeFor[string]()
	}
	return s, setDefault(s, typ, defaults)
}

// onTypes holds the JSON types that a keyword is for. Other keywords are for all.
var onTypes = map[string][]string{
	"pattern": {"string"}, "minLength": {"string"}, "maxLength": {"string"},
	"minimum": {"number", "integer"}, "maximum": {"number", "integer"},
	"exclusiveMinimum": {"number", "integer"}, "exclusiveMaximum": {"number", "integer"}, "multipleOf": {"number", "integer"},
	"minItems": {"array"}, "maxItems": {"array"}, "uniqueItems": {"array"},
	"minProperties": {"object"}, "maxProperties": {"object"},
}

// fits returns an error if the keyword is not for the schema's type.
func (k keyword) fits(s *jsonschema.Schema) error {
	types, typ := onTypes[k.name], s.Type
	if both, ok := s.Extras["type"].([]string); ok { // with null
		typ = both[0]
	}
	if types == nil || typ == "" || slices.Contains(types, typ) {
		return nil
	}
	return fmt.Errorf("the jsonschema tag has the keyword %q, which is for the type %s, and the field is of type %s", k.name, types[0], typ)
}

// set sets one keyword of a schema.
func (k keyword) set(s *jsonschema.Schema, typ reflect.Type) (err error) {
	on := k.value != "false"
	switch k.name {
	case "title":
		s.Title = k.value
	case "format":
		s.Format = k.value
	case "pattern":
		if err := schemaguard.CheckPattern(k.value); err != nil {
			return fmt.Errorf("the jsonschema tag says pattern=%s: %w", k.value, err)
		}
		s.Pattern = k.value
	case "readOnly":
		s.ReadOnly = on
	case "writeOnly":
		s.WriteOnly = on
	case "uniqueItems":
		s.UniqueItems = on
	case "minLength":
		s.MinLength, err = k.count()
	case "maxLength":
		s.MaxLength, err = k.count()
	case "minItems":
		s.MinItems, err = k.count()
	case "maxItems":
		s.MaxItems, err = k.count()
	case "minProperties":
		s.MinProperties, err = k.count()
	case "maxProperties":
		s.MaxProperties, err = k.count()
	case "minimum":
		s.Minimum, err = k.number()
	case "maximum":
		s.Maximum, err = k.number()
	case "exclusiveMinimum":
		s.ExclusiveMinimum, err = k.number()
	case "exclusiveMaximum":
		s.ExclusiveMaximum, err = k.number()
	case "multipleOf":
		s.MultipleOf, err = k.number()
		if n, _ := s.MultipleOf.Float64(); err == nil && n <= 0 {
			err = fmt.Errorf("the jsonschema tag says multipleOf=%s, want more than 0", k.value)
		}
	case "x-mcp-header":
		if s.Extras == nil {
			s.Extras = map[string]any{}
		}
		s.Extras[k.name] = k.value
	case "enum", "example":
		var v any
		if v, err = k.literal(typ); err != nil {
			return err
		}
		if k.name == "enum" {
			s.Enum = append(s.Enum, v)
		} else {
			s.Examples = append(s.Examples, v)
		}
	}
	return err
}

func (k keyword) count() (*uint64, error) {
	n, err := strconv.ParseUint(k.value, 10, 63)
	if err != nil {
		return nil, fmt.Errorf("the jsonschema tag says %s=%s, want a whole number", k.name, k.value)
	}
	return &n, nil
}

func (k keyword) number() (json.Number, error) {
	var n json.Number
	if err := json.Unmarshal([]byte(k.value), &n); err != nil || strings.HasPrefix(k.value, `"`) {
		return "", fmt.Errorf("the jsonschema tag says %s=%s, want a number", k.name, k.value)
	}
	return n, nil
}

// literal returns the value of an enum, default or example as JSON of the type. Values
// that are strings in JSON need no quotes.
func (k keyword) literal(typ reflect.Type) (any, error) {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if !isText(typ) && json.Unmarshal([]byte(k.value), reflect.New(typ).Interface()) == nil {
		return json.RawMessage(k.value), nil
	}
	quoted, err := json.Marshal(k.value)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(quoted, reflect.New(typ).Interface()); err != nil {
		return nil, fmt.Errorf("the jsonschema tag says %s=%s, which is no %s", k.name, k.value, typ)
	}
	return k.value, nil
}

// isText reports whether every string is a value of the type.
func isText(typ reflect.Type) bool {
	return typ.Kind() == reflect.String && typ != numberType && !has(typ, jsonUnmarshaler)
}

// setDefault sets the default of a field. Several values are the items of a slice.
func setDefault(s *jsonschema.Schema, typ reflect.Type, values []string) error {
	var v any
	var err error
	if items := typ.Kind() == reflect.Slice && s.Items != nil && !strings.HasPrefix(strings.TrimSpace(values[0]), "["); items {
		list := make([]any, len(values))
		for i, value := range values {
			if list[i], err = (keyword{"default", value}).literal(typ.Elem()); err != nil {
				return err
			}
			if err := inEnum(s.Items, list[i]); err != nil {
				return err
			}
		}
		v = list
	} else {
		if len(values) > 1 {
			return fmt.Errorf("the jsonschema tag has %d defaults", len(values))
		}
		if v, err = (keyword{"default", values[0]}).literal(typ); err != nil {
			return err
		}
		if err := inEnum(s, v); err != nil {
			return err
		}
	}
	s.Default = v
	return nil
}

// inEnum returns an error if the enum of s does not allow v.
func inEnum(s *jsonschema.Schema, v any) error {
	if len(s.Enum) == 0 {
		return nil
	}
	for _, allowed := range s.Enum {
		if fmt.Sprint(toText(allowed)) == fmt.Sprint(toText(v)) {
			return nil
		}
	}
	return fmt.Errorf("the jsonschema tag has the default %s, which its enum does not allow", toText(v))
}

func toText(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
