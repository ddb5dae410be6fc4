package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/growth"
)

// T13 T24 T25 T26
func TestHeaderParams(t *testing.T) {
	const schema = `{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"page":{"type":"object","properties":{"size":{"type":"integer","x-mcp-header":"Page-Size"},"x-mcp-header":{"type":"string"}}},
		"dry":{"type":"boolean","x-mcp-header":"Dry"},
		"plain":{"type":"string"},
		"rows":{"type":"array","items":{"type":"string","x-mcp-header":"Row"}},
		"either":{"anyOf":[{"type":"string","x-mcp-header":"Either"}]},
		"data":{"const":{"x-mcp-header":"Data"},"default":{"x-mcp-header":"Data"}}},
		"patternProperties":{"^p":{"properties":{"q":{"type":"string","x-mcp-header":"Pattern"}}}},
		"$defs":{"d":{"properties":{"e":{"type":"string","x-mcp-header":"Def"}}}},
		"x-mcp-header":"Root"}`
	var log logBuffer
	s := newTestServer(t, &Options{Logger: log.logger()})
	if err := s.AddTool(&Tool{Name: "t", InputSchema: json.RawMessage(schema)}, returns(Text(""), nil)); err != nil {
		t.Fatal(err)
	}
	got := s.HeaderParams("t")
	want := `[{"Name":"Region","Path":["region"],"Type":"string"},{"Name":"Page-Size","Path":["page","size"],"Type":"integer"},{"Name":"Dry","Path":["dry"],"Type":"boolean"}]`
	if jsonOf(t, got) != want {
		t.Errorf("got %s, want %s", jsonOf(t, got), want)
	}
	if again := s.HeaderParams("t"); &again[0] != &got[0] {
		t.Error("the list was made twice")
	}
	for _, place := range []string{
		"/properties/rows/items", "/properties/either/anyOf/0", "/patternProperties/^p/properties/q", "/$defs/d/properties/e", "(root)",
	} {
		if n := strings.Count(log.String(), place+"\n") + strings.Count(log.String(), `"`+place+`"`); n != 1 {
			t.Errorf("%d warnings name %s", n, place)
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 5 {
		t.Errorf("%d warnings, want 5:\n%s", n, log.String())
	}
	if s.HeaderParams("nobody") != nil {
		t.Error("a tool that is not there has parameters")
	}
	params, err := HeaderParams(json.RawMessage(schema))
	if err != nil || jsonOf(t, params) != want {
		t.Errorf("of the schema alone: %s, %v", jsonOf(t, params), err)
	}
}

// T13
func TestHeaderParamsOfGoTypes(t *testing.T) {
	s := newTestServer(t, nil)
	MustAddTool(s, &Tool{Name: "t"}, func(context.Context, struct {
		Region string `json:"region" jsonschema:"x-mcp-header=Region"`
	},
	) (string, error) {
		return "", nil
	})
	if got := s.HeaderParams("t"); len(got) != 1 || got[0].Name != "Region" || !slices.Equal(got[0].Path, []string{"region"}) {
		t.Errorf("got %+v", got)
	}
}

// T13
func TestWrongHeaderParams(t *testing.T) {
	property := func(schema string) json.RawMessage { return json.RawMessage(`{"properties":{"a":` + schema + `}}`) }
	for _, tt := range []struct {
		schema json.RawMessage
		says   string
	}{
		{property(`{"type":"number","x-mcp-header":"A"}`), "string, integer and boolean only"},
		{property(`{"type":"object","x-mcp-header":"A"}`), "string, integer and boolean only"},
		{property(`{"type":["string","null"],"x-mcp-header":"A"}`), "string, integer and boolean only"},
		{property(`{"x-mcp-header":"A"}`), "string, integer and boolean only"},
		{property(`{"type":"string","x-mcp-header":""}`), "not empty"},
		{property(`{"type":"string","x-mcp-header":null}`), "not empty"},
		{property(`{"type":"string","x-mcp-header":7}`), "not empty"},
		{property(`{"type":"string","x-mcp-header":"a b"}`), `' '`},
		{property(`{"type":"string","x-mcp-header":"a:b"}`), `':'`},
		{property(`{"type":"string","x-mcp-header":"ä"}`), `'ä'`},
		{property(`{"type":"string","x-mcp-header":"a\r\nX: y"}`), `'\r'`},
		{json.RawMessage(`{"properties":{"a":{"type":"string","x-mcp-header":"Same"},"b":{"properties":{"c":{"type":"string","x-mcp-header":"SAME"}}}}}`), `"a" and "b.c"`},
		{json.RawMessage(`{`), "not valid JSON"},
	} {
		if params, err := HeaderParams(tt.schema); err == nil || !strings.Contains(err.Error(), tt.says) || params != nil {
			t.Errorf("%s: got %v, %v; want an error with %q", tt.schema, params, err, tt.says)
		}
	}
	all := property("{\"type\":\"string\",\"x-mcp-header\":\"!#$%&'*+-.^_`|~09azAZ\"}")
	if params, err := HeaderParams(all); err != nil || len(params) != 1 {
		t.Errorf("all characters of a token: %v, %v", params, err)
	}
}

// FuzzHeaderParams gives it any schema: what it finds is usable as it is.
func FuzzHeaderParams(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}`))
	f.Add([]byte(`{"properties":{"a":{"properties":{"b":{"type":"integer","x-mcp-header":"A","x\u002dmcp-header":"B"}}}}}`))
	f.Add([]byte(`{"$defs":{"x-mcp-header":[{"x-mcp-header":{}}]},"x-mcp-header":[]}`))
	f.Add([]byte(`[[{"properties":[{"x-mcp-header":"A"}]}]]`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		params, err := HeaderParams(schema)
		if err != nil {
			if params != nil {
				t.Errorf("both %v and %v", params, err)
			}
			return
		}
		seen := map[string]bool{}
		for _, p := range params {
			if p.Name == "" || strings.ContainsFunc(p.Name, func(r rune) bool { return !isToken(r) }) || seen[strings.ToLower(p.Name)] {
				t.Errorf("the name %q", p.Name)
			}
			seen[strings.ToLower(p.Name)] = true
			if len(p.Path) == 0 || p.Type != "string" && p.Type != "integer" && p.Type != "boolean" {
				t.Errorf("%+v", p)
			}
		}
	})
}

// The protocol allows no header for a number. The tool stays, is listed without
// the annotation, for which clients would leave it out, and can be called without
// the header.
//
// # T13 T25
//
// fault I9
func TestHeadersOfNumbers(t *testing.T) {
	for name, tt := range map[string]struct{ schema, listed, warns string }{
		"a number": {
			`{"type":"object","properties":{"price":{"type":"number","x-mcp-header":"Price","minimum":0.10},"region":{"type":"string","x-mcp-header":"Region"}}}`,
			`{"type":"object","properties":{"price":{"type":"number","minimum":0.10},"region":{"type":"string","x-mcp-header":"Region"}}}`,
			`property \"price\" has x-mcp-header, which is for the types string, integer and boolean only`,
		},
		"a text or null": {
			`{"type":"object","properties":{"a":{"type":["string","null"],"x-mcp-header":"A"}}}`,
			`{"type":"object","properties":{"a":{"type":["string","null"]}}}`,
			`property \"a\" has`,
		},
		"an item": {
			`{"type":"object","properties":{"a":{"items":{"type":"string","x-mcp-header":"A"}}}}`,
			`{"type":"object","properties":{"a":{"items":{"type":"string"}}}}`,
			"only on properties that are reached through properties alone",
		},
		"nothing wrong": {
			`{ "type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}`,
			`{ "type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}`, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log logBuffer
			s := newTestServer(t, &Options{Logger: log.logger()})
			if err := s.AddTool(&Tool{Name: "t", InputSchema: json.RawMessage(tt.schema)}, returns(Text("ran"), nil)); err != nil {
				t.Fatal(err)
			}
			listed, _ := s.ListTools()[0].InputSchema.(json.RawMessage)
			if string(listed) != tt.listed {
				t.Errorf("listed %s, want %s", listed, tt.listed)
			}
			if _, err := HeaderParams(listed); err != nil {
				t.Errorf("clients leave the tool out: %v", err)
			}
			if !strings.Contains(log.String(), tt.warns) || (tt.warns == "") != (log.String() == "") {
				t.Errorf("the log is %s, want %s", log.String(), tt.warns)
			}
			for _, p := range s.HeaderParams("t") {
				if p.Type == "number" {
					t.Errorf("a header parameter %+v", p)
				}
			}
			wantText(t, s, "t", `{}`, "ran", false)
		})
	}
	s := newTestServer(t, nil)
	MustAddTool(s, &Tool{Name: "t"}, func(context.Context, struct {
		Price float64 `json:"price" jsonschema:"x-mcp-header=Price"`
		Zone  *string `json:"zone,omitempty" jsonschema:"x-mcp-header=Zone"`
	},
	) (string, error) {
		return "ran", nil
	})
	wantText(t, s, "t", `{"price":1.5}`, "ran", false)
}

// A tool has at most 100 header parameters, exactly.
func TestHeaderParamsAreBounded(t *testing.T) {
	schema := func(n int) json.RawMessage {
		properties := make([]string, n)
		for i := range properties {
			properties[i] = fmt.Sprintf(`"p%d":{"type":"string","x-mcp-header":"P%d"}`, i, i)
		}
		return json.RawMessage(`{"properties":{` + strings.Join(properties, ",") + `}}`)
	}
	if params, err := HeaderParams(schema(100)); err != nil || len(params) != 100 {
		t.Errorf("%d parameters, %v", len(params), err)
	}
	if _, err := HeaderParams(schema(101)); err == nil || !strings.Contains(err.Error(), "more than 100 properties with x-mcp-header") {
		t.Errorf("one more: %v", err)
	}
}

// Finding header parameters grows with the schema, however deep the properties
// nest and wherever the keyword stands.
//
// fault H2
func TestHeaderParamsGrowWithTheSchema(t *testing.T) {
	for name, schema := range map[string]func(n int) string{
		"nested properties": func(n int) string {
			return strings.Repeat(`{"properties":{"a":`, n) + `{"type":"string","x-mcp-header":"A"}` + strings.Repeat(`}}`, n)
		},
		"nested items": func(n int) string {
			return strings.Repeat(`{"items":`, n) + `{"x-mcp-header":"A"}` + strings.Repeat(`}`, n)
		},
		"long names": func(n int) string {
			return strings.Repeat(`{"properties":{"`+strings.Repeat("n", 1000)+`":`, n/10) + `{"x-mcp-header":0}` + strings.Repeat(`}}`, n/10)
		},
		"many at a depth": func(n int) string {
			return strings.Repeat(`{"items":`, n) + `[` + strings.Repeat(`{"x-mcp-header":"A"},`, n) + `1]` + strings.Repeat(`}`, n)
		},
		"one name many times": func(n int) string {
			return `{"properties":{` + strings.Repeat(`"a":{"type":"string","x-mcp-header":"A"},`, n) + `"b":{}}}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			growth.Check(t, 1000, func(n int) int {
				raw := json.RawMessage(schema(n))
				return growth.Bytes(func() { _, _ = findHeaders(raw, false) })
			})
		})
	}
}
