package mcpconfig

import (
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
)

// switches are the servers of .mcp.json that are turned off, each with the file that says so, a trusted one before others.
type switches map[string]offSwitch

type offSwitch struct {
	file      string
	untrusted bool
}

// disabledKey lists servers of .mcp.json that are turned off, in settings files and in ~/.claude.json.
const disabledKey = "disabledMcpjsonServers"

// readSwitches reads disabledMcpjsonServers from everywhere it may stand.
func (l *loader) readSwitches(user *document, hasUser bool) switches {
	s := switches{}
	if hasUser {
		if n, ok := projectNode(user, l.opts.Dir); ok {
			l.switchOff(s, user, n, false)
		}
	}
	if l.on(ScopeLocal) {
		for _, path := range l.checkout.files(".claude", "settings.local.json") {
			l.switchFile(s, path, true)
		}
	}
	if l.on(ScopeProject) {
		for _, path := range l.checkout.files(".claude", "settings.json") {
			l.switchFile(s, path, true)
		}
	}
	if dir := settingsDir(l.opts.LookupEnv); l.on(ScopeUser) && dir != "" {
		l.switchFile(s, filepath.Join(dir, "settings.json"), false)
	}
	return s
}

// switchFile reads the list from a settings file. What else is wrong with that is for [LoadSettings] to report.
func (l *loader) switchFile(s switches, path string, ofCheckout bool) {
	data, err := l.readEither(path, ofCheckout)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		l.problems = append(l.problems, unreadable(path, err))
		return
	}
	if doc, problem := open(data, path); problem == nil {
		l.switchOff(s, doc, doc.top(), ofCheckout && (l.opts.TrustFile == nil || !l.opts.TrustFile(path, data)))
	} else {
		problem.Message = "its " + disabledKey + " cannot be read: " + problem.Message
		problem.Level, problem.Want = LevelNote, ""
		l.problems = append(l.problems, *problem)
	}
}

// readEither reads a file of the checkout, or of the user's.
func (l *loader) readEither(path string, ofCheckout bool) ([]byte, error) {
	if ofCheckout {
		return l.checkout.read(path)
	}
	return readFile(path, maxBytes, false)
}

// switchOff reads the list from an object.
func (l *loader) switchOff(s switches, doc *document, n node, untrusted bool) {
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
		if by, off := s[name]; !off || by.untrusted {
			s[name] = offSwitch{doc.file, untrusted}
		}
	}
}

// settingsDir is where Claude Code keeps the user's settings, or empty.
func settingsDir(lookup func(string) (string, bool)) string {
	if dir, _ := lookup(configVariable); dir != "" {
		return absolute(dir)
	}
	if home := homeDir(lookup); home != "" {
		return filepath.Join(home, ".claude")
	}
	return ""
}

// configVariable names the folder of the user's configuration in place of the home directory.
const configVariable = "CLAUDE_CONFIG_DIR"

func homeVariable() string {
	if runtime.GOOS == "windows" {
		return "USERPROFILE"
	}
	return "HOME"
}

// homeDir is the home directory, or empty.
func homeDir(lookup func(string) (string, bool)) string {
	dir, _ := lookup(homeVariable())
	return absolute(dir)
}

// absolute is a path if it is absolute, else empty: a relative one would make files of a checkout the user's own.
func absolute(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return ""
}

// ownFilesLost reports why the user's own files cannot be found, if a variable is at fault.
func ownFilesLost(lookup func(string) (string, bool)) (problems []Problem) {
	name := configVariable
	if dir, _ := lookup(name); dir == "" {
		name = homeVariable()
	}
	if dir, _ := lookup(name); dir != "" && absolute(dir) == "" {
		problems = []Problem{{Level: LevelNote, Message: name + " is no absolute path: the user's configuration is not read"}}
	}
	return problems
}

// cutHome cuts "~/" off a path.
func cutHome(path string) (rest string, ok bool) {
	if path == "~" {
		return "", true
	}
	return strings.CutPrefix(path, "~/")
}
