package mcpserver

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

// A job is one run of a handler or reader.
type job struct {
	callCtx  *callContext
	dispatch *dispatch
	lifetime *lifetime
	limit    time.Duration // NoTimeout means none
	serial   *serialQueue  // nil: not serial
	slot     *serialSlot   // held in serial
	started  bool          // the handler has been started
	run      func(ctx context.Context, inv *Invocation) error
	inv      Invocation
}

// do runs the job. If the job does not finish, its goroutine may go on, and its
// result is dropped.
func (j *job) do(ctx context.Context) (outcome, error) {
	defer j.callCtx.close()
	if how := j.lifetime.enterCall(); how != finished {
		return how, nil
	}
	if j.serial != nil {
		slot, how := j.serial.acquire(ctx, j.limit, j.lifetime.ctx.Done())
		if how != finished {
			j.lifetime.leaveCall()
			return how, nil
		}
		j.slot = slot
	}
	callCtx, cancel := j.context(ctx)
	defer cancel()
	j.callCtx.Context = callCtx
	j.started = true
	if j.dispatch.scheduling == Inline {
		return j.inline(ctx, callCtx, cancel)
	}
	done := make(chan error, 1) // never blocks: it holds the one result
	// lifetime.wait waits for it.
	go func() { // the handler's context is in the callContext
		defer j.release()
		done <- j.guarded()
	}()
	select {
	case err := <-done:
		return j.ended(ctx, callCtx, err), err
	case <-callCtx.Done():
		select {
		case err := <-done: // both at once: the result wins
			return j.ended(ctx, callCtx, err), err
		default:
		}
		j.abandon()
		return j.ended(ctx, callCtx, callCtx.Err()), nil
	case <-j.lifetime.ctx.Done():
		j.abandon()
		return closed, nil
	}
}

// inline runs the job in the calling goroutine.
func (j *job) inline(ctx, callCtx context.Context, cancel func()) (outcome, error) {
	defer j.release()
	stop := context.AfterFunc(j.lifetime.ctx, cancel)
	defer stop()
	err := j.guarded() // the handler's context is in the callContext
	return j.ended(ctx, callCtx, err), err
}

// context returns the context of the handler.
func (j *job) context(ctx context.Context) (context.Context, context.CancelFunc) {
	if j.limit == NoTimeout {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, j.limit, errCallLimit)
}

// ended returns the outcome of a handler that returned err. An error after the end
// of the caller's context or the time limit is attributed to that end.
func (j *job) ended(ctx, callCtx context.Context, err error) outcome {
	switch {
	case err == nil:
		return finished
	case ctx.Err() != nil:
		return cancelled
	case callCtx.Err() == nil:
		return finished
	case context.Cause(callCtx) == errCallLimit: //nolint:errorlint // the very value, which nobody wraps
		return timedOut
	case j.lifetime.isClosed():
		return closed
	}
	return finished
}

// failed reports a failure to [SessionOptions.OnFailure].
func (j *job) failed(ctx context.Context, f Failure) {
	if ss := j.callCtx.session; ss != nil && ss.onFailure != nil {
		f.Kind, f.Name = j.inv.Kind, j.inv.Name
		_ = contain(ctx, ss.logger(), "SessionOptions.OnFailure", func() error { // a panic has been logged
			ss.onFailure(ctx, f)
			return nil
		})
	}
}

// release is called when the handler has returned.
func (j *job) release() {
	if j.slot != nil {
		j.serial.release()
	}
	j.lifetime.leaveCall()
}

// abandon is called when the caller no longer waits for the handler.
func (j *job) abandon() {
	if j.slot != nil {
		j.serial.abandon(j.slot)
	}
}

// A panicError is a panic in a handler or a middleware.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// guarded runs the middleware and the handler. It logs a panic with its stack and
// returns it as an error.
func (j *job) guarded() (err error) {
	ctx := context.Context(j.callCtx)
	defer func() {
		if r := recover(); r != nil {
			j.callCtx.server.logger.ErrorContext(ctx, "handler panicked", "server", j.callCtx.server.name,
				"kind", string(j.inv.Kind), "name", j.inv.Name, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			j.failed(ctx, Failure{Panic: r, Stack: string(debug.Stack())})
			err = &panicError{r}
		}
	}()
	if j.dispatch.middleware == nil {
		return j.run(ctx, &j.inv)
	}
	return j.dispatch.middleware(ctx, &j.inv, func(ctx context.Context) error { return j.run(ctx, &j.inv) })
}
