package native

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/growth"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// expensiveSchema is a schema that takes more work than one may.
func expensiveSchema() string {
	refs, props := make([]string, 1900), make([]string, 8000)
	for i := range refs {
		refs[i] = `{"$ref":"#/$defs/d"}`
	}
	for i := range props {
		props[i] = fmt.Sprintf(`"p%d":{}`, i)
	}
	return `{"type":"object","allOf":[` + strings.Join(refs, ",") + `],"$defs":{"d":{"properties":{` + strings.Join(props, ",") + `}}}}`
}

// A server whose schemas are expensive loses those tools and no other server's; what was made of a tool is not made
// again while the tool is the same. fault H2
func TestExpensiveSchemasAreLeftOut(t *testing.T) {
	var bad, good []mcphost.Tool
	for i := range 8 {
		bad = append(bad, mcphost.Tool{Server: "bad", Name: fmt.Sprint("x", i), FullName: fmt.Sprint("mcp__bad__x", i), InputSchema: []byte(expensiveSchema())})
	}
	good = append(good, mcphost.Tool{Server: "good", Name: "y", FullName: "mcp__good__y", InputSchema: []byte(`{"type":"object"}`)})
	tab := &table{byName: map[string]*tool{}, mended: map[toolKey]mending{}}
	o := tableOptions{budgets: newBudgets()}
	for _, mt := range append(bad, good...) {
		tab.add(t.Context(), &tool{Tool: mt}, o)
	}
	if len(tab.tools) != 1 || tab.tools[0].Name != "y" || len(tab.leftOut) != len(bad) {
		t.Fatalf("%d tools, %d left out", len(tab.tools), len(tab.leftOut))
	}
	if first, last := tab.leftOut[0].Reason, tab.leftOut[len(bad)-1].Reason; !strings.Contains(first, "mending one may take") || !strings.Contains(last, "those of one server may take") {
		t.Errorf("left out because %q, and the last because %q", first, last)
	}
	again := &table{byName: map[string]*tool{}, mended: map[toolKey]mending{}}
	o = tableOptions{budgets: newBudgets(), before: tab}
	if got := growth.Bytes(func() {
		for _, mt := range append(bad, good...) {
			again.add(t.Context(), &tool{Tool: mt}, o)
		}
	}); got > 64<<10 || len(again.tools) != 1 || len(again.leftOut) != len(bad) {
		t.Errorf("made again: %d bytes, %d tools, %d left out", got, len(again.tools), len(again.leftOut))
	}
}

// A table that is being made when the turn ends is made again by the next.
func TestTableOfAnEndedTurnIsNotKept(t *testing.T) {
	s := mcpserver.New("t", nil)
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "x"}, func(context.Context, struct{}) (string, error) { return "", nil })
	h, err := mcphost.New(&mcphost.Options{Servers: map[string]mcphost.ServerConfig{"t": mcphost.InProcess(s)}})
	if err != nil {
		t.Fatal(err)
	}
	h.Start(t.Context())
	defer h.Close()
	if err := h.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	hosts := []*mcphost.Host{h}
	tab := newTable(ended, hosts, tableOptions{})
	if len(tab.tools) != 0 || len(tab.leftOut) != 0 || tab.current(hosts, nil, 0) {
		t.Errorf("%d tools, %v left out, up to date %v", len(tab.tools), tab.leftOut, tab.current(hosts, nil, 0))
	}
	if tab = newTable(t.Context(), hosts, tableOptions{before: tab}); len(tab.tools) != 1 || !tab.current(hosts, nil, 0) {
		t.Errorf("made again: %d tools, up to date %v", len(tab.tools), tab.current(hosts, nil, 0))
	}
}
