package native

import (
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/toolschema"
	"github.com/tenon-sdk/tenon/toolsearch"
)

func indexedTable(n int, edit func(*toolset.Tool)) *toolset.Table {
	t := &toolset.Table{}
	for i := range n {
		name := fmt.Sprintf("tool_%d", i)
		tl := &toolset.Tool{
			Tool: mcphost.Tool{
				Server: "s", Name: name, FullName: "mcp__s__" + name, Description: "Looks up article " + name + " on the shelves of a store",
				InputSchema: json.RawMessage(`{"type":"object","properties":{"sku":{"type":"string","description":"stock keeping unit"}}}`),
			},
			Model: toolschema.Model{Name: "mcp__s__" + name},
		}
		if edit != nil && i == n-1 {
			edit(tl)
		}
		t.Tools = append(t.Tools, tl)
	}
	return t
}

// Sessions with the same tools have one index, made once, however many ask at the same time; those with others have
// their own.
func TestSessionsShareAnIndex(t *testing.T) {
	var x toolset.Indexes
	var wg sync.WaitGroup
	got := make([]*toolsearch.Index, 16)
	for i := range got {
		wg.Go(func() { got[i] = x.Of(indexedTable(50, nil)) })
	}
	wg.Wait()
	for i, index := range got {
		if index != got[0] {
			t.Errorf("session %d has an index of its own", i)
		}
	}
	for what, edit := range map[string]func(*toolset.Tool){
		"model's name": func(tl *toolset.Tool) { tl.Model.Name += "x" },
		"server":       func(tl *toolset.Tool) { tl.Server += "x" },
		"name":         func(tl *toolset.Tool) { tl.Name += "x" },
		"title":        func(tl *toolset.Tool) { tl.Title += "x" },
		"description":  func(tl *toolset.Tool) { tl.Description += "x" },
		"hint":         func(tl *toolset.Tool) { tl.SearchHint += "x" },
		"schema":       func(tl *toolset.Tool) { tl.InputSchema = json.RawMessage(`{}`) },
		"loaded":       func(tl *toolset.Tool) { tl.AlwaysLoad = true },
		"two fields, put together alike": func(tl *toolset.Tool) {
			tl.Title, tl.Description = tl.Description[:1], tl.Description[1:]
		},
	} {
		if x.Of(indexedTable(50, edit)) == got[0] {
			t.Errorf("another %s, and the same index", what)
		}
	}
	runtime.KeepAlive(got)
}

// What no session has any more does not stay.
func TestIndexesAreForgotten(t *testing.T) {
	var x toolset.Indexes
	for i := range 200 {
		x.Of(indexedTable(1, func(tl *toolset.Tool) { tl.Description = fmt.Sprint(i) }))
		runtime.GC()
	}
	if n := len(x.ByKey); n > 64 {
		t.Errorf("%d entries are kept", n)
	}
}

// What a session saves when another has the index: the hash of 1,000 tools in place of their index.
func BenchmarkSharedIndex(b *testing.B) {
	table := indexedTable(1000, nil)
	b.Run("own", func(b *testing.B) {
		for b.Loop() {
			toolsearch.New(toolset.ToSearch(table))
		}
	})
	b.Run("shared", func(b *testing.B) {
		var x toolset.Indexes
		keep := x.Of(table)
		for b.Loop() {
			x.Of(table)
		}
		runtime.KeepAlive(keep)
	})
}
