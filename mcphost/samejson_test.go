package mcphost

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/growth"
)

func TestComparer(t *testing.T) {
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
		if got := comparer([]byte(tt.a))([]byte(tt.b)); got != tt.same {
			t.Errorf("%s and %s: %v", tt.a, tt.b, got)
		}
	}
}

// A list of tools that arrives again in another order, with the members of its schemas in another order and numbers
// in another form, leaves every byte that a model is sent as it was; a schema that changed is the new one.
// fault B14
func TestSchemasKeepTheirBytes(t *testing.T) {
	first := []string{
		`{"name":"a","inputSchema":{"type":"object","properties":{"n":{"type":"number","maximum":10.0},"s":{"type":"string"}}},"outputSchema":{"type":"object","title":"o"}}`,
		`{"name":"b","inputSchema":{"type":"object","properties":{"n":{"minimum":1}}}}`,
	}
	second := []string{
		`{"name":"b","inputSchema":{"type":"object","properties":{"n":{"minimum":2}}}}`,
		`{"outputSchema":{"title":"o","type":"object"},"inputSchema":{"properties":{"s":{"type":"string"},"n":{"maximum":1e1,"type":"number"}},"type":"object"},"name":"a"}`,
	}
	lists := [][]string{first, second}
	raw := &rawHTTP{before: func(w http.ResponseWriter, _ *http.Request, m rawMsg) bool {
		if m.Method != "tools/list" {
			return false
		}
		answer(w, m.ID, `{"tools":[`+strings.Join(lists[0], ",")+`]}`)
		lists = lists[1:]
		return true
	}}
	h := newHost(t, map[string]ServerConfig{"s": HTTP{URL: serve(t, raw).URL}})
	connected(t, h)
	shown := func() []string {
		var all []string
		for _, tool := range h.Tools() {
			all = append(all, tool.FullName, string(tool.InputSchema), string(tool.OutputSchema))
		}
		return all
	}
	before := shown()
	if err := h.Reconnect(soon(t), "s"); err != nil {
		t.Fatal(err)
	}
	after := shown()
	if len(before) != 6 || len(after) != 6 {
		t.Fatalf("%q became %q", before, after)
	}
	for i := range before {
		if i != 4 && before[i] != after[i] {
			t.Errorf("%s became %s", before[i], after[i])
		}
	}
	if want := `{"type":"object","properties":{"n":{"minimum":2}}}`; after[4] != want {
		t.Errorf("the schema that changed is %s", after[4])
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
			if !comparer(x)(y) {
				t.Fatal("they differ")
			}
		})
	})
}
