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

	// maxLineMatches bounds the matches that are looked for in one line.
	maxLineMatches = 100_000
)

// A StoredQuery says which part of a stored result to read.
type StoredQuery struct {
	// Offset is the first line, counted from 1; Limit how many lines, or
	// matches. Zero means the beginning, and 200 lines or 50 matches.
	Offset int `json:"offset,omitempty" jsonschema:"first line to read, counted from 1"`
	Limit  int `json:"limit,omitempty" jsonschema:"how many lines, or matches, to return"`
	// Column is the first character of each line, counted from 1, for files
	// with long lines. A search begins there in the line that Offset names.
	Column int `json:"column,omitempty" jsonschema:"first character of each line, counted from 1, for files with long lines"`
	// Pattern, if set, makes it a search for a regular expression (RE2): only
	// lines that match are returned, and of long lines each match with what is
	// around it.
	Pattern string `json:"pattern,omitempty" jsonschema:"regular expression; only lines that match are returned, and of long lines what is around each match"`
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
	room, width := storedChars, storedLineChars
	if q.Limit == 1 || q.Offset == len(lines) { // one line may fill the answer
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

// searchStored returns the lines that match, from the offset on. Of a long line
// it returns each match with what is around it, from the column on.
func searchStored(lines []string, q StoredQuery) (string, error) {
	re, err := regexp.Compile(q.Pattern)
	if err != nil {
		return "", fmt.Errorf("pattern: %w", err)
	}
	if q.Limit == 0 {
		q.Limit = storedMatches
	}
	s := search{re: re, left: q.Limit, room: storedChars}
	for i := q.Offset - 1; i < len(lines); i++ {
		from := 0
		if i == q.Offset-1 {
			from = len(firstRunes(lines[i], q.Column-1))
		}
		if !s.line(i+1, lines[i], from) {
			return s.out.String(), nil
		}
	}
	if s.out.Len() == 0 {
		return fmt.Sprintf("no line from %d to %d matches\n", q.Offset, len(lines)), nil
	}
	return s.out.String(), nil
}

// A search gathers matches until there are enough.
type search struct {
	re         *regexp.Regexp
	left, room int // matches and characters
	out        strings.Builder
}

// line looks for matches in a line from a byte on. It reports false when there
// are more matches than are wanted.
func (s *search) line(number int, line string, from int) bool {
	short := utf8.RuneCountInString(line) <= storedLineChars
	all := s.re.FindAllStringIndex(line, maxLineMatches) // over the whole line: ^ and \b look at what is before
	column, counted := 1, 0                              // the column of the byte counted
	for _, at := range all {
		if at[0] < from {
			continue
		}
		column, counted = column+utf8.RuneCountInString(line[counted:at[0]]), at[0]
		if s.left == 0 || s.room <= 0 {
			fmt.Fprintf(&s.out, "[more matches; go on with offset %d", number)
			if !short {
				fmt.Fprintf(&s.out, " and column %d", column)
			}
			s.out.WriteString("]\n")
			return false
		}
		s.left--
		if short {
			s.add(number, line)
			return true
		}
		shown, end := around(line, at, column)
		s.add(number, shown)
		from = max(end, at[1]) // what was shown need not be shown again
	}
	if len(all) == maxLineMatches {
		fmt.Fprintf(&s.out, "[line %d has more matches than can be counted; give a narrower pattern]\n", number)
	}
	return true
}

func (s *search) add(number int, shown string) {
	s.room -= utf8.RuneCountInString(shown)
	fmt.Fprintf(&s.out, "%d: %s\n", number, shown)
}

// around returns the surroundings of a match in a long line with the column at
// which they begin, and where in the line they end.
func around(line string, at []int, column int) (shown string, end int) {
	head := lastRunes(line[:at[0]], matchContext)
	match := firstRunes(line[at[0]:at[1]], storedLineChars)
	tail := ""
	if end = at[0] + len(match); end == at[1] {
		tail = firstRunes(line[end:], matchContext)
	}
	return fmt.Sprintf("[column %d] %s%s%s", column-utf8.RuneCountInString(head), head, match, tail), end + len(tail)
}
