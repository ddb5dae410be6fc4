package mcpconfig

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenon-sdk/tenon/internal/editdistance"
	"github.com/tenon-sdk/tenon/internal/toolname"
)

// maxServers bounds the servers of a file.
const maxServers = 1000

// serversKey is the key of the map of servers.
const serversKey = "mcpServers"

// ParseOptions configures [Parse]. The zero value, like a nil pointer, means a document without a name in
// the dynamic scope.
type ParseOptions struct {
	// File is the name of the document in problems and entries.
	File string
	// Scope is the scope of the entries. Empty means [ScopeDynamic].
	Scope Scope
	// Dir is the base of a relative cwd. Empty leaves it relative.
	Dir string
	// LookupEnv resolves ${NAME}. Nil means [os.LookupEnv].
	LookupEnv func(name string) (string, bool)
	// Untrusted marks the document as a file of a checkout without trust; see [LoadOptions.TrustFile].
	Untrusted bool
}

// Parse reads a document with the top-level key mcpServers. The configuration is never nil.
func Parse(data []byte, o *ParseOptions) (*Config, []Problem) {
	var opts ParseOptions
	if o != nil {
		opts = *o
	}
	opts.Scope = cmp.Or(opts.Scope, ScopeDynamic)
	if opts.LookupEnv == nil {
		opts.LookupEnv = os.LookupEnv
	}
	r := parse(data, opts)
	return &Config{Servers: r.entries, Refused: r.refused, lookupEnv: opts.LookupEnv}, r.problems
}

// A parsed is the content of a document.
type parsed struct {
	entries  map[string]Entry
	refused  map[string]Refusal
	problems []Problem
	doc      *document // nil if the text is not JSON
}

// parse reads a document with mcpServers at the top.
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
	if se, ok := errors.AsType[*syntaxError](err); ok {
		p.Line, p.Column, p.Message = se.line, se.column, se.message
	}
	return doc, &p
}

// parseServers reads the member mcpServers of an object. If required is set, a missing member is a
// problem.
func parseServers(doc *document, at node, o ParseOptions, required bool) parsed {
	r := parsed{entries: map[string]Entry{}, refused: map[string]Refusal{}, doc: doc}
	if required && doc.relaxed {
		r.problems = append(r.problems, Problem{
			Level: LevelNote, File: doc.file, Message: "has comments or trailing commas, which Tenon accepts and other hosts of .mcp.json refuse",
		})
	}
	members, doubled, ok := at.object()
	if !ok {
		r.refuseFile(at, `an object like {"mcpServers": {…}}`)
		return r
	}
	for _, m := range doubled {
		if m.name == serversKey {
			r.note(m, repeated).Server = ""
		}
	}
	servers := at.get(serversKey)
	if !servers.exists() {
		if required {
			r.problems = append(r.problems, missingServers(doc, at, members))
		}
		return r
	}
	entries, doubled, ok := servers.object()
	if !ok && !servers.isNull() {
		r.refuseFile(servers, `an object of servers by name: {"NAME": {"command": "…"}}`)
	}
	for _, m := range doubled {
		r.note(m, repeated)
	}
	if rest := len(entries) - maxServers; rest > 0 {
		p := r.note(entries[maxServers], "has more than %d servers: the last %d are left out", maxServers, rest)
		p.Path, p.Server = serversKey, ""
		entries = entries[:maxServers]
	}
	expanded := 0
	for _, m := range entries {
		r.add(m, o, &expanded)
	}
	r.noteCollisions(entries)
	r.problems = mostSevere(r.problems, doc.file)
	return r
}

// refuseFile records a value of a wrong type that refuses the file.
func (r *parsed) refuseFile(n node, want string) {
	p := r.doc.problem(n, LevelFile, "is %s", n.kind())
	p.Want = want
	r.problems = append(r.problems, p)
}

// note records a note about a server and returns it.
func (r *parsed) note(m member, format string, args ...any) *Problem {
	p := r.doc.problem(m.key, LevelNote, format, args...)
	p.Server = m.name
	r.problems = append(r.problems, p)
	return &r.problems[len(r.problems)-1]
}

// add decodes an entry.
func (r *parsed) add(m member, o ParseOptions, expanded *int) {
	f := &faults{doc: r.doc, server: m.name, expanded: expanded}
	e := decodeEntry(f, m, o)
	problems := f.problems()
	r.problems = append(r.problems, problems...)
	id := Entry{Name: m.name, Scope: o.Scope, Source: o.File, Untrusted: o.Untrusted, Kind: e.Kind, Required: e.Required, Disabled: e.Disabled}
	id.Line, _ = r.doc.position(m.key.v.StartOffset)
	if len(f.bad) > 0 {
		r.refused[m.name] = Refusal{id, problems[0]}
		return
	}
	e.Name, e.Scope, e.Source, e.Untrusted, e.Line = id.Name, id.Scope, id.Source, id.Untrusted, id.Line
	r.entries[m.name] = e
}

// noteCollisions notes servers whose tools have the same names.
func (r *parsed) noteCollisions(entries []member) {
	first := map[string]string{}
	for _, m := range entries {
		prefix := toolname.Server(m.name)
		if other, taken := first[prefix]; taken {
			r.note(m, "its tools are called %s__… like those of server %q", prefix, other).Instead = "a name that differs in more than dots and blanks"
			continue
		}
		first[prefix] = m.name
	}
}

// missingServers returns the problem of a document without mcpServers.
func missingServers(doc *document, at node, members []member) Problem {
	p := doc.problem(at, LevelFile, "is missing")
	p.Path = serversKey
	for _, m := range members {
		switch {
		case m.name == "servers" || m.name == "mcp":
			p.Message, p.Instead = fmt.Sprintf("is missing: %q is the form of VS Code", m.name), `"mcpServers" for it, or import the file`
			return p
		case m.name == "context_servers" || editdistance.Distance(plainName(m.name), plainName(serversKey), 1) <= 1:
			p.Instead = fmt.Sprintf(`"mcpServers" for %q`, m.name)
			return p
		case m.value.get("command").exists():
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

// plainName returns a name in lower case and without separators.
func plainName(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(name))
}

// resolve returns a cwd relative to o.Dir.
func (o ParseOptions) resolve(dir string) string {
	if dir == "" || o.Dir == "" || filepath.IsAbs(dir) || dir[0] == '~' {
		return dir
	}
	return filepath.Join(o.Dir, dir)
}
