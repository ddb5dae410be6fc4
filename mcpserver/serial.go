package mcpserver

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A serialQueue runs one call at a time, in the order of arrival.
//
// No call waits for ever behind a handler that ignores its context: once the caller
// of the running call no longer waits for it, the calls behind it wait for their
// own time limit at most.
type serialQueue struct {
	mu      sync.Mutex // guards the rest
	holder  *serialSlot
	overdue bool // the caller of the holder no longer waits
	waiting []*serialSlot
}

// A serialSlot is the place of one call in a queue.
type serialSlot struct {
	granted chan struct{} // closed when the call may run
	overdue chan struct{} // closed when the holder before it is overdue
	warned  bool          // overdue is closed
}

// acquire waits until the call may run. The slot is valid if the outcome is finished.
func (q *serialQueue) acquire(ctx context.Context, limit time.Duration, done <-chan struct{}) (*serialSlot, outcome) {
	slot := &serialSlot{granted: make(chan struct{}), overdue: make(chan struct{})}
	q.mu.Lock()
	if q.holder == nil {
		q.holder = slot
		q.mu.Unlock()
		return slot, finished
	}
	q.waiting = append(q.waiting, slot)
	if q.overdue {
		slot.warn()
	}
	q.mu.Unlock()
	how := slot.wait(ctx, limit, done)
	if how != finished && !q.forget(slot) {
		q.release() // it was granted meanwhile
	}
	return slot, how
}

// wait waits until the call may run.
func (s *serialSlot) wait(ctx context.Context, limit time.Duration, done <-chan struct{}) outcome {
	select {
	case <-s.granted:
		return finished
	case <-ctx.Done():
		return cancelled
	case <-done:
		return closed
	case <-s.overdue:
	}
	if limit == NoTimeout {
		limit = DefaultTimeout
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-s.granted:
		return finished
	case <-ctx.Done():
		return cancelled
	case <-done:
		return closed
	case <-timer.C:
		return stuck
	}
}

// warn closes s.overdue. The caller holds the queue's lock.
func (s *serialSlot) warn() {
	if !s.warned {
		s.warned = true
		close(s.overdue)
	}
}

// forget removes a slot from the queue. It reports false if the call may run already.
func (q *serialQueue) forget(slot *serialSlot) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, slot)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}

// release lets the next call run.
func (q *serialQueue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.overdue, q.holder = false, nil
	if len(q.waiting) > 0 {
		q.holder = q.waiting[0]
		q.waiting = slices.Delete(q.waiting, 0, 1)
		close(q.holder.granted)
	}
}

// abandon marks slot's call as overdue: its caller no longer waits, but it may still run.
func (q *serialQueue) abandon(slot *serialSlot) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.holder != slot {
		return // it has ended
	}
	q.overdue = true
	for _, w := range q.waiting {
		w.warn()
	}
}
