package mcpconfig

import (
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
)

// switches are the servers of .mcp.json that the user has turned off, each with the file that says so.
type switches struct {
	project map[string]string
}

// disabledKey lists servers of .mcp.json that are turned off, in settings files and in ~/.claude.json.
const disabledKey = "disabledMcpjsonServers"

// readSwitches reads disabledMcpjsonServers from everywhere it may stand.
func (l *loader) readSwitches(user *document, hasUser bool) switches {
	s := switches{project: map[string]string{}}
	if hasUser {
		if n, ok := projectNode(user, l.opts.Dir); ok {
			l.switchOff(s, user, n)
		}
	}
	if l.on(ScopeLocal) {
		for _, path := range l.checkout.files(".claude", "settings.local.json") {
			l.switchFile(s, path, l.checkout.read)
		}
	}
	if l.on(ScopeProject) {
		for _, path := range l.checkout.files(".claude", "settings.json") {
			l.switchFile(s, path, l.checkout.read)
		}
	}
	if dir := settingsDir(l.opts.LookupEnv); l.on(ScopeUser) && filepath.IsAbs(dir) {
		l.switchFile(s, filepath.Join(dir, "settings.json"), func(path string) ([]byte, error) { return readFile(path, false) })
	}
	return s
}

// switchFile reads the list from a settings file. What else is wrong with that is for [LoadSettings] to report.
func (l *loader) switchFile(s switches, path string, read func(path string) ([]byte, error)) {
	data, err := read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		p := unreadable(path, err)
		p.Level = LevelNote
		l.problems = append(l.problems, p)
		return
	}
	if doc, problem := open(data, path); problem == nil {
		l.switchOff(s, doc, doc.top())
	} else {
		problem.Message = "its " + disabledKey + " cannot be read: " + problem.Message
		problem.Level, problem.Want = LevelNote, ""
		l.problems = append(l.problems, *problem)
	}
}

// switchOff reads the list from an object.
func (l *loader) switchOff(s switches, doc *document, n node) {
	at, ok := n.get(disabledKey)
	if !ok || at.isNull() {
		return
	}
	list, ok := at.list()
	if !ok {
		p := doc.at(at, LevelNote)
		p.Message, p.Want = "is "+at.kind()+" and disables nothing", "a list of server names"
		l.problems = append(l.problems, p)
		return
	}
	for _, e := range list {
		name, ok := e.text()
		if !ok {
			p := doc.at(e, LevelNote)
			p.Message, p.Want = "is "+e.kind()+" and disables nothing", "the name of a server"
			l.problems = append(l.problems, p)
			continue
		}
		s.project[name] = doc.file
	}
}

// settingsDir is where Claude Code keeps the user's settings, or empty.
func settingsDir(lookup func(string) (string, bool)) string {
	if dir, _ := lookup("CLAUDE_CONFIG_DIR"); dir != "" {
		return dir
	}
	if home := homeDir(lookup); home != "" {
		return filepath.Join(home, ".claude")
	}
	return ""
}

// homeDir is the home directory, or empty.
func homeDir(lookup func(string) (string, bool)) string {
	name := "HOME"
	if runtime.GOOS == "windows" {
		name = "USERPROFILE"
	}
	dir, _ := lookup(name)
	return dir
}

// cutHome cuts "~/" off a path.
func cutHome(path string) (rest string, ok bool) {
	if path == "~" {
		return "", true
	}
	return strings.CutPrefix(path, "~/")
}
