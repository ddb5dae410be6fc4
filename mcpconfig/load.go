package mcpconfig

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/internal/file"
	"github.com/tenon-sdk/tenon/internal/toolname"
)

// ProjectFile is the name of a project's configuration.
const ProjectFile = ".mcp.json"

// mcpConfigFlag is the file name in problems of JSON that [LoadOptions.MCPConfigs] contains.
const mcpConfigFlag = "--mcp-config"

// LoadOptions configures [Load]. The zero value, like a nil pointer, means the current directory, all
// sources and the process environment.
type LoadOptions struct {
	// Dir is the session's directory. Empty means the current one.
	Dir string
	// UserFile is the user's configuration. Empty means the path that the function [UserFile] returns.
	UserFile string
	// SettingSources are the sources to read: [ScopeUser], [ScopeProject], [ScopeLocal]. Nil means all
	// three, empty means none.
	SettingSources []Scope
	// MCPConfigs are values of --mcp-config, each the path of a file, or JSON. Later values take precedence.
	MCPConfigs []string
	// Strict reads MCPConfigs only.
	Strict bool
	// LookupEnv resolves ${NAME} and finds the user's files. Nil means [os.LookupEnv].
	LookupEnv func(name string) (string, bool)
	// TrustFile reports whether a file of a checkout is trusted, by its absolute path and the bytes that
	// were read. The user's own files are always trusted. Nil trusts no file of a checkout. The package
	// documentation describes what files without trust can do.
	TrustFile func(file string, contents []byte) bool
}

// A loader collects the servers of the sources, from the highest precedence to the lowest.
type loader struct {
	sourceReader
	opts     LoadOptions
	cfg      *Config
	names    map[string]holder // by the normalized name
	trusted  []holder          // those of trusted files
	disabled map[string]disabledBy
}

// A holder is the entry that has taken a name.
type holder struct {
	Entry
	refused bool
}

// Load reads the servers of a session in o.Dir. The returned configuration is never nil.
//
// Of several entries with the same name, only the one with the highest precedence is used. The order is:
// --mcp-config (the last value first), the local scope, .mcp.json in the directory, .mcp.json in its parent
// directories (the nearest first), the user scope. A .mcp.json without trust comes last. Names such as
// "my db" and "my_db", which give tools the same names, count as equal; the second entry is left out and
// reported. An entry that is refused keeps its name: an entry of lower precedence does not replace it.
//
// Load reads .mcp.json in the directory and its parents up to the root of the repository, or without a
// repository in the directory alone. A file is refused if it or a folder on its path belongs to another
// user than the current one or root, or is writable by others. On Windows, Load does not check this.
//
// A missing file is a problem only if MCPConfigs names it.
func Load(o *LoadOptions) (*Config, []Problem) {
	l := &loader{
		cfg:   &Config{Servers: map[string]Entry{}, Refused: map[string]Refusal{}, offWithoutTrust: map[string]string{}},
		names: map[string]holder{}, disabled: map[string]disabledBy{},
	}
	if o != nil {
		l.opts = *o
	}
	l.sourceReader = sourceReader{dir: l.opts.Dir, scopes: l.opts.SettingSources, lookupEnv: l.opts.LookupEnv, trustFile: l.opts.TrustFile}
	if l.open() {
		l.loadMCPConfigs()
		if !l.opts.Strict {
			l.loadSources()
		}
	}
	l.cfg.lookupEnv = l.lookupEnv
	return l.cfg, l.problems
}

// loadMCPConfigs reads the values of --mcp-config, the last first.
func (l *loader) loadMCPConfigs() {
	for i, value := range slices.Backward(l.opts.MCPConfigs) {
		name := mcpConfigFlag
		if len(l.opts.MCPConfigs) > 1 {
			name = fmt.Sprintf("%s (number %d)", mcpConfigFlag, i+1)
		}
		before := len(l.problems)
		data, path, err := l.named(value)
		switch {
		case len(bytes.TrimSpace(bytes.TrimPrefix([]byte(value), utf8BOM))) == 0:
			l.report(Problem{Level: LevelFile, File: name, Message: "is empty", Want: "the path of a file, or JSON"})
		case err != nil:
			l.report(unreadable(path, err))
		default:
			l.add(parse(data, l.parseOptions(cmp.Or(path, name), ScopeDynamic)))
		}
		for i := range l.problems[before:] {
			l.problems[before+i].Named = true
		}
	}
}

// named returns the JSON that a value is, with an empty path, or reads the file that it names.
func (r *sourceReader) named(value string) (data []byte, path string, err error) {
	path = r.path(value)
	text := bytes.TrimSpace(bytes.TrimPrefix([]byte(value), utf8BOM))
	if isDocument(text, path) {
		return []byte(value), "", nil
	}
	data, err = file.Read(path, maxBytes)
	return data, path, err
}

// isDocument reports whether a value is JSON, and not the path of a file.
func isDocument(text []byte, path string) bool {
	if len(text) > 0 && strings.IndexByte(`{["`, text[0]) >= 0 {
		return true
	}
	_, err := os.Stat(path)
	return json.Valid(text) && err != nil // 42 may be the name of a file
}

// loadSources reads the files of the setting sources.
func (l *loader) loadSources() {
	user := l.openUserFile()
	l.readDisabled(user)
	if user != nil && l.reads(ScopeLocal) {
		if project := projectNode(user, l.dir); project.exists() {
			l.add(parseServers(user, project, l.parseOptions(user.file, ScopeLocal), false))
		}
	}
	var untrusted []parsed
	if l.reads(ScopeProject) {
		for _, path := range l.checkout.files(ProjectFile) {
			switch r, trusted, ok := l.readProject(path); {
			case ok && trusted:
				l.add(r)
			case ok:
				untrusted = append(untrusted, r)
			}
		}
	}
	if user != nil && l.reads(ScopeUser) {
		l.add(parseServers(user, user.top(), l.parseOptions(user.file, ScopeUser), false))
	}
	for _, r := range untrusted {
		l.add(r)
	}
}

// readProject reads a .mcp.json, if it exists.
func (l *loader) readProject(path string) (r parsed, trusted, ok bool) {
	data, trusted, ok := l.read(ScopeProject, path)
	if !ok {
		return parsed{}, false, false
	}
	o := l.parseOptions(path, ScopeProject)
	o.Untrusted = !trusted
	r = parse(data, o)
	for name, refusal := range r.refused {
		if _, off := l.disabled[name]; off {
			refusal.Entry.Disabled = true
			r.refused[name] = refusal
		}
	}
	for name, e := range r.entries {
		if by, off := l.disabled[name]; off && !e.Disabled {
			e.Disabled = true
			r.entries[name] = e
			if trusted && !by.trusted {
				l.cfg.offWithoutTrust[name] = by.file
			}
			r.problems = append(r.problems, e.problem(LevelNote, "is disabled by disabledMcpjsonServers in %s", by.file))
		}
	}
	return r, trusted, true
}

// openUserFile reads the user's configuration. It returns nil if there is none.
func (l *loader) openUserFile() *document {
	if !l.reads(ScopeUser) && !l.reads(ScopeLocal) {
		return nil
	}
	path := UserFile(l.lookupEnv)
	if l.opts.UserFile != "" {
		path = l.path(l.opts.UserFile)
	}
	if path == "" {
		l.reportLostHome()
		return nil
	}
	data, _, ok := l.read(ScopeUser, path)
	if !ok {
		return nil
	}
	doc, problem := open(data, path)
	if problem != nil {
		l.report(*problem)
		return nil
	}
	return doc
}

// add adds the entries of a file below those of the files before.
func (l *loader) add(r parsed) {
	l.report(r.problems...)
	taken := map[string]holder{}
	for _, name := range slices.Sorted(maps.Keys(r.entries)) {
		if e := r.entries[name]; l.nameFree(e) {
			l.cfg.Servers[name] = e
			taken[toolname.Normalize(name)] = holder{Entry: e}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.refused)) {
		key := toolname.Normalize(name)
		if _, before := l.names[key]; !before {
			l.cfg.Refused[name] = r.refused[name]
			taken[key] = holder{Entry: r.refused[name].Entry, refused: true}
		}
	}
	maps.Copy(l.names, taken) // after the loops: entries of the same file do not replace each other
	for _, key := range slices.Sorted(maps.Keys(taken)) {
		if h := taken[key]; !h.Untrusted {
			l.trusted = append(l.trusted, h)
		}
	}
}

// nameFree reports whether no entry before has the name of e. Otherwise it reports the conflict.
func (l *loader) nameFree(e Entry) bool {
	by, taken := l.names[toolname.Normalize(e.Name)]
	if !taken && e.Untrusted {
		i := slices.IndexFunc(l.trusted, func(h holder) bool { return toolname.Overlap(h.Name, e.Name) })
		if taken = i >= 0; taken {
			by = l.trusted[i]
		}
	}
	if !taken {
		return true
	}
	switch {
	case toolname.Server(by.Name) != toolname.Server(e.Name):
		l.report(e.problem(LevelUntrusted, "is not used without trust: its tools could be taken for those of server %q in %s", by.Name, by.Source))
	case by.Name != e.Name:
		p := e.problem(LevelEntry, "its tools would be called %s__… like those of server %q in %s, which comes before it", toolname.Server(e.Name), by.Name, by.Source)
		p.Instead = "another name"
		l.report(p)
	case by.refused:
		l.report(e.problem(LevelNote, "is not used: the faulty entry in %s comes before it", by.Source))
	default:
		l.cfg.Overridden = append(l.cfg.Overridden, e)
		if e.Untrusted && by.Scope == ScopeUser {
			l.report(e.problem(LevelUntrusted, "is not used: without trust the server of that name in %s comes before it", by.Source))
		}
	}
	return false
}

func (l *loader) parseOptions(file string, s Scope) ParseOptions {
	return ParseOptions{File: file, Scope: s, Dir: l.dir, LookupEnv: l.lookupEnv}
}

// projectNode returns the part of ~/.claude.json for a directory.
func projectNode(doc *document, dir string) node {
	projects := doc.top().get("projects")
	for _, name := range []string{filepath.ToSlash(dir), dir, filepath.ToSlash(file.Real(dir))} {
		if n := projects.get(name); n.exists() {
			return n
		}
	}
	return node{}
}
