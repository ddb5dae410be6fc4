package mcphost

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// A BusyError is a call that was not made because too many run already and too
// many wait, or because it waited for as long as a call may take. The same call
// may be made later: Retryable reports true.
type BusyError struct {
	// Server is empty when it is the limit of the whole host.
	Server string
	// Running is how many calls may run at once, Queued how many may wait.
	Running, Queued int
	// Waited is how long the call waited, if it did.
	Waited time.Duration
}

// Error implements error.
func (e *BusyError) Error() string {
	who := "the host"
	if e.Server != "" {
		who = "the server"
	}
	if e.Waited > 0 {
		return fmt.Sprintf("%s is busy: the call waited %v while %d others ran, and was not made; make it again later", who, e.Waited.Round(time.Millisecond), e.Running)
	}
	return fmt.Sprintf("%s is busy: %d calls run and %d wait; the call was not made; make it again later", who, e.Running, e.Queued)
}

// Retryable reports true: nothing was done, and later there is room.
func (e *BusyError) Retryable() bool { return true }

// slots bound how many calls run at once, and how many wait to. They are given out
// in the order of asking. Nil means no bound.
type slots struct {
	server       string
	limit, queue int
	sem          *semaphore.Weighted
	queued       atomic.Int64
}

// newSlots makes slots; a negative limit means none, a negative queue no bound.
func newSlots(server string, limit, queue int) *slots {
	if limit < 0 {
		return nil
	}
	return &slots{server: server, limit: limit, queue: queue, sem: semaphore.NewWeighted(int64(limit))}
}

// take waits for a slot, for as long as a call may take if that is positive.
func (s *slots) take(ctx context.Context, longest time.Duration) error {
	if s == nil || s.sem.TryAcquire(1) {
		return nil
	}
	if n := s.queued.Add(1); s.queue >= 0 && n > int64(s.queue) {
		s.queued.Add(-1)
		return &BusyError{Server: s.server, Running: s.limit, Queued: s.queue}
	}
	defer s.queued.Add(-1)
	waiting, cancel := ctx, func() {}
	if longest > 0 {
		waiting, cancel = context.WithTimeout(ctx, longest)
	}
	defer cancel()
	began := time.Now()
	if s.sem.Acquire(waiting, 1) != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &BusyError{Server: s.server, Running: s.limit, Queued: s.queue, Waited: time.Since(began)}
	}
	return nil
}

func (s *slots) give() {
	if s != nil {
		s.sem.Release(1)
	}
}
