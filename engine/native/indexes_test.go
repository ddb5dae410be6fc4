package native

import (
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/toolschema"
	"github.com/tenon-sdk/tenon/toolsearch"
)

func indexedTable(n int, edit func(*tool)) *table {
	t := &table{}
	for i := range n {
		name := fmt.Sprintf("tool_%d", i)
		tl := &tool{
			Tool: mcphost.Tool{
				Server: "s", Name: name, FullName: "mcp__s__" + name, Description: "Looks up article " + name + " on the shelves of a store",
				InputSchema: json.RawMessage(`{"type":"object","properties":{"sku":{"type":"string","description":"stock keeping unit"}}}`),
			},
			model: toolschema.Model{Name: "mcp__s__" + name},
		}
		if edit != nil && i == n-1 {
			edit(tl)
		}
		t.tools = append(t.tools, tl)
	}
	return t
}

// Sessions with the same tools have one index, made once, however many ask at the same time; those with others have
// their own.
func TestSessionsShareAnIndex(t *testing.T) {
	var x indexes
	var wg sync.WaitGroup
	got := make([]*toolsearch.Index, 16)
	for i := range got {
		wg.Go(func() { got[i] = x.of(indexedTable(50, nil)) })
	}
	wg.Wait()
	for i, index := range got {
		if index != got[0] {
			t.Errorf("session %d has an index of its own", i)
		}
	}
	for what, edit := range map[string]func(*tool){
		"model's name": func(tl *tool) { tl.model.Name += "x" },
		"server":       func(tl *tool) { tl.Server += "x" },
		"name":         func(tl *tool) { tl.Name += "x" },
		"title":        func(tl *tool) { tl.Title += "x" },
		"description":  func(tl *tool) { tl.Description += "x" },
		"hint":         func(tl *tool) { tl.SearchHint += "x" },
		"schema":       func(tl *tool) { tl.InputSchema = json.RawMessage(`{}`) },
		"loaded":       func(tl *tool) { tl.AlwaysLoad = true },
		"two fields, put together alike": func(tl *tool) {
			tl.Title, tl.Description = tl.Description[:1], tl.Description[1:]
		},
	} {
		if x.of(indexedTable(50, edit)) == got[0] {
			t.Errorf("another %s, and the same index", what)
		}
	}
	runtime.KeepAlive(got)
}

// What no session has any more does not stay.
func TestIndexesAreForgotten(t *testing.T) {
	var x indexes
	for i := range 3 * maxIndexes {
		x.of(indexedTable(1, func(tl *tool) { tl.Description = fmt.Sprint(i) }))
		runtime.GC()
	}
	if n := len(x.byKey); n > maxIndexes+1 {
		t.Errorf("%d entries are kept", n)
	}
}

// What a session saves when another has the index: the hash of 1,000 tools in place of their index.
func BenchmarkSharedIndex(b *testing.B) {
	table := indexedTable(1000, nil)
	b.Run("own", func(b *testing.B) {
		for b.Loop() {
			toolsearch.New(toSearch(table))
		}
	})
	b.Run("shared", func(b *testing.B) {
		var x indexes
		keep := x.of(table)
		for b.Loop() {
			x.of(table)
		}
		runtime.KeepAlive(keep)
	})
}
