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

// A reporter writes lines about a run to standard error, each once and above the progress. It is
// safe for concurrent use.
type reporter struct {
	p        *process
	progress *progress

	mu   sync.Mutex // guards seen
	seen map[string]bool
}

func newReporter(p *process, pr *progress) *reporter {
	return &reporter{p: p, progress: pr, seen: map[string]bool{}}
}

// warn writes a warning, unless it has been written.
func (r *reporter) warn(line string) {
	if r.first(line) {
		r.progress.above(func() { r.p.warn("%s", line) })
	}
}

// note writes a line.
func (r *reporter) note(line string) {
	r.progress.above(func() { fmt.Fprintf(r.p.err, "tenon: %s\n", line) })
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
		l.note(line)
	}
	return nil
}

// A server's standard error is shown up to stderrShown bytes in each stderrWindow.
const (
	stderrShown  = 32 << 10
	stderrWindow = 10 * time.Second
)

// A stderrView shows a bounded part of what servers write to their standard error. It is safe for
// concurrent use.
type stderrView struct {
	p        *process
	progress *progress

	mu      sync.Mutex // guards servers
	servers map[string]*stderrPart
}

// A stderrPart is what one server wrote in a window.
type stderrPart struct {
	until          time.Time
	shown, leftOut int // bytes
}

func newStderrView(p *process, pr *progress) *stderrView {
	return &stderrView{p: p, progress: pr, servers: map[string]*stderrPart{}}
}

// line shows a line, unless the server has written too much.
func (v *stderrView) line(server, line string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	part := v.servers[server]
	if now := time.Now(); part == nil || now.After(part.until) {
		v.end(server)
		part = &stderrPart{until: now.Add(stderrWindow)}
		v.servers[server] = part
	}
	text := clip.Bytes(line, stderrShown-part.shown)
	part.leftOut += len(line) - len(text)
	if part.shown < stderrShown {
		v.show(server, text)
	}
	part.shown += len(text)
	if part.leftOut > 0 {
		part.shown = stderrShown // no shorter line after one that is left out
	}
}

func (v *stderrView) show(server, line string) {
	v.progress.above(func() { fmt.Fprintf(v.p.err, "[%s] %s\n", printable(server), printable(line)) })
}

// end reports what was left out in the window. The lock is held.
func (v *stderrView) end(server string) {
	if part := v.servers[server]; part != nil && part.leftOut > 0 {
		v.show(server, fmt.Sprintf("(%d more bytes on its standard error are left out here)", part.leftOut))
	}
}

// close reports what was left out in the last windows.
func (v *stderrView) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for server := range v.servers {
		v.end(server)
	}
	clear(v.servers)
}
