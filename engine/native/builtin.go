package native

import (
	"encoding/json"
	"slices"

	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/permission"
)

// toolDefinitions are those of the engine's own tools that a session has a use for by now, beside the search. Each
// stays once it is there, so that the requests stay the same.
type toolDefinitions struct {
	seen      uint64 // the revision of the servers that was looked at last
	looked    bool
	resources []*toolset.Tool
	read      []*toolset.Tool // of stored results
}

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

// ownTools settles calls of the engine's own tools that nothing else settles: they read what the
// program has given to the session, and run. Rules and hooks that deny or ask about them hold.
func ownTools(d permission.Decision) permission.Decision {
	if d.Reason == permission.ReasonUnsettled || d.Reason == permission.ReasonMode {
		return permission.Decision{Behavior: permission.Allow, Reason: permission.ReasonUnsettled}
	}
	return d
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
