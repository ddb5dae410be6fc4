package goschema

import (
	"encoding/json"
	"testing"
)

type (
	filledInner struct {
		List []string
		Map  map[string]int
	}
	filledOuter struct {
		filledInner
		Named   filledInner
		Pointer *filledInner
		Nil     *filledInner
		Items   []filledInner
		Array   [2][]int
		ByName  map[string][]int
		Any     any
		Bytes   []byte
		Omitted []int `json:",omitempty"`
		Zero    []int `json:",omitzero"`
		Hidden  []int `json:"-"`
		private []int //nolint:unused // not encoded
		Raw     json.RawMessage
		Own     filledOwn
		Self    *filledOuter
	}
	filledOwn []int
)

func (o filledOwn) MarshalJSON() ([]byte, error) {
	if o == nil {
		return []byte(`"nil"`), nil
	}
	return []byte(`"empty"`), nil
}

// Nil slices and maps are written as empty ones, except where a type encodes
// itself; the value does not change.
//
// fault E1
func TestNilSlicesAndMapsAreWrittenEmpty(t *testing.T) {
	whole := &filledOuter{
		Pointer: &filledInner{}, Items: []filledInner{{}}, ByName: map[string][]int{"a": nil, "b": {1}}, Any: []any{[]string(nil)},
		Self: &filledOuter{Any: map[string]any{"m": map[string]int(nil)}},
	}
	before, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	const inner = `{"List":[],"Map":{}}`
	const own = `"Raw":null,"Own":"nil"`
	tests := []struct {
		name string
		v    any
		want string
	}{
		{"nil", nil, `null`},
		{"a slice", []string(nil), `[]`},
		{"a map", map[string]int(nil), `{}`},
		{"bytes", []byte(nil), `""`},
		{"a nil pointer", (*filledInner)(nil), `null`},
		{"slices in a slice", [][]int{nil, {1}, nil}, `[[],[1],[]]`},
		{"a slice of any", []any{nil, []int(nil), 1}, `[null,[],1]`},
		{"a number", 7, `7`},
		{"one that encodes itself", filledOwn(nil), `"nil"`},
		{"a struct", whole, `{"List":[],"Map":{},"Named":` + inner + `,"Pointer":` + inner + `,"Nil":null,"Items":[` + inner + `],"Array":[[],[]],` +
			`"ByName":{"a":[],"b":[1]},"Any":[[]],"Bytes":"",` + own + `,"Self":{"List":[],"Map":{},"Named":` + inner + `,"Pointer":null,"Nil":null,` +
			`"Items":[],"Array":[[],[]],"ByName":{},"Any":{"m":{}},"Bytes":"",` + own + `,"Self":null}}`},
	}
	for _, tt := range tests {
		got, err := Marshal(tt.v)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: got  %s, %v\nwant %s", tt.name, got, err, tt.want)
		}
	}
	if after, err := json.Marshal(whole); err != nil || string(after) != string(before) {
		t.Errorf("the value was changed: %s, %v", after, err)
	}
}

// Names are case-sensitive, also inside.
func TestNamesAreCaseSensitive(t *testing.T) {
	var in struct {
		SKU  string `json:"sku"`
		List []inner
		Map  map[string]inner
	}
	err := Unmarshal(json.RawMessage(`{"sku":"a","SKU":"b","List":[{"id":1,"ID":2}],"Map":{"ID":{"Name":"x","name":"y"}},"other":1}`), &in)
	if err != nil || in.SKU != "a" || in.List[0].ID != 1 || in.Map["ID"].Name != "y" {
		t.Errorf("got %+v, %v", in, err)
	}
}
