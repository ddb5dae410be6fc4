package mcpserver

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A lifetime counts the user code that runs for a server or session, and ends it.
type lifetime struct {
	maxCalls int64        // 0 or less: no bound
	calls    atomic.Int64 // included in running
	running  atomic.Int64
	ctx      context.Context // ends when closing begins
	cancel   context.CancelFunc
	idle     chan struct{} // closed when nothing runs any more, after that
	once     sync.Once     // closes idle
}

func newLifetime() *lifetime {
	l := &lifetime{idle: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(rootContext{})
	return l
}

// rootContext is the parent of contexts that belong to no request.
type rootContext struct{}

func (rootContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (rootContext) Done() <-chan struct{}       { return nil }
func (rootContext) Err() error                  { return nil }
func (rootContext) Value(any) any               { return nil }

// enter reports whether code may start. It takes no lock, since each call uses it.
func (l *lifetime) enter() bool {
	l.running.Add(1)
	if l.isClosed() {
		l.leave()
		return false
	}
	return true
}

func (l *lifetime) leave() {
	if l.running.Add(-1) == 0 && l.isClosed() {
		l.once.Do(func() { close(l.idle) })
	}
}

// enterCall is enter for a call, whose end is leaveCall.
func (l *lifetime) enterCall() outcome {
	if !l.enter() {
		return closed
	}
	if n := l.calls.Add(1); l.maxCalls > 0 && n > l.maxCalls {
		l.leaveCall()
		return tooMany
	}
	return finished
}

func (l *lifetime) leaveCall() {
	l.calls.Add(-1)
	l.leave()
}

func (l *lifetime) isClosed() bool { return l.ctx.Err() != nil }

// startClose ends ctx. No more code may start.
func (l *lifetime) startClose() {
	l.cancel()
	if l.running.Load() == 0 {
		l.once.Do(func() { close(l.idle) })
	}
}

// wait waits until nothing runs, for the grace period at most, and returns how
// many calls still do.
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

// An outcome is the way in which a job ended.
type outcome int

const (
	finished  outcome = iota // the handler returned
	cancelled                // the caller's context ended
	timedOut                 // the time limit passed
	closed                   // the server or session was closed
	stuck                    // not started: a serial call before it does not end
	tooMany                  // not started: too many calls run in the session
)

// closeGrace bounds the time that Close waits for handlers.
const closeGrace = time.Second
