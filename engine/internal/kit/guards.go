package kit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcpconfig"
)

// leaveNamesToHooks leaves out the servers of files that are not trusted and have a name that a hook calls: they would
// decide in the place of the server that the hook means. Without a server a hook fails, as it does elsewhere.
func (f *Files) leaveNamesToHooks(o *agent.Options) {
	var names []string
	for _, h := range slices.Concat(f.Settings.Hooks, otherHooks(o)) {
		names = append(names, h.Server)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Servers)) {
		e := f.places[name]
		if _, taken := takenBy(names, name, false); !taken || !e.Untrusted {
			continue
		}
		delete(f.Servers, name)
		delete(f.Policies, name)
		f.Problems = append(f.Problems, mcpconfig.Problem{
			Level: mcpconfig.LevelUntrusted, File: e.Source, Line: e.Line, Column: 1, Server: name,
			Message: fmt.Sprintf("server %q is not used without trust: a hook calls a server of that name", name),
		})
	}
}

// otherHooks are the hooks of files that need no trust and may be left to the Claude Code CLI: the user's and the program's.
func otherHooks(o *agent.Options) []mcpconfig.ToolHook {
	sources := []mcpconfig.Scope{}
	if slices.Contains(o.SettingSources, agent.SourceUser) {
		sources = append(sources, mcpconfig.ScopeUser)
	}
	s, _ := mcpconfig.LoadSettings(&mcpconfig.SettingsOptions{Dir: o.Dir, SettingSources: sources, Settings: o.Settings, LookupEnv: lookup(o.Env)})
	return s.Hooks
}
