package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// The exit statuses, beside 128+n for signal n.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// process is what a command sees of the process that it runs in.
type process struct {
	in       io.Reader
	out, err io.Writer
	environ  []string // as os.Environ gives it
	dir      string   // the working directory; empty means the process's own
	kill     *killList
}

// workDir is the working directory. Without one nothing that is relative has a meaning.
func (p *process) workDir() (string, error) {
	if p.dir != "" {
		return p.dir, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("the working directory cannot be found (%w); was it deleted? Change to another one", pathCause(err))
	}
	return dir, nil
}

// getenv is the value of an environment variable, empty if it is not set. The last entry wins, as in a shell.
func (p *process) getenv(name string) string {
	v, _ := p.lookupEnv(name)
	return v
}

func (p *process) lookupEnv(name string) (string, bool) {
	for i := len(p.environ) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(p.environ[i], "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}

// envMap is the whole environment.
func (p *process) envMap() map[string]string {
	m := make(map[string]string, len(p.environ))
	for _, kv := range p.environ {
		if k, v, ok := strings.Cut(kv, "="); ok {
			m[k] = v
		}
	}
	return m
}

// A usageError says that the command line is wrong, in one line that names the remedy.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// errReported ends a command whose failure stands on an output already.
var errReported = errors.New("failed")

// run is the whole program: it runs the command line args and returns the exit status. The end of ctx is
// the user's wish to stop; its cause, if it is a *signalError, decides the exit status.
func run(ctx context.Context, args []string, p *process) int {
	if p.kill == nil {
		p.kill = new(killList)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	own := *p
	answers := &answerWriter{w: p.out, cancel: cancel}
	own.out = answers
	own.err = &lockedWriter{w: p.err}
	root := newRootCommand(&own)                                        //nolint:contextcheck // cobra carries it from ExecuteContext to the commands
	root.SetArgs(append([]string{}, spreadValues(root, &own, args)...)) // nil would mean those of the process
	root.SetIn(own.in)
	root.SetOut(own.out)
	root.SetErr(own.err)
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	err := root.ExecuteContext(ctx)
	var usage *usageError
	if err != nil && !started && !errors.As(err, &usage) {
		err = usagef("%v; try 'tenon --help'", err) // cobra's own complaint about the arguments
	}
	if err == nil {
		err = answers.failure() // not every writer of a line looks at that
	}
	return exitStatus(ctx, err, own.err)
}

// exitStatus reports err on stderr in one line and gives the exit status that stands for it.
func exitStatus(ctx context.Context, err error, stderr io.Writer) int {
	var (
		sig   *signalError
		usage *usageError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(context.Cause(ctx), &sig):
		if sig.sig != syscall.SIGPIPE {
			fmt.Fprintf(stderr, "tenon: %v\n", sig)
		}
		return 128 + int(sig.sig)
	case errors.Is(err, errReported):
		return exitFailed
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "tenon: %s\n", oneLine(usage.msg))
		return exitUsage
	}
	fmt.Fprintf(stderr, "tenon: %s\n", message(err))
	return exitFailed
}

// An answerWriter is standard output. When its reader is gone, it ends the command as SIGPIPE would, but
// in an orderly way: the servers are closed.
type answerWriter struct {
	w      io.Writer
	cancel context.CancelCauseFunc

	mu     sync.Mutex // guards failed, and keeps lines whole
	failed error      // the first
}

// failure is the first error of a write.
func (a *answerWriter) failure() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed
}

func (a *answerWriter) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, err := a.w.Write(b)
	if err != nil && a.failed == nil {
		a.failed = err
	}
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		a.cancel(&signalError{syscall.SIGPIPE})
	}
	return n, err
}

// A lockedWriter is standard error: lines come from several goroutines.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// terminal reports whether w is a terminal, and its file if so.
func terminal(w any) (*os.File, bool) {
	switch own := w.(type) {
	case *answerWriter:
		w = own.w
	case *lockedWriter:
		w = own.w
	}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, false
	}
	return f, true
}

// ansi reports whether escape sequences may be written to a terminal.
func (p *process) ansi() bool {
	return p.getenv("NO_COLOR") == "" && p.getenv("TERM") != "dumb"
}

// safeFor makes a text that is not ours safe for an output: a terminal gets no control characters but line
// ends and tabs, anything else gets the text as it is.
func safeFor(w io.Writer, text string) string {
	if _, ok := terminal(w); !ok {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		for i, cell := range strings.Split(strings.TrimRight(line, "\r\n"), "\t") {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(printable(cell))
		}
		if strings.HasSuffix(line, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// breaks are white space that a line of text has no place for.
var breaks = regexp.MustCompile(`\s*[^\S ]\s*`)

// oneLine makes a text one line that is safe to write to a terminal: it folds line ends and tabs with the blanks
// around them. Blanks in the line stay, since they may be part of a name.
func oneLine(s string) string { return printable(strings.TrimSpace(breaks.ReplaceAllString(s, " "))) }

var optionName = regexp.MustCompile(`Options\.(\w+)`)

// message is an error's text for the terminal: one line, without the names of our packages in front, and with
// flags in place of the options that they set.
func message(err error) string {
	text := oneLine(err.Error())
	for _, pkg := range []string{"agent: ", "mcphost: ", "mcpconfig: ", "mcpauth: ", "native: "} {
		text = strings.TrimPrefix(text, pkg)
	}
	return optionName.ReplaceAllStringFunc(text, func(option string) string {
		if flag, ok := flagOf(strings.TrimPrefix(option, "Options.")); ok {
			return flag
		}
		return option
	})
}
