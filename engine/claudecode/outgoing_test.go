package claudecode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// A narrow pipe takes a few bytes at once, or none. Its two ends are one goroutine's at a time.
type narrow struct {
	mu     sync.Mutex
	random *rand.Rand
	got    bytes.Buffer
	direct int // bytes that were written without the writer
}

func (n *narrow) Write(p []byte) (int, error) {
	if !n.mu.TryLock() {
		panic("two write at once")
	}
	defer n.mu.Unlock()
	return n.got.Write(p)
}

func (n *narrow) try(p []byte) int {
	if !n.mu.TryLock() {
		panic("two write at once")
	}
	defer n.mu.Unlock()
	fits := n.random.IntN(2 * len(p))
	p = p[:min(fits, len(p))]
	n.got.Write(p)
	n.direct += len(p)
	return len(p)
}

// Whatever the pipe takes at once, lines stay whole, and each sender's stay in order.
func TestLinesStayWhole(t *testing.T) {
	for seed := range uint64(50) {
		pipe := &narrow{random: rand.New(rand.NewPCG(seed, 0))}
		c := newChannel(t.Context())
		c.out.try = pipe.try
		closing := make(chan struct{})
		c.wg.Go(func() {
			if err := c.out.write(c.ctx, pipe, closing); err != nil {
				t.Error(err)
			}
		})
		const senders, each = 8, 50
		var all sync.WaitGroup
		for sender := range senders {
			all.Go(func() {
				for i := range each {
					line := fmt.Sprintf("%d %d %s\n", sender, i, strings.Repeat("x", (sender*i)%90))
					if err := c.send(t.Context(), []byte(line)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		close(closing) // what was begun is still written
		c.wg.Wait()
		next := map[int]int{}
		lines := strings.Split(strings.TrimSuffix(pipe.got.String(), "\n"), "\n")
		for _, line := range lines {
			var sender, i int
			if _, err := fmt.Sscan(line, &sender, &i); err != nil || i != next[sender] || line != fmt.Sprintf("%d %d %s", sender, i, strings.Repeat("x", (sender*i)%90)) {
				t.Fatalf("seed %d: line %q, the next of its sender is %d", seed, line, next[sender])
			}
			next[sender]++
		}
		if len(lines) != senders*each || pipe.direct == 0 || c.out.owed != 0 {
			t.Fatalf("seed %d: %d lines, %d bytes of them at once, %d are still owed", seed, len(lines), pipe.direct, c.out.owed)
		}
		c.end(io.EOF)
	}
}

// Who gives up on a line that nobody takes leaves nothing behind that would hold up others.
func TestLineIsTakenBack(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	full := true
	c := newChannel(t.Context())
	c.out.try = func(p []byte) int {
		if full {
			return 0
		}
		n, _ := w.Write(p)
		return n
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := c.send(ctx, []byte("one\n")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a line that nobody takes: %v", err)
	}
	full = false
	if err := c.send(t.Context(), []byte("two\n")); err != nil { // no writer runs
		t.Error(err)
	}
	w.Close()
	if got, _ := io.ReadAll(r); string(got) != "two\n" {
		t.Errorf("written: %q", got)
	}
	full = true
	c.cancel(io.EOF)
	if err := c.send(t.Context(), []byte("three\n")); !errors.Is(err, io.EOF) || c.out.owed != 0 {
		t.Errorf("after the end: %v, %d lines are owed", err, c.out.owed)
	}
	c.end(io.EOF)
}

// Who gives up on a request gets away from a CLI that reads nothing.
func TestGivingUpDoesNotWait(t *testing.T) {
	c := newChannel(t.Context())
	full := false
	c.out.try = func(p []byte) int {
		if full {
			return 0
		}
		full = true
		return len(p)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.request(ctx, "interrupt", nil, nil) }()
	for { // until it waits for the answer
		c.out.mu.Lock()
		sent := full
		c.out.mu.Unlock()
		if sent {
			break
		}
		runtime.Gosched()
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	c.end(io.EOF)
}
