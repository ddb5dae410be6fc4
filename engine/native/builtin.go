package native

import (
	"encoding/json"
	"slices"

	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/permission"
	"github.com/tenon-sdk/tenon/toolschema"
)

// builtin makes one of the engine's own tools. All of them only read. Calls of it run one by one, on
// the session's goroutine.
func builtin(def apiTool, alwaysLoad bool, run func(t *turn, c *call, args json.RawMessage) answer) *tool {
	return &tool{
		Tool: mcphost.Tool{
			FullName: def.Name, LongName: def.Name, Name: def.Name, Description: def.Description, InputSchema: def.InputSchema,
			ReadOnly: true, AlwaysLoad: alwaysLoad, Meta: map[string]any{mcpserver.MetaConcurrency: "serial"},
		},
		model: toolschema.Model{Name: def.Name, Description: def.Description, InputSchema: def.InputSchema},
		run:   run,
	}
}

// toolDefinitions are those of the engine's own tools that a session has a use for by now, beside the search. Each
// stays once it is there, so that the requests stay the same.
type toolDefinitions struct {
	seen      uint64 // the revision of the servers that was looked at last
	looked    bool
	resources []*tool
	read      []*tool // of stored results
}

// builtins are those tools as of now. Their number says which they are.
func (s *session) builtins() []*tool {
	k := &s.kit
	if len(k.read) == 0 && s.stored.Load() {
		k.read = []*tool{newReadTool()}
	}
	if now := s.revision(); len(k.resources) == 0 && (!k.looked || now != k.seen) {
		k.seen, k.looked = now, true
		if len(s.resourceServers()) > 0 {
			k.resources = []*tool{newListResourcesTool(), newReadResourceTool()}
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
