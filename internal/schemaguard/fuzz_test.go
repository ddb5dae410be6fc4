package schemaguard

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzGuard gives the guard any schema and any value: it must not panic, and
// must come to an end.
func FuzzGuard(f *testing.F) {
	for _, schema := range []string{
		`{"$ref":"#"}`, `true`, recursive, doubling(40, "anyOf"),
		`{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#"},{"$dynamicRef":"#x"}]},"b":{"$dynamicAnchor":"x"}}}`,
		`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"items":{"$recursiveRef":"#"},"unevaluatedItems":false}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"c":{"$ref":"http://x.example/y#/z"}},"items":[{}],"additionalItems":{"if":true,"then":false}}`,
		`{"patternProperties":{"(?=a)":{"not":{}},"[]":false},"propertyNames":{"pattern":"^(a|aa)+$"},"unevaluatedProperties":{"multipleOf":1e-300}}`,
		`{"enum":[1e5,{"a":[null]}],"const":"\ud800","uniqueItems":true,"contains":{"minimum":1},"minContains":0,"default":{}}`,
	} {
		for _, value := range []string{
			`{"child":{"child":1}}`, `[1e999999999,1.0,"\ud800",{}]`, `{"a":1,"a":{"b":[]},"c":null}`, `"aaaaaaaaaaaaaaaaaaaaaaaa"`, `{`, `-0e-0`,
			strings.Repeat(`[`, 300) + strings.Repeat(`]`, 300),
		} {
			f.Add([]byte(schema), []byte(value), 5)
		}
	}
	f.Fuzz(func(t *testing.T, schema, value []byte, depth int) {
		s, err := New(schema)
		if err != nil {
			return
		}
		if err := s.Compile(); err == nil {
			_ = s.Unchecked()
		}
		err = s.Validate(value, Limits{Depth: depth % 1000})
		filled, fillErr := s.Fill(value, Limits{Depth: depth % 1000})
		if err == nil && !json.Valid(value) {
			t.Errorf("%q is no JSON, but valid", value)
		}
		if fillErr == nil && !json.Valid(filled) {
			t.Errorf("filled to %q", filled)
		}
	})
}
