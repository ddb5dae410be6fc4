package mcpconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/internal/toolname"
)

// KeepGuards keeps a checkout that is not trusted from deciding what a run may do through the servers of others: those
// that hooks call, and that of the permission prompt tool, given by its full name or empty. A server of a file that is
// not trusted is left out if it could be taken for one of them: without it a hook fails, as it does elsewhere. And
// a settings file that is not trusted switches none of them off. The problems tell of both.
func (c *Config) KeepGuards(hooks []ToolHook, promptTool string) []Problem {
	var problems []Problem
	report := func(e Entry, format string, args ...any) {
		problems = append(problems, Problem{
			Level: LevelUntrusted, File: e.Source, Line: e.Line, Column: 1, Server: e.Name,
			Message: fmt.Sprintf(format, args...),
		})
	}
	for _, name := range slices.Sorted(maps.Keys(c.Servers)) {
		e := c.Servers[name]
		why := guards(name, e.Untrusted, hooks, promptTool)
		switch by, off := c.offWithoutTrust[name]; {
		case why == "":
		case e.Untrusted:
			delete(c.Servers, name)
			report(e, "server %q is not used without trust: %s", name, why)
		case off:
			e.Disabled = false
			c.Servers[name] = e
			report(e, "server %q is not disabled by %s without trust: %s", name, by, why)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Refused)) {
		e := c.Refused[name].Entry
		if why := guards(name, true, hooks, promptTool); e.Untrusted && why != "" {
			delete(c.Refused, name)
			report(e, "server %q is not used without trust: %s", name, why)
		}
	}
	return problems
}

// guards says how a server decides in a run, or could be taken for one that does; empty if neither.
func guards(name string, alike bool, hooks []ToolHook, promptTool string) (why string) {
	own := toolname.Server(name)
	for _, h := range hooks {
		if toolname.Server(h.Server) == own || alike && toolname.Overlap(h.Server, name) {
			return "a hook calls a server of that name"
		}
	}
	if strings.HasPrefix(promptTool, own+toolname.Separator) {
		return "the tool that is asked for permission is of a server of that name"
	}
	return ""
}
