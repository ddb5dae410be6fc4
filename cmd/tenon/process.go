package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/term"

	"github.com/tenon-sdk/tenon/internal/file"
)

// A process is the environment of a command.
type process struct {
	in       io.Reader
	out, err io.Writer
	environ  []string // as os.Environ returns it
	kill     killList
}

// workDir returns the working directory.
func workDir() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("the working directory cannot be found (%w); was it deleted? Change to another one", file.Cause(err))
	}
	return dir, nil
}

// envMap returns the environment. Of several entries for a variable, the last one is used.
func (p *process) envMap() map[string]string {
	m := make(map[string]string, len(p.environ))
	for _, kv := range p.environ {
		if k, v, ok := strings.Cut(kv, "="); ok {
			m[k] = v
		}
	}
	return m
}

func (p *process) getenv(name string) string { return p.envMap()[name] }

func (p *process) lookupEnv(name string) (string, bool) {
	v, ok := p.envMap()[name]
	return v, ok
}

// An output is standard output or standard error. It is safe for concurrent use.
type output struct {
	w io.Writer
	// closed, if not nil, is called if the reader has closed the pipe.
	closed func()

	mu     sync.Mutex // guards failed, and keeps lines whole
	failed error      // the first error of a write
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.w.Write(b)
	if o.failed == nil {
		o.failed = err
	}
	if o.closed != nil && (errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)) {
		o.closed()
	}
	return n, err
}

// failure returns the first error of a write.
func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

// terminal reports whether a reader or writer is a terminal, and its file if so.
func terminal(stream any) (*os.File, bool) {
	if o, ok := stream.(*output); ok {
		stream = o.w
	}
	f, ok := stream.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// ansi reports whether escape sequences may be written to a terminal.
func (p *process) ansi() bool {
	return p.getenv("NO_COLOR") == "" && p.getenv("TERM") != "dumb"
}

// warn writes a warning to standard error, in colour on a terminal.
func (p *process) warn(format string, args ...any) {
	head := "tenon:"
	if _, ok := terminal(p.err); ok && p.ansi() {
		head = "\x1b[33mtenon:\x1b[0m"
	}
	fmt.Fprintf(p.err, "%s %s\n", head, fmt.Sprintf(format, args...))
}

// configDir is [os.UserConfigDir] for the environment of the command, or "".
func (p *process) configDir() string {
	return p.userDir("XDG_CONFIG_HOME", "AppData", "Application Support", ".config")
}

// cacheDir is [os.UserCacheDir] for the environment of the command, or "".
func (p *process) cacheDir() string {
	return p.userDir("XDG_CACHE_HOME", "LocalAppData", "Caches", ".cache")
}

func (p *process) userDir(variable, windows, darwin, other string) string {
	home := p.getenv("HOME")
	switch {
	case runtime.GOOS == "windows":
		return p.getenv(windows)
	case filepath.IsAbs(p.getenv(variable)):
		return p.getenv(variable)
	case !filepath.IsAbs(home): // a relative one may lead into the checkout
		return ""
	case runtime.GOOS == "darwin":
		return filepath.Join(home, "Library", darwin)
	}
	return filepath.Join(home, other)
}

// await runs f and returns its result, or the cause of the end of ctx if that comes first. Then one
// goroutine remains in f until the process ends: a read of a terminal or a pipe cannot be cancelled.
func await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1) // the goroutine never blocks on it
	go func() {
		value, err := f()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
