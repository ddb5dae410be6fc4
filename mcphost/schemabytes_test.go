package mcphost

import (
	"net/http"
	"strings"
	"testing"
)

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
