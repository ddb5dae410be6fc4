package toolset

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"sync"
	"weak"

	"github.com/tenon-sdk/tenon/toolsearch"
)

// Indexes are the search indexes of an engine's sessions. Sessions with the same tools share an index, which
// lives as long as one of them has it: making an index takes a hundred times as long as finding it. The zero
// value is ready. Indexes are safe for concurrent use.
type Indexes struct {
	mu    sync.Mutex
	ByKey map[[sha256.Size]byte]weak.Pointer[toolsearch.Index] // guarded by mu
}

// Of returns the index of the withheld tools of a table.
func (x *Indexes) Of(t *Table) *toolsearch.Index {
	key := keyOf(t)
	x.mu.Lock()
	defer x.mu.Unlock()
	if index := x.ByKey[key].Value(); index != nil {
		return index
	}
	if x.ByKey == nil {
		x.ByKey = map[[sha256.Size]byte]weak.Pointer[toolsearch.Index]{}
	}
	maps.DeleteFunc(x.ByKey, func(_ [sha256.Size]byte, p weak.Pointer[toolsearch.Index]) bool { return p.Value() == nil })
	index := toolsearch.New(ToSearch(t))
	x.ByKey[key] = weak.Make(index)
	return index
}

// keyOf returns a hash of everything that an index is made from.
func keyOf(t *Table) [sha256.Size]byte {
	h := sha256.New()
	for _, tl := range t.Tools {
		if tl.Deferrable() {
			fmt.Fprintf(h, "%q", []string{tl.Model.Name, tl.Server, tl.Name, tl.Title, tl.Description, tl.SearchHint, string(tl.InputSchema)})
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}
