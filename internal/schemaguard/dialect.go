package schemaguard

import (
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A Dialect is a version of JSON Schema.
type Dialect int

// The dialects that are understood.
const (
	Draft202012 Dialect = iota // also that of a schema that names none
	Draft201909
	Draft07
)

func (d Dialect) String() string {
	switch d {
	case Draft201909:
		return "2019-09"
	case Draft07:
		return "draft-07"
	}
	return "2020-12"
}

// URL returns the identifier that $schema gives the dialect.
func (d Dialect) URL() string { return d.library().String() }

func (d Dialect) library() *jsonschema.Draft {
	switch d {
	case Draft201909:
		return jsonschema.Draft2019
	case Draft07:
		return jsonschema.Draft7
	}
	return jsonschema.Draft2020
}

// A DialectError reports a $schema that is none of the three dialects.
type DialectError struct {
	// Pointer is the JSON pointer of the $schema in the schema.
	Pointer string
	// Schema is what $schema says.
	Schema string
}

func (e *DialectError) Error() string {
	return fmt.Sprintf("%s names dialect %q; only 2020-12, 2019-09 and draft-07 are supported", e.Pointer, e.Schema)
}

// dialectOf reads the $schema of a whole schema.
func dialectOf(doc any) (Dialect, error) {
	obj, ok := doc.(map[string]any)
	if !ok {
		return Draft202012, nil
	}
	v, ok := obj["$schema"]
	if !ok {
		return Draft202012, nil
	}
	name, ok := v.(string)
	if !ok {
		return 0, &DialectError{Pointer: "/$schema", Schema: fmt.Sprint(v)}
	}
	d, ok := parseDialect(name)
	if !ok {
		return 0, &DialectError{Pointer: "/$schema", Schema: name}
	}
	return d, nil
}

// parseDialect knows the identifiers of the dialects. An empty fragment and
// either scheme are accepted, as they are common.
func parseDialect(name string) (Dialect, bool) {
	name = strings.TrimSuffix(name, "#")
	name = strings.TrimPrefix(strings.TrimPrefix(name, "https://"), "http://")
	switch name {
	case "json-schema.org/draft/2020-12/schema":
		return Draft202012, true
	case "json-schema.org/draft/2019-09/schema":
		return Draft201909, true
	case "json-schema.org/draft-07/schema":
		return Draft07, true
	}
	return 0, false
}
