package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// progressEvery is the interval between two drawings of the line.
const progressEvery = 100 * time.Millisecond

// A progress shows on the last line of a terminal what happens: the servers that are being
// connected, the tools that run, the elapsed time. A nil *progress shows nothing, for a standard
// error that is no terminal. It is safe for concurrent use.
type progress struct {
	w     *os.File
	ansi  bool
	start time.Time
	quit  func()
	wg    sync.WaitGroup

	pollMu sync.Mutex // guards poll, and is held during its calls
	poll   func()

	mu       sync.Mutex // guards the rest, and what is on the screen
	activity string
	begun    bool          // the first turn has begun: no more news of connecting
	tools    []runningTool // in the order in which they started
	drawn    int           // cells on the screen
	frame    int
}

type runningTool struct {
	id, name string
	note     string // the latest news
	since    time.Time
}

// startProgress starts showing progress if standard error is a terminal. stop ends it.
func startProgress(p *process) *progress {
	f, ok := terminal(p.err)
	if !ok {
		return nil
	}
	quit := make(chan struct{})
	pr := &progress{
		w: f, ansi: p.ansi(), start: time.Now(),
		quit: sync.OnceFunc(func() { close(quit) }),
	}
	pr.wg.Go(func() {
		t := time.NewTicker(progressEvery)
		defer t.Stop()
		for {
			pr.tick()
			select {
			case <-quit:
				return
			case <-t.C:
			}
		}
	})
	return pr
}

func columns(f *os.File) int {
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		return w
	}
	return 80
}

func (pr *progress) tick() {
	pr.pollMu.Lock()
	if pr.poll != nil {
		pr.poll()
	}
	pr.pollMu.Unlock()
	pr.change(func() {
		pr.draw(time.Now())
		pr.frame++
	})
}

// change applies f to the state under the lock. The line shows it at the next drawing.
func (pr *progress) change(f func()) {
	if pr == nil {
		return
	}
	pr.mu.Lock()
	defer pr.mu.Unlock()
	f()
}

// set says what is being done while no tool runs.
func (pr *progress) set(format string, args ...any) {
	pr.change(func() { pr.activity = fmt.Sprintf(format, args...) })
}

// toolStarted and toolEnded enclose a tool call; id tells calls of one tool apart.
func (pr *progress) toolStarted(id, name string) {
	pr.change(func() { pr.tools = append(pr.tools, runningTool{id: id, name: name, since: time.Now()}) })
}

func (pr *progress) toolEnded(id string) {
	pr.change(func() {
		pr.tools = slices.DeleteFunc(pr.tools, func(t runningTool) bool { return t.id == id })
	})
}

// toolNote adds the latest news of a running tool.
func (pr *progress) toolNote(id, note string) {
	pr.change(func() {
		for i := range pr.tools {
			if pr.tools[i].id == id {
				pr.tools[i].note = note
			}
		}
	})
}

// above runs f, which writes to the terminal, with the line removed.
func (pr *progress) above(f func()) {
	if pr == nil {
		f()
		return
	}
	pr.change(func() {
		fmt.Fprint(pr.w, pr.erase())
		f()
	})
}

// follow calls f before each drawing, until the returned function is called.
func (pr *progress) follow(f func()) (stop func()) {
	if pr == nil {
		return func() {}
	}
	set := func(f func()) {
		pr.pollMu.Lock()
		defer pr.pollMu.Unlock()
		pr.poll = f
	}
	set(f)
	return func() { set(nil) }
}

// stop removes the line and ends the drawing. It may be called more than once.
func (pr *progress) stop() {
	if pr == nil {
		return
	}
	pr.quit()
	pr.wg.Wait()
	pr.above(func() {})
}

// erase returns the text that removes the line from the screen.
func (pr *progress) erase() string {
	n := pr.drawn
	pr.drawn = 0
	switch {
	case n == 0:
		return ""
	case pr.ansi:
		return "\r\x1b[K"
	}
	return "\r" + strings.Repeat(" ", n) + "\r"
}

func (pr *progress) draw(now time.Time) {
	text := pr.erase()
	// Beside the line: the spinner, a blank, and a free cell, since some terminals wrap at the last.
	if line, room := pr.line(now), columns(pr.w)-3; line != "" && room >= 8 {
		line = runewidth.Truncate(line, room, "…")
		format, spinner := "%s\r%c %s", []rune(`|/-\`)
		if pr.ansi {
			format, spinner = "%s\r\x1b[K\x1b[36m%c\x1b[0m \x1b[2m%s\x1b[0m", []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
		}
		text = fmt.Sprintf(format, text, spinner[pr.frame%len(spinner)], line)
		pr.drawn = runewidth.StringWidth(line) + 2
	}
	fmt.Fprint(pr.w, text)
}

// line returns the text of the line, without the spinner. It is empty if nothing happens.
func (pr *progress) line(now time.Time) string {
	elapsed := seconds(now.Sub(pr.start)) + "  "
	if len(pr.tools) == 0 {
		if pr.activity == "" {
			return ""
		}
		return elapsed + printable(pr.activity)
	}
	names := make([]string, len(pr.tools))
	for i, t := range pr.tools {
		names[i] = strings.TrimSpace(printable(t.name) + " " + seconds(now.Sub(t.since)) + " " + printable(t.note))
	}
	return elapsed + "running " + strings.Join(names, ", ")
}
