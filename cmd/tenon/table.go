package main

import (
	"io"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/tenon-sdk/tenon/mcphost"
)

// A table is rows of cells, printed in columns. All rows have the same number of cells.
type table struct {
	rows [][]string
	// width is the number of columns of the terminal, into which rows are wrapped between words.
	// Zero means that no row is wrapped.
	width int
	// style, if not nil, adds colours to a cell. Row 0 is the heading.
	style func(row, column int, cell string) string
}

// newTable returns an empty table for standard output.
func (p *process) newTable() *table {
	t := &table{}
	if f, ok := terminal(p.out); ok {
		t.width = columns(f)
	}
	return t
}

const (
	columnGap = 2
	// leastRoom is the least room for the last cell beside the others. With less it is below them.
	leastRoom = 24
	// belowIndent is the indentation of cells below the others.
	belowIndent = 4
	// longestCell bounds a cell before the last on a terminal, to the length of a tool's name.
	longestCell = mcphost.DefaultNameLimit
)

func (t *table) add(cells ...string) {
	for i, c := range cells {
		cells[i] = oneLine(c)
		if t.width > 0 && i < len(cells)-1 {
			cells[i] = runewidth.Truncate(cells[i], longestCell, "…")
		}
	}
	t.rows = append(t.rows, cells)
}

// write prints the table with two blanks between the columns and none at the end of a line.
func (t *table) write(w io.Writer) error {
	if len(t.rows) == 0 {
		return nil
	}
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, c := range row {
			widths[i] = max(widths[i], runewidth.StringWidth(c))
		}
	}
	last := len(widths) - 1
	before := last * columnGap // the columns before the last one
	for _, w := range widths[:last] {
		before += w
	}
	below := t.width > 0 && last > 0 && before+leastRoom > t.width && before+widths[last] > t.width
	var b strings.Builder
	for r := range t.rows {
		t.writeRow(&b, r, widths, below)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeRow prints a row, on several lines if it does not fit on one. If below is set, the last cell
// begins a line, and so does a cell before it that does not fit.
func (t *table) writeRow(b *strings.Builder, r int, widths []int, below bool) {
	line, at := "", 0 // the text and the width of the current line
	next := func(indent int) {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		line, at = strings.Repeat(" ", indent), indent
	}
	for i, cell := range t.rows[r] {
		isLast := i == len(widths)-1
		if below && i > 0 && (isLast && cell != "" || !isLast && at+widths[i] > t.width) {
			next(belowIndent)
		}
		parts := []string{cell}
		if isLast && t.width > 0 {
			parts = wrapWords(cell, t.width-at)
		}
		start := at
		for n, part := range parts {
			if n > 0 {
				next(start)
			}
			gap := strings.Repeat(" ", max(0, widths[i]-runewidth.StringWidth(part))+columnGap)
			if t.style != nil {
				part = t.style(r, i, part)
			}
			line += part + gap
		}
		at += widths[i] + columnGap
	}
	next(0)
}

// wrapWords breaks a text between words into lines of at most room columns. A longer word has a
// line of its own.
func wrapWords(s string, room int) []string {
	lines := []string{""}
	used := 0
	for word := range strings.FieldsSeq(s) {
		w := runewidth.StringWidth(word)
		switch {
		case used == 0:
			lines[len(lines)-1], used = word, w
		case used+1+w > room:
			lines, used = append(lines, word), w
		default:
			lines[len(lines)-1] += " " + word
			used += 1 + w
		}
	}
	return lines
}
