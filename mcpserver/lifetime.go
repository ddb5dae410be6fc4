package mcpserver

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A lifetime counts the user code that runs for a server or session, and ends it.
type lifetime struct {
	most    int64        // calls; 0 or less: any number
	calls   atomic.Int64 // a part of running
	running atomic.Int64
	closing atomic.Bool
	done    chan struct{} // closed when closing begins
	idle    chan struct{} // closed when nothing runs any more, after that
	once    sync.Once     // closes idle

	mu    sync.Mutex
	next  int
	hooks map[int]func() // called when closing begins
}

func newLifetime() *lifetime {
	return &lifetime{done: make(chan struct{}), idle: make(chan struct{})}
}

// enter reports whether code may start. It takes no lock: it is on the path of each call.
func (l *lifetime) enter() bool {
	l.running.Add(1)
	if l.closing.Load() {
		l.leave()
		return false
	}
	return true
}

func (l *lifetime) leave() {
	if l.running.Add(-1) == 0 && l.closing.Load() {
		l.once.Do(func() { close(l.idle) })
	}
}

// enterCall is enter for a call, of which there may be too many. Its end is leaveCall.
func (l *lifetime) enterCall() outcome {
	if !l.enter() {
		return closed
	}
	if n := l.calls.Add(1); l.most > 0 && n > l.most {
		l.leaveCall()
		return crowded
	}
	return finished
}

func (l *lifetime) leaveCall() {
	l.calls.Add(-1)
	l.leave()
}

func (l *lifetime) isClosed() bool { return l.closing.Load() }

// onClose calls f when closing begins, unless the function it returns is called before.
func (l *lifetime) onClose(f func()) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing.Load() {
		f()
		return func() {}
	}
	if l.hooks == nil {
		l.hooks = map[int]func(){}
	}
	id := l.next
	l.next++
	l.hooks[id] = f
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.hooks, id)
	}
}

// begin starts closing; only the first call does, and returns true.
func (l *lifetime) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing.Swap(true) {
		return false
	}
	close(l.done)
	for _, f := range l.hooks {
		f()
	}
	l.hooks = nil
	if l.running.Load() == 0 {
		l.once.Do(func() { close(l.idle) })
	}
	return true
}

// wait waits until nothing runs, at most for grace, and returns how many still do.
func (l *lifetime) wait(grace time.Duration) int64 {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-l.idle:
		return 0
	case <-timer.C:
		return l.running.Load()
	}
}

// A closeContext is the root context of what belongs to a lifetime and to no
// request: it ends when closing begins.
type closeContext struct{ life *lifetime }

func (c closeContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (c closeContext) Done() <-chan struct{}       { return c.life.done }
func (c closeContext) Value(any) any               { return nil }

func (c closeContext) Err() error {
	select {
	case <-c.life.done:
		return context.Canceled
	default:
		return nil
	}
}
