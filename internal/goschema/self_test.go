package goschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/growth"
)

type (
	textOnly struct{ A, B int }
	colour   int
	level    string
	odd      struct{}
	shape    struct{}
	twin     struct{}
	selfRef  struct{}
	opaque   struct{ A int }
	badJSON  struct{}
	badType  struct{}
	draft7   struct{}
	withID   struct{}
	noValues int
	badValue int
	listed   struct{}
	free     struct{}
)

func (textOnly) MarshalText() ([]byte, error) { return []byte("a-b"), nil }

func (*textOnly) UnmarshalText([]byte) error { return nil }

func (c colour) MarshalText() ([]byte, error) { return []byte([]string{"red", "green"}[c]), nil }

func (c *colour) UnmarshalText(text []byte) error {
	switch string(text) {
	case "red":
		*c = 0
	case "green":
		*c = 1
	default:
		return errors.New("no colour")
	}
	return nil
}

func (colour) JSONSchemaEnum() []any { return []any{colour(0), colour(1)} }

func (level) JSONSchemaEnum() []any { return []any{level("low"), level("high")} }

func (odd) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"type":"integer","not":{"multipleOf":2},"description":"odd","minimum":1.50}`)
}

func (*shape) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"oneOf":[{"$ref":"#/$defs/side"},{"type":"null"}],"$defs":{"side":{"type":"number","minimum":0}}}`)
}

func (twin) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"$ref":"#/$defs/side","$defs":{"side":{"type":"string"}}}`)
}

func (selfRef) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}}}`)
}

func (opaque) MarshalJSON() ([]byte, error) { return []byte(`"x"`), nil }

func (*opaque) UnmarshalJSON([]byte) error { return nil }

func (badJSON) JSONSchema() json.RawMessage { return json.RawMessage(`{`) }

func (badType) JSONSchema() json.RawMessage { return json.RawMessage(`{"type":"strnig"}`) }

func (draft7) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#"}`)
}

func (withID) JSONSchema() json.RawMessage { return json.RawMessage(`{"$id":"https://x.example"}`) }

func (noValues) JSONSchemaEnum() []any { return nil }

func (badValue) JSONSchemaEnum() []any { return []any{func() {}} }

func (listed) JSONSchemaEnum() []any { return []any{1} }

func (free) JSONSchema() json.RawMessage { return json.RawMessage(`true`) }

// A type says what its schema is, by a schema or by its values; what it says holds
// whichever way its values go, in fields, items and behind pointers.
//
// fault E3
func TestTypesThatDescribeThemselves(t *testing.T) {
	tests := []struct {
		name string
		t    reflect.Type
		want string
	}{
		{"text", reflect.TypeFor[textOnly](), `{"type":"string"}`},
		{"JSON", reflect.TypeFor[opaque](), `{}`},
		{"an enum of texts", reflect.TypeFor[level](), `{"type":"string","enum":["low","high"]}`},
		{"an enum that is text in JSON", reflect.TypeFor[colour](), `{"type":"string","enum":["red","green"]}`},
		{"a schema", reflect.TypeFor[odd](), `{"type":"integer","description":"odd","minimum":1.50,"not":{"multipleOf":2}}`},
		{"a schema of a pointer's", reflect.TypeFor[shape](), `{"$defs":{"side":{"minimum":0,"type":"number"}},"oneOf":[{"$ref":"#/$defs/side"},{"type":"null"}]}`},
		{"a schema that refers to itself", reflect.TypeFor[selfRef](), `{"properties":{"next":{"$ref":"#/$defs/n"}},"type":"object","$defs":{"n":{"properties":{"next":{"$ref":"#/$defs/n"}},"type":"object"}}}`},
		{"anything", reflect.TypeFor[free](), `{}`},
		{"in items", reflect.TypeFor[[]colour](), `{"items":{"type":"string","enum":["red","green"]},"type":"array"}`},
		{"in a field", reflect.TypeFor[struct {
			C *colour `json:"c" jsonschema:"description=the colour,default=green"`
			O *odd    `json:"o,omitempty" jsonschema:"an odd number"`
			S *shape  `json:"s,omitempty"`
		}](), `{"$defs":{"side":{"minimum":0,"type":"number"}},"properties":{` +
			`"c":{"description":"the colour","default":"green","enum":["red","green",null],"type":["string","null"]},` +
			`"o":{"description":"an odd number (odd)","minimum":1.50,"not":{"multipleOf":2},"type":["integer","null"]},` +
			`"s":{"anyOf":[{"oneOf":[{"$ref":"#/$defs/side"},{"type":"null"}]},{"type":"null"}]}},"additionalProperties":false,"type":"object"}`},
	}
	for _, tt := range tests {
		for _, use := range []Use{Input, Output} {
			got, err := For(tt.t, use)
			if err != nil || !sameJSON(t, string(got), tt.want) {
				t.Errorf("%s, use %d: got  %s, %v\nwant %s", tt.name, use, got, err, tt.want)
			}
		}
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var va, vb any
	return json.Unmarshal([]byte(a), &va) == nil && json.Unmarshal([]byte(b), &vb) == nil && reflect.DeepEqual(va, vb)
}

// A type that describes itself wrongly is an error that names it.
//
// fault E3
func TestTypesThatDescribeThemselvesWrongly(t *testing.T) {
	for name, tt := range map[string]struct {
		t    reflect.Type
		says string
	}{
		"no JSON":              {reflect.TypeFor[struct{ F badJSON }](), "field F of type goschema.badJSON: the schema of its method JSONSchema: the schema is not JSON"},
		"no schema":            {reflect.TypeFor[struct{ F badType }](), "field F of type goschema.badType: the schema of its method JSONSchema: the schema cannot be used: it is not valid"},
		"another dialect":      {reflect.TypeFor[struct{ F draft7 }](), "only dialect 2020-12 fits"},
		"an id":                {reflect.TypeFor[struct{ F withID }](), "has none"},
		"no values":            {reflect.TypeFor[struct{ F noValues }](), "field F of type goschema.noValues: its method JSONSchemaEnum lists no values"},
		"a value without JSON": {reflect.TypeFor[struct{ F badValue }](), "a value of its method JSONSchemaEnum"},
		"values of a struct":   {reflect.TypeFor[struct{ F listed }](), "does not encode itself"},
		"two definitions of one name": {reflect.TypeFor[struct {
			A shape
			B twin
		}](), `field B of type goschema.twin: the schema of its method JSONSchema: $defs: the name "side" is that of another definition`},
	} {
		if got, err := For(tt.t, Input); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %s, %v; want an error with %q", name, got, err, tt.says)
		}
	}
}

// A tag that says what no schema says is an error that names the field and the keyword.
//
// fault E2
func TestTagsThatAreWrong(t *testing.T) {
	tests := []struct{ kind, tag, says string }{
		{"string", "enum=a,enum=b,descrption=typo", `the unknown keyword "descrption"`},
		{"string", "descrption=typo", `the unknown keyword "descrption"`},
		{"string", "description=a, or b,minlength=3", `the unknown keyword "minlength"`},
		{"string", "required,optionel", `the unknown keyword "optionel"`},
		{"string", "minLength=3,requird", `the unknown keyword "requird" after minLength`},
		{"string", "enum=a,b", `the unknown keyword "b" after enum`},
		{"string", "format=date,x", `the unknown keyword "x" after format`},
		{"string", "description=d,required=yes", "required=yes, want true or false"},
		{"string", "minLength=1,minLength=2", `the keyword "minLength" twice`},
		{"string", "title=a,title=b", `the keyword "title" twice`},
		{"string", "minimum=1", `the keyword "minimum", which is for the type number, and the field is of type string`},
		{"string", "minItems=1", `"minItems", which is for the type array`},
		{"string", "minProperties=1", `"minProperties", which is for the type object`},
		{"string", "minLength=x", "minLength=x, want a whole number"},
		{"string", "minLength=-1", "minLength=-1, want a whole number"},
		{"string", "minLength=", "minLength=, want a whole number"},
		{"string", "maxLength", "maxLength=, want a whole number"},
		{"string", "pattern=(", "pattern=(: error parsing regexp"},
		{"int", "minLength=1", `"minLength", which is for the type string, and the field is of type integer`},
		{"int", "pattern=a", `"pattern", which is for the type string`},
		{"int", "minimum=low", "minimum=low, want a number"},
		{"int", "multipleOf=0", "multipleOf=0, want more than 0"},
		{"int", "multipleOf=-1", "multipleOf=-1, want more than 0"},
		{"int", "enum=one", "enum=one, which is no int"},
		{"int", "default=1.5", "default=1.5, which is no int"},
		{"bool", "maximum=1", `"maximum", which is for the type number, and the field is of type boolean`},
		{"list", "minProperties=1", `"minProperties", which is for the type object, and the field is of type array`},
		{"list", "minimum=1", `"minimum", which is for the type number, and the field is of type string`},
		{"map", "uniqueItems", `"uniqueItems", which is for the type array, and the field is of type object`},
	}
	types := map[string]reflect.Type{
		"string": reflect.TypeFor[string](), "int": reflect.TypeFor[int](), "bool": reflect.TypeFor[bool](),
		"list": reflect.TypeFor[[]string](), "map": reflect.TypeFor[map[string]int](),
	}
	for _, tt := range tests {
		for _, use := range []Use{Input, Output} {
			_, err := For(tagged(types[tt.kind], tt.tag), use)
			if err == nil || !strings.HasPrefix(err.Error(), "field Field of type ") || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s with %q, use %d: %v, want an error with %s", tt.kind, tt.tag, use, err, tt.says)
			}
		}
	}
}

// Commas that belong to a value stay in it.
func TestCommasInTags(t *testing.T) {
	for tag, want := range map[string]string{
		`description=a, b and c`:      `"description":"a, b and c"`,
		`title=a, b`:                  `"title":"a, b"`,
		`pattern=^[a,b]$`:             `"pattern":"^[a,b]$"`,
		`description=if a\,b=c holds`: `"description":"if a,b=c holds"`,
		`enum=a\,b,enum=c`:            `"enum":["a,b","c"]`,
		`default=a,b`:                 `"default":"a,b"`,
		`pattern=(?=x)`:               `"pattern":"(?=x)"`,
		`a plain text, with x = y`:    `"description":"a plain text, with x = y"`,
	} {
		got, err := For(tagged(reflect.TypeFor[string](), tag), Input)
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s: %s, %v; want %s", tag, got, err, want)
		}
	}
}

func tagged(t reflect.Type, tag string) reflect.Type {
	return reflect.StructOf([]reflect.StructField{{Name: "Field", Type: t, Tag: reflect.StructTag(fmt.Sprintf(`json:"f" jsonschema:%q`, tag))}})
}

type (
	wide0 struct{ A, B, C, D wide1 }
	wide1 struct{ A, B, C, D wide2 }
	wide2 struct{ A, B, C, D wide3 }
	wide3 struct{ A, B, C, D wide4 }
	wide4 struct{ A, B, C, D wide5 }
	wide5 struct{ A, B, C, D wide6 }
	wide6 struct{ A, B, C, D wide7 }
	wide7 struct{ A, B, C, D wide8 }
	wide8 struct{ A, B, C, D int }
)

// Types that would be written out a hundred thousand times over are written once
// each, and deriving them costs what that costs; types without names, which cannot
// be, end at a bound.
func TestHugeTypes(t *testing.T) {
	growth.AtMost(t, 32<<20, []int{1}, func(int) int {
		return growth.Bytes(func() {
			got, err := For(reflect.TypeFor[wide0](), Input)
			if err != nil || !strings.Contains(string(got), `"#/$defs/wide8"`) {
				t.Errorf("%.100s, %v", got, err)
			}
		})
	})
	fields := func(n int) reflect.Type {
		list := make([]reflect.StructField, n)
		for i := range list {
			list[i] = reflect.StructField{Name: fmt.Sprint("F", i), Type: reflect.TypeFor[int]()}
		}
		return reflect.StructOf(list)
	}
	growth.Check(t, 400, func(n int) int {
		typ := fields(n)
		return growth.Bytes(func() {
			if _, err := For(typ, Input); err != nil {
				t.Error(err)
			}
		})
	})
	six := fields(6) // seven parts
	parts := func(fields int, more ...reflect.StructField) reflect.Type {
		list := more
		for i := range fields {
			list = append(list, reflect.StructField{Name: fmt.Sprint("F", i), Type: six})
		}
		return reflect.StructOf(list)
	}
	if _, err := For(parts(2857), Input); err != nil { // 1 + 2857 * 7 = maxParts
		t.Errorf("the most parts: %v", err)
	}
	if _, err := For(parts(2857, reflect.StructField{Name: "G", Type: reflect.TypeFor[int]()}), Input); err == nil || !strings.Contains(err.Error(), "the whole has more than 20000 parts") {
		t.Errorf("one more: %v", err)
	}
	deep := reflect.TypeFor[int]()
	for range 15 {
		deep = reflect.StructOf([]reflect.StructField{{Name: "A", Type: deep}, {Name: "B", Type: deep}})
	}
	if _, err := For(deep, Input); err == nil || !strings.Contains(err.Error(), "more than 20000 parts") {
		t.Errorf("65,535 parts without names: %v", err)
	}
}
