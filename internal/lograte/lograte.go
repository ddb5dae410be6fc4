// Package lograte bounds how many log records one cause can write in a time.
package lograte

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// burst is how many records with one message are written within window.
	burst  = 10
	window = 10 * time.Second
)

// A Logger writes a bounded number of records with one message in a time, so that one cause does
// not flood a log, nor hide records of another. The next record that is written has the number of
// those left out before it.
type Logger struct {
	log *slog.Logger

	mu     sync.Mutex
	counts map[string]*count // by message
}

// A count is what became of the records with one message.
type count struct {
	since   time.Time // start of the window
	written int       // in the window
	skipped int       // since the last one written
}

// New returns a Logger that writes to log.
func New(log *slog.Logger) *Logger { return &Logger{log: log, counts: map[string]*count{}} }

// Error logs at [slog.LevelError].
func (l *Logger) Error(msg string, args ...any) { l.write(l.log.Error, msg, args) }

// Warn logs at [slog.LevelWarn].
func (l *Logger) Warn(msg string, args ...any) { l.write(l.log.Warn, msg, args) }

func (l *Logger) write(write func(string, ...any), msg string, args []any) {
	if skipped, ok := l.admit(msg); ok {
		if skipped > 0 {
			args = append(args, "left_out", skipped)
		}
		write(msg, args...)
	}
}

// LogAttrs is [slog.Logger.LogAttrs].
func (l *Logger) LogAttrs(ctx context.Context, level slog.Level, msg string, attrs ...slog.Attr) {
	if skipped, ok := l.admit(msg); ok {
		if skipped > 0 {
			attrs = append(attrs, slog.Int("left_out", skipped))
		}
		l.log.LogAttrs(ctx, level, msg, attrs...)
	}
}

// admit reports whether a record may be written, and how many were left out before it.
func (l *Logger) admit(msg string) (skipped int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.counts[msg]
	if c == nil {
		c = &count{}
		l.counts[msg] = c
	}
	if now := time.Now(); now.Sub(c.since) >= window {
		c.since, c.written = now, 0
	}
	if c.written >= burst {
		c.skipped++
		return 0, false
	}
	c.written++
	skipped, c.skipped = c.skipped, 0
	return skipped, true
}
