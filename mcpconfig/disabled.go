package mcpconfig

import "slices"

// disabledKey lists the servers of .mcp.json that are disabled, in settings files and in
// ~/.claude.json.
const disabledKey = "disabledMcpjsonServers"

// disabledServers are the disabled servers of .mcp.json with the file that disables each, preferably
// a trusted one.
type disabledServers map[string]disabledBy

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
