package modeltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Limits on one schema, and on what a model remembers of them.
const (
	maxSchemaDepth = 128     // levels of nesting
	maxSchemaBytes = 1 << 20 // bytes
	maxSchemaCache = 8 << 20 // bytes of schemas remembered
)

// schemaVerdict is what is known of a schema.
type schemaVerdict struct {
	root *schemaVerdict // what is wrong at the root, for the input of a tool
	path string         // below input_schema, with a dot before each part
	msg  string         // empty: nothing is wrong
	open bool           // an object in it does not refuse additional properties
}

// schemaCache remembers the verdicts by the schemas' bytes: the tools of a
// conversation are sent with each of its turns.
type schemaCache struct {
	mu   sync.Mutex // guards the rest
	seen map[string]schemaVerdict
	size int
}

func (c *schemaCache) check(schema json.RawMessage) schemaVerdict {
	c.mu.Lock()
	v, ok := c.seen[string(schema)]
	c.mu.Unlock()
	if ok {
		return v
	}
	v = checkSchema(schema)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil || c.size > maxSchemaCache {
		c.seen, c.size = map[string]schemaVerdict{}, 0
	}
	c.seen[string(schema)] = v
	c.size += len(schema)
	return v
}

const (
	invalidSchema = "JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12)."
	badKeys       = `Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'`
)

// checkSchema checks a schema. It must be a JSON object.
func checkSchema(schema json.RawMessage) schemaVerdict {
	var w schemaWalk
	switch {
	case len(schema) > maxSchemaBytes:
		return schemaVerdict{msg: fmt.Sprintf("%s (%d bytes, limit %d)", invalidSchema, len(schema), maxSchemaBytes)}
	case nesting(schema) > maxSchemaDepth:
		return schemaVerdict{msg: fmt.Sprintf("%s (nested more than %d levels)", invalidSchema, maxSchemaDepth)}
	}
	root := checkRoot(schema)
	w.schema(schema, "")
	if w.bad != nil {
		w.bad.root = root
		return *w.bad
	}
	if err := compileSchema(schema); err != nil {
		return schemaVerdict{root: root, msg: fmt.Sprintf("%s (%.300s)", invalidSchema, err)}
	}
	return schemaVerdict{root: root, open: w.open}
}

// checkRoot checks what holds at the root of a tool's input only.
func checkRoot(schema json.RawMessage) *schemaVerdict {
	var typ json.RawMessage
	combined := false
	eachField(schema, func(key string, v json.RawMessage) {
		switch key {
		case "type":
			typ = v
		case "oneOf", "anyOf", "allOf":
			combined = true
		}
	})
	switch {
	case typ == nil:
		return &schemaVerdict{path: ".type", msg: "Field required"}
	case string(typ) != `"object"`:
		return &schemaVerdict{path: ".type", msg: "Input should be 'object'"}
	case combined:
		return &schemaVerdict{msg: "input_schema does not support oneOf, allOf, or anyOf at the top level"}
	}
	return nil
}

// nesting is how deep a value is nested.
func nesting(v json.RawMessage) int {
	depth, deepest := 0, 0
	for i := 0; i < len(v); i++ {
		switch v[i] {
		case '"':
			i = stringEnd(v, i) - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// schemaWalk goes through a schema and all the schemas in it.
type schemaWalk struct {
	bad  *schemaVerdict
	open bool
}

func (w *schemaWalk) schema(v json.RawMessage, at string) {
	if kindOf(v) != '{' {
		return // a boolean, or an error that compiling finds
	}
	object, closed := false, false
	eachField(v, func(key string, v json.RawMessage) {
		switch key {
		case "type":
			object = string(v) == `"object"`
		case "properties":
			w.properties(v, at+".properties")
		case "patternProperties", "$defs", "definitions", "dependentSchemas":
			w.each(v, at+"."+key)
		case "allOf", "anyOf", "oneOf", "prefixItems":
			w.each(v, at+"."+key)
		case "additionalProperties":
			closed = string(v) == "false"
			w.schema(v, at+"."+key)
		case "items", "not", "if", "then", "else", "contains", "propertyNames",
			"unevaluatedItems", "unevaluatedProperties", "additionalItems", "contentSchema":
			w.schema(v, at+"."+key)
		}
	})
	w.open = w.open || object && !closed
}

func (w *schemaWalk) properties(v json.RawMessage, at string) {
	if kindOf(v) != '{' {
		return
	}
	eachField(v, func(key string, v json.RawMessage) {
		if w.bad == nil && !isName(key, ".", 64) {
			w.bad = &schemaVerdict{path: at, msg: fmt.Sprintf("%s (found %.100q)", badKeys, key)}
		}
		w.schema(v, at+"."+key)
	})
}

// each goes through the schemas in an object or an array.
func (w *schemaWalk) each(v json.RawMessage, at string) {
	switch kindOf(v) {
	case '{':
		eachField(v, func(key string, v json.RawMessage) { w.schema(v, at+"."+key) })
	case '[':
		eachItem(v, func(i int, v json.RawMessage) { w.schema(v, fmt.Sprintf("%s.%d", at, i)) })
	}
}

// compileSchema compiles a schema as draft 2020-12, whatever it says it is.
// Nothing is loaded from anywhere, and patterns are taken as they are: they
// follow ECMA 262, not Go.
func compileSchema(schema json.RawMessage) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return err
	}
	withoutDialect(doc)
	const url = "tenon:///input_schema"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(func(s string) (jsonschema.Regexp, error) { return anyPattern(s), nil })
	if err := c.AddResource(url, doc); err != nil {
		return err
	}
	_, err = c.Compile(url)
	return err
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

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, errors.New("a schema is not loaded from elsewhere")
}

type anyPattern string

func (anyPattern) MatchString(string) bool { return true }
func (p anyPattern) String() string        { return string(p) }
