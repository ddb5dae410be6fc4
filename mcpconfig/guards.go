package mcpconfig

import (
	"maps"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/internal/toolname"
)

// KeepGuards protects the servers that decide permissions from files without trust: the servers that hooks
// call, and the server of the permission prompt tool. promptTool is that tool's full name, or "". A server
// of an untrusted file that could be taken for one of them is removed, and one that an untrusted settings
// file disables is enabled again. The problems report both.
func (c *Config) KeepGuards(hooks []ToolHook, promptTool string) []Problem {
	var problems []Problem
	report := func(e Entry, format string, args ...any) {
		p := e.problem(LevelUntrusted, format, args...)
		p.Path = "" // the message names the server
		problems = append(problems, p)
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

// guards says why a server may decide permissions, or could be taken for such a server. It returns "" if
// neither applies.
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

// disabledKey lists the servers of .mcp.json that are disabled, in settings files and in
// ~/.claude.json.
const disabledKey = "disabledMcpjsonServers"

// disabledBy is the file that disables a server of .mcp.json, preferably a trusted one.
type disabledBy struct {
	file    string
	trusted bool
}

// readDisabled reads the lists of disabled servers. [LoadSettings] reports the other faults of
// settings files.
func (l *loader) readDisabled(user *document) {
	if user != nil {
		l.addDisabled(user, projectNode(user, l.dir), true)
	}
	for _, s := range slices.Backward(l.settingsFiles()) {
		data, trusted, ok := l.read(s.scope, s.path)
		if !ok {
			continue
		}
		doc, problem := open(data, s.path)
		if problem != nil {
			problem.Message = "its " + disabledKey + " cannot be read: " + problem.Message
			problem.Level, problem.Want = LevelNote, ""
			l.report(*problem)
			continue
		}
		l.addDisabled(doc, doc.top(), trusted)
	}
}

// addDisabled adds the list of an object.
func (l *loader) addDisabled(doc *document, n node, trusted bool) {
	at := n.get(disabledKey)
	if at.isNull() {
		return
	}
	wrong := func(n node, want string) {
		p := doc.problem(n, LevelNote, "is %s and disables nothing", n.kind())
		p.Want = want
		l.report(p)
	}
	list, ok := at.list()
	if !ok {
		wrong(at, "a list of server names")
	}
	for _, e := range list {
		name, ok := e.text()
		if !ok {
			wrong(e, "the name of a server")
		} else if by, off := l.disabled[name]; !off || !by.trusted {
			l.disabled[name] = disabledBy{doc.file, trusted}
		}
	}
}
