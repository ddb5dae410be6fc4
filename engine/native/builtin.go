package native

import (
	"encoding/json"

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

// builtins are the engine's own tools that the session has a use for by now, beside the search. Their
// number only grows, so that it says which they are.
func (s *session) builtins() []*tool {
	var tools []*tool
	return tools
}

// ownTools settles calls of the engine's own tools that nothing else settles: they read what the
// program has given to the session, and run. Rules and hooks that deny or ask about them hold.
func ownTools(d permission.Decision) permission.Decision {
	if d.Reason == permission.ReasonUnsettled || d.Reason == permission.ReasonMode {
		return permission.Decision{Behavior: permission.Allow, Reason: permission.ReasonUnsettled}
	}
	return d
}
