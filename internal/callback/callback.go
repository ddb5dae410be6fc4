// Package callback calls functions of the program that uses this module, which may panic and need
// not heed contexts.
package callback

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/tenon-sdk/tenon/internal/lograte"
)

// ErrPanicked reports that a function of the program panicked.
var ErrPanicked = errors.New("a function of the program panicked; the log has the stack")

// Run calls f and returns its error, or an error that wraps [ErrPanicked] if f panics. The log
// gets the stack.
func Run(log *lograte.Logger, name string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic in a function of the program", "function", name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("%s: %w", name, ErrPanicked)
		}
	}()
	return f()
}

// Detached is Run on a goroutine of its own. It returns when ctx ends, even if f does not.
func Detached[T any](ctx context.Context, log *lograte.Logger, name string, f func() (T, error)) (T, error) {
	type outcome struct {
		v   T
		err error
	}
	ch := make(chan outcome, 1)
	go func() { // ends with f, which has ctx
		var out outcome
		out.err = Run(log, name, func() (err error) { out.v, err = f(); return err })
		ch <- out
	}()
	select {
	case out := <-ch:
		return out.v, out.err
	case <-ctx.Done():
		var zero T
		return zero, ctx.Err()
	}
}

// waitTime bounds Wait.
const waitTime = 500 * time.Millisecond

// Wait waits for goroutines that were told to end. A function of the program may keep one of them
// from it: then Wait returns an error.
func Wait(wg *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() { // ends with them
		defer close(done)
		wg.Wait()
	}()
	t := time.NewTimer(waitTime)
	defer t.Stop()
	select {
	case <-done:
		return nil
	case <-t.C:
		return errors.New("a function of the program goes on with a request that was ended")
	}
}
