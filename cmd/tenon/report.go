package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/tenon-sdk/tenon/internal/clip"
)

// A reporter writes lines to standard error, above the progress: warnings, each once, and a bounded
// part of what servers write to their standard error. It is safe for concurrent use.
type reporter struct {
	p        *process
	progress *progress

	mu      sync.Mutex // guards the rest
	seen    map[string]bool
	servers map[string]*stderrPart
}

// A stderrPart is what a server wrote to its standard error in a window.
type stderrPart struct {
	until          time.Time
	shown, leftOut int // bytes
}

// A server's standard error is shown up to stderrShown bytes in each stderrWindow.
const (
	stderrShown  = 32 << 10
	stderrWindow = 10 * time.Second
)

func newReporter(p *process, pr *progress) *reporter {
	return &reporter{p: p, progress: pr, seen: map[string]bool{}, servers: map[string]*stderrPart{}}
}

// line writes a line that begins with a source.
func (r *reporter) line(source, text string) {
	r.progress.above(func() { fmt.Fprintf(r.p.err, "%s %s\n", source, text) })
}

// warn writes a warning, unless it has been written.
func (r *reporter) warn(line string) {
	if r.first(line) {
		r.progress.above(func() { r.p.warn("%s", line) })
	}
}

// first reports whether the line is new.
func (r *reporter) first(line string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.seen[line]
	r.seen[line] = true
	return !before
}

// A logHandler writes records as lines of a reporter. Groups do not show.
type logHandler struct {
	*reporter
	attrs string
}

func (l logHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }
func (l logHandler) WithGroup(string) slog.Handler                    { return l }

func (l logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if a.Key != "session" { // the same in the whole run
			l.attrs += oneLine(fmt.Sprintf(", %s %v", a.Key, a.Value.Resolve()))
		}
	}
	return l
}

func (l logHandler) Handle(_ context.Context, record slog.Record) error {
	record.Attrs(func(a slog.Attr) bool {
		l = l.WithAttrs([]slog.Attr{a}).(logHandler)
		return true
	})
	line := oneLine(record.Message)
	if !l.first(line) && l.attrs == "" {
		return nil
	}
	if l.attrs != "" {
		line += " (" + strings.TrimPrefix(l.attrs, ", ") + ")"
	}
	if record.Level >= slog.LevelWarn {
		l.progress.above(func() { l.p.warn("%s", line) })
	} else {
		l.line("tenon:", line)
	}
	return nil
}

// stderr writes a line of a server, unless the server has written too much.
func (r *reporter) stderr(server, line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	part := r.servers[server]
	if now := time.Now(); part == nil || now.After(part.until) {
		r.endStderr(server)
		part = &stderrPart{until: now.Add(stderrWindow)}
		r.servers[server] = part
	}
	text := clip.Bytes(line, stderrShown-part.shown)
	part.leftOut += len(line) - len(text)
	if part.shown < stderrShown {
		r.line("["+printable(server)+"]", printable(text))
	}
	part.shown += len(text)
	if part.leftOut > 0 {
		part.shown = stderrShown // no shorter line after one that is left out
	}
}

// endStderr reports what was left out in a server's window. The lock is held.
func (r *reporter) endStderr(server string) {
	if part := r.servers[server]; part != nil && part.leftOut > 0 {
		r.line("["+printable(server)+"]", fmt.Sprintf("(%d more bytes on its standard error are left out here)", part.leftOut))
	}
	delete(r.servers, server)
}

// close reports what was left out in the last windows.
func (r *reporter) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for server := range r.servers {
		r.endStderr(server)
	}
}
