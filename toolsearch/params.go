package toolsearch

import (
	"encoding/json"
	"maps"
	"slices"
)

const (
	// maxParams and maxParamDepth limit what is read of a schema.
	maxParams     = 100
	maxParamDepth = 4
	maxSchema     = 1 << 20
)

// Params returns the parameters in the JSON Schema of a tool's input, including nested ones, with
// constants and enumerated values in the descriptions. Invalid and very large schemas have none.
func Params(schema json.RawMessage) []Param {
	if len(schema) > maxSchema {
		return nil
	}
	var out []Param
	addParams(&out, schema, maxParamDepth)
	return out
}

// A paramSchema is a schema without the members that have a wrong type.
type paramSchema struct {
	fields map[string]json.RawMessage
}

func (s paramSchema) text(key string) string {
	var t string
	_ = json.Unmarshal(s.fields[key], &t) // no string: no text
	return t
}

func addParams(out *[]Param, raw json.RawMessage, depth int) {
	var s paramSchema
	if depth == 0 || json.Unmarshal(raw, &s.fields) != nil {
		return
	}
	var props map[string]json.RawMessage
	if json.Unmarshal(s.fields["properties"], &props) == nil {
		for _, name := range slices.Sorted(maps.Keys(props)) {
			if len(*out) >= maxParams {
				return
			}
			var sub paramSchema
			_ = json.Unmarshal(props[name], &sub.fields) // a boolean schema: no description
			*out = append(*out, Param{name, sub.text("title") + " " + sub.text("description") + " " + sub.values()})
			addParams(out, props[name], depth-1)
		}
	}
	addParams(out, s.fields["items"], depth-1)
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		var list []json.RawMessage
		if json.Unmarshal(s.fields[key], &list) == nil {
			for _, e := range list {
				addParams(out, e, depth-1)
			}
		}
	}
}

// values returns the strings of a short enumeration.
func (s paramSchema) values() string {
	var list []any
	if json.Unmarshal(s.fields["enum"], &list) != nil || len(list) > 30 {
		return ""
	}
	out := ""
	for _, v := range list {
		if t, ok := v.(string); ok {
			out += " " + t
		}
	}
	return out
}
