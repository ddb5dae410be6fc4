package subproc

import (
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/growth"
)

// What a program writes to stderr costs in proportion to its length, whatever it is, and no more memory than the limit.
func TestStderrGrowsWithItsLength(t *testing.T) {
	for name, part := range map[string]string{
		"lines": "hello\n", "blank lines": "\n", "one line": "x", "no UTF-8": "\xff\xfe\n", "carriage returns": "\r",
	} {
		for _, listened := range []bool{false, true} {
			read := func(n int) int {
				in := strings.NewReader(strings.Repeat(part, n))
				return growth.Bytes(func() {
					kept := newTail(1000)
					var on func(string)
					if listened {
						on = func(string) {}
					}
					<-kept.drain(in, on)
					if s := kept.String(); len(s) > 3*1000 {
						t.Errorf("%s: %d bytes kept", name, len(s))
					}
				})
			}
			// How many lines reach a listener before the rest is dropped is up to
			// the scheduler. A small string for each of them is in proportion.
			growth.Check(t, 1<<15, func(n int) int { return max(32*n, read(n)) })
			if !listened {
				growth.AtMost(t, 32<<10, []int{1 << 15, 1 << 20}, read)
			}
		}
	}
}
