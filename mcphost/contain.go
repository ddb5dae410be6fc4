package mcphost

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// errPanicked reports that a function of the program's panicked.
var errPanicked = errors.New("a function of the program panicked; the log has the stack")

// contain calls f, a function of the program's, and makes an error of its panic. The log gets the stack.
func contain(log *limitedLog, what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic in a function of the program", "function", what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("%s: %w", what, errPanicked)
		}
	}()
	return f()
}

const (
	// logBurst is how many records of one kind a server may cause within logWindow.
	logBurst  = 10
	logWindow = 10 * time.Second
)

// A limitedLog writes a bounded number of records of each kind in a time: what a server or a call causes must not flood a
// log, nor hide what is of another kind.
type limitedLog struct {
	log *slog.Logger

	mu    sync.Mutex            // guards the rest
	kinds map[string]*logBudget // by message
}

// A logBudget is what was written of one kind.
type logBudget struct {
	since   time.Time // when the window began
	written int       // in this window
	left    int       // records left out since the last one written
}

// Error, Warn and LogAttrs write a record, with the number of those of its kind left out before it, or leave it out.
func (l *limitedLog) Error(msg string, args ...any) { l.say(l.log.Error, msg, args) }

// Warn is Error for a warning.
func (l *limitedLog) Warn(msg string, args ...any) { l.say(l.log.Warn, msg, args) }

func (l *limitedLog) say(write func(string, ...any), msg string, args []any) {
	if left, ok := l.admit(msg); ok {
		if left > 0 {
			args = append(args, "left_out", left)
		}
		write(msg, args...)
	}
}

func (l *limitedLog) LogAttrs(ctx context.Context, level slog.Level, msg string, attrs ...slog.Attr) {
	if left, ok := l.admit(msg); ok {
		if left > 0 {
			attrs = append(attrs, slog.Int("left_out", left))
		}
		l.log.LogAttrs(ctx, level, msg, attrs...)
	}
}

// admit reports whether there is room for a record, and how many of its kind were left out before it.
func (l *limitedLog) admit(msg string) (left int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.kinds[msg]
	if k == nil {
		if l.kinds == nil {
			l.kinds = map[string]*logBudget{}
		}
		k = &logBudget{}
		l.kinds[msg] = k
	}
	if now := time.Now(); now.Sub(k.since) >= logWindow {
		k.since, k.written = now, 0
	}
	if k.written >= logBurst {
		k.left++
		return 0, false
	}
	k.written++
	left, k.left = k.left, 0
	return left, true
}

// closeWait bounds the wait for the goroutines of a connection that is closed: what they read may be of the program's, and
// heed nothing.
const closeWait = 500 * time.Millisecond

// awaitAll waits for goroutines that end soon.
func awaitAll(wg *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() { // ends with them
		defer close(done)
		wg.Wait()
	}()
	t := time.NewTimer(closeWait)
	defer t.Stop()
	select {
	case <-done:
		return nil
	case <-t.C:
		return errors.New("a function of the program goes on with a request that was ended")
	}
}
