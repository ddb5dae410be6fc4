// Package growth holds the work of a function against the size of its input,
// for tests. It measures work at n, 2n and 4n and fails a test where that grows
// faster than n log n: a function that reads what others wrote must not let them
// choose its running time. Nothing in it looks at a clock.
//
// A test gives the sizes and counts the work, in one of three ways:
//
//	// A counter of the function's own.
//	growth.Check(t, 1000, func(n int) int { return parse(hostile(n)).steps })
//
//	// How often it looks at its context, for functions that do so once a step.
//	growth.Check(t, 1000, func(n int) int {
//		return growth.Looks(t, func(ctx context.Context) { search(ctx, hostile(n)) })
//	})
//
//	// What it allocates, for functions whose work shows in it.
//	growth.Check(t, 1000, func(n int) int {
//		in := hostile(n) // not counted
//		return growth.Bytes(func() { parse(in) })
//	})
//
// Where work ends at a documented bound, [AtMost] holds it against that bound
// instead. Tests that use [Bytes] or [Allocs] must not call t.Parallel.
package growth

import (
	"context"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
)

// slack is how much more than n log n may be measured: space for tables and
// slices that grow by doubling. With it work like n to the power of 1.5 fails at
// the sizes of tests, and so does everything worse.
const slack = 1.3

// tries is how often work that seems too much is counted again. Allocations are
// more than those of the function where a pool was emptied in between, which the
// race detector does at random; the least that was counted is the function's own.
const tries = 6

// Check fails t if the work at 2n or 4n is out of proportion to the work at n.
// Work returns how much was done for an input of the given size. It runs once
// before it counts, so that what is made on first use is there, and again where
// the work seems too much. Choose n so large that the part that grows outweighs
// the rest, at least 100.
func Check(t testing.TB, n int, work func(n int) int) {
	t.Helper()
	work(n)
	least := [3]int{math.MaxInt, math.MaxInt, math.MaxInt}
	for range tries {
		for i := range least {
			least[i] = min(least[i], work(n<<i))
		}
		if least[0] <= 0 {
			t.Fatalf("no work was counted at %d", n)
		}
		if inProportion(n, least) {
			return
		}
	}
	t.Errorf("work at %d, %d, %d: %d, %d, %d; more than n log n", n, 2*n, 4*n, least[0], least[1], least[2])
}

// inProportion reports whether work at n, 2n and 4n grows at most like n log n.
func inProportion(n int, work [3]int) bool {
	for i, w := range work {
		most := slack * float64(work[0]) * float64(int(1)<<i) * math.Log2(float64(n<<i)) / math.Log2(float64(n))
		if float64(w) > most {
			return false
		}
	}
	return true
}

// AtMost fails t if work at one of the sizes is more than the bound. It counts
// again as [Check] does.
func AtMost(t testing.TB, bound int, sizes []int, work func(n int) int) {
	t.Helper()
	for _, n := range sizes {
		least := work(n)
		for try := 1; try < tries && least > bound; try++ {
			least = min(least, work(n))
		}
		if least > bound {
			t.Errorf("work at %d: %d, want at most %d", n, least, bound)
		}
	}
}

// Bytes returns how many bytes f allocates, those that were freed again included.
func Bytes(f func()) int {
	return int(allocated(f, func(m *runtime.MemStats) uint64 { return m.TotalAlloc }))
}

// Allocs returns how many objects f allocates.
func Allocs(f func()) int {
	return int(allocated(f, func(m *runtime.MemStats) uint64 { return m.Mallocs }))
}

func allocated(f func(), count func(*runtime.MemStats) uint64) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return count(&after) - count(&before)
}

// Looks returns how often f looks at the context that it is given: calls of Err
// and of Done. The context is otherwise the test's.
func Looks(t testing.TB, f func(ctx context.Context)) int {
	ctx := &counted{Context: t.Context()}
	f(ctx)
	return int(ctx.looks.Load())
}

// EndsAfter returns a context that ends with [context.Canceled] when Err was
// called the given number of times, and a count of the calls of Err since: how
// long a function goes on that was told to stop. Its Done channel is never closed.
func EndsAfter(t testing.TB, looks int) (ctx context.Context, late func() int) {
	c := &counted{Context: t.Context(), ends: int64(looks)}
	return c, func() int { return max(int(c.looks.Load()-c.ends), 0) }
}

// A counted context counts how often it is looked at.
type counted struct {
	context.Context
	looks atomic.Int64
	ends  int64 // if positive, Err reports the end from the next look on
}

func (c *counted) Done() <-chan struct{} {
	if c.ends == 0 {
		c.looks.Add(1)
	}
	return c.Context.Done()
}

func (c *counted) Err() error {
	if looks := c.looks.Add(1); c.ends > 0 && looks > c.ends {
		return context.Canceled
	}
	return nil
}
