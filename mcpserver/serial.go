package mcpserver

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A serialQueue lets one call at a time run, in the order of arrival.
//
// Nobody waits for ever behind a handler that ignores its context: when the call
// that runs has been given up by its caller, those behind it wait for it no
// longer than for their own time limit.
type serialQueue struct {
	mu      sync.Mutex // guards the rest
	holder  *serialSlot
	overdue bool // nobody waits for the holder any more
	waiting []*serialSlot
}

// A serialSlot is one call's place in a queue.
type serialSlot struct {
	granted chan struct{} // closed when the call may run
	overdue chan struct{} // closed when the holder before it is overdue
	warned  bool          // overdue is closed
}

// acquire waits until the call may run. Only with finished does it return a slot.
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

// wait waits for the grant.
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

// warn tells the slot that the holder is overdue. The queue's lock is held.
func (s *serialSlot) warn() {
	if !s.warned {
		s.warned = true
		close(s.overdue)
	}
}

// forget takes a slot out of the queue; it reports false if it was granted already.
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

// release gives the slot to the next in line.
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

// abandon says that nobody waits for slot's call any more, though it may still run.
func (q *serialQueue) abandon(slot *serialSlot) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.holder != slot {
		return // it ended just now
	}
	q.overdue = true
	for _, w := range q.waiting {
		w.warn()
	}
}
