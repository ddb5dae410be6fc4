package schemaguard

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// T10 T11 T12 T18
func TestDialects(t *testing.T) {
	for name, want := range map[string]Dialect{
		"": Draft202012,
		"https://json-schema.org/draft/2020-12/schema":  Draft202012,
		"https://json-schema.org/draft/2020-12/schema#": Draft202012,
		"http://json-schema.org/draft/2020-12/schema":   Draft202012,
		"https://json-schema.org/draft/2019-09/schema":  Draft201909,
		"http://json-schema.org/draft-07/schema":        Draft07,
		"http://json-schema.org/draft-07/schema#":       Draft07,
		"https://json-schema.org/draft-07/schema#":      Draft07,
	} {
		schema := `{"type":"object"}`
		if name != "" {
			schema = `{"$schema":"` + name + `"}`
		}
		if s := mustNew(t, schema); s.Dialect() != want {
			t.Errorf("%q is read as %v, want %v", name, s.Dialect(), want)
		}
	}
	for _, schema := range []string{
		`{"$schema":"http://json-schema.org/draft-04/schema#"}`,
		`{"$schema":"http://json-schema.org/draft-06/schema#"}`,
		`{"$schema":"http://json-schema.org/schema#"}`,
		`{"$schema":"https://example.com/mine"}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema#x"}`,
		`{"$schema":"draft-07"}`,
		`{"$schema":""}`,
		`{"$schema":7}`,
		`{"$schema":null}`,
		`{"$defs":{"x":{"$id":"http://x.example/y","$schema":"http://json-schema.org/draft-04/schema#"}}}`,
	} {
		_, err := New(json.RawMessage(schema))
		var foreign *DialectError
		if !errors.As(err, &foreign) {
			t.Errorf("%s: got %v, want a DialectError", schema, err)
		} else if !strings.Contains(err.Error(), "draft-07") {
			t.Errorf("%s: message %q does not say what is supported", schema, err)
		}
	}
}

// T10 T11
func TestADialectDecidesWhatKeywordsMean(t *testing.T) {
	tests := []struct {
		name, schema, value string
		valid               bool
	}{
		{"prefixItems in 2020-12", `{"prefixItems":[{"type":"string"}]}`, `[1]`, false},
		{"prefixItems in draft-07", `{"$schema":"http://json-schema.org/draft-07/schema#","prefixItems":[{"type":"string"}]}`, `[1]`, true},
		{"list of items in draft-07", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}]}`, `[1]`, false},
		{"beside $ref in draft-07", `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"x":{}},"properties":{"a":{"$ref":"#/definitions/x","type":"string"}}}`, `{"a":1}`, true},
		{"beside $ref in 2019-09", `{"$schema":"https://json-schema.org/draft/2019-09/schema","$defs":{"x":{}},"properties":{"a":{"$ref":"#/$defs/x","type":"string"}}}`, `{"a":1}`, false},
		{"dependentRequired in draft-07", `{"$schema":"http://json-schema.org/draft-07/schema#","dependentRequired":{"a":["b"]}}`, `{"a":1}`, true},
		{"dependentRequired in 2019-09", `{"$schema":"https://json-schema.org/draft/2019-09/schema","dependentRequired":{"a":["b"]}}`, `{"a":1}`, false},
		{"format is asserted", `{"format":"date"}`, `"yesterday"`, false},
		{"format is asserted in 2019-09", `{"$schema":"https://json-schema.org/draft/2019-09/schema","format":"date"}`, `"yesterday"`, false},
		{"unknown format", `{"format":"nosuch"}`, `"x"`, true},
		{"const beside $ref in draft-07", `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"x":{}},"properties":{"a":{"$ref":"#/definitions/x","const":2}}}`, `{"a":1}`, true},
	}
	for _, tt := range tests {
		if err := mustNew(t, tt.schema).Validate([]byte(tt.value), Limits{}); (err == nil) != tt.valid {
			t.Errorf("%s: got %v, want valid %v", tt.name, err, tt.valid)
		}
	}
}

// T04
func TestIdentifiersAndAnchors(t *testing.T) {
	tests := []struct {
		name, schema, value string
		valid               bool
	}{
		{"$anchor", `{"properties":{"a":{"$ref":"#here"}},"$defs":{"x":{"$anchor":"here","type":"string"}}}`, `{"a":1}`, false},
		{"$id within", `{"$id":"http://x.example/root","properties":{"a":{"$ref":"item"}},"$defs":{"x":{"$id":"item","type":"string"}}}`, `{"a":1}`, false},
		{"$dynamicRef", `{"$id":"http://x.example/strict","$dynamicAnchor":"node","$ref":"tree","unevaluatedProperties":false,
			"$defs":{"tree":{"$id":"tree","$dynamicAnchor":"node","type":"object","properties":{"kids":{"items":{"$dynamicRef":"#node"}}}}}}`, `{"kids":[{"daat":1}]}`, false},
		{"$dynamicRef to an anchor below a single schema", `{"$id":"http://x.example/strict","$ref":"tree","contains":{"$dynamicAnchor":"node","type":"integer"},
			"$defs":{"tree":{"$id":"tree","$dynamicAnchor":"node","properties":{"k":{"$dynamicRef":"#node"}}}}}`, `{"k":"x"}`, false},
		{"$dynamicRef, right", `{"$id":"http://x.example/strict","$dynamicAnchor":"node","$ref":"tree","unevaluatedProperties":false,
			"$defs":{"tree":{"$id":"tree","$dynamicAnchor":"node","type":"object","properties":{"kids":{"items":{"$dynamicRef":"#node"}}}}}}`, `{"kids":[{"kids":[]}]}`, true},
		{"$recursiveRef", `{"$schema":"https://json-schema.org/draft/2019-09/schema","$id":"http://x.example/strict","$recursiveAnchor":true,"$ref":"tree","unevaluatedProperties":false,
			"$defs":{"tree":{"$id":"tree","$recursiveAnchor":true,"type":"object","properties":{"kids":{"items":{"$recursiveRef":"#"}}}}}}`, `{"kids":[{"daat":1}]}`, false},
		{"metaschema", `{"properties":{"schema":{"$ref":"https://json-schema.org/draft/2020-12/schema"}}}`, `{"schema":{"type":"strnig"}}`, false},
		{"metaschema, right", `{"properties":{"schema":{"$ref":"http://json-schema.org/draft-07/schema#"}}}`, `{"schema":{"items":[{"type":"string"}]}}`, true},
	}
	for _, tt := range tests {
		if err := mustNew(t, tt.schema).Validate([]byte(tt.value), Limits{}); (err == nil) != tt.valid {
			t.Errorf("%s: got %v, want valid %v", tt.name, err, tt.valid)
		}
	}
}

// T40
func TestALocalReferenceThatLeadsNowhere(t *testing.T) {
	for _, ref := range []string{"#/$defs/nosuch", "#nosuch", "#/allOf/1", "#/properties/a/type/x", "#/%zz"} {
		for _, keyword := range []string{"$ref", "$dynamicRef"} {
			_, err := New(json.RawMessage(`{"properties":{"a":{"` + keyword + `":"` + ref + `","type":"string"}},"allOf":[{}]}`))
			if err == nil || !strings.Contains(err.Error(), ref) {
				t.Errorf("%s %s: got %v, want an error that names it", keyword, ref, err)
			}
		}
	}
	// Beside an $id it takes the library to tell.
	s, err := Trusted([]byte(`{"$id":"http://x.example/y","properties":{"a":{"$ref":"#/$defs/nosuch"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var broken *SchemaError
	if err := s.Compile(); !errors.As(err, &broken) || !strings.Contains(err.Error(), "nosuch") || strings.Contains(err.Error(), "tenon://") {
		t.Errorf("Compile: got %v, want a SchemaError that names the place", err)
	}
	if err := s.Validate([]byte(`{}`), Limits{}); !errors.As(err, &broken) {
		t.Errorf("Validate: got %v, want a SchemaError", err)
	}
	for _, schema := range []string{
		`{"properties":{"a~b/c%":{"$ref":"#/properties/a~0b~1c%25/x"}}}`,
	} {
		if _, err := New(json.RawMessage(schema)); err == nil {
			t.Errorf("%s was taken", schema)
		}
	}
	mustNew(t, `{"properties":{"a~b/c%":{"items":[{"$ref":"#/properties/a~0b~1c%25"}]}},"x":{"y":[{"type":"string"}]},"allOf":[{"$ref":"#/x/y/0"}],"$schema":"http://json-schema.org/draft-07/schema#"}`)
	mustNew(t, `{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#here","definitions":{"a":{"$id":"#here"}}}`)
}

// T40 T41
func TestRemoteReferencesAreNeverFollowed(t *testing.T) {
	for _, ref := range []string{
		"http://127.0.0.1:1/schema.json", "https://example.com/s.json#/definitions/a/b", "file:///etc/hostname",
		"other.json", "/etc/passwd", "other.json#anchor", "urn:x:y#/type", "https://example.com/s.json#/properties/a%25b", "https://example.com/s.json#/$defs/a", "https://example.com/s.json#/$defs",
		"tenon://schemaguard/any-metaschema",
	} {
		for _, keyword := range []string{"$ref", "$dynamicRef"} {
			s := mustNew(t, `{"properties":{"near":{"type":"integer"},"far":{"`+keyword+`":"`+ref+`"}}}`)
			if err := s.Validate([]byte(`{"near":1}`), Limits{}); err != nil {
				t.Errorf("%s %s, not reached: %v", keyword, ref, err)
			}
			err := s.Validate([]byte(`{"far":1}`), Limits{})
			var broken *SchemaError
			if !errors.As(err, &broken) || !errors.Is(err, ErrRemote) || broken.Pointer != "/far" {
				t.Errorf("%s %s, reached: got %v, want ErrRemote at /far", keyword, ref, err)
			}
		}
	}
	both := mustNew(t, `{"properties":{"a":{"$ref":"http://x.example/y#/$defs/z"},"b":{"$ref":"http://x.example/y#z"}}}`)
	for _, value := range []string{`{"a":1}`, `{"b":1}`} {
		if err := both.Validate([]byte(value), Limits{}); !errors.Is(err, ErrRemote) {
			t.Errorf("a pointer beside an anchor, %s: got %v, want ErrRemote", value, err)
		}
	}
	// Not even "not" turns what is unknown into a verdict.
	if err := mustNew(t, `{"not":{"$ref":"http://x.example/y"}}`).Validate([]byte(`1`), Limits{}); !errors.Is(err, ErrRemote) {
		t.Errorf("under not: got %v, want ErrRemote", err)
	}
}
