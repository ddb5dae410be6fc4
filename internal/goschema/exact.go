package goschema

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// Wrap returns the schema of an object whose one member has the given schema,
// whose definitions move to the root.
func Wrap(name string, schema json.RawMessage) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(schema, &members); err != nil {
		return nil, fmt.Errorf("wrapping a schema: %w", err)
	}
	defs := members["$defs"]
	delete(members, "$defs")
	out := struct {
		Type                 string                                `json:"type"`
		Properties           map[string]map[string]json.RawMessage `json:"properties"`
		Required             []string                              `json:"required"`
		AdditionalProperties bool                                  `json:"additionalProperties"`
		Defs                 json.RawMessage                       `json:"$defs,omitempty"`
	}{"object", map[string]map[string]json.RawMessage{name: members}, []string{name}, false, defs}
	return json.Marshal(out)
}

// Exact leaves out of a JSON text the members that encoding/json would read into
// a struct of t though their names differ in case from those of its fields, and
// those that it would not read at all. What is malformed is returned as it is.
func Exact(text json.RawMessage, t reflect.Type) json.RawMessage {
	if t.Kind() == reflect.Pointer {
		return Exact(text, t.Elem())
	}
	if has(t, jsonUnmarshaler) || has(t, textUnmarshaler) {
		return text
	}
	var out any
	switch t.Kind() {
	case reflect.Struct:
		var members map[string]json.RawMessage
		if json.Unmarshal(text, &members) != nil || members == nil {
			return text
		}
		fields, err := visible(t)
		if err != nil {
			return text
		}
		kept := map[string]json.RawMessage{}
		for _, f := range fields {
			if value, ok := members[f.name]; ok && !f.hidden {
				kept[f.name] = Exact(value, f.Type)
			}
		}
		out = kept
	case reflect.Map:
		var members map[string]json.RawMessage
		if json.Unmarshal(text, &members) != nil || members == nil {
			return text
		}
		for name, value := range members {
			members[name] = Exact(value, t.Elem())
		}
		out = members
	case reflect.Slice, reflect.Array:
		var items []json.RawMessage
		if t.Elem().Kind() == reflect.Uint8 || json.Unmarshal(text, &items) != nil || items == nil {
			return text
		}
		for i := range items {
			items[i] = Exact(items[i], t.Elem())
		}
		out = items
	default:
		return text
	}
	exact, err := json.Marshal(out)
	if err != nil {
		return text
	}
	return exact
}
