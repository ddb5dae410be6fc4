package growth

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
)

// A recorder is a test that takes note of its failures.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func TestCheckTellsGrowthApart(t *testing.T) {
	tests := []struct {
		name  string
		work  func(n int) int
		fails bool
	}{
		{"constant", func(int) int { return 7 }, false},
		{"linear", func(n int) int { return 50 + 3*n }, false},
		{"n log n", func(n int) int { return int(float64(n) * math.Log2(float64(n))) }, false},
		{"n to the power of 1.5", func(n int) int { return int(math.Pow(float64(n), 1.5)) }, true},
		{"quadratic", func(n int) int { return n * n }, true},
		{"quadratic behind a linear part", func(n int) int { return 200*n + n*n }, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &recorder{TB: t}
			Check(r, 1000, tt.work)
			if got := len(r.failures) > 0; got != tt.fails {
				t.Errorf("failed: %v, want %v (%q)", got, tt.fails, r.failures)
			}
		})
	}
}

// What something else allocates now and then is not the function's.
func TestCheckCountsAgain(t *testing.T) {
	runs := 0
	r := &recorder{TB: t}
	Check(r, 1000, func(n int) int {
		if runs++; runs < 6 {
			return n * n
		}
		return n
	})
	if len(r.failures) > 0 {
		t.Errorf("failed: %q", r.failures)
	}
}

func TestAtMost(t *testing.T) {
	r := &recorder{TB: t}
	AtMost(r, 20, []int{10, 20, 21}, func(n int) int { return n })
	if len(r.failures) != 1 || !strings.Contains(r.failures[0], "work at 21: 21, want at most 20") {
		t.Errorf("got %q, want one failure, at 21", r.failures)
	}
}

var sink []byte

func TestBytesAndAllocs(t *testing.T) {
	Check(t, 1<<14, func(n int) int { return Bytes(func() { sink = make([]byte, n) }) })
	Check(t, 1000, func(n int) int {
		return Allocs(func() {
			for range n {
				sink = make([]byte, 64)
			}
		})
	})
}

func TestContextsThatCount(t *testing.T) {
	if got := Looks(t, func(ctx context.Context) {
		for range 5 {
			_ = ctx.Err()
		}
		_ = ctx.Done()
	}); got != 6 {
		t.Errorf("looks: %d, want 6", got)
	}
	ctx, late := EndsAfter(t, 3)
	n := 0
	for ctx.Err() == nil {
		n++
	}
	if n != 3 || late() != 1 {
		t.Errorf("went on for %d looks, %d of them late; want 3 and 1", n, late())
	}
}
