package mcpconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/internal/toolname"
)

// ProjectFile is the name of a project's configuration.
const ProjectFile = ".mcp.json"

// inPlace is the name of JSON that was given in place.
const inPlace = "--mcp-config"

// LoadOptions say where to look. The zero value, like a nil pointer, means the current directory, all
// sources and the process environment.
type LoadOptions struct {
	// Dir is the session's directory. Empty means the current one.
	Dir string
	// UserFile is the user's configuration. Empty means .claude.json in $CLAUDE_CONFIG_DIR or else in the home
	// directory ($HOME, or %USERPROFILE% on Windows).
	UserFile string
	// SettingSources are the sources to read: [ScopeUser], [ScopeProject], [ScopeLocal]. Nil means all three, empty means none.
	SettingSources []Scope
	// MCPConfigs are values of --mcp-config: each a file's path, or JSON. A later one wins over an earlier.
	MCPConfigs []string
	// Strict reads MCPConfigs only.
	Strict bool
	// LookupEnv resolves ${NAME} and the variables above. Nil means os.LookupEnv.
	LookupEnv func(name string) (string, bool)
	// TrustFile decides for each file of a checkout, by its absolute path and the bytes that were read, whether it is
	// trusted: whether it may widen what a run does. The user's own files always are. Nil means that no file of a
	// checkout is trusted. What counts without trust is in the documentation of the package.
	TrustFile func(file string, contents []byte) bool
}

// A loader collects what the sources give, the highest first.
type loader struct {
	opts     LoadOptions
	cfg      *Config
	checkout checkout
	names    map[string]holder // by the name as tools have it
	own      []holder          // those of files that need no trust or have it
	switches switches
	problems []Problem
}

// A holder is the entry that has taken a name.
type holder struct {
	Entry
	refused bool
}

// Load reads all that configures servers for a run in o.Dir. Of several entries with one name the first of these
// counts, and is never merged with another: --mcp-config (the last that was given), the local scope, .mcp.json in the directory,
// .mcp.json in its parents (the nearest), the user scope. A .mcp.json that is not trusted comes last, so that a checkout
// takes no server's name. Entries that a program gives in code are its own to put over these.
//
// .mcp.json is read in the folders of the repository that contains the directory: from the directory up to the folder
// with .git; without a repository, in the directory alone. It is refused if it, or a folder on the way to it, belongs
// neither to the user nor to root, or can be written to by others. This is not checked on Windows.
//
// Two entries of different sources whose tools would have the same names, such as "my db" and "my_db", count as having
// one name: the second is left out, with a report.
//
// An entry that is refused still keeps its name: the one below it, meant for elsewhere, does not
// take its place, and a note says so. A file that is absent is no problem, but for one that MCPConfigs names. The configuration is never nil.
func Load(o *LoadOptions) (*Config, []Problem) {
	l := &loader{cfg: &Config{Servers: map[string]Entry{}, Refused: map[string]Refusal{}, offWithoutTrust: map[string]string{}}, names: map[string]holder{}}
	if o != nil {
		l.opts = *o
	}
	if l.opts.LookupEnv == nil {
		l.opts.LookupEnv = os.LookupEnv
	}
	l.cfg.lookupEnv = l.opts.LookupEnv
	dir, err := filepath.Abs(l.opts.Dir)
	if err != nil {
		l.problems = append(l.problems, Problem{Level: LevelFile, File: l.opts.Dir, Message: fmt.Sprintf("the directory cannot be found: %v", err)})
		return l.cfg, l.problems
	}
	l.opts.Dir = dir
	l.dynamic()
	if !l.opts.Strict {
		l.settings()
	}
	return l.cfg, l.problems
}

// on reports whether a source is to be read.
func (l *loader) on(s Scope) bool {
	return l.opts.SettingSources == nil || slices.Contains(l.opts.SettingSources, s)
}

// dynamic reads the values of --mcp-config, the last first.
func (l *loader) dynamic() {
	for i, value := range slices.Backward(l.opts.MCPConfigs) {
		name := inPlace
		if len(l.opts.MCPConfigs) > 1 {
			name = fmt.Sprintf("%s (number %d)", inPlace, i+1)
		}
		text := bytes.TrimSpace(bytes.TrimPrefix([]byte(value), utf8BOM))
		switch {
		case len(text) == 0:
			l.problems = append(l.problems, Problem{Level: LevelFile, File: name, Message: "is empty", Want: "the path of a file, or JSON"})
			continue
		case isDocument(text, l.path(value)):
			l.take(parse([]byte(value), l.parseOptions(name, ScopeDynamic)))
			continue
		}
		path := l.path(value)
		data, err := readFile(path, maxBytes, true)
		if err != nil {
			l.problems = append(l.problems, unreadable(path, err))
			continue
		}
		l.take(parse(data, l.parseOptions(path, ScopeDynamic)))
	}
}

// isDocument reports whether a value is JSON given in place, of whatever type, and not the path of a file, which is
// what it would be taken for.
func isDocument(text []byte, path string) bool {
	text = bytes.TrimPrefix(text, utf8BOM)
	if len(text) > 0 && strings.IndexByte(`{["`, text[0]) >= 0 {
		return true
	}
	if !json.Valid(text) {
		return false
	}
	_, err := os.Stat(path)
	return err != nil // 42 may be the name of a file
}

// settings reads the files that the setting sources stand for.
func (l *loader) settings() {
	l.checkout = openCheckout(l.opts.Dir)
	l.checkout.user = userSettings(l.opts.LookupEnv)
	user, hasUser := l.openUserFile()
	l.switches = l.readSwitches(user, hasUser)
	if hasUser && l.on(ScopeLocal) {
		if project, ok := projectNode(user, l.opts.Dir); ok {
			l.take(parseServers(user, project, l.parseOptions(user.file, ScopeLocal), false))
		}
	}
	var untrusted []parsed
	if l.on(ScopeProject) {
		for _, path := range l.checkout.files(ProjectFile) {
			switch r, trusted, ok := l.project(path); {
			case ok && trusted:
				l.take(r)
			case ok:
				untrusted = append(untrusted, r)
			}
		}
	}
	if hasUser && l.on(ScopeUser) {
		l.take(parseServers(user, user.top(), l.parseOptions(user.file, ScopeUser), false))
	}
	for _, r := range untrusted {
		l.take(r)
	}
}

// project reads one .mcp.json, if it is there.
func (l *loader) project(path string) (r parsed, trusted, ok bool) {
	data, err := l.checkout.read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return parsed{}, false, false
	case err != nil:
		l.problems = append(l.problems, unreadable(path, err))
		return parsed{}, false, false
	}
	o := l.parseOptions(path, ScopeProject)
	o.Untrusted = l.opts.TrustFile == nil || !l.opts.TrustFile(path, data)
	r = parse(data, o)
	for name, bad := range r.refused {
		if _, off := l.switches[name]; off {
			bad.Entry.Disabled = true
			r.refused[name] = bad
		}
	}
	for name, e := range r.entries {
		if by, off := l.switches[name]; off && !e.Disabled {
			e.Disabled = true
			r.entries[name] = e
			if by.untrusted && !e.Untrusted {
				l.cfg.offWithoutTrust[name] = by.file
			}
			r.problems = append(r.problems, Problem{
				Level: LevelNote, File: path, Line: e.Line, Column: 1, Server: name, Path: joinPath(serversKey, name),
				Message: "is disabled by disabledMcpjsonServers in " + by.file,
			})
		}
	}
	return r, !o.Untrusted, true
}

// openUserFile reads the user's configuration once, for both its scopes.
func (l *loader) openUserFile() (*document, bool) {
	if !l.on(ScopeUser) && !l.on(ScopeLocal) {
		return nil, false
	}
	path := l.userFile()
	if path == "" {
		l.problems = append(l.problems, ownFilesLost(l.opts.LookupEnv)...)
		return nil, false
	}
	data, err := readFile(path, maxBytes, false)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false
	case err != nil:
		l.problems = append(l.problems, unreadable(path, err))
		return nil, false
	}
	doc, problem := open(data, path)
	if problem != nil {
		l.problems = append(l.problems, *problem)
		return nil, false
	}
	return doc, true
}

// take adds what a source gives below what is there already.
func (l *loader) take(r parsed) {
	l.problems = append(l.problems, r.problems...)
	taken := map[string]holder{}
	for _, name := range slices.Sorted(maps.Keys(r.entries)) {
		if e := r.entries[name]; l.free(e) {
			l.cfg.Servers[name] = e
			taken[toolname.Normalize(name)] = holder{Entry: e}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.refused)) {
		key := toolname.Normalize(name)
		if _, before := l.names[key]; !before { // what is wrong with it is reported already
			l.cfg.Refused[name] = r.refused[name]
			taken[key] = holder{Entry: r.refused[name].Entry, refused: true}
		}
	}
	maps.Copy(l.names, taken) // not before: two entries of one file both stay
	for _, key := range slices.Sorted(maps.Keys(taken)) {
		if h := taken[key]; !h.Untrusted {
			l.own = append(l.own, h)
		}
	}
}

// free reports whether no source above has an entry's name. If one has, it says so.
func (l *loader) free(e Entry) bool {
	by, taken := l.names[toolname.Normalize(e.Name)]
	if !taken && e.Untrusted {
		by, taken = l.alike(e.Name)
	}
	if !taken {
		return true
	}
	p := Problem{Level: LevelNote, File: e.Source, Line: e.Line, Column: 1, Server: e.Name, Path: joinPath(serversKey, e.Name)}
	switch {
	case toolname.Server(by.Name) != toolname.Server(e.Name):
		p.Level = LevelUntrusted
		p.Message = fmt.Sprintf("is not used without trust: its tools could be taken for those of server %q in %s", by.Name, by.Source)
	case by.Name != e.Name:
		p.Level, p.Instead = LevelEntry, "another name"
		p.Message = fmt.Sprintf("its tools would be called %s__… like those of server %q in %s, which comes before it", toolname.Server(e.Name), by.Name, by.Source)
	case by.refused:
		p.Message = fmt.Sprintf("is not used: the faulty entry in %s comes before it", by.Source)
	case e.Untrusted && by.Scope == ScopeUser:
		p.Level = LevelUntrusted
		p.Message = fmt.Sprintf("is not used: without trust the server of that name in %s comes before it", by.Source)
		l.cfg.Overridden = append(l.cfg.Overridden, e)
	default:
		l.cfg.Overridden = append(l.cfg.Overridden, e)
		return false
	}
	l.problems = append(l.problems, p)
	return false
}

// alike returns the server of the program's or the user's whose name begins like that of one that is not trusted.
func (l *loader) alike(name string) (by holder, taken bool) {
	i := slices.IndexFunc(l.own, func(by holder) bool { return toolname.Overlap(by.Name, name) })
	if i < 0 {
		return holder{}, false
	}
	return l.own[i], true
}

func (l *loader) parseOptions(file string, s Scope) ParseOptions {
	return ParseOptions{File: file, Scope: s, Dir: l.opts.Dir, LookupEnv: l.opts.LookupEnv}
}

// path resolves a path that was given: against the session's directory, "~/" against the home directory.
func (l *loader) path(p string) string {
	if rest, ok := cutHome(p); ok {
		if home := homeDir(l.opts.LookupEnv); home != "" {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(l.opts.Dir, p)
}

// userFile is the path of the user's configuration, or empty.
func (l *loader) userFile() string {
	if l.opts.UserFile != "" {
		return l.path(l.opts.UserFile)
	}
	return UserFile(l.opts.LookupEnv)
}

// UserFile is the path of the user's configuration: .claude.json in $CLAUDE_CONFIG_DIR, or else in the home directory.
// It is empty when neither is known by an absolute path. A nil lookup means os.LookupEnv.
func UserFile(lookup func(string) (string, bool)) string {
	if lookup == nil {
		lookup = os.LookupEnv
	}
	dir := homeDir(lookup)
	if v, _ := lookup(configVariable); v != "" {
		dir = absolute(v)
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, ".claude.json")
}

// projectNode is what ~/.claude.json says of a directory.
func projectNode(doc *document, dir string) (node, bool) {
	projects, ok := doc.top().get("projects")
	if !ok {
		return node{}, false
	}
	if n, ok := projects.get(filepath.ToSlash(dir)); ok {
		return n, true
	}
	if n, ok := projects.get(dir); ok {
		return n, true
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return node{}, false
	}
	return projects.get(filepath.ToSlash(real))
}

// readFile reads a file, and one byte more than limit at most. Only what was named explicitly may be something else than a regular file: a
// pipe that nobody writes to would be waited for without end.
func readFile(path string, limit int64, named bool) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("it is a directory")
	case !named && !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit+1))
}

// unreadable is the problem of a file that cannot be read.
func unreadable(path string, err error) Problem {
	p := Problem{Level: LevelFile, File: path, Message: "cannot be read: " + err.Error()}
	var pe *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.Message, p.Want = "there is no such file", "the path of a file, or JSON"
	case errors.As(err, &pe):
		p.Message = "cannot be read: " + pe.Err.Error() // the path stands before it
	}
	return p
}
