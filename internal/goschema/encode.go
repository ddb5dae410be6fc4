package goschema

import (
	"encoding/json"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Marshal returns the JSON of v as encoding/json writes it, with one difference: a
// nil slice or map is written as an empty one, not as null.
func Marshal(v any) (json.RawMessage, error) {
	return jsonv2.Marshal(v, jsonv1.DefaultOptionsV1(), jsonv2.FormatNilSliceAsNull(false), jsonv2.FormatNilMapAsNull(false))
}

// Unmarshal reads text into v as encoding/json does, with one difference: the
// names of members are case-sensitive.
func Unmarshal(text json.RawMessage, v any) error {
	return jsonv2.Unmarshal(text, v, jsonv1.DefaultOptionsV1(), jsonv2.MatchCaseInsensitiveNames(false))
}

// Wrap returns the schema of an object whose one member has the given schema,
// whose definitions move to the root.
func Wrap(name string, schema json.RawMessage) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(schema, &members); err != nil {
		return nil, fmt.Errorf("wrapping a schema: %w", err)
	}
	defs := members["$defs"]
	delete(members, "$defs")
	return json.Marshal(struct {
		Type                 string                                `json:"type"`
		Properties           map[string]map[string]json.RawMessage `json:"properties"`
		Required             []string                              `json:"required"`
		AdditionalProperties bool                                  `json:"additionalProperties"`
		Defs                 json.RawMessage                       `json:"$defs,omitempty"`
	}{"object", map[string]map[string]json.RawMessage{name: members}, []string{name}, false, defs})
}
