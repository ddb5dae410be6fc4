package mcpconfig

import "path/filepath"

// disabledKey lists the servers of .mcp.json that are disabled, in settings files and in ~/.claude.json.
const disabledKey = "disabledMcpjsonServers"

// disabledServers are the disabled servers of .mcp.json with the file that disables each, preferably a
// trusted one.
type disabledServers map[string]disabledBy

type disabledBy struct {
	file    string
	trusted bool
}

// readDisabled reads the lists of disabled servers.
func (l *loader) readDisabled(user *document) {
	if user != nil {
		l.addDisabled(user, projectNode(user, l.dir), true)
	}
	for _, s := range []struct {
		scope Scope
		name  string
	}{{ScopeLocal, "settings.local.json"}, {ScopeProject, "settings.json"}} {
		if l.reads(s.scope) {
			for _, path := range l.checkout.files(".claude", s.name) {
				l.readDisabledFile(s.scope, path)
			}
		}
	}
	if dir := settingsDir(l.lookupEnv); l.reads(ScopeUser) && dir != "" {
		l.readDisabledFile(ScopeUser, filepath.Join(dir, "settings.json"))
	}
}

// readDisabledFile reads the list of a settings file. [LoadSettings] reports the other faults of the file.
func (l *loader) readDisabledFile(s Scope, path string) {
	data, trusted, ok := l.read(s, path)
	if !ok {
		return
	}
	doc, problem := open(data, path)
	if problem != nil {
		problem.Message = "its " + disabledKey + " cannot be read: " + problem.Message
		problem.Level, problem.Want = LevelNote, ""
		l.report(*problem)
		return
	}
	l.addDisabled(doc, doc.top(), trusted)
}

// addDisabled adds the list of an object.
func (l *loader) addDisabled(doc *document, n node, trusted bool) {
	at := n.get(disabledKey)
	if at.isNull() {
		return
	}
	list, ok := at.list()
	if !ok {
		p := doc.problem(at, LevelNote, "is %s and disables nothing", at.kind())
		p.Want = "a list of server names"
		l.report(p)
	}
	for _, e := range list {
		name, ok := e.text()
		if !ok {
			p := doc.problem(e, LevelNote, "is %s and disables nothing", e.kind())
			p.Want = "the name of a server"
			l.report(p)
			continue
		}
		if by, off := l.disabled[name]; !off || !by.trusted {
			l.disabled[name] = disabledBy{doc.file, trusted}
		}
	}
}
