package goschema

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
)

// A field is a struct field as encoding/json sees it.
type field struct {
	reflect.StructField
	name     string // of the property
	tagged   bool   // the name comes from a tag
	depth    int
	index    []int
	optional bool // by omitempty, omitzero or an embedded pointer
	quoted   bool // by ,string
	hidden   bool // by jsonschema:"-"
}

// Fields returns the JSON property names of a struct type, in order, by the rules of
// encoding/json.
func Fields(t reflect.Type) []string {
	fields, err := visible(t)
	if err != nil {
		return nil
	}
	var names []string
	for _, f := range fields {
		if !f.hidden {
			names = append(names, f.name)
		}
	}
	return names
}

// visible returns the fields of a struct that have a JSON form. Fields of embedded
// structs are promoted. Of several fields with one name the least nested wins, then a
// tagged one; otherwise none is visible.
func visible(t reflect.Type) ([]field, error) {
	var all []field
	type embedded struct {
		t        reflect.Type
		index    []int
		optional bool
	}
	level := []embedded{{t: t}}
	seen := map[reflect.Type]bool{t: true}
	for depth := 0; len(level) > 0; depth++ {
		var next []embedded
		var nextSeen []reflect.Type
		for _, e := range level {
			for i := range e.t.NumField() {
				f := field{StructField: e.t.Field(i), depth: depth, index: append(slices.Clone(e.index), i), optional: e.optional}
				inner, use, err := f.classify()
				if err != nil {
					return nil, err
				}
				if inner != nil {
					if !seen[inner] {
						nextSeen = append(nextSeen, inner)
						next = append(next, embedded{inner, f.index, e.optional || f.Type.Kind() == reflect.Pointer})
					}
					continue
				}
				if use {
					all = append(all, f)
				}
			}
		}
		for _, t := range nextSeen {
			seen[t] = true
		}
		level = next
	}
	return dominant(all), nil
}

// classify reads the tags of f. It returns the struct that f embeds, or whether f is a
// property.
func (f *field) classify() (inner reflect.Type, use bool, err error) {
	elem := f.Type
	if elem.Kind() == reflect.Pointer && elem.Name() == "" {
		elem = elem.Elem()
	}
	if f.Anonymous {
		if !f.IsExported() && elem.Kind() != reflect.Struct {
			return nil, false, nil
		}
	} else if !f.IsExported() {
		return nil, false, nil
	}
	tag := f.Tag.Get("json")
	if tag == "-" {
		return nil, false, nil
	}
	f.hidden = f.Tag.Get("jsonschema") == "-"
	name, options, _ := strings.Cut(tag, ",")
	if f.Anonymous && name == "" && elem.Kind() == reflect.Struct && !f.hidden {
		if !f.IsExported() && f.Type.Kind() == reflect.Pointer {
			return nil, false, fmt.Errorf("field %s: encoding/json cannot set an embedded pointer to the unexported struct %s", f.Name, elem)
		}
		return elem, false, nil
	}
	if f.Anonymous && !f.IsExported() {
		return nil, false, nil
	}
	f.name, f.tagged = name, name != ""
	if name == "" {
		f.name = f.Name
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty", "omitzero":
			f.optional = true
		case "string":
			switch elem.Kind() {
			case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
				reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
				reflect.Float32, reflect.Float64, reflect.String:
				f.quoted = true
			}
		}
	}
	return nil, true, nil
}

// dominant returns one field for each name, in the order of the source.
func dominant(all []field) []field {
	byName := map[string][]field{}
	for _, f := range all {
		byName[f.name] = append(byName[f.name], f)
	}
	var kept []field
	for _, same := range byName {
		slices.SortStableFunc(same, func(a, b field) int {
			if a.depth != b.depth {
				return cmp.Compare(a.depth, b.depth)
			}
			if a.tagged != b.tagged && a.tagged {
				return -1
			}
			if a.tagged != b.tagged {
				return 1
			}
			return 0
		})
		if len(same) > 1 && same[0].depth == same[1].depth && same[0].tagged == same[1].tagged {
			continue // ambiguous: encoding/json leaves all out
		}
		kept = append(kept, same[0])
	}
	slices.SortFunc(kept, func(a, b field) int { return slices.Compare(a.index, b.index) })
	return kept
}

// structure returns the schema of a struct.
func (w *walker) structure(t reflect.Type) (*jsonschema.Schema, error) {
	fields, err := visible(t)
	if err != nil {
		return nil, w.fail(t, err)
	}
	s := &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema}
	for _, f := range fields {
		if f.hidden {
			if w.use == Output { // it is written all the same
				s.AdditionalProperties = nil
			}
			continue
		}
		w.path = append(w.path, f.Name)
		property, required, err := w.property(f)
		w.path = w.path[:len(w.path)-1]
		if err != nil {
			return nil, err
		}
		s.Properties.Set(f.name, property)
		if required {
			s.Required = append(s.Required, f.name)
		}
	}
	if x, ok := reflect.New(t).Interface().(interface{ JSONSchemaExtend(*jsonschema.Schema) }); ok {
		x.JSONSchemaExtend(s)
	}
	return s, nil
}

// property returns the schema of a field and whether it is required.
func (w *walker) property(f field) (*jsonschema.Schema, bool, error) {
	tag, err := parseTag(f.Tag.Get("jsonschema"), f.Tag.Get("jsonschema_description"))
	if err != nil {
		return nil, false, w.fail(f.Type, err)
	}
	t, pointer := f.Type, false
	for t.Kind() == reflect.Pointer && t.Name() == "" {
		t, pointer = t.Elem(), true
	}
	s, err := w.schema(t)
	if err != nil {
		return nil, false, err
	}
	if f.quoted {
		s = &jsonschema.Schema{Type: "string"}
	}
	s, err = tag.apply(s, t, f.quoted)
	if err != nil {
		return nil, false, w.fail(f.Type, err)
	}
	if pointer || tag.nullable {
		description := s.Description
		if n := nullable(s); n != s {
			n.Description, s.Description = description, ""
			s = n
		}
	}
	required := !f.optional && s.Default == nil
	switch {
	case tag.required:
		required = true
	case tag.optional:
		required = false
	}
	return s, required, nil
}
