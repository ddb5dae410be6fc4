package goschema

import (
	"encoding/json"
	"testing"

	"github.com/tenon-sdk/tenon/internal/growth"
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
		private []int
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

// Nil slices and maps are empty ones wherever encoding/json finds them, and
// nowhere else; the value itself does not change.
//
// fault E1
func TestFilled(t *testing.T) {
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
		got, err := json.Marshal(Filled(tt.v))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: got  %s, %v\nwant %s", tt.name, got, err, tt.want)
		}
	}
	if after, err := json.Marshal(whole); err != nil || string(after) != string(before) {
		t.Errorf("the value was changed: %s, %v", after, err)
	}
	full := &filledInner{List: []string{}, Map: map[string]int{}}
	if Filled(full) != full {
		t.Error("what lacks nothing was copied")
	}
	loop := &filledOuter{}
	loop.Self = loop
	Filled(loop) // ends
}

// Filling grows with the value.
func TestFillingGrowsWithTheValue(t *testing.T) {
	growth.Check(t, 1000, func(n int) int {
		items := make([]filledInner, n)
		return growth.Bytes(func() { Filled(items) })
	})
	growth.Check(t, 1000, func(n int) int {
		m := make(map[int]any, n)
		for i := range n {
			m[i] = []any{[]int(nil)}
		}
		return growth.Bytes(func() { Filled(m) })
	})
}
