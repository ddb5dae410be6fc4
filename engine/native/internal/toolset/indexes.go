package toolset

import (
	"crypto/sha256"
	"fmt"
	"io"
	"sync"
	"weak"

	"github.com/tenon-sdk/tenon/toolsearch"
)

// Indexes are the search indexes of an engine's sessions: those with the same tools have one together. Most sessions
// Of a service do, on a shared host or with servers configured alike, and to make an index of a thousand tools takes
// a hundred times as long as to find out that it is there. An index lives as long as a session has it.
// The zero value is ready.
type Indexes struct {
	mu    sync.Mutex // guards the map; not held while an index is made
	ByKey map[indexKey]*sharedIndex
}

// An indexKey is a hash of all that an index is made from.
type indexKey [sha256.Size]byte

type sharedIndex struct {
	mu    sync.Mutex // held while the index is made
	index weak.Pointer[toolsearch.Index]
}

// MaxIndexes is the number of entries from which on those without an index are thrown away.
const MaxIndexes = 64

// of returns the index of the withheld tools of a table.
func (x *Indexes) Of(t *Table) *toolsearch.Index {
	e := x.entry(keyOf(t))
	e.mu.Lock()
	defer e.mu.Unlock()
	if index := e.index.Value(); index != nil {
		return index
	}
	index := toolsearch.New(ToSearch(t))
	e.index = weak.Make(index)
	return index
}

func (x *Indexes) entry(key indexKey) *sharedIndex {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.ByKey[key]; e != nil {
		return e
	}
	if len(x.ByKey) >= MaxIndexes {
		for k, e := range x.ByKey {
			if e.dead() {
				delete(x.ByKey, k)
			}
		}
	}
	if x.ByKey == nil {
		x.ByKey = map[indexKey]*sharedIndex{}
	}
	e := new(sharedIndex)
	x.ByKey[key] = e
	return e
}

// dead reports whether nobody has the index any more. One that is being made is not.
func (e *sharedIndex) dead() bool {
	if !e.mu.TryLock() {
		return false
	}
	defer e.mu.Unlock()
	return e.index.Value() == nil
}

// keyOf hashes what toSearch takes of a table, in its order.
func keyOf(t *Table) indexKey {
	h := sha256.New()
	for _, tl := range t.Tools {
		if !tl.Deferrable() {
			continue
		}
		for _, s := range []string{tl.Model.Name, tl.Server, tl.Name, tl.Title, tl.Description, tl.SearchHint} {
			fmt.Fprintf(h, "%d:", len(s))
			_, _ = io.WriteString(h, s) // a hash never fails
		}
		fmt.Fprintf(h, "%d:", len(tl.InputSchema))
		_, _ = h.Write(tl.InputSchema)
	}
	return indexKey(h.Sum(nil))
}
