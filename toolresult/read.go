package toolresult

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	storedLines     = 200    // lines read when no limit is given
	storedLineChars = 2_000  // characters shown of one line
	storedChars     = 20_000 // characters of one answer
	storedMatches   = 50     // matches shown when no limit is given
)

// A Query selects a part of a stored result.
type Query struct {
	// Offset is the first line, counted from 1, and Limit the number of lines or matches. Zero means the
	// beginning, and 200 lines or 50 matches.
	Offset int `json:"offset,omitempty" jsonschema:"first line to read, counted from 1"`
	Limit  int `json:"limit,omitempty" jsonschema:"how many lines, or matches, to return"`
	// Column is the first character of each line, counted from 1. A search begins there in the line of
	// Offset.
	Column int `json:"column,omitempty" jsonschema:"first character of each line, counted from 1, for files with long lines"`
	// Pattern is a regular expression (RE2). If set, only matching lines are returned, and of long lines
	// each match with its surroundings.
	Pattern string `json:"pattern,omitempty" jsonschema:"regular expression; only lines that match are returned, and of long lines what is around each match"`
}

// read returns the part of a text that a query selects, with line numbers and how to read on. Unless
// ctx ended, the error is about the query and written for a model.
func read(ctx context.Context, text string, q Query) (string, error) {
	if q.Offset < 0 || q.Limit < 0 || q.Column < 0 {
		return "", errors.New("offset, limit and column must not be negative")
	}
	q.Offset, q.Column = max(q.Offset, 1), max(q.Column, 1)
	lines := strings.Split(text, "\n")
	if q.Offset > len(lines) {
		return "", fmt.Errorf("offset %d is beyond the end: there are %d lines", q.Offset, len(lines))
	}
	if q.Pattern != "" {
		out, _, err := searchStored(ctx, lines, q)
		return out, err
	}
	if q.Limit == 0 {
		q.Limit = storedLines
	}
	var b strings.Builder
	room, width := storedChars, storedLineChars
	if q.Limit == 1 || q.Offset == len(lines) { // one line may take all the room
		width = storedChars
	}
	for i := q.Offset - 1; i < len(lines); i++ {
		if i-(q.Offset-1) >= q.Limit || room <= 0 {
			fmt.Fprintf(&b, "[%d more lines; go on with offset %d]\n", len(lines)-i, i+1)
			break
		}
		shown := window(lines[i], q.Column-1, min(width, room))
		room -= utf8.RuneCountInString(shown)
		fmt.Fprintf(&b, "%d: %s\n", i+1, shown)
	}
	return b.String(), nil
}

// window returns up to n characters of a line from the given one, and how many follow.
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
