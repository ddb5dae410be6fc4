package mcphost

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	storedLines     = 200    // lines read when no limit is given
	storedLineChars = 2_000  // characters shown of one line
	storedChars     = 20_000 // characters of one answer
	storedMatches   = 50     // matches shown when no limit is given
	matchContext    = 200    // characters around a match in a long line
)

// A StoredQuery says which part of a stored result to read.
type StoredQuery struct {
	// Offset is the first line, counted from 1; Limit how many lines, or
	// matches. Zero means the beginning, and 200 lines or 50 matches.
	Offset int `json:"offset,omitempty" jsonschema:"first line to read, counted from 1"`
	Limit  int `json:"limit,omitempty" jsonschema:"how many lines, or matches, to return"`
	// Column is the first character of each line, counted from 1, for files
	// with long lines.
	Column int `json:"column,omitempty" jsonschema:"first character of each line, counted from 1, for files with long lines"`
	// Pattern, if set, makes it a search for a regular expression (RE2): only
	// lines that match are returned.
	Pattern string `json:"pattern,omitempty" jsonschema:"regular expression; only lines that match are returned"`
}

// ReadStored returns a part of a stored result, with line numbers, and says
// what is left. The error is the caller's fault and made to be read by a model.
func ReadStored(text string, q StoredQuery) (string, error) {
	if q.Offset < 0 || q.Limit < 0 || q.Column < 0 {
		return "", errors.New("offset, limit and column must not be negative")
	}
	q.Offset, q.Column = max(q.Offset, 1), max(q.Column, 1)
	lines := strings.Split(text, "\n")
	if q.Offset > len(lines) {
		return "", fmt.Errorf("offset %d is beyond the end: there are %d lines", q.Offset, len(lines))
	}
	if q.Pattern != "" {
		return searchStored(lines, q)
	}
	if q.Limit == 0 {
		q.Limit = storedLines
	}
	var b strings.Builder
	room := storedChars
	for i := q.Offset - 1; i < len(lines); i++ {
		if i >= q.Offset-1+q.Limit || room <= 0 {
			fmt.Fprintf(&b, "[%d more lines; go on with offset %d]\n", len(lines)-i, i+1)
			break
		}
		shown := window(lines[i], q.Column-1, min(storedLineChars, room))
		room -= utf8.RuneCountInString(shown)
		fmt.Fprintf(&b, "%d: %s\n", i+1, shown)
	}
	return b.String(), nil
}

// window returns up to n characters of a line from a given one on, and says how
// many there are before and after.
func window(line string, from, n int) string {
	total := utf8.RuneCountInString(line)
	if from == 0 && total <= n {
		return line
	}
	rest := line[len(firstRunes(line, from)):]
	shown := firstRunes(rest, n)
	s := shown
	if left := total - from - utf8.RuneCountInString(shown); left > 0 {
		s += fmt.Sprintf(" [%d more characters; go on with column %d]", left, from+n+1)
	}
	return s
}

// searchStored returns the lines that match, from the offset on.
func searchStored(lines []string, q StoredQuery) (string, error) {
	re, err := regexp.Compile(q.Pattern)
	if err != nil {
		return "", fmt.Errorf("pattern: %w", err)
	}
	if q.Limit == 0 {
		q.Limit = storedMatches
	}
	var b strings.Builder
	found, room := 0, storedChars
	for i := q.Offset - 1; i < len(lines); i++ {
		at := re.FindStringIndex(lines[i])
		if at == nil {
			continue
		}
		if found++; found > q.Limit || room <= 0 {
			fmt.Fprintf(&b, "[more matches; go on with offset %d]\n", i+1)
			return b.String(), nil
		}
		shown := around(lines[i], at)
		room -= utf8.RuneCountInString(shown)
		fmt.Fprintf(&b, "%d: %s\n", i+1, shown)
	}
	if found == 0 {
		return fmt.Sprintf("no line from %d to %d matches\n", q.Offset, len(lines)), nil
	}
	return b.String(), nil
}

// around returns a line, or of a long one the surroundings of a match with the
// column at which they begin.
func around(line string, at []int) string {
	if utf8.RuneCountInString(line) <= storedLineChars {
		return line
	}
	head := lastRunes(line[:at[0]], matchContext)
	match := firstRunes(line[at[0]:at[1]], storedLineChars)
	tail := firstRunes(line[at[1]:], matchContext)
	column := utf8.RuneCountInString(line[:at[0]]) - utf8.RuneCountInString(head) + 1
	return fmt.Sprintf("[column %d] %s%s%s", column, head, match, tail)
}
