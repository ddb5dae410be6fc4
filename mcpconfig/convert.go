package mcpconfig

import (
	"maps"
	"slices"

	"github.com/tenon-sdk/tenon/mcphost"
)

// ServerConfigs are the servers in force as a host takes them, those that are disabled too. The problems are what the
// entries say and the host is not told: settings of OAuth, which a program hands over as a handler of its own.
func (c *Config) ServerConfigs() (map[string]mcphost.ServerConfig, []Problem) {
	out := make(map[string]mcphost.ServerConfig, len(c.Servers))
	var problems []Problem
	for _, name := range c.Names() {
		e := c.Servers[name]
		out[name] = e.ServerConfig()
		if e.OAuth != nil {
			problems = append(problems, Problem{
				Level: LevelNote, File: e.Source, Line: e.Line, Column: 1, Server: name, Path: joinPath(joinPath(serversKey, name), keyOAuth),
				Message: "does nothing by itself: the program that signs in takes it from the entry",
			})
		}
	}
	return out, problems
}

// ServerConfig is the entry as a host takes it.
func (e Entry) ServerConfig() mcphost.ServerConfig {
	common := mcphost.Common{
		ConnectTimeout: e.ConnectTimeout,
		CallTimeout:    e.CallTimeout,
		AlwaysLoad:     e.AlwaysLoad,
		Required:       e.Required,
		Disabled:       e.Disabled,
		Scope:          string(e.Scope),
	}
	if e.Scope != ScopeDynamic {
		common.Source = string(e.Scope) // the dynamic scope counts as given in code
	}
	switch e.Kind {
	case HTTP:
		return mcphost.HTTP{URL: e.URL, Headers: maps.Clone(e.Headers), HeadersFunc: e.headersFunc(), Common: common}
	case SSE:
		return mcphost.SSE{URL: e.URL, Headers: maps.Clone(e.Headers), HeadersFunc: e.headersFunc(), Common: common}
	}
	return mcphost.Stdio{Command: e.Command, Args: slices.Clone(e.Args), Env: maps.Clone(e.Env), Dir: e.Dir, Common: common}
}
