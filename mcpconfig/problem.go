package mcpconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Level is the severity of a problem.
type Level string

// The levels.
const (
	// LevelNote is a part that loads but has no effect or an unexpected one.
	LevelNote Level = "note"
	// LevelEntry is a fault that refuses the entry.
	LevelEntry Level = "entry"
	// LevelFile is a fault that refuses the whole file.
	LevelFile Level = "file"
	// LevelUntrusted is a part of a checkout's file that has no effect without trust. The rest of the file
	// loads. See [LoadOptions.TrustFile].
	LevelUntrusted Level = "untrusted"
)

const trustRemedy = `to trust the file run "tenon trust", give --trust-project, or name its source in agent.Options.SettingSources`

// A Problem is a fault in a configuration. It may be shown and logged: it has no value of an
// environment variable, a header, an argument or a URL.
type Problem struct {
	Level Level `json:"level"`
	// File is the path of the file, or "--mcp-config" for JSON on the command line.
	File string `json:"file,omitempty"`
	// Line and Column count from 1, columns in bytes. They are zero if unknown.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Server is the name of the entry. It is empty for a problem of the file.
	Server string `json:"server,omitempty"`
	// Path is a JSON path, such as mcpServers.stock.env.PORT.
	Path string `json:"path,omitempty"`
	// Message says what is wrong, Want what was expected, and Instead what to write. Want and
	// Instead may be empty.
	Message string `json:"message"`
	Want    string `json:"want,omitempty"`
	Instead string `json:"instead,omitempty"`
	// Also lists further faults of the entry with their paths.
	Also []string `json:"also,omitempty"`
	// Named reports whether the caller named the file, such as with --settings or --mcp-config.
	Named bool `json:"-"`
}

// String returns the problem in one line.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
		}
		b.WriteString(": ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.text())
	for _, a := range p.Also {
		b.WriteString("; also " + a)
	}
	return b.String() + map[Level]string{
		LevelEntry:     " (this server is left out)",
		LevelFile:      " (nothing of this file is used)",
		LevelUntrusted: " (" + trustRemedy + ")",
	}[p.Level]
}

func (p Problem) text() string {
	s := p.Message
	if p.Want != "" {
		s += ", want " + p.Want
	}
	if p.Instead != "" {
		s += "; write " + p.Instead
	}
	return s
}

const (
	// maxProblems bounds the reported problems of a file, and maxFaults the reported faults of an entry.
	maxProblems = 100
	maxFaults   = 10
)

// mostSevere bounds the problems of a file, the most severe first.
func mostSevere(all []Problem, file string) []Problem {
	if len(all) <= maxProblems {
		return all
	}
	rest := len(all) - maxProblems
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Compare(slices.Index(severity, a.Level), slices.Index(severity, b.Level))
	})
	return append(all[:maxProblems:maxProblems], Problem{Level: LevelNote, File: file, Message: fmt.Sprintf("has %d more problems, which are not listed", rest)})
}

var severity = []Level{LevelFile, LevelEntry, LevelUntrusted, LevelNote}

// faults collects the problems of an entry.
type faults struct {
	doc    *document
	server string
	bad    []Problem
	notes  []Problem
	// expanded counts the bytes of the expanded references of the document.
	expanded *int
}

// problem returns a problem at a node.
func (d *document) problem(n node, level Level, format string, args ...any) Problem {
	line, column := d.position(n.v.StartOffset)
	return Problem{Level: level, File: d.file, Line: line, Column: column, Path: n.path, Message: fmt.Sprintf(format, args...)}
}

// problem returns a problem of the whole entry.
func (e Entry) problem(level Level, format string, args ...any) Problem {
	return Problem{
		Level: level, File: e.Source, Line: e.Line, Column: 1, Server: e.Name, Path: joinPath(serversKey, e.Name),
		Message: fmt.Sprintf(format, args...),
	}
}

// repeated is the message about a key that is in an object more than once.
const repeated = "stands twice; the last one counts and this one is ignored"

// fault records a fault that refuses the entry.
func (f *faults) fault(n node, want, instead, format string, args ...any) *Problem {
	p := f.doc.problem(n, LevelEntry, format, args...)
	p.Server, p.Want, p.Instead = f.server, want, instead
	f.bad = append(f.bad, p)
	return &f.bad[len(f.bad)-1]
}

// note records a problem that does not refuse the entry.
func (f *faults) note(n node, instead, format string, args ...any) *Problem {
	p := f.doc.problem(n, LevelNote, format, args...)
	p.Server, p.Instead = f.server, instead
	f.notes = append(f.notes, p)
	return &f.notes[len(f.notes)-1]
}

// withhold records a part of the entry that has no effect without trust.
func (f *faults) withhold(n node, what string) {
	f.note(n, "", "has no effect without trust: %s", what).Level = LevelUntrusted
}

// object returns the members of an object, and notes those with a repeated name. For another value
// it records a fault and returns nil.
func (f *faults) object(n node, want string) []member {
	members, doubled, ok := n.object()
	if !ok {
		f.fault(n, want, "", "is %s", n.kind())
		return nil
	}
	for _, m := range doubled {
		f.note(m.key, "", repeated)
	}
	return members
}

// list returns the elements of a list, or records a fault.
func (f *faults) list(n node, want string) []node {
	list, ok := n.list()
	if !ok {
		f.fault(n, want, "", "is %s", n.kind())
	}
	return list
}

// problems returns the notes of an entry that is used, or one problem with all faults of a refused entry.
func (f *faults) problems() []Problem {
	if len(f.bad) == 0 {
		return f.notes
	}
	if i := slices.IndexFunc(f.bad, func(p Problem) bool { return p.Level == LevelEntry }); i > 0 {
		f.bad[0], f.bad[i] = f.bad[i], f.bad[0] // first a fault that trust does not correct
	}
	one := f.bad[0]
	for _, p := range f.bad[1:min(len(f.bad), maxFaults)] {
		one.Also = append(one.Also, p.Path+": "+p.text())
	}
	if rest := len(f.bad) - maxFaults; rest > 0 {
		one.Also = append(one.Also, fmt.Sprintf("%d more faults", rest))
	}
	return []Problem{one}
}
