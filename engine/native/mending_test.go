package native

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/internal/growth"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/toolschema"
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
	tab := &toolset.Table{ByName: map[string]*toolset.Tool{}, Mended: map[toolset.ToolKey]toolset.ModelCopy{}}
	o := toolset.TableOptions{Budgets: map[string]*toolschema.Budget{}}
	for _, mt := range append(bad, good...) {
		tab.Add(t.Context(), &toolset.Tool{Tool: mt}, o)
	}
	if len(tab.Tools) != 1 || tab.Tools[0].Name != "y" || len(tab.LeftOut) != len(bad) {
		t.Fatalf("%d tools, %d left out", len(tab.Tools), len(tab.LeftOut))
	}
	if first, last := tab.LeftOut[0].Reason, tab.LeftOut[len(bad)-1].Reason; !strings.Contains(first, "mending one may take") || !strings.Contains(last, "those of one server may take") {
		t.Errorf("left out because %q, and the last because %q", first, last)
	}
	again := &toolset.Table{ByName: map[string]*toolset.Tool{}, Mended: map[toolset.ToolKey]toolset.ModelCopy{}}
	o = toolset.TableOptions{Budgets: map[string]*toolschema.Budget{}, Before: tab}
	if got := growth.Bytes(func() {
		for _, mt := range append(bad, good...) {
			again.Add(t.Context(), &toolset.Tool{Tool: mt}, o)
		}
	}); got > 64<<10 || len(again.Tools) != 1 || len(again.LeftOut) != len(bad) {
		t.Errorf("made again: %d bytes, %d tools, %d left out", got, len(again.Tools), len(again.LeftOut))
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
	tab := toolset.NewTable(ended, hosts, toolset.TableOptions{})
	if len(tab.Tools) != 0 || len(tab.LeftOut) != 0 || tab.Current(hosts, nil, 0) {
		t.Errorf("%d tools, %v left out, up to date %v", len(tab.Tools), tab.LeftOut, tab.Current(hosts, nil, 0))
	}
	if tab = toolset.NewTable(t.Context(), hosts, toolset.TableOptions{Before: tab}); len(tab.Tools) != 1 || !tab.Current(hosts, nil, 0) {
		t.Errorf("made again: %d tools, up to date %v", len(tab.Tools), tab.Current(hosts, nil, 0))
	}
}
