package native

import (
	"encoding/json"

	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
)

// An offer is the tools of a request. At its beginning stand those whose definitions the model always
// has: their bytes stay the same as long as the tools do. What a search has loaded follows in the
// order in which it was loaded, and is kept from the prompt by the API, which reads a definition where
// the conversation refers to it: so nothing that was cached changes when a tool is loaded.
type offer struct {
	json json.RawMessage // an array; nil for none
	sent []*tool         // what stands in it, by place; nil for what is not in the table

	// What it was made from.
	table  *table
	loaded int
	plain  bool
	cache  bool
}

// placeholder stands in the requests as long as no tool is loaded, so that the prompt does not change
// with the first: the API words it differently with and without withheld tools.
var placeholder = apiTool{
	Name: "DeferredToolPlaceholder", Description: "Stands for tools that can be loaded with " + searchTool + ". It cannot be called.",
	InputSchema: json.RawMessage(`{"type":"object","properties":{}}`), DeferLoading: true,
}

// makeOffer makes the offer of a table, of what a search has loaded, and of further definitions.
func makeOffer(t *table, f *finder, further []apiTool, plain, cache bool) *offer {
	o := &offer{table: t, loaded: len(f.loaded), plain: plain, cache: cache}
	var list []json.RawMessage
	add := func(def apiTool, tl *tool) {
		list = append(list, transcript.Encode(def))
		o.sent = append(o.sent, tl)
	}
	for _, tl := range t.tools {
		if !f.active || !tl.deferrable() {
			add(tl.definition(), tl)
		}
	}
	for _, def := range further {
		add(def, nil)
	}
	if n := len(list); n > 0 && cache {
		list[n-1] = transcript.WithBreakpoint(list[n-1], transcript.Ephemeral)
	}
	if f.active && !plain {
		add(placeholder, nil)
	}
	for _, l := range f.loaded {
		if l.tool != nil && (!f.active || !l.tool.deferrable()) {
			continue // it is above
		}
		def := l.def
		def.DeferLoading = !plain
		add(def, l.tool)
	}
	if len(list) > 0 {
		o.json = transcript.Encode(list)
	}
	return o
}
