package main

import (
	"bufio"
	"io"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/tenon-sdk/tenon/mcphost"
)

// A table is rows of cells, printed in columns. The first row is the heading.
type table struct {
	rows [][]string
	// width is the number of columns of the terminal. The last cell of a row is wrapped between words to
	// fit into it. Zero means that no row is wrapped.
	width int
	// style, if not nil, dresses a cell that has been padded: row 0 is the heading.
	style func(row, column int, cell, padded string) string
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
	// leastRoom is the least room for the last cell beside the others. With less it stands below them.
	leastRoom = 24
	// belowIndent is the indentation of cells that stand below the others.
	belowIndent = 4
	// longestCell is the most that a cell before the last takes on a terminal: as much as the name of a tool.
	longestCell = mcphost.DefaultNameLimit
)

func (t *table) add(cells ...string) {
	for i, c := range cells {
		cells[i] = oneLine(c)
	}
	t.rows = append(t.rows, cells)
}

// write prints the table with two blanks between the columns and none at a line's end.
func (t *table) write(w io.Writer) error {
	var widths []int
	for _, row := range t.rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if t.width > 0 && i < len(row)-1 {
				c = runewidth.Truncate(c, longestCell, "…")
				row[i] = c
			}
			widths[i] = max(widths[i], runewidth.StringWidth(c))
		}
	}
	b := bufio.NewWriter(w)
	for r := range t.rows {
		t.writeRow(b, r, widths)
	}
	return b.Flush()
}

// writeRow prints one row, on several lines where it does not fit on one.
func (t *table) writeRow(b *bufio.Writer, r int, widths []int) {
	row := t.rows[r]
	last := len(row) - 1
	for last > 0 && row[last] == "" {
		last--
	}
	before := 0 // of the last column
	for _, w := range widths[:len(widths)-1] {
		before += w + columnGap
	}
	below := t.width > 0 && len(widths) > 1 && before+leastRoom > t.width && before+widths[len(widths)-1] > t.width
	at := 0 // the column of the terminal
	for i, c := range row[:last+1] {
		if t.width > 0 && i == len(widths)-1 {
			t.writeLast(b, r, i, c, at, below)
			break
		}
		if below && i > 0 && at+widths[i] > t.width {
			b.WriteString("\n" + strings.Repeat(" ", belowIndent))
			at = belowIndent
		}
		padded := c
		next := at + widths[i] + columnGap
		breaks := below && (i == len(widths)-2 || i < last && next+widths[i+1] > t.width) // there is a line end behind it
		if i < last && !breaks {
			padded = runewidth.FillRight(c, widths[i]+columnGap)
		}
		at = next
		b.WriteString(t.dress(r, i, c, padded))
	}
	b.WriteByte('\n')
}

// writeLast prints the cell of the last column, beside the others from the given column of the terminal on, or below them.
func (t *table) writeLast(b *bufio.Writer, r, i int, cell string, at int, below bool) {
	if below {
		at = belowIndent
		b.WriteString("\n" + strings.Repeat(" ", at))
	}
	for n, line := range wrapWords(cell, t.width-at) {
		if n > 0 {
			b.WriteString("\n" + strings.Repeat(" ", at))
		}
		b.WriteString(t.dress(r, i, cell, line))
	}
}

func (t *table) dress(row, column int, cell, padded string) string {
	if t.style == nil {
		return padded
	}
	return t.style(row, column, cell, padded)
}

// wrapWords breaks a text between words into lines of at most room columns. A longer word has a line of its own.
func wrapWords(s string, room int) []string {
	lines := []string{""}
	used := 0
	for word := range strings.FieldsSeq(s) {
		w := runewidth.StringWidth(word)
		switch {
		case used == 0:
			lines[len(lines)-1] = word
			used = w
		case used+1+w > room:
			lines = append(lines, word)
			used = w
		default:
			lines[len(lines)-1] += " " + word
			used += 1 + w
		}
	}
	return lines
}
