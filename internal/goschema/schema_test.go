package goschema

import (
	"encoding/json"
	"errors"
	"log/slog"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"

	"github.com/tenon-sdk/tenon/internal/schemaguard"
)

type (
	empty  struct{}
	simple struct {
		SKU   string `json:"sku" jsonschema:"stock keeping unit, eight characters"`
		Count int    `json:"count,omitempty"`
	}
	keywords struct {
		Unit    string   `json:"unit" jsonschema:"enum=kg,enum=lb,default=kg,description=unit, as on the label"`
		Limit   int      `json:"limit" jsonschema:"minimum=1,maximum=100,default=10"`
		Pattern string   `json:"pattern" jsonschema:"pattern=^[a,b]{1,3}$,minLength=1,maxLength=3" jsonschema_description:"letters, a or b"`
		Tags    []string `json:"tags" jsonschema:"enum=x,enum=y,minItems=1,uniqueItems,default=x,default=y"`
		Level   *int     `json:"level,omitempty" jsonschema:"enum=1,enum=2,example=2"`
		Nums    []int    `json:"nums" jsonschema:"default=[1,2]"`
		Must    string   `json:"must,omitempty" jsonschema:"required"`
		May     string   `json:"may" jsonschema:"optional,title=May I,deprecated,format=date"`
		Region  string   `json:"region" jsonschema:"x-mcp-header=Region"`
		Flag    bool     `json:"flag" jsonschema:"default=false"`
		Hidden  string   `json:"-"`
		Secret  string   `jsonschema:"-"`
		private int
	}
	node struct {
		Name string           `json:"name"`
		Kids []*node          `json:"kids,omitempty"`
		More map[string]*node `json:"more,omitempty"`
	}
	mutualA struct {
		B *mutualB `json:"b,omitempty"`
	}
	mutualB struct {
		A []mutualA `json:"a,omitempty"`
	}
	tree    map[string]tree
	deepRef []deepRef
	inner   struct {
		ID   int    `json:"id"`
		Name string `json:"name"`
	}
	outer struct {
		inner
		*Other
		Name string `json:"name"`
		Last string `json:"last"`
	}
	Other struct {
		Extra string `json:"extra"`
	}
	ambiguousA struct{ X int }
	ambiguousB struct{ X int }
	ambiguous  struct {
		ambiguousA
		ambiguousB
		Y int
	}
	loop struct {
		*Loop2
		Z int `json:"z"`
	}
	Loop2 struct {
		*Loop2
		W int `json:"w"`
	}
	special struct {
		At       time.Time           `json:"at"`
		For      time.Duration       `json:"for"`
		ForWhat  time.Duration       `json:"forWhat" jsonschema:"how long to wait"`
		Data     []byte              `json:"data"`
		Raw      json.RawMessage     `json:"raw"`
		Num      json.Number         `json:"num"`
		Any      any                 `json:"any"`
		Addr     netip.Addr          `json:"addr"`
		Big      *big.Int            `json:"big"`
		Level    slog.Level          `json:"level"`
		Arr      [2]float32          `json:"arr"`
		ByID     map[int]string      `json:"byID"`
		ByAddr   map[netip.Addr]bool `json:"byAddr"`
		Quoted   int                 `json:"quoted,string"`
		U        uint                `json:"u"`
		I8       int8                `json:"i8"`
		U16      uint16              `json:"u16"`
		Inner    inner               `json:"inner"`
		InnerPtr *inner              `json:"innerPtr"`
		Anon     struct{ A bool }    `json:"anon"`
	}
	described struct{}
	extended  struct {
		A int `json:"a"`
	}
)

func (described) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: "^d", Version: "x", ID: "https://x.example"}
}

func (*extended) JSONSchemaExtend(s *jsonschema.Schema) { s.Title = "extended" }

func TestSchemas(t *testing.T) {
	tests := []struct {
		name string
		t    reflect.Type
		use  Use
		want string
	}{
		{"empty", reflect.TypeFor[empty](), Input, `{"properties":{},"additionalProperties":false,"type":"object"}`},
		{"simple", reflect.TypeFor[simple](), Input, `{"properties":{
			"sku":{"type":"string","description":"stock keeping unit, eight characters"},"count":{"type":"integer"}},
			"additionalProperties":false,"type":"object","required":["sku"]}`},
		{"pointer", reflect.TypeFor[**simple](), Output, `{"properties":{
			"sku":{"type":"string","description":"stock keeping unit, eight characters"},"count":{"type":"integer"}},
			"additionalProperties":false,"type":"object","required":["sku"]}`},
		{"keywords", reflect.TypeFor[keywords](), Input, `{"properties":{
			"unit":{"type":"string","enum":["kg","lb"],"description":"unit, as on the label","default":"kg"},
			"limit":{"type":"integer","maximum":100,"minimum":1,"default":10},
			"pattern":{"type":"string","maxLength":3,"minLength":1,"pattern":"^[a,b]{1,3}$","description":"letters, a or b"},
			"tags":{"items":{"type":"string","enum":["x","y"]},"type":"array","minItems":1,"uniqueItems":true,"default":["x","y"]},
			"level":{"enum":[1,2,null],"examples":[2],"type":["integer","null"]},
			"nums":{"items":{"type":"integer"},"type":"array","default":[1,2]},
			"must":{"type":"string"},
			"may":{"type":"string","format":"date","title":"May I","deprecated":true},
			"region":{"type":"string","x-mcp-header":"Region"},
			"flag":{"type":"boolean","default":false}},
			"additionalProperties":false,"type":"object","required":["pattern","must","region"]}`},
		{"recursive", reflect.TypeFor[node](), Input, `{"$defs":{"node":{"properties":{
			"name":{"type":"string"},
			"kids":{"items":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]},"type":"array"},
			"more":{"additionalProperties":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]},"type":"object"}},
			"additionalProperties":false,"type":"object","required":["name"]}},
			"properties":{
			"name":{"type":"string"},
			"kids":{"items":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]},"type":"array"},
			"more":{"additionalProperties":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]},"type":"object"}},
			"additionalProperties":false,"type":"object","required":["name"]}`},
		{"mutually recursive", reflect.TypeFor[mutualA](), Input, `{"$defs":{"mutualA":{"properties":{
			"b":{"properties":{"a":{"items":{"$ref":"#/$defs/mutualA"},"type":"array"}},"additionalProperties":false,"type":["object","null"]}},
			"additionalProperties":false,"type":"object"}},
			"properties":{
			"b":{"properties":{"a":{"items":{"$ref":"#/$defs/mutualA"},"type":"array"}},"additionalProperties":false,"type":["object","null"]}},
			"additionalProperties":false,"type":"object"}`},
		{"recursive map", reflect.TypeFor[tree](), Input, `{"$defs":{"tree":{"additionalProperties":{"$ref":"#/$defs/tree"},"type":"object"}},
			"additionalProperties":{"$ref":"#/$defs/tree"},"type":"object"}`},
		{"embedded", reflect.TypeFor[outer](), Input, `{"properties":{
			"id":{"type":"integer"},"extra":{"type":"string"},"name":{"type":"string"},"last":{"type":"string"}},
			"additionalProperties":false,"type":"object","required":["id","name","last"]}`},
		{"ambiguous", reflect.TypeFor[ambiguous](), Input, `{"properties":{"Y":{"type":"integer"}},"additionalProperties":false,"type":"object","required":["Y"]}`},
		{"embedded in itself", reflect.TypeFor[loop](), Input, `{"properties":{"w":{"type":"integer"},"z":{"type":"integer"}},
			"additionalProperties":false,"type":"object","required":["z"]}`},
		{"special", reflect.TypeFor[special](), Input, `{"properties":{
			"at":{"type":"string","format":"date-time"},
			"for":{"type":"integer","description":"a duration in nanoseconds; 1000000000 is one second"},
			"forWhat":{"type":"integer","description":"how long to wait (a duration in nanoseconds; 1000000000 is one second)"},
			"data":{"type":"string","contentEncoding":"base64"},
			"raw":{},"num":{"type":"number"},"any":{},"addr":{"type":"string"},
			"big":{"type":["integer","null"]},"level":{},
			"arr":{"items":{"type":"number"},"type":"array","maxItems":2,"minItems":2},
			"byID":{"additionalProperties":{"type":"string"},"propertyNames":{"pattern":"^-?[0-9]+$"},"type":"object"},
			"byAddr":{"additionalProperties":{"type":"boolean"},"type":"object"},
			"quoted":{"type":"string"},
			"u":{"type":"integer","minimum":0},"i8":{"type":"integer","maximum":127,"minimum":-128},"u16":{"type":"integer","maximum":65535,"minimum":0},
			"inner":{"properties":{"id":{"type":"integer"},"name":{"type":"string"}},"additionalProperties":false,"type":"object","required":["id","name"]},
			"innerPtr":{"properties":{"id":{"type":"integer"},"name":{"type":"string"}},"additionalProperties":false,"required":["id","name"],"type":["object","null"]},
			"anon":{"properties":{"A":{"type":"boolean"}},"additionalProperties":false,"type":"object","required":["A"]}},
			"additionalProperties":false,"type":"object","required":["at","for","forWhat","data","raw","num","any","addr","big","level","arr","byID","byAddr","quoted","u","i8","u16","inner","innerPtr","anon"]}`},
		{"map", reflect.TypeFor[map[string]float64](), Input, `{"additionalProperties":{"type":"number"},"type":"object"}`},
		{"map out", reflect.TypeFor[map[string][]int](), Output, `{"additionalProperties":{"items":{"type":"integer"},"type":["array","null"]},"type":"object"}`},
		{"slice out", reflect.TypeFor[[]string](), Output, `{"items":{"type":"string"},"type":"array"}`},
		{"described", reflect.TypeFor[struct{ D described }](), Input, `{"properties":{"D":{"type":"string","pattern":"^d"}},"additionalProperties":false,"type":"object","required":["D"]}`},
		{"extended", reflect.TypeFor[extended](), Input, `{"properties":{"a":{"type":"integer"}},"additionalProperties":false,"type":"object","required":["a"],"title":"extended"}`},
	}
	for _, tt := range tests {
		got, err := For(tt.t, tt.use)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var want strings.Builder
		for line := range strings.Lines(tt.want) {
			want.WriteString(strings.TrimSpace(line))
		}
		if diff := cmp.Diff(want.String(), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if _, err := schemaguard.New(got); err != nil {
			t.Errorf("%s: the schema is not valid: %v", tt.name, err)
		}
	}
}

type myErr interface{ Error() string }

func TestWhatCannotBeExpressed(t *testing.T) {
	tests := []struct {
		name        string
		t           reflect.Type
		field, says string
	}{
		{"chan", reflect.TypeFor[struct{ In struct{ C chan int } }](), "In.C", "chan int"},
		{"func", reflect.TypeFor[struct{ F []func() }](), "F", "func()"},
		{"complex", reflect.TypeFor[map[string]complex128](), "", "complex128"},
		{"map key", reflect.TypeFor[struct{ M map[struct{}]int }](), "M", "keys of type struct {}"},
		{"interface", reflect.TypeFor[struct{ E myErr }](), "E", "myErr"},
		{"keyword", reflect.TypeFor[struct {
			A string `jsonschema:"enmu=a,enum=b"`
		}](), "A", `"enmu"`},
		{"number", reflect.TypeFor[struct {
			A int `jsonschema:"minimum=low"`
		}](), "A", "minimum=low"},
		{"count", reflect.TypeFor[struct {
			A string `jsonschema:"minLength=-1"`
		}](), "A", "minLength=-1"},
		{"enum", reflect.TypeFor[struct {
			A int `jsonschema:"enum=one"`
		}](), "A", "enum=one"},
		{"default type", reflect.TypeFor[struct {
			A int `jsonschema:"default=x"`
		}](), "A", "default=x"},
		{"default not in enum", reflect.TypeFor[struct {
			A string `jsonschema:"enum=a,default=b"`
		}](), "A", `default "b"`},
		{"required and optional", reflect.TypeFor[struct {
			A string `jsonschema:"required,optional"`
		}](), "A", "both"},
	}
	for _, tt := range tests {
		_, err := For(tt.t, Input)
		var bad *Error
		if !errors.As(err, &bad) {
			t.Errorf("%s: got %v, want an *Error", tt.name, err)
			continue
		}
		if bad.Field != tt.field || !strings.Contains(err.Error(), tt.says) || tt.field != "" && !strings.Contains(err.Error(), tt.field) {
			t.Errorf("%s: got field %q and %q, want field %q and a text with %q", tt.name, bad.Field, err, tt.field, tt.says)
		}
	}
}

type panics struct{}

func (panics) JSONSchema() *jsonschema.Schema { panic("no schema today") }

func TestAPanicIsAnError(t *testing.T) {
	_, err := For(reflect.TypeFor[struct{ P panics }](), Input)
	if err == nil || !strings.Contains(err.Error(), "no schema today") {
		t.Errorf("got %v, want an error with the panic's text", err)
	}
}

// Types of one name from two packages stay apart, and a wide web of types is
// not written out without end.
func TestManyTypes(t *testing.T) {
	type l0 struct{ A, B, C, D int }
	type l1 struct{ A, B, C, D l0 }
	type l2 struct{ A, B, C, D l1 }
	type l3 struct{ A, B, C, D l2 }
	type l4 struct{ A, B, C, D l3 }
	type l5 struct{ A, B, C, D l4 }
	type l6 struct{ A, B, C, D l5 }
	got, err := For(reflect.TypeFor[l6](), Input)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) > 10_000 {
		t.Errorf("the schema has %d bytes", len(got))
	}
	s, err := schemaguard.New(got)
	if err != nil {
		t.Fatal(err)
	}
	value, err := json.Marshal(l6{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(value, schemaguard.Limits{}); err != nil {
		t.Error(err)
	}
}

func sameNames() (reflect.Type, reflect.Type) {
	type twin struct {
		A *twin `json:"a,omitempty"`
		X int
	}
	first := reflect.TypeFor[twin]()
	return first, func() reflect.Type {
		type twin struct {
			B *twin `json:"b,omitempty"`
			Y int
		}
		return reflect.TypeFor[twin]()
	}()
}

func TestTypesOfOneName(t *testing.T) {
	a, b := sameNames()
	both := reflect.StructOf([]reflect.StructField{{Name: "P", Type: a}, {Name: "Q", Type: b}})
	got, err := For(both, Input)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schemaguard.New(got)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate([]byte(`{"P":{"X":1,"a":{"X":2}},"Q":{"Y":1,"b":{"Y":2}}}`), schemaguard.Limits{}); err != nil {
		t.Errorf("%v\n%s", err, got)
	}
	if err := s.Validate([]byte(`{"P":{"X":1,"a":{"Y":2}},"Q":{"Y":1}}`), schemaguard.Limits{}); err == nil {
		t.Errorf("the types are mixed up: %s", got)
	}
}

// What encoding/json writes matches the schema of the type.
func TestValuesMatchTheirSchemas(t *testing.T) {
	values := []any{
		empty{},
		simple{},
		keywordsValue(),
		node{Kids: []*node{{}, nil}},
		tree{"a": {"b": nil}},
		outer{},
		outer{Other: &Other{}},
		special{},
		special{At: time.Unix(0, 0), Data: []byte{1}, Raw: json.RawMessage(`[1]`), Num: "1.5", Big: big.NewInt(7), ByID: map[int]string{-1: "x"}, InnerPtr: &inner{}},
		map[string][]int{"a": nil},
		ambiguous{},
		loop{},
		deepRef{nil, {}},
	}
	for _, v := range values {
		schema, err := For(reflect.TypeOf(v), Output)
		if err != nil {
			t.Errorf("%T: %v", v, err)
			continue
		}
		s, err := schemaguard.New(schema)
		if err != nil {
			t.Errorf("%T: %v", v, err)
			continue
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(text, schemaguard.Limits{}); err != nil {
			t.Errorf("%T: %s does not match %s: %v", v, text, schema, err)
		}
	}
}

func keywordsValue() keywords {
	return keywords{Unit: "kg", Limit: 1, Pattern: "a", Tags: []string{"x"}, Must: "x", May: "2026-01-01", Secret: "s", private: 1}
}

func TestWrap(t *testing.T) {
	schema, err := For(reflect.TypeFor[[]node](), Output)
	if err != nil {
		t.Fatal(err)
	}
	wrapped, err := Wrap("result", schema)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schemaguard.New(wrapped)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate([]byte(`{"result":[{"name":"a","kids":[{"name":"b"}]}]}`), schemaguard.Limits{}); err != nil {
		t.Errorf("%v\n%s", err, wrapped)
	}
	if err := s.Validate([]byte(`{"result":[{"name":"a","kids":[{"nam":"b"}]}]}`), schemaguard.Limits{}); err == nil {
		t.Error("a wrong value is valid")
	}
}
