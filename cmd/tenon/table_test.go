package main

import (
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"
)

// On a narrow terminal a table stays aligned, and no word is cut. fault E10
func TestTableWrapsBetweenWords(t *testing.T) {
	defer func(wide bool) { runewidth.DefaultCondition.EastAsianWidth = wide }(runewidth.DefaultCondition.EastAsianWidth)
	runewidth.DefaultCondition.EastAsianWidth = false // whatever the locale of the machine is
	const reason = "exited with status 1 before it answered; stderr: “no such file” … 端末 is what it said"
	for _, tt := range []struct {
		name  string
		width int
		rows  [][]string
		want  string
	}{
		{"not a terminal", 0, [][]string{{"NAME", "REASON"}, {"db", reason}}, `
NAME  REASON
db    ` + reason + "\n"},
		{"60 columns", 60, [][]string{{"NAME", "STATUS", "REASON"}, {"a“b”…", "failed", reason}, {"files", "connected", ""}}, `
NAME   STATUS     REASON
a“b”…  failed     exited with status 1 before it answered;
                  stderr: “no such file” … 端末 is what it
                  said
files  connected
`},
		{"too narrow for the last column", 30, [][]string{{"NAME", "STATUS", "REASON"}, {"files", "failed", reason}, {"db", "connected", ""}}, `
NAME   STATUS
    REASON
files  failed
    exited with status 1
    before it answered;
    stderr: “no such file” …
    端末 is what it said
db     connected
`},
		{"a word longer than the page", 20, [][]string{{"NAME", "REASON"}, {"db", "see https://example.com/a/long/address for more"}}, `
NAME
    REASON
db
    see
    https://example.com/a/long/address
    for more
`},
		{"several columns below the first", 30, [][]string{{"NAME", "STATUS", "TIME", "REASON"}, {"a-long-name-of-a-server", "connected", "0.01s", "x"}}, `
NAME
    STATUS     TIME
    REASON
a-long-name-of-a-server
    connected  0.01s
    x
`},
		{"a name without an end", 80, [][]string{{"NAME", "STATUS"}, {"db", "up"}, {strings.Repeat("n", 300), "up"}}, `
NAME` + strings.Repeat(" ", 62) + `STATUS
db` + strings.Repeat(" ", 64) + `up
` + strings.Repeat("n", 63) + `…  up
`},
		{"wide characters", 40, [][]string{{"NAME", "TOOLS", "REASON"}, {"端末", "1", ""}, {"ab", "12", "x"}}, `
NAME  TOOLS  REASON
端末  1
ab    12     x
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			table := &table{width: tt.width}
			for _, row := range tt.rows {
				table.add(row...)
			}
			if err := table.write(&b); err != nil || b.String() != strings.TrimPrefix(tt.want, "\n") {
				t.Errorf("got\n%s(%v)\nwant%s", b.String(), err, tt.want)
			}
		})
	}
}
