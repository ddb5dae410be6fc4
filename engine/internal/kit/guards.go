package kit

import (
	"slices"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcpconfig"
)

// otherHooks returns the hooks of files that need no trust: the user's and the program's.
func otherHooks(o *agent.Options) []mcpconfig.ToolHook {
	sources := []mcpconfig.Scope{}
	if slices.Contains(o.SettingSources, agent.SourceUser) {
		sources = append(sources, mcpconfig.ScopeUser)
	}
	s, _ := mcpconfig.LoadSettings(&mcpconfig.SettingsOptions{Dir: o.Dir, SettingSources: sources, Settings: o.Settings, LookupEnv: Lookup(o.Env)})
	return s.Hooks
}
