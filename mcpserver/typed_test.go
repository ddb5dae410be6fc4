package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type order struct {
	SKU   string            `json:"sku" jsonschema:"stock keeping unit, eight characters"`
	Unit  string            `json:"unit" jsonschema:"enum=piece,enum=box,default=piece"`
	Count int               `json:"count,omitempty" jsonschema:"minimum=1,maximum=99"`
	Note  *string           `json:"note,omitempty"`
	Tags  []string          `json:"tags,omitempty"`
	By    time.Time         `json:"by,omitzero"`
	Parts []order           `json:"parts,omitempty"`
	Attrs map[string]string `json:"attrs,omitempty"`
	Raw   json.RawMessage   `json:"raw,omitempty"`
}

// T02 R31
func TestTypedArguments(t *testing.T) {
	s := newTestServer(t, nil)
	var got order
	MustAddTool(s, &Tool{Name: "order"}, func(_ context.Context, in order) (string, error) {
		got = in
		return "ok", nil
	})
	wantText(t, s, "order", `{"sku":"AB-00017","count":3,"note":"x","by":"2026-07-28T10:00:00Z","parts":[{"sku":"P"}],"attrs":{"a":"b"},"raw":[1,2.50]}`, "ok", false)
	if got.SKU != "AB-00017" || got.Unit != "piece" || got.Count != 3 || *got.Note != "x" || got.By.Hour() != 10 ||
		len(got.Parts) != 1 || got.Parts[0].SKU != "P" || got.Parts[0].Unit != "piece" || got.Attrs["a"] != "b" || string(got.Raw) != "[1,2.50]" {
		t.Errorf("got %+v", got)
	}
	wantText(t, s, "order", `{"sku":"A","note":null,"unit":"box"}`, "ok", false)
	if got.Note != nil || got.Unit != "box" {
		t.Errorf("got %+v", got)
	}
	for args, parts := range map[string][]string{
		`{}`:                                 {"Tool 'order': the arguments do not match the input schema:", "/sku: required, but missing; expected a string (stock keeping unit, eight characters)"},
		`{"sku":1,"unit":"crate","count":0}`: {"/sku: expected a string, got the number 1", `/unit: expected one of "piece", "box"`, "/count: expected at least 1"},
		`{"sku":"A","parts":[{"sku":"B"},{"sku":7}]}`: {"/parts/1/sku: expected a string"},
		`{"sku":"A","by":"tomorrow"}`:                 {"/by: expected a date and time"},
		`{"sku":"A","count":1.5}`:                     {"/count: expected an integer"},
		`{"sku":"A","Count":5}`:                       {`/Count: unknown property; did you mean "count"?`},
		`{"sku":"A","attrs":{"x":1}}`:                 {"/attrs/x: expected a string"},
		`[{"sku":"A"}]`:                               {"(root): expected an object"},
		`{"sku":"A"`:                                  {"the arguments are not valid JSON"},
	} {
		wantFailure(t, s, "order", args, parts...)
	}
	// What the schema cannot say is found when decoding.
	wantFailure(t, s, "order", `{"sku":"A","count":98765432109876543210987654321}`, "/count")
}

func TestNumbersKeepTheirPrecision(t *testing.T) {
	s := newTestServer(t, nil)
	MustAddTool(s, &Tool{Name: "id"}, func(_ context.Context, in struct {
		ID  int64       `json:"id"`
		Num json.Number `json:"num"`
		Any any         `json:"any,omitempty"`
	},
	) (string, error) {
		return fmt.Sprint(in.ID, " ", in.Num), nil
	})
	wantText(t, s, "id", `{"id":9007199254740993,"num":12345678901234567890.5}`, "9007199254740993 12345678901234567890.5", false)
	wantFailure(t, s, "id", `{"id":9223372036854775808,"num":1}`, "decoding the arguments")
}

func TestMapsAndAnyAsArguments(t *testing.T) {
	s := newTestServer(t, nil)
	MustAddTool(s, &Tool{Name: "map"}, func(_ context.Context, in map[string]int) (string, error) { return fmt.Sprint(in), nil })
	MustAddTool(s, &Tool{Name: "any"}, func(_ context.Context, in any) (string, error) { return fmt.Sprint(in), nil })
	MustAddTool(s, &Tool{Name: "raw"}, func(_ context.Context, in json.RawMessage) (string, error) { return string(in), nil })
	MustAddTool(s, &Tool{Name: "pointer"}, func(_ context.Context, in *order) (string, error) { return in.SKU, nil })
	wantText(t, s, "map", `{"a":1}`, "map[a:1]", false)
	wantText(t, s, "map", ``, "map[]", false)
	wantFailure(t, s, "map", `{"a":"x"}`, "/a")
	wantText(t, s, "any", `{"a":[true]}`, "map[a:[true]]", false)
	wantFailure(t, s, "any", `[]`, "expected an object")
	wantText(t, s, "raw", `{"a": 1}`, `{"a": 1}`, false)
	wantText(t, s, "pointer", `{"sku":"A"}`, "A", false)
}

// With a schema of one's own that allows more, names are as exact as ever.
func TestNamesAreCaseSensitive(t *testing.T) {
	s := newTestServer(t, nil)
	type in struct {
		Role string `json:"role"`
		Sub  []struct {
			X int `json:"x"`
		} `json:"sub"`
	}
	h := func(_ context.Context, in in) (string, error) { return fmt.Sprint(in.Role, in.Sub), nil }
	MustAddTool(s, &Tool{Name: "open", InputSchema: json.RawMessage(`{"type":"object","properties":{"role":{"enum":["reader"]}}}`)}, h)
	wantText(t, s, "open", `{"role":"reader","ROLE":"admin","sub":[{"x":1,"X":2}]}`, "reader[{1}]", false)
	wantText(t, s, "open", `{"Role":"admin"}`, "[]", false)
	skip := newTestServer(t, &Options{SkipValidation: true})
	MustAddTool(skip, &Tool{Name: "skip"}, h)
	wantText(t, skip, "skip", `{"role":"a","ROLE":"b","other":1}`, "a[]", false)
}

// R31
func TestSkipValidation(t *testing.T) {
	s := newTestServer(t, &Options{SkipValidation: true})
	schema := json.RawMessage(`{"type":"object","required":["a"]}`)
	if err := s.AddTool(&Tool{Name: "raw", InputSchema: schema}, func(_ context.Context, args json.RawMessage) (*Result, error) {
		return Text(fmt.Sprintf("%q %v", args, args == nil)), nil
	}); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{`{}`: `"{}" false`, ``: `"" true`, ` null`: `" null" false`, `[1]`: `"[1]" false`, `{`: `"{" false`} {
		var raw json.RawMessage
		if args != "" {
			raw = json.RawMessage(args)
		}
		if r, err := s.CallTool(t.Context(), "raw", raw); err != nil || r.IsError || r.Text() != want {
			t.Errorf("%q: got %v, %v; want %s", args, r.Text(), err, want)
		}
	}
	MustAddTool(s, &Tool{Name: "typed"}, func(_ context.Context, in struct{ A int }) (string, error) { return fmt.Sprint(in.A), nil })
	wantText(t, s, "typed", ``, "0", false)
	wantFailure(t, s, "typed", `{"A":"x"}`, "decoding the arguments")
	validates := newTestServer(t, nil)
	if err := validates.AddTool(&Tool{Name: "raw", InputSchema: schema}, returns(Text("called"), nil)); err != nil {
		t.Fatal(err)
	}
	wantFailure(t, validates, "raw", `{}`, "/a: required")
}

type shelf struct {
	Name  string   `json:"name"`
	Items []string `json:"items"`
	Max   int      `json:"max,omitempty" jsonschema:"maximum=9"`
}

// T03 T35 T36
func TestTypedResults(t *testing.T) {
	s := newTestServer(t, nil)
	img := &mcp.ImageContent{MIMEType: "image/png"}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(AddTool(s, &Tool{Name: "string"}, func(context.Context, struct{}) (string, error) { return "plain", nil }))
	must(AddTool(s, &Tool{Name: "result"}, func(context.Context, struct{}) (*Result, error) { return Errorf("mine"), nil }))
	must(AddTool(s, &Tool{Name: "content"}, func(context.Context, struct{}) (mcp.Content, error) { return img, nil }))
	must(AddTool(s, &Tool{Name: "image"}, func(context.Context, struct{}) (*mcp.ImageContent, error) { return img, nil }))
	must(AddTool(s, &Tool{Name: "contents"}, func(context.Context, struct{}) ([]mcp.Content, error) { return []mcp.Content{img, img}, nil }))
	must(AddTool(s, &Tool{Name: "nothing"}, func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }))
	must(AddTool(s, &Tool{Name: "struct"}, func(context.Context, struct{}) (shelf, error) { return shelf{Name: "a"}, nil }))
	must(AddTool(s, &Tool{Name: "pointer"}, func(context.Context, struct{}) (*shelf, error) { return nil, nil }))
	must(AddTool(s, &Tool{Name: "map"}, func(context.Context, struct{}) (map[string]int, error) { return nil, nil }))
	must(AddTool(s, &Tool{Name: "slice"}, func(context.Context, struct{}) ([]int, error) { return []int{1, 2}, nil }))
	must(AddTool(s, &Tool{Name: "number"}, func(context.Context, struct{}) (float64, error) { return 1.5, nil }))
	must(AddTool(s, &Tool{Name: "anystring"}, func(context.Context, struct{}) (any, error) { return "s", nil }))
	must(AddTool(s, &Tool{Name: "anymap"}, func(context.Context, struct{}) (any, error) { return map[string]int{"a": 1}, nil }))
	must(AddTool(s, &Tool{Name: "anynil"}, func(context.Context, struct{}) (any, error) { return nil, nil }))
	must(AddTool(s, &Tool{Name: "mismatch"}, func(context.Context, struct{}) (shelf, error) { return shelf{Max: 10}, nil }))
	must(AddTool(s, &Tool{Name: "unencodable"}, func(context.Context, struct{}) (any, error) { return func() {}, nil }))
	must(AddTool(s, &Tool{Name: "fails"}, func(context.Context, struct{}) (shelf, error) { return shelf{}, errTest }))
	must(AddTool(s, &Tool{Name: "nilresult"}, func(context.Context, struct{}) (*Result, error) { return nil, nil }))
	for name, want := range map[string]string{
		"string":   `{"content":[{"type":"text","text":"plain"}],"isError":false}`,
		"result":   `{"content":[{"type":"text","text":"mine"}],"isError":true}`,
		"content":  `{"content":[{"type":"image","mimeType":"image/png","data":""}],"isError":false}`,
		"image":    `{"content":[{"type":"image","mimeType":"image/png","data":""}],"isError":false}`,
		"contents": `{"content":[{"type":"image","mimeType":"image/png","data":""},{"type":"image","mimeType":"image/png","data":""}],"isError":false}`,
		"nothing":  `{"content":[],"isError":false}`,
		"struct":   `{"content":[{"type":"text","text":"{\"name\":\"a\",\"items\":[]}"}],"isError":false,"structuredContent":{"name":"a","items":[]}}`,
		"pointer":  `{"content":[{"type":"text","text":"{\"name\":\"\",\"items\":[]}"}],"isError":false,"structuredContent":{"name":"","items":[]}}`,
		"map":      `{"content":[{"type":"text","text":"{}"}],"isError":false,"structuredContent":{}}`,
		"slice":    `{"content":[{"type":"text","text":"[1,2]"}],"isError":false,"structuredContent":{"result":[1,2]}}`,
		"number":   `{"content":[{"type":"text","text":"1.5"}],"isError":false,"structuredContent":{"result":1.5}}`,
		"anymap":   `{"content":[{"type":"text","text":"{\"a\":1}"}],"isError":false}`,
		"fails":    `{"content":[{"type":"text","text":"test"}],"isError":true}`,
	} {
		r, err := s.CallTool(t.Context(), name, nil)
		if err != nil || jsonOf(t, r) != want {
			t.Errorf("%s: got %s, %v\nwant %s", name, jsonOf(t, r), err, want)
		}
	}
	wantText(t, s, "anystring", ``, "s", false)
	wantFailure(t, s, "anynil", ``, "must return a *mcpserver.Result with content, and its handler returned nil")
	wantFailure(t, s, "nilresult", ``, "must return a *mcpserver.Result with content, and its handler returned nil")
	wantFailure(t, s, "mismatch", ``, "do not match the output schema", "/max: expected at most 9")
	wantFailure(t, s, "unencodable", ``, "encoding the result")
	withOutput := map[string]bool{"struct": true, "pointer": true, "map": true, "slice": true, "number": true, "mismatch": true, "fails": true}
	for _, tool := range s.ListTools() {
		if (tool.OutputSchema != nil) != withOutput[tool.Name] {
			t.Errorf("%s: output schema %s", tool.Name, tool.OutputSchema)
		}
	}
}

// T14 T15 T16
func TestMaxSchemaDepth(t *testing.T) {
	nest := func(n int) string { return strings.Repeat(`{"child":`, n) + `{}` + strings.Repeat(`}`, n) }
	schema := json.RawMessage(`{"type":"object","properties":{"child":{"$ref":"#"}},"additionalProperties":false}`)
	for _, tt := range []struct{ server, tool, limit int }{{0, 0, 50}, {10, 0, 10}, {10, 20, 20}, {200, 0, 200}} {
		s := newTestServer(t, &Options{MaxSchemaDepth: tt.server})
		if err := s.AddTool(&Tool{Name: "deep", InputSchema: schema, MaxSchemaDepth: tt.tool}, returns(Text("ok"), nil)); err != nil {
			t.Fatal(err)
		}
		wantText(t, s, "deep", nest(tt.limit), "ok", false)
		wantFailure(t, s, "deep", nest(tt.limit+1), "nested too deeply", fmt.Sprintf("limit of %d levels", tt.limit))
	}
	s := newTestServer(t, &Options{MaxSchemaDepth: 3})
	type tree struct {
		Child *tree `json:"child,omitempty"`
	}
	grow := func(n int) *tree {
		var root *tree
		for range n + 1 {
			root = &tree{root}
		}
		return root
	}
	MustAddTool(s, &Tool{Name: "grow"}, func(_ context.Context, in struct{ N int }) (*tree, error) { return grow(in.N), nil })
	wantText(t, s, "grow", `{"N":3}`, nest(3), false)
	wantFailure(t, s, "grow", `{"N":4}`, "limit of 3 levels")
	MustAddTool(s, &Tool{Name: "more", MaxSchemaDepth: 5}, func(_ context.Context, in struct{ N int }) (*tree, error) { return grow(in.N), nil })
	wantText(t, s, "more", `{"N":5}`, nest(5), false)
	wantFailure(t, s, "more", `{"N":6}`, "limit of 5 levels")
}

// T40 T41
func TestReferences(t *testing.T) {
	s := newTestServer(t, nil)
	for name, schema := range map[string]string{
		"remote": `{"type":"object","properties":{"near":{"type":"integer"},"far":{"$ref":"https://x.example/schema.json"}}}`,
		"file":   `{"type":"object","properties":{"far":{"$ref":"file:///etc/passwd"}}}`,
		"loop":   `{"type":"object","$ref":"#"}`,
		"local":  `{"type":"object","properties":{"far":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}`,
	} {
		if err := s.AddTool(&Tool{Name: name, InputSchema: json.RawMessage(schema)}, returns(Text("ok"), nil)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := `{"type":"object","$id":"http://x.example/y","properties":{"far":{"$ref":"#/$defs/nosuch"}}}`
	if err := s.AddTool(&Tool{Name: "broken", InputSchema: json.RawMessage(broken)}, returns(Text("ok"), nil)); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("broken: got %v, want an error that names the reference", err)
	}
	if n := len(s.ListTools()); n != 4 {
		t.Errorf("%d tools are listed", n)
	}
	wantText(t, s, "remote", `{"near":1}`, "ok", false)
	wantFailure(t, s, "remote", `{"near":"x"}`, "/near: expected an integer")
	wantFailure(t, s, "remote", `{"far":1}`, "/far", "https://x.example/schema.json", "never fetched")
	wantFailure(t, s, "file", `{"far":1}`, "never fetched")
	wantFailure(t, s, "loop", `{}`, "refers to itself")
	wantText(t, s, "local", `{"far":1}`, "ok", false)
	wantFailure(t, s, "local", `{"far":"x"}`, "/far: expected an integer")
}

func TestAnOutputSchemaOfOnesOwn(t *testing.T) {
	s := newTestServer(t, nil)
	list := json.RawMessage(`{"type":"array","items":{"type":"integer","maximum":2}}`)
	MustAddTool(s, &Tool{Name: "list", OutputSchema: list}, func(_ context.Context, in struct{ N int }) ([]int, error) { return []int{1, in.N}, nil })
	r, err := s.CallTool(t.Context(), "list", json.RawMessage(`{"N":2}`))
	if err != nil || string(r.StructuredContent) != `[1,2]` {
		t.Errorf("%s, %v", jsonOf(t, r), err)
	}
	wantFailure(t, s, "list", `{"N":3}`, "/1: expected at most 2")
	for i, err := range []error{
		AddTool(s, &Tool{Name: "text", OutputSchema: list}, func(context.Context, struct{}) (string, error) { return "", nil }),
		AddTool(s, &Tool{Name: "none", OutputSchema: list}, func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }),
	} {
		if err == nil || !strings.Contains(err.Error(), "no structured content") {
			t.Errorf("%d: got %v", i, err)
		}
	}
	MustAddTool(s, &Tool{Name: "result", OutputSchema: list}, func(context.Context, struct{}) (*Result, error) { return Structured([]int{9}), nil })
	wantFailure(t, s, "result", ``, "/0: expected at most 2")
}

// What Go types cannot say, a schema of one's own can.
func TestAnInputSchemaOfOnesOwn(t *testing.T) {
	s := newTestServer(t, nil)
	MustAddTool(s, &Tool{Name: "t", InputSchema: json.RawMessage(`{"properties":{"e":{"type":"null"},"n":{"type":"integer"}}}`)},
		func(_ context.Context, in struct {
			E fmt.Stringer `json:"e"`
			N int          `json:"n"`
		},
		) (string, error) {
			return fmt.Sprint(in.N), nil
		})
	wantText(t, s, "t", `{"e":null,"n":2}`, "2", false)
}

func TestRegistrationErrorsAreTyped(t *testing.T) {
	s := newTestServer(t, nil)
	err := AddTool(s, &Tool{Name: "t"}, func(context.Context, struct{ A struct{ C complex64 } }) (string, error) { return "", nil })
	if err == nil || !strings.Contains(err.Error(), "A.C") || !strings.Contains(err.Error(), "complex64") || errors.Unwrap(err) == nil {
		t.Errorf("got %v", err)
	}
}

func TestUncheckedPatternsAreLogged(t *testing.T) {
	var log logBuffer
	s := newTestServer(t, &Options{Logger: log.logger()})
	if err := s.AddTool(&Tool{Name: "t", InputSchema: json.RawMessage(`{"properties":{"a":{"pattern":"^(?!x)"}}}`)}, returns(Text("ok"), nil)); err != nil {
		t.Fatal(err)
	}
	wantText(t, s, "t", `{"a":"x"}`, "ok", false)
	wantText(t, s, "t", `{"a":"y"}`, "ok", false)
	if n := strings.Count(log.String(), "^(?!x)"); n != 1 {
		t.Errorf("%d warnings: %s", n, log.String())
	}
}
