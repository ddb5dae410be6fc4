package modeltest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
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
	if err := validSchema(schema); err != nil {
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

// What a keyword of a schema holds.
const (
	oneSchema = iota + 1
	listOfSchemas
	mapOfSchemas
)

// schemaKeywords are the keywords that hold schemas.
var schemaKeywords = map[string]int{
	"properties": mapOfSchemas, "patternProperties": mapOfSchemas, "$defs": mapOfSchemas, "definitions": mapOfSchemas,
	"dependentSchemas": mapOfSchemas,
	"allOf":            listOfSchemas, "anyOf": listOfSchemas, "oneOf": listOfSchemas, "prefixItems": listOfSchemas,
	"additionalProperties": oneSchema, "items": oneSchema, "not": oneSchema, "if": oneSchema, "then": oneSchema,
	"else": oneSchema, "contains": oneSchema, "propertyNames": oneSchema, "unevaluatedItems": oneSchema,
	"unevaluatedProperties": oneSchema, "additionalItems": oneSchema, "contentSchema": oneSchema,
}

// maxPath is how long the path of a place in a schema is told of.
const maxPath = 1000

// below is the path of what a schema has under a key.
func below(at, key string) string {
	if len(at) > maxPath {
		return at
	}
	return at + "." + key[:min(len(key), maxPath)]
}

// schemaWalk goes through a schema and all the schemas in it.
type schemaWalk struct {
	bad  *schemaVerdict
	open bool
}

func (w *schemaWalk) schema(v json.RawMessage, at string) {
	if kindOf(v) != '{' {
		return // a boolean, or an error that is found otherwise
	}
	object, closed := false, false
	eachField(v, func(key string, v json.RawMessage) {
		switch key {
		case "type":
			object = string(v) == `"object"`
		case "properties":
			w.properties(v, below(at, "properties"))
		case "additionalProperties":
			closed = string(v) == "false"
			w.schema(v, below(at, key))
		default:
			switch schemaKeywords[key] {
			case oneSchema:
				w.schema(v, below(at, key))
			case listOfSchemas, mapOfSchemas:
				w.each(v, below(at, key))
			}
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
		w.schema(v, below(at, key))
	})
}

// each goes through the schemas in an object or an array.
func (w *schemaWalk) each(v json.RawMessage, at string) {
	switch kindOf(v) {
	case '{':
		eachField(v, func(key string, v json.RawMessage) { w.schema(v, below(at, key)) })
	case '[':
		eachItem(v, func(i int, v json.RawMessage) { w.schema(v, below(at, strconv.Itoa(i))) })
	}
}
