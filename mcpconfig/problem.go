package mcpconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Level says what a problem costs.
type Level string

// The levels.
const (
	// LevelNote costs nothing: what it is about loads, but something in it does nothing or is not what it seems.
	LevelNote Level = "note"
	// LevelEntry costs the entry.
	LevelEntry Level = "entry"
	// LevelFile costs the whole file.
	LevelFile Level = "file"
	// LevelUntrusted is what a file of a checkout says and may not say without trust: it has no effect, and the rest
	// of the file loads. See [LoadOptions.TrustFile].
	LevelUntrusted Level = "untrusted"
)

// trustRemedy says how a file is trusted.
const trustRemedy = `to trust the file run "tenon trust", give --trust-project, or name its source in agent.Options.SettingSources`

// A Problem is something wrong in a configuration. No problem holds the value of an environment
// variable, a header, an argument or a URL, so it may be shown and logged.
type Problem struct {
	Level Level
	// File is the path, or "--mcp-config" for JSON that was given in place.
	File string
	// Line and Column are counted from 1, columns in bytes; zero if unknown.
	Line, Column int
	// Server is the entry's name; empty for a problem of the file.
	Server string
	// Path is the JSON path of the place: mcpServers.stock.env.PORT.
	Path string
	// Message says what is wrong, Want what was expected, Instead what to write. The last two may be empty.
	Message, Want, Instead string
	// Named says that the caller named the file, by --settings say, and did not leave it to the sources.
	Named bool
	// Also are further faults of the same entry, each with its path.
	Also []string
}

// String is the problem in one line.
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
	switch p.Level {
	case LevelEntry:
		b.WriteString(" (this server is left out)")
	case LevelFile:
		b.WriteString(" (nothing of this file is used)")
	case LevelUntrusted:
		b.WriteString(" (" + trustRemedy + ")")
	}
	return b.String()
}

// text is what is wrong, expected and to be written.
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
	// maxProblems is how many problems of one file are reported, maxFaults how many faults of one entry. The rest is counted.
	maxProblems = 100
	maxFaults   = 10
)

// fewest bounds the problems of a file. What costs something goes first.
func fewest(all []Problem, file string) []Problem {
	if len(all) <= maxProblems {
		return all
	}
	rest := len(all) - maxProblems
	slices.SortStableFunc(all, func(a, b Problem) int { return cmp.Compare(a.Level.rank(), b.Level.rank()) })
	return append(all[:maxProblems:maxProblems], Problem{Level: LevelNote, File: file, Message: fmt.Sprintf("has %d more problems, which are not listed", rest)})
}

// rank orders levels by what they cost.
func (l Level) rank() int {
	return slices.Index([]Level{LevelFile, LevelEntry, LevelUntrusted, LevelNote}, l)
}

// faults collects what is wrong with one entry.
type faults struct {
	doc    *document
	server string
	bad    []Problem
	notes  []Problem
	// expanded counts the bytes that references of the document came to.
	expanded *int
}

// at makes a problem of a place in the document.
func (d *document) at(n node, level Level) Problem {
	line, column := d.position(n.offset())
	return Problem{Level: level, File: d.file, Line: line, Column: column, Path: n.path}
}

// fault records what costs the entry.
func (f *faults) fault(n node, want, instead, format string, args ...any) {
	p := f.doc.at(n, LevelEntry)
	p.Server, p.Message, p.Want, p.Instead = f.server, fmt.Sprintf(format, args...), want, instead
	f.bad = append(f.bad, p)
}

// refuse records what costs the entry for lack of trust.
func (f *faults) refuse(n node, format string, args ...any) {
	f.fault(n, "", "", format, args...)
	f.bad[len(f.bad)-1].Level = LevelUntrusted
}

// withhold records what the entry loads without for lack of trust.
func (f *faults) withhold(n node, what string) {
	f.note(n, "", "has no effect without trust: %s", what)
	f.notes[len(f.notes)-1].Level = LevelUntrusted
}

// note records what the entry loads in spite of.
func (f *faults) note(n node, instead, format string, args ...any) {
	p := f.doc.at(n, LevelNote)
	p.Server, p.Message, p.Instead = f.server, fmt.Sprintf(format, args...), instead
	f.notes = append(f.notes, p)
}

// problems are, for an entry that is refused, all faults as one problem; for one that loads, its notes.
func (f *faults) problems() []Problem {
	if len(f.bad) == 0 {
		return f.notes
	}
	if i := slices.IndexFunc(f.bad, func(p Problem) bool { return p.Level == LevelEntry }); i > 0 {
		f.bad[0], f.bad[i] = f.bad[i], f.bad[0] // what trust does not mend goes first
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
