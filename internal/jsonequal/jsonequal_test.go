package jsonequal

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/growth"
)

func TestTo(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{`{"a":1,"b":[true,null]}`, ` { "b" : [ true , null ], "a" : 1.0 } `, true},
		{`"\u0061"`, `"a"`, true},
		{`10`, `1e1`, true},
		{`-0.0`, `0`, true},
		{`100.50`, `1005e-1`, true},
		{`-5`, `5`, false},
		{`9007199254740992`, `9007199254740993`, false},
		{`0.1`, `0.10000000000000000000001`, false},
		{`1e999999999`, `1e999999998`, false},
		{`1e99999999999999999999`, `1e99999999999999999999`, true},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`{"a":1}`, `{"b":1}`, false},
		{`[1,2]`, `[2,1]`, false},
		{`{"a":1}`, `{"a":1} x`, false},
		{``, ``, false},
	} {
		if got := To([]byte(tt.a))([]byte(tt.b)); got != tt.same {
			t.Errorf("%s and %s: %v", tt.a, tt.b, got)
		}
	}
}

// Comparing schemas is linear in their size.
func TestComparingGrows(t *testing.T) {
	growth.Check(t, 500, func(n int) int {
		var a, b strings.Builder
		for i := range n {
			fmt.Fprintf(&a, `,"p%d":{"maximum":%d.0}`, i, i)
			fmt.Fprintf(&b, `,"p%d":{"maximum":%d}`, n-1-i, n-1-i)
		}
		x, y := json.RawMessage("{"+a.String()[1:]+"}"), json.RawMessage("{"+b.String()[1:]+"}")
		return growth.Bytes(func() {
			if !To(x)(y) {
				t.Fatal("they differ")
			}
		})
	})
}
