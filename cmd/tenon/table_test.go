//go:build unix

package main

import (
	"strings"
	"testing"
)

// However narrow a page is, a long text in the last column is cut.
func TestTableOnANarrowPage(t *testing.T) {
	for width, want := range map[int]string{
		40: "name  " + strings.Repeat("x", 33) + "…\n",
		8:  "name  " + strings.Repeat("x", 19) + "…\n",
		0:  "name  " + strings.Repeat("x", 99) + "\n",
	} {
		var b strings.Builder
		table := &table{width: width}
		table.add("name", strings.Repeat("x", 99))
		if err := table.write(&b); err != nil || b.String() != want {
			t.Errorf("width %d: got %q, %v; want %q", width, b.String(), err, want)
		}
	}
}
