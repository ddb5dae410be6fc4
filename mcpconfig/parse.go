package mcpconfig

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/internal/toolname"
)

// maxServers is how many servers of one file are used.
const maxServers = 1000

// serversKey is the key of the map of servers.
const serversKey = "mcpServers"

// ParseOptions say what a document is. The zero value, like a nil pointer, is a document without a
// name in the dynamic scope.
type ParseOptions struct {
	// File names the document in problems and entries.
	File string
	// Scope is given to the entries. Empty means [ScopeDynamic].
	Scope Scope
	// Dir is what a relative cwd is resolved against. Empty leaves it relative.
	Dir string
	// LookupEnv resolves ${NAME}. Nil means os.LookupEnv.
	LookupEnv func(name string) (string, bool)
	// Untrusted reads the document as one of a checkout that nobody trusts; see [LoadOptions.TrustFile].
	Untrusted bool
}

func (o *ParseOptions) withDefaults() ParseOptions {
	var opts ParseOptions
	if o != nil {
		opts = *o
	}
	opts.Scope = cmp.Or(opts.Scope, ScopeDynamic)
	if opts.LookupEnv == nil {
		opts.LookupEnv = os.LookupEnv
	}
	return opts
}

// Parse reads one document with the top-level key mcpServers. The configuration is never nil.
func Parse(data []byte, o *ParseOptions) (*Config, []Problem) {
	opts := o.withDefaults()
	r := parse(data, opts)
	return &Config{Servers: r.entries, Refused: r.refused, lookupEnv: opts.LookupEnv}, r.problems
}

// A parsed is what one document gives.
type parsed struct {
	entries  map[string]Entry
	refused  map[string]Refusal
	problems []Problem
	doc      *document // nil if the text is no JSON
}

// parse reads a document whose servers stand at the top.
func parse(data []byte, o ParseOptions) parsed {
	doc, problem := open(data, o.File)
	if problem != nil {
		return parsed{problems: []Problem{*problem}, entries: map[string]Entry{}}
	}
	return parseServers(doc, doc.top(), o, true)
}

// open parses the text of a file.
func open(data []byte, file string) (*document, *Problem) {
	doc, err := parseDocument(data, file)
	if err == nil {
		return doc, nil
	}
	p := Problem{Level: LevelFile, File: file, Message: err.Error(), Want: `JSON like {"mcpServers": {"NAME": {"command": "…"}}}`}
	if se := (*syntaxError)(nil); errors.As(err, &se) {
		p.Line, p.Column, p.Message = se.line, se.column, se.message
	}
	return doc, &p
}

// parseServers reads the member mcpServers of an object. With strict set its absence is worth a problem.
func parseServers(doc *document, at node, o ParseOptions, strict bool) parsed {
	r := parsed{entries: map[string]Entry{}, refused: map[string]Refusal{}, doc: doc}
	if strict && doc.relaxed {
		r.problems = append(r.problems, Problem{
			Level: LevelNote, File: doc.file, Message: "has comments or trailing commas, which Tenon accepts and other hosts of .mcp.json refuse",
		})
	}
	members, doubled, ok := at.object()
	if !ok {
		p := doc.at(at, LevelFile)
		p.Message, p.Want = "is "+at.kind(), `an object like {"mcpServers": {…}}`
		r.problems = append(r.problems, p)
		return r
	}
	r.doubled(doubled, serversKey)
	i := slices.IndexFunc(members, func(m member) bool { return m.name == serversKey })
	if i < 0 {
		if strict {
			r.problems = append(r.problems, missingServers(doc, at, members))
		}
		return r
	}
	servers := members[i].value
	entries, doubled, ok := servers.object()
	switch {
	case ok:
	case servers.isNull():
		return r
	default:
		p := doc.at(servers, LevelFile)
		p.Message, p.Want = "is "+servers.kind(), `an object of servers by name: {"NAME": {"command": "…"}}`
		r.problems = append(r.problems, p)
		return r
	}
	r.doubled(doubled, "")
	if rest := len(entries) - maxServers; rest > 0 {
		p := doc.at(entries[maxServers].key, LevelNote)
		p.Path, p.Message = serversKey, fmt.Sprintf("has more than %d servers: the last %d are left out", maxServers, rest)
		r.problems = append(r.problems, p)
		entries = entries[:maxServers]
	}
	expanded := 0
	for _, m := range entries {
		r.add(m, o, &expanded)
	}
	r.collisions(entries)
	r.problems = fewest(r.problems, doc.file)
	return r
}

// add reads one entry.
func (r *parsed) add(m member, o ParseOptions, expanded *int) {
	f := &faults{doc: r.doc, server: m.name, expanded: expanded}
	e := decodeEntry(f, m, o)
	problems := f.problems()
	r.problems = append(r.problems, problems...)
	e.Name, e.Scope, e.Source, e.Untrusted = m.name, o.Scope, o.File, o.Untrusted
	e.Line, _ = r.doc.position(m.key.offset())
	if len(f.bad) > 0 {
		r.refused[m.name] = Refusal{
			Entry{Name: e.Name, Scope: e.Scope, Source: e.Source, Line: e.Line, Untrusted: e.Untrusted, Kind: e.Kind, Required: e.Required, Disabled: e.Disabled},
			problems[0],
		}
		return
	}
	r.entries[m.name] = e
}

// doubled notes keys that stand twice. Where only is given, only that key is of interest.
func (r *parsed) doubled(doubled []member, only string) {
	for _, m := range doubled {
		if only != "" && m.name != only {
			continue
		}
		p := r.doc.at(m.key, LevelNote)
		p.Message = "stands twice; the last one counts and this one is ignored"
		if only == "" {
			p.Server = m.name
		}
		r.problems = append(r.problems, p)
	}
}

// collisions notes names that the model sees alike.
func (r *parsed) collisions(entries []member) {
	first := map[string]string{}
	for _, m := range entries {
		prefix := toolname.Server(m.name)
		if other, taken := first[prefix]; taken {
			p := r.doc.at(m.key, LevelNote)
			p.Server, p.Message = m.name, fmt.Sprintf("its tools are called %s__… like those of server %q", prefix, other)
			p.Instead = "a name that differs in more than dots and blanks"
			r.problems = append(r.problems, p)
			continue
		}
		first[prefix] = m.name
	}
}

// missingServers says what a document without mcpServers may have meant.
func missingServers(doc *document, at node, members []member) Problem {
	p := doc.at(at, LevelFile)
	p.Path, p.Message = serversKey, "is missing"
	for _, m := range members {
		switch _, isObject := m.value.get("command"); {
		case m.name == "servers" || m.name == "mcp":
			p.Message, p.Instead = fmt.Sprintf("is missing: %q is the form of VS Code", m.name), `"mcpServers" for it, or import the file`
			return p
		case m.name == "context_servers" || nearServersKey(m.name):
			p.Instead = fmt.Sprintf(`"mcpServers" for %q`, m.name)
			return p
		case isObject:
			p.Instead = `{"mcpServers": { … }} around the servers`
			return p
		}
	}
	if len(members) == 0 {
		p.Level = LevelNote
		p.Message = "is missing: no servers are configured here"
	}
	return p
}

// nearServersKey reports whether a key is mcpServers in another spelling, or with one letter wrong.
func nearServersKey(key string) bool {
	plain := strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(key))
	want := strings.ToLower(serversKey)
	return plain == want || oneEdit(plain, want)
}

// resolve makes a relative cwd absolute.
func (o ParseOptions) resolve(dir string) string {
	if dir == "" || o.Dir == "" || filepath.IsAbs(dir) || dir[0] == '~' {
		return dir
	}
	return filepath.Join(o.Dir, dir)
}
