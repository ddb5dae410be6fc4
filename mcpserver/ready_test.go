package mcpserver

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A schema that the program brings along is listed as it is, and holds for calls.
func TestReadySchemasStayAsTheyAre(t *testing.T) {
	tests := []struct {
		name, schema, good, bad string
	}{
		{"constraints", `{"type":"object","properties":{"n":{"type":"integer","minimum":1,"maximum":5},"s":{"type":"string","enum":["a","b"]}},"required":["n"]}`, `{"n":5,"s":"a"}`, `{"n":6}`},
		{"required", `{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`, `{"q":"x"}`, `{}`},
		{"no properties, no others", `{"type":"object","additionalProperties":false}`, `{}`, `{"x":1}`},
		{"no properties, typed others", `{"type":"object","additionalProperties":{"type":"integer"}}`, `{"x":1}`, `{"x":"1"}`},
		{"no properties, one of two", `{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{"a":1}`, `{"a":1,"b":2}`},
		{"of a later draft", `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"string"}],"items":false}},"dependentRequired":{"a":["b"]}}`, `{"a":["x"],"b":1}`, `{"a":["x","y"],"b":1}`},
		{"definitions", `{"type":"object","properties":{"p":{"$ref":"#/$defs/point"}},"$defs":{"point":{"type":"object","properties":{"x":{"type":"number"}},"required":["x"]}}}`, `{"p":{"x":1}}`, `{"p":{}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newTestServer(t, nil)
			called := 0
			handler := func(context.Context, json.RawMessage) (*Result, error) { called++; return Text("ok"), nil }
			if err := s.AddTool(&Tool{Name: "t", InputSchema: json.RawMessage(tt.schema)}, handler); err != nil {
				t.Fatal(err)
			}
			listed, err := json.Marshal(s.ListTools()[0].InputSchema)
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if json.Unmarshal(listed, &got) != nil || json.Unmarshal([]byte(tt.schema), &want) != nil {
				t.Fatalf("listed as %s", listed)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("listed otherwise (-want +got):\n%s", diff)
			}
			if r, err := s.CallTool(t.Context(), "t", json.RawMessage(tt.good)); err != nil || r.IsError {
				t.Errorf("%s: %+v, %v", tt.good, r, err)
			}
			if r, err := s.CallTool(t.Context(), "t", json.RawMessage(tt.bad)); err != nil || !r.IsError || called != 1 {
				t.Errorf("%s: %+v, %v; called %d times", tt.bad, r, err, called)
			}
		})
	}
}

// Parameters may have the names of keywords of JSON Schema.
func TestArgumentsNamedLikeKeywords(t *testing.T) {
	s := newTestServer(t, nil)
	MustAddTool(s, &Tool{Name: "t"}, func(_ context.Context, in struct {
		Type       string            `json:"type"`
		Properties map[string]string `json:"properties"`
		Required   bool              `json:"required"`
	},
	) (string, error) {
		return in.Type + in.Properties["a"], nil
	})
	wantText(t, s, "t", `{"type":"x","properties":{"a":"y"},"required":true}`, "xy", false)
}
