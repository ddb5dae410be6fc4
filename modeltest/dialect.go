package modeltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// metaschema is JSON Schema 2020-12 as a schema. Schemas are held against it and
// not compiled: compiling takes time in proportion to the square of their size,
// and refuses patterns that are no Go but good ECMA 262.
var metaschema = sync.OnceValue(func() *jsonschema.Schema {
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	s, err := c.Compile("https://json-schema.org/draft/2020-12/schema")
	if err != nil {
		panic(fmt.Sprintf("modeltest: the metaschema does not compile: %v", err))
	}
	return s
})

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("a schema is not loaded from elsewhere")
}

// validSchema says what is wrong with a schema as one of draft 2020-12, whatever
// its $schema says: its form, or references that lead nowhere inside it.
func validSchema(schema json.RawMessage) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return err
	}
	withoutDialect(doc)
	if err := metaschema().Validate(doc); err != nil {
		return err
	}
	r := resolver{root: doc, anchors: map[string]bool{}}
	r.collect(doc)
	return r.check(doc)
}

// withoutDialect removes the $schema fields: the API knows one dialect.
func withoutDialect(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["$schema"].(string); ok {
			delete(v, "$schema")
		}
		for _, inner := range v {
			withoutDialect(inner)
		}
	case []any:
		for _, inner := range v {
			withoutDialect(inner)
		}
	}
}

// resolver follows the references inside a schema.
type resolver struct {
	root    any
	anchors map[string]bool // what a reference may name: #anchor, an $id
}

// eachSchema calls f for the schemas directly inside v, a schema.
func eachSchema(v map[string]any, f func(any) error) error {
	for _, key := range slices.Sorted(maps.Keys(v)) {
		value := v[key]
		switch schemaKeywords[key] {
		case oneSchema:
			if err := f(value); err != nil {
				return err
			}
		case listOfSchemas:
			list, _ := value.([]any)
			for _, s := range list {
				if err := f(s); err != nil {
					return err
				}
			}
		case mapOfSchemas:
			fields, _ := value.(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(fields)) {
				if err := f(fields[name]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (r *resolver) collect(v any) {
	s, ok := v.(map[string]any)
	if !ok {
		return
	}
	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		if name, ok := s[key].(string); ok {
			r.anchors["#"+name] = true
		}
	}
	if id, ok := s["$id"].(string); ok {
		r.anchors[id] = true
	}
	_ = eachSchema(s, func(v any) error { r.collect(v); return nil })
}

// check refuses the first reference that leads nowhere.
func (r *resolver) check(v any) error {
	s, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	for _, key := range []string{"$ref", "$dynamicRef"} {
		if ref, ok := s[key].(string); ok && !r.leads(ref) {
			return fmt.Errorf("%s %.200q leads nowhere in the schema", key, ref)
		}
	}
	return eachSchema(s, r.check)
}

// leads says whether a reference leads to a place in the schema.
func (r *resolver) leads(ref string) bool {
	base, fragment, _ := strings.Cut(ref, "#")
	if base != "" {
		// Where an inner $id has places of its own, they are not looked for.
		return r.anchors[base] || r.anchors[base+"#"]
	}
	pointer, err := url.PathUnescape(fragment)
	switch {
	case err != nil:
		return false
	case pointer == "":
		return true
	case pointer[0] != '/':
		return r.anchors["#"+pointer]
	}
	v := r.root
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for part := range strings.SplitSeq(pointer[1:], "/") {
		switch in := v.(type) {
		case map[string]any:
			inner, ok := in[unescape.Replace(part)]
			if !ok {
				return false
			}
			v = inner
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(in) {
				return false
			}
			v = in[i]
		default:
			return false
		}
	}
	return true
}
