package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// progressEvery is how often the line is drawn anew when nothing happens but time.
const progressEvery = 100 * time.Millisecond

// A progress shows what goes on, on one line at the bottom of a terminal: the servers that are being
// connected, the tools that run, the elapsed time. It is wiped off whenever something else is written and
// at the end. A nil *progress shows nothing: that is what there is when standard error is no terminal.
// It is safe for concurrent use.
type progress struct {
	w     io.Writer
	width func() int // columns
	ansi  bool
	start time.Time
	quit  chan struct{}
	wg    sync.WaitGroup

	mu       sync.Mutex // guards the rest, and what is on the screen
	activity string
	begun    bool          // the first turn has begun: no more news of connecting
	tools    []runningTool // in the order in which they started
	drawn    int           // cells on the screen
	frame    int
	stopped  bool
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
	pr := &progress{w: f, width: func() int { return columns(f) }, ansi: p.ansi(), start: time.Now(), quit: make(chan struct{})}
	pr.wg.Go(pr.tick)
	return pr
}

func columns(f *os.File) int {
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		return w
	}
	return 80
}

func (pr *progress) tick() {
	t := time.NewTicker(progressEvery)
	defer t.Stop()
	for {
		select {
		case <-pr.quit:
			return
		case <-t.C:
			pr.change(func() { pr.frame++ })
		}
	}
}

// change applies f to the state under the lock and draws the line anew.
func (pr *progress) change(f func()) {
	if pr == nil {
		return
	}
	pr.mu.Lock()
	defer pr.mu.Unlock()
	f()
	if !pr.stopped {
		pr.draw(time.Now())
	}
}

// set says what is being done while no tool runs.
func (pr *progress) set(format string, args ...any) {
	pr.change(func() { pr.activity = fmt.Sprintf(format, args...) })
}

// toolStarted and toolEnded bracket a tool call; id tells calls of one tool apart.
func (pr *progress) toolStarted(id, name string) {
	pr.change(func() { pr.tools = append(pr.tools, runningTool{id: id, name: name, since: time.Now()}) })
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

func (pr *progress) toolEnded(id string) {
	pr.change(func() {
		for i, t := range pr.tools {
			if t.id == id {
				pr.tools = append(pr.tools[:i], pr.tools[i+1:]...)
				return
			}
		}
	})
}

// above runs f, which writes to the terminal, with the line out of the way.
func (pr *progress) above(f func()) {
	if pr == nil {
		f()
		return
	}
	pr.mu.Lock()
	defer pr.mu.Unlock()
	pr.wipe()
	f()
}

// follow calls f every now and then, to bring the line up to date, until the returned function is called.
func (pr *progress) follow(f func()) (stop func()) {
	if pr == nil {
		return func() {}
	}
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(progressEvery)
		defer t.Stop()
		for {
			f()
			select {
			case <-quit:
				return
			case <-t.C:
			}
		}
	})
	return func() {
		close(quit)
		wg.Wait()
	}
}

// stop wipes the line off and ends the drawing. It may be called more than once.
func (pr *progress) stop() {
	if pr == nil {
		return
	}
	pr.mu.Lock()
	if pr.stopped {
		pr.mu.Unlock()
		return
	}
	pr.stopped = true
	pr.wipe()
	pr.mu.Unlock()
	close(pr.quit)
	pr.wg.Wait()
}

func (pr *progress) wipe() {
	if pr.drawn == 0 {
		return
	}
	if pr.ansi {
		fmt.Fprint(pr.w, "\r\x1b[K")
	} else {
		fmt.Fprint(pr.w, "\r"+strings.Repeat(" ", pr.drawn)+"\r")
	}
	pr.drawn = 0
}

func (pr *progress) draw(now time.Time) {
	line := pr.line(now)
	if line == "" {
		pr.wipe()
		return
	}
	room := pr.width() - 3 // the spinner, a blank, and a cell that stays free: some terminals wrap at the last one
	if room < 8 {
		return
	}
	text := runewidth.Truncate(line, room, "…")
	cells := runewidth.StringWidth(text)
	if pr.ansi {
		spinner := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
		fmt.Fprintf(pr.w, "\r\x1b[K\x1b[36m%c\x1b[0m \x1b[2m%s\x1b[0m", spinner[pr.frame%len(spinner)], text)
		pr.drawn = cells + 2
		return
	}
	spinner := `|/-\`
	pad := max(0, pr.drawn-cells-2)
	fmt.Fprintf(pr.w, "\r%c %s%s", spinner[pr.frame%len(spinner)], text, strings.Repeat(" ", pad))
	pr.drawn = max(pr.drawn, cells+2)
}

// line is what there is to show, without the spinner.
func (pr *progress) line(now time.Time) string {
	elapsed := seconds(now.Sub(pr.start))
	if len(pr.tools) == 0 {
		if pr.activity == "" {
			return ""
		}
		return elapsed + "  " + printable(pr.activity)
	}
	names := make([]string, len(pr.tools))
	for i, t := range pr.tools {
		names[i] = strings.TrimSpace(printable(t.name) + " " + seconds(now.Sub(t.since)) + " " + printable(t.note))
	}
	return elapsed + "  running " + strings.Join(names, ", ")
}
