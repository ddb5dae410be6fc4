package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/term"
)

// A process is the environment of a command.
type process struct {
	in       io.Reader
	out, err io.Writer
	environ  []string // as os.Environ gives it
	dir      string   // the working directory; empty means the process's own
	kill     *killList
}

// workDir returns the working directory.
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

// getenv returns the value of an environment variable. Of several entries, the last one is used.
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

// envMap returns the environment as a map.
func (p *process) envMap() map[string]string {
	m := make(map[string]string, len(p.environ))
	for _, kv := range p.environ {
		if k, v, ok := strings.Cut(kv, "="); ok {
			m[k] = v
		}
	}
	return m
}

// An answerWriter is standard output. If its reader closes the pipe, it cancels the command, which then
// closes the servers and exits as after SIGPIPE.
type answerWriter struct {
	w      io.Writer
	cancel context.CancelCauseFunc

	mu     sync.Mutex // guards failed, and keeps lines whole
	failed error      // the first
}

// failure returns the first error of a write.
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

// A lockedWriter is standard error, for several goroutines.
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

// path resolves a name against the working directory.
func (p *process) path(name string) string {
	if p.dir == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.dir, name)
}

// pathCause returns the cause of a file error without the name of the file.
func pathCause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// warn writes a warning to standard error, in colour on a terminal.
func (p *process) warn(line string) {
	head := "tenon:"
	if _, ok := terminal(p.err); ok && p.ansi() {
		head = "\x1b[33mtenon:\x1b[0m"
	}
	fmt.Fprintf(p.err, "%s %s\n", head, line)
}

// realPath returns a path without symbolic links, if it exists.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// configDir is [os.UserConfigDir] for the environment of the command, or "".
func (p *process) configDir() string {
	home := p.getenv("HOME")
	switch {
	case runtime.GOOS == "windows":
		return p.getenv("AppData")
	case filepath.IsAbs(p.getenv("XDG_CONFIG_HOME")):
		return p.getenv("XDG_CONFIG_HOME")
	case !filepath.IsAbs(home): // a relative one may lead into the checkout
		return ""
	case runtime.GOOS == "darwin":
		return filepath.Join(home, "Library", "Application Support")
	}
	return filepath.Join(home, ".config")
}

// cacheDir is [os.UserCacheDir] for the environment of the command, or "".
func (p *process) cacheDir() string {
	home := p.getenv("HOME")
	switch {
	case runtime.GOOS == "windows":
		return p.getenv("LocalAppData")
	case filepath.IsAbs(p.getenv("XDG_CACHE_HOME")):
		return p.getenv("XDG_CACHE_HOME")
	case home == "":
		return ""
	case runtime.GOOS == "darwin":
		return filepath.Join(home, "Library", "Caches")
	}
	return filepath.Join(home, ".cache")
}
