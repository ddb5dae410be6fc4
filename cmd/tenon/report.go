package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// A reporter writes what happens in a run on standard error, each line once and above the progress. It is safe for
// concurrent use.
type reporter struct {
	p        *process
	progress *progress

	mu   sync.Mutex // guards the rest
	seen map[string]bool
}

func newReporter(p *process, pr *progress) *reporter {
	return &reporter{p: p, progress: pr, seen: map[string]bool{}}
}

// warn writes a line about something that is wrong, unless it has been written.
func (r *reporter) warn(line string) {
	if r.first(line) {
		r.progress.above(func() { r.p.warn(line) })
	}
}

// first reports whether the line is new.
func (r *reporter) first(line string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[line] {
		return false
	}
	r.seen[line] = true
	return true
}

// Enabled is part of [slog.Handler]: records from Info on are written.
func (r *reporter) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle writes a record as one line in the form of this command's own.
func (r *reporter) Handle(ctx context.Context, record slog.Record) error {
	return logLine{r, ""}.Handle(ctx, record)
}

// WithAttrs is part of [slog.Handler].
func (r *reporter) WithAttrs(attrs []slog.Attr) slog.Handler { return logLine{r, ""}.WithAttrs(attrs) }

// WithGroup is part of [slog.Handler]. Groups do not show.
func (r *reporter) WithGroup(string) slog.Handler { return logLine{r, ""} }

// A logLine is the handler of a logger that has attributes.
type logLine struct {
	*reporter
	attrs string
}

func (l logLine) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		l.attrs += attribute(a)
	}
	return l
}

func (l logLine) WithGroup(string) slog.Handler { return l }

func (l logLine) Handle(_ context.Context, record slog.Record) error {
	attrs := l.attrs
	record.Attrs(func(a slog.Attr) bool {
		attrs += attribute(a)
		return true
	})
	line := oneLine(record.Message)
	if !l.first(line) && attrs == "" {
		return nil
	}
	if attrs != "" {
		line += " (" + strings.TrimPrefix(attrs, ", ") + ")"
	}
	if record.Level >= slog.LevelWarn {
		l.progress.above(func() { l.p.warn(line) })
		return nil
	}
	l.progress.above(func() { fmt.Fprintf(l.p.err, "tenon: %s\n", line) })
	return nil
}

// attribute is an attribute in a line. The session's id is that of the whole run.
func attribute(a slog.Attr) string {
	if a.Key == "session" {
		return ""
	}
	return oneLine(fmt.Sprintf(", %s %v", a.Key, a.Value.Resolve()))
}

// How much of a server's standard error is shown in a while.
const (
	stderrShown = 32 << 10 // bytes
	stderrWhile = 10 * time.Second
)

// A stderrView shows what servers write to their standard error: a bounded part, and how much it left out. It is safe
// for concurrent use.
type stderrView struct {
	p        *process
	progress *progress
	now      func() time.Time

	mu      sync.Mutex // guards servers
	servers map[string]*stderrPart
}

// A stderrPart is what one server wrote in a while.
type stderrPart struct {
	until   time.Time
	shown   int // bytes
	leftOut int
}

func newStderrView(p *process, pr *progress) *stderrView {
	return &stderrView{p: p, progress: pr, now: time.Now, servers: map[string]*stderrPart{}}
}

// line shows a line, unless the server has written too much.
func (v *stderrView) line(server, line string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	part := v.servers[server]
	if now := v.now(); part == nil || now.After(part.until) {
		v.end(server, part)
		part = &stderrPart{until: now.Add(stderrWhile)}
		v.servers[server] = part
	}
	room := stderrShown - part.shown
	if part.leftOut > 0 || room <= 0 {
		part.leftOut += len(line)
		return
	}
	if len(line) > room {
		part.leftOut += len(line) - room
		line = strings.ToValidUTF8(line[:room], "")
	}
	part.shown += len(line)
	v.progress.above(func() { fmt.Fprintf(v.p.err, "[%s] %s\n", printable(server), printable(line)) })
}

// end reports what was left out. The lock is held.
func (v *stderrView) end(server string, part *stderrPart) {
	if part != nil && part.leftOut > 0 {
		v.progress.above(func() {
			fmt.Fprintf(v.p.err, "[%s] (%d more bytes on its standard error are left out here)\n", printable(server), part.leftOut)
		})
	}
}

// close reports what was left out of the latest lines.
func (v *stderrView) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for server, part := range v.servers {
		v.end(server, part)
	}
	clear(v.servers)
}
