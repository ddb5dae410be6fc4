package peers

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"
)

// patience bounds every wait for a peer. It is no assertion about speed: it
// ends a test that would otherwise hang.
const patience = 2 * time.Minute

// A Process is a running peer with all that it printed. Its methods may be
// called from any goroutine.
type Process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process is gone and err is set
	err    error

	mu     sync.Mutex // guards the rest
	output []byte
	grown  chan struct{} // closed and replaced when output grows
}

// Start runs c in a process group of its own, which is killed when the test
// ends. Standard input is empty.
func Start(t testing.TB, c Command) *Process {
	t.Helper()
	p := &Process{exited: make(chan struct{}), grown: make(chan struct{})}
	p.cmd = exec.CommandContext(t.Context(), c.Path, c.Args...)
	p.cmd.Dir = c.Dir
	p.cmd.Env = os.Environ()
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		p.cmd.Env = append(p.cmd.Env, name+"="+c.Env[name])
	}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	ownGroup(p.cmd)
	// A grandchild that left the group may hold the pipes open.
	p.cmd.WaitDelay = 5 * time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("peers: starting %s: %v", c.Path, err)
	}
	go func() { // Kill waits for it
		defer close(p.exited)
		p.err = p.cmd.Wait()
	}()
	t.Cleanup(p.Kill)
	return p
}

// Write adds to the output; it is how the process's output arrives.
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.output = append(p.output, b...)
	close(p.grown)
	p.grown = make(chan struct{})
	return len(b), nil
}

// Output returns what the process has written to standard output and standard
// error so far.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.output)
}

// PID returns the process id, which is its group's too.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill kills the process group and waits until the process is gone. It may be
// called more than once.
func (p *Process) Kill() {
	killGroup(p.cmd)
	<-p.exited
}

// Wait waits until the process has ended by itself and returns its error, an
// [exec.ExitError] when it was not successful.
func (p *Process) Wait(t testing.TB) error {
	t.Helper()
	select {
	case <-p.exited:
		return p.err
	case <-time.After(patience):
		t.Fatalf("peers: %s has not ended in %v; its output:\n%s", p.cmd.Path, patience, p.Output())
		return nil
	}
}

// WaitFor waits until the output matches the regular expression and returns
// the match with its groups. It fails the test when the process ends first.
func (p *Process) WaitFor(t testing.TB, pattern string) []string {
	t.Helper()
	match, err := p.waitFor(regexp.MustCompile(pattern))
	if err != nil {
		t.Fatalf("peers: %v", err)
	}
	return match
}

func (p *Process) waitFor(re *regexp.Regexp) ([]string, error) {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		p.mu.Lock()
		match, grown := re.FindStringSubmatch(string(p.output)), p.grown
		p.mu.Unlock()
		if match != nil {
			return match, nil
		}
		select {
		case <-grown:
		case <-p.exited:
			// Its last words may have come between the look and the exit.
			if match := re.FindStringSubmatch(p.Output()); match != nil {
				return match, nil
			}
			ended := p.err
			if ended == nil {
				ended = errors.New("exit status 0")
			}
			return nil, fmt.Errorf("%s ended before it printed %q: %w; its output:\n%s", p.cmd.Path, re, ended, p.Output())
		case <-timeout.C:
			return nil, fmt.Errorf("%s has not printed %q in %v; its output:\n%s", p.cmd.Path, re, patience, p.Output())
		}
	}
}
