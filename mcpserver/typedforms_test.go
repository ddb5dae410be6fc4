package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// out adds a typed tool that returns v.
func out[T any](t *testing.T, s *Server, name string, v T) {
	t.Helper()
	if err := AddTool(s, &Tool{Name: name}, func(context.Context, struct{}) (T, error) { return v, nil }); err != nil {
		t.Fatal(err)
	}
}

// A typed tool that returns nothing of a list or a map returns an empty one, at
// the root and inside, and its result matches its own schema.
//
// fault E1
func TestNilSlicesAndMapsAreEmpty(t *testing.T) {
	type nested struct {
		List []string         `json:"list"`
		Map  map[string][]int `json:"map"`
		Data []byte           `json:"data"`
	}
	s := newTestServer(t, nil)
	out[[]string](t, s, "slice", nil)
	out(t, s, "slices", [][]int{nil, {1}})
	out[map[string]int](t, s, "map", nil)
	out[map[int]int](t, s, "ints", nil)
	out[*[]string](t, s, "pointer", nil)
	out[**[]string](t, s, "pointers", nil)
	out[*int](t, s, "number", nil)
	out[[]byte](t, s, "bytes", nil)
	out(t, s, "struct", nested{Map: map[string][]int{"a": nil}})
	out[*nested](t, s, "none", nil)
	out[any](t, s, "any", []string(nil))
	for name, want := range map[string]string{
		"slice": `{"result":[]}`, "slices": `{"result":[[],[1]]}`, "map": `{}`, "ints": `{}`,
		"pointer": `{"result":[]}`, "pointers": `{"result":[]}`, "number": `{"result":0}`, "bytes": `{"result":""}`,
		"struct": `{"list":[],"map":{"a":[]},"data":""}`, "any": "",
		"none": `{"list":[],"map":{},"data":""}`,
	} {
		r, err := s.CallTool(t.Context(), name, nil)
		if err != nil || r.IsError || string(r.StructuredContent) != want {
			t.Errorf("%s: %s, %+v, %v; want %s", name, r.StructuredContent, r.Content, err, want)
		}
	}
	if got := Structured(nested{}); string(got.StructuredContent) != `{"list":[],"map":{},"data":""}` {
		t.Errorf("Structured: %s", got.StructuredContent)
	}
	wantText(t, s, "any", `{}`, "[]", false)
}

// A tag with a keyword that there is not costs the tool its registration, whether
// it is a tag of its arguments or of its results, and is told.
//
// fault E2
func TestWrongTagsAreToldAtRegistration(t *testing.T) {
	type typo struct {
		Unit string `json:"unit" jsonschema:"enum=a,enum=b,descrption=typo"`
	}
	s := newTestServer(t, nil)
	in := AddTool(s, &Tool{Name: "in"}, func(context.Context, typo) (string, error) { return "", nil })
	result := AddTool(s, &Tool{Name: "out"}, func(context.Context, struct{}) (typo, error) { return typo{}, nil })
	for name, err := range map[string]error{"in": in, "out": result} {
		if err == nil || !strings.Contains(err.Error(), "field Unit of type string: the jsonschema tag has the unknown keyword \"descrption\"") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(s.Rejected()) != 2 || len(s.ListTools()) != 0 {
		t.Errorf("rejected %v, listed %v", s.Rejected(), s.ListTools())
	}
}

type unit int

func (u unit) MarshalText() ([]byte, error) { return []byte([]string{"kg", "lb"}[u]), nil }

func (u *unit) UnmarshalText(text []byte) error {
	switch string(text) {
	case "kg":
		*u = 0
	case "lb":
		*u = 1
	default:
		return errors.New("no unit")
	}
	return nil
}

func (unit) JSONSchemaEnum() []any { return []any{unit(0), unit(1)} }

type even int

func (even) JSONSchema() json.RawMessage { return json.RawMessage(`{"type":"integer","multipleOf":2}`) }

// What a type says of itself is listed, and holds for arguments and results.
//
// fault E3
func TestTypesThatDescribeThemselves(t *testing.T) {
	type weight struct {
		N even `json:"n"`
		U unit `json:"u" jsonschema:"default=lb"`
	}
	s := newTestServer(t, nil)
	MustAddTool(s, &Tool{Name: "same"}, func(_ context.Context, in weight) (weight, error) { return in, nil })
	MustAddTool(s, &Tool{Name: "odd"}, func(context.Context, struct{}) (weight, error) { return weight{N: 1}, nil })
	const want = `{"properties":{"n":{"multipleOf":2,"type":"integer"},"u":{"default":"lb","enum":["kg","lb"],"type":"string"}},"additionalProperties":false,"type":"object","required":["n"]}`
	if got := jsonOf(t, s.ListTools()[0].InputSchema); !equalJSON(t, got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	wantText(t, s, "same", `{"n":4,"u":"kg"}`, `{"n":4,"u":"kg"}`, false)
	wantText(t, s, "same", `{"n":4}`, `{"n":4,"u":"lb"}`, false)
	wantFailure(t, s, "same", `{"n":3}`, "/n", "multiple of 2")
	wantFailure(t, s, "same", `{"n":2,"u":"stone"}`, "/u", "kg")
	wantFailure(t, s, "odd", `{}`, "results", "/n")
}

func equalJSON(t *testing.T, a, b string) bool {
	t.Helper()
	return string(canonicalJSON(json.RawMessage(a))) == string(canonicalJSON(json.RawMessage(b)))
}
