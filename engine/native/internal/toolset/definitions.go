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
	Sent []*Tool         // its tools by index; nil for those that are not in the table

	// What they were made from.
	Table  *Table
	Loaded int
	Plain  bool
	Cache  bool
}

// placeholder is always among the deferred definitions. Without any, the API would change the prompt when
// the first tool is loaded.
var placeholder = APITool{
	Name: "DeferredToolPlaceholder", Description: "Stands for tools that can be loaded with " + SearchTool + ". It cannot be called.",
	InputSchema: json.RawMessage(`{"type":"object","properties":{}}`), DeferLoading: true,
}

// NewDefinitions returns the definitions of a table, of loaded tools, and further ones.
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
