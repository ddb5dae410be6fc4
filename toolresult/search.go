package toolresult

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

const (
	matchContext = 200 // characters around a match in a long line

	maxPattern      = 1000 // bytes of a pattern
	maxPatternSteps = 1000 // its size with repetitions expanded
	// maxSearchWork limits the characters that a search reads times the steps of the pattern.
	maxSearchWork = 1 << 28
	lookEvery     = 4096 // characters between two checks of the context
)

// searchStored returns the lines that match from the offset on, and of a long line each match from the
// column on with its surroundings. The unit of work is that of maxSearchWork.
func searchStored(ctx context.Context, lines []string, q Query) (out string, work int, err error) {
	if q.Limit == 0 {
		q.Limit = storedMatches
	}
	s := search{ctx: ctx, left: q.Limit, room: storedChars}
	if err := s.compile(q.Pattern); err != nil {
		return "", 0, fmt.Errorf("pattern: %w", err)
	}
	for i := q.Offset - 1; i < len(lines); i++ {
		from := 0
		if i == q.Offset-1 {
			from = len(firstRunes(lines[i], q.Column-1))
		}
		more := s.line(i+1, lines[i], from)
		if ctx.Err() != nil {
			return "", s.work, ctx.Err()
		}
		if !more {
			return s.out.String(), s.work, nil
		}
	}
	if s.out.Len() == 0 {
		return fmt.Sprintf("no line from %d to %d matches\n", q.Offset, len(lines)), s.work, nil
	}
	return s.out.String(), s.work, nil
}

// A search collects matches.
type search struct {
	ctx        context.Context
	first      *regexp.Regexp // matches the first match in a text
	next       *regexp.Regexp // matches the first match after the first character, as group 1
	steps      int            // of the pattern
	left, room int            // matches and characters left to show
	work       int
	out        strings.Builder
}

// compile compiles a pattern within the limits.
func (s *search) compile(pattern string) error {
	if len(pattern) > maxPattern {
		return fmt.Errorf("it has %d bytes, at most %d are allowed", len(pattern), maxPattern)
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return err
	}
	if s.steps = patternSteps(tree); s.steps > maxPatternSteps {
		return fmt.Errorf("it has too many repetitions: expanded it has more than %d steps", maxPatternSteps)
	}
	if s.first, err = regexp.Compile(pattern); err != nil {
		return err
	}
	s.next, err = regexp.Compile(`^(?s:.)(?s:.*?)(` + pattern + `)`)
	return err
}

// patternSteps returns the number of steps of a pattern with repetitions expanded, or a number above
// maxPatternSteps.
func patternSteps(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n = min(n+patternSteps(sub), maxPatternSteps+1)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpRepeat:
		return min(n*max(re.Min, re.Max, 1)+1, maxPatternSteps+1)
	}
	return n + 1
}

// line searches a line from the byte at from. It reports false if the search is over: there are more
// matches than wanted, or it is too much work.
func (s *search) line(number int, line string, from int) bool {
	short := utf8.RuneCountInString(line) <= storedLineChars
	column, counted := 1, 0 // the column of the byte counted
	for {
		at := s.find(line, from)
		if s.work > maxSearchWork || s.ctx.Err() != nil {
			s.stop("the search was stopped: it is too much work; give a simpler pattern, or", number, short, column+utf8.RuneCountInString(line[counted:from]))
			return false
		}
		if at == nil {
			return true
		}
		column, counted = column+utf8.RuneCountInString(line[counted:at[0]]), at[0]
		if s.left == 0 || s.room <= 0 {
			s.stop("more matches;", number, short, column)
			return false
		}
		s.left--
		if short {
			s.add(number, line)
			return true
		}
		shown, end := around(line, at, column)
		s.add(number, shown)
		from = max(end, at[1]) // after what is shown
		if at[0] == at[1] && from == at[1] {
			from++ // beyond an empty match
		}
		if from > len(line) {
			return true
		}
	}
}

// find returns the position of the first match at or after the byte at from. The text before it counts
// for ^ and \b.
func (s *search) find(line string, from int) []int {
	if from == 0 {
		return s.first.FindReaderIndex(s.reader(line))
	}
	_, size := utf8.DecodeLastRuneInString(line[:from])
	base := from - size
	at := s.next.FindReaderSubmatchIndex(s.reader(line[base:]))
	if at == nil {
		return nil
	}
	return []int{base + at[2], base + at[3]}
}

func (s *search) reader(text string) io.RuneReader { return &searchReader{strings.NewReader(text), s} }

// A searchReader counts the work of a search. It ends when that is too much or the context ends.
type searchReader struct {
	r *strings.Reader
	s *search
}

var errSearchStopped = errors.New("search stopped")

// ReadRune implements [io.RuneReader].
func (r *searchReader) ReadRune() (rune, int, error) {
	before := r.s.work / r.s.steps
	r.s.work += r.s.steps
	if r.s.work > maxSearchWork || before%lookEvery == 0 && r.s.ctx.Err() != nil {
		return 0, 0, errSearchStopped
	}
	return r.r.ReadRune()
}

// stop adds why the search ends and how to go on.
func (s *search) stop(why string, number int, short bool, column int) {
	fmt.Fprintf(&s.out, "[%s go on with offset %d", why, number)
	if !short {
		fmt.Fprintf(&s.out, " and column %d", column)
	}
	s.out.WriteString("]\n")
}

func (s *search) add(number int, shown string) {
	s.room -= utf8.RuneCountInString(shown)
	fmt.Fprintf(&s.out, "%d: %s\n", number, shown)
}

// around returns a match in a long line with its surroundings and their column, and the byte at which
// they end.
func around(line string, at []int, column int) (shown string, end int) {
	head := lastRunes(line[:at[0]], matchContext)
	match := firstRunes(line[at[0]:at[1]], storedLineChars)
	tail := ""
	if end = at[0] + len(match); end == at[1] {
		tail = firstRunes(line[end:], matchContext)
	}
	return fmt.Sprintf("[column %d] %s%s%s", column-utf8.RuneCountInString(head), head, match, tail), end + len(tail)
}
