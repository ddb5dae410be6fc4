package jsonl

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/growth"
)

// Lines cost what they are long, and lines above the limit no more than it, however long they are.
func TestReadingGrowsWithTheLines(t *testing.T) {
	read := func(text string, limit int) int {
		return growth.Bytes(func() {
			r := NewReader(strings.NewReader(text), limit)
			for {
				if _, err := r.Next(); err != nil {
					if !errors.Is(err, io.EOF) {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	growth.Check(t, 3<<19, func(n int) int { return read(strings.Repeat("x", n), -1) })
	growth.Check(t, 1<<16, func(n int) int { return read(strings.Repeat("x\n", n), 0) })
	growth.Check(t, 1<<16, func(n int) int { return read(strings.Repeat("\n", n), 0) })
	growth.Check(t, 1<<10, func(n int) int { return read(strings.Repeat(strings.Repeat("x", 200)+"\n", n), 100) })
	growth.AtMost(t, 1<<20, []int{1 << 20, 1 << 24}, func(n int) int { return read(strings.Repeat("x", n), 1000) })
}
