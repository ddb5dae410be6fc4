package main

import (
	"bufio"
	"io"
	"strings"
)

// A table is rows of cells, printed in columns. The first row is the heading.
type table struct {
	rows [][]string
	// width is what the last column is cut to fit into; 0 means that it is not cut.
	width int
	// style, if not nil, dresses a cell that has been padded: row 0 is the heading.
	style func(row, column int, cell, padded string) string
}

// leastRoom is what the last column is not cut below, however narrow the page is.
const leastRoom = 20

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
			widths[i] = max(widths[i], cells(c))
		}
	}
	b := bufio.NewWriter(w)
	for r, row := range t.rows {
		last := len(row) - 1
		for last > 0 && row[last] == "" {
			last--
		}
		used := 0
		for i, c := range row[:last+1] {
			padded := c
			if i < last {
				padded += strings.Repeat(" ", widths[i]-cells(c)+2)
				used += widths[i] + 2
			} else if t.width > 0 {
				padded, _ = clip(c, max(t.width-used, leastRoom))
			}
			if t.style != nil {
				padded = t.style(r, i, c, padded)
			}
			b.WriteString(padded)
		}
		b.WriteByte('\n')
	}
	return b.Flush()
}

// cells is how many cells of a terminal s takes.
func cells(s string) int {
	_, n := clip(s, 1<<30)
	return n
}
