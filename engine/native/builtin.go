package native

import (
	"encoding/json"
	"slices"

	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
)

// builtins are those tools as of now. Their number says which they are.
func (s *session) builtins() []*toolset.Tool {
	k := &s.kit
	if len(k.read) == 0 && s.stored.Load() {
		k.read = []*toolset.Tool{newReadTool()}
	}
	if now := s.revision(); len(k.resources) == 0 && (!k.looked || now != k.seen) {
		k.seen, k.looked = now, true
		if len(s.resourceServers()) > 0 {
			k.resources = []*toolset.Tool{newListResourcesTool(), newReadResourceTool()}
		}
	}
	return slices.Concat(k.resources, k.read)
}

// callOwn answers a call of one of the engine's own tools.
func (t *turn) callOwn(c *call, args json.RawMessage) answer {
	switch c.tool.Name {
	case toolset.SearchTool:
		return t.searchTools(c, args)
	case listResourcesTool:
		return t.listResources(c, args)
	case readResourceTool:
		return t.readResource(c, args)
	}
	return t.readStored(c, args)
}
