package toolset

import (
	"encoding/json"

	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
)

// Definitions are the tools of a request: first those that the model always has, then those that searches
// have loaded, in that order. The API keeps the latter out of the prompt and reads a definition where the
// conversation refers to it, so loading a tool changes nothing that is cached.
type Definitions struct {
	JSON json.RawMessage // an array; nil for none
	Sent []*Tool         // what stands in it, by place; nil for what is not in the table

	// What it was made from.
	Table  *Table
	Loaded int
	Plain  bool
	Cache  bool
}

// placeholder stands in the requests as long as no tool is loaded, so that the prompt does not change
// with the first: the API words it differently with and without withheld tools.
var placeholder = APITool{
	Name: "DeferredToolPlaceholder", Description: "Stands for tools that can be loaded with " + SearchTool + ". It cannot be called.",
	InputSchema: json.RawMessage(`{"type":"object","properties":{}}`), DeferLoading: true,
}

// NewDefinitions makes the offer of a table, of what a search has loaded, and of further definitions.
func NewDefinitions(t *Table, f *Finder, further []APITool, plain, cache bool) *Definitions {
	o := &Definitions{Table: t, Loaded: len(f.Loaded), Plain: plain, Cache: cache}
	var list []json.RawMessage
	add := func(def APITool, tl *Tool) {
		list = append(list, transcript.Encode(def))
		o.Sent = append(o.Sent, tl)
	}
	for _, tl := range t.Tools {
		if !f.Active || !tl.Deferrable() {
			add(tl.Definition(), tl)
		}
	}
	for _, def := range further {
		add(def, nil)
	}
	if n := len(list); n > 0 && cache {
		list[n-1] = transcript.WithBreakpoint(list[n-1], transcript.Ephemeral)
	}
	if f.Active && !plain {
		add(placeholder, nil)
	}
	for _, l := range f.Loaded {
		if l.tool != nil && (!f.Active || !l.tool.Deferrable()) {
			continue // it is above
		}
		def := l.def
		def.DeferLoading = !plain
		add(def, l.tool)
	}
	if len(list) > 0 {
		o.JSON = transcript.Encode(list)
	}
	return o
}
