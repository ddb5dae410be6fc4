//go:build unix

package soak

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The rows of the table that must be 0.
const (
	refused     = "requests refused by the model server"
	twice       = "calls run twice"
	unanswered  = "calls answered but not run, or never answered"
	unspoken    = "failed calls that ran, without a word that they may have run"
	disturbed   = "users disturbed by another's fault"
	stuck       = "stuck conversations"
	ineffective = "faults without effect or recovery"
	unlogged    = "faults without a log record that names the server"
	leaked      = "leaked goroutines, processes and files"
)

// Rows that must not be 0, because the test would prove nothing.
const (
	answeredCalls    = "calls answered"
	failedCalls      = "calls that may have run, failed by a fault of their server"
	interruptedTurns = "turns interrupted"
	leftTurns        = "turns left by their user"
)

// A report has the rows of the table. It is safe for concurrent use.
type report struct {
	mu       sync.Mutex // guards the rest
	counts   map[string]int
	failures map[string][]string // descriptions, by row
}

func (r *report) count(row string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts[row]++
}

func (r *report) fail(row, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures[row] = append(r.failures[row], fmt.Sprintf(format, args...))
}

// print logs the table, and reports the failures to the test.
func (r *report) print(t *testing.T, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	row := func(name string, value any) { fmt.Fprintf(&b, "\n  %-64s %8v", name, value) }
	row("length", d.Round(time.Second))
	row("users", users)
	for _, name := range slices.Sorted(maps.Keys(r.counts)) {
		row(name, r.counts[name])
	}
	for _, name := range []string{refused, twice, unanswered, unspoken, disturbed, stuck, ineffective, unlogged, leaked} {
		failures := r.failures[name]
		row(name, len(failures))
		for _, text := range failures[:min(len(failures), 5)] {
			t.Errorf("%s: %s", name, text)
		}
	}
	t.Log(b.String())
	for _, name := range []string{answeredCalls, failedCalls, interruptedTurns, leftTurns} {
		if r.counts[name] == 0 {
			t.Errorf("%s: 0, want more", name)
		}
	}
}

// What a warning in the log is about.
type about string

const (
	aServer about = "the server"
	aCall   about = "a call to it"
)

// A warning identifies warnings in the log that count as the same.
type warning struct {
	server string
	about  about
}

// A logCounter counts log records, each of which is written to it as JSON. It is safe for concurrent use.
type logCounter struct {
	mu       sync.Mutex // guards the rest
	warnings map[warning]int
	retries  map[int]int // repeated requests to the model server, by user
}

func (l *logCounter) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }

// Write counts a record.
func (l *logCounter) Write(line []byte) (int, error) {
	var rec struct {
		Level         slog.Level
		Server, Tool  string
		User, Attempt int
	}
	if err := json.Unmarshal(line, &rec); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case rec.Server == "" && rec.Attempt > 0:
		l.retries[rec.User]++
	case rec.Level < slog.LevelWarn || rec.Tool == "hang": // calls of the tool hang always time out
	case rec.Tool == "":
		l.warnings[warning{rec.Server, aServer}]++
	default:
		l.warnings[warning{rec.Server, aCall}]++
	}
	return len(line), nil
}

// warned returns the counts of warnings.
func (l *logCounter) warned() map[warning]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.warnings)
}

// retried returns how many requests to the model server a user's engine has repeated since the last call of retried.
func (l *logCounter) retried(user int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.retries[user]
	delete(l.retries, user)
	return n
}

// Resources are what this process holds.
type resources struct {
	goroutines goleak.Option
	files      int // open ones
	temporary  string
}

func countResources(t *testing.T) *resources {
	l, err := net.Listen("tcp", "127.0.0.1:0") // opens the files that the runtime keeps for its network poller
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return &resources{goleak.IgnoreCurrent(), openFiles(), dir}
}

func openFiles() int {
	entries, _ := os.ReadDir("/dev/fd") // there is none on some systems
	return len(entries)
}

// check reports what is held now and was not counted, once it had time to end.
func (r *resources) check(report *report, processes map[string]int) {
	var left []string
	eventually(func() bool {
		left = nil
		if err := goleak.Find(r.goroutines); err != nil {
			left = append(left, err.Error())
		}
		if n := openFiles() - r.files; n > 0 {
			left = append(left, fmt.Sprintf("%d open files", n))
		}
		if files, err := os.ReadDir(r.temporary); err != nil || len(files) > 0 {
			left = append(left, fmt.Sprintf("temporary files: %v %v", files, err))
		}
		for pid := range processes {
			if id, err := strconv.Atoi(pid); err != nil || syscall.Kill(id, 0) == nil {
				left = append(left, "process "+pid)
			}
		}
		return len(left) == 0
	})
	for _, what := range left {
		report.fail(leaked, "%s", what)
	}
}
