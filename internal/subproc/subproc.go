// Package subproc runs child processes that communicate by stdin and stdout, and ends
// them.
//
// A child runs in its own process group (a job on Windows) with its descendants. Its
// stderr is always read, into a bounded tail and for a callback.
//
//   - [Proc.Close] closes stdin, asks the group to terminate and kills it, within the
//     grace, half the grace and a second.
//   - When a child ends by itself, the rest of its group is ended too.
//   - When this process dies, also by kill -9, the child is killed on Linux (the parent
//     death signal) and on Windows (the job closes). Grandchildren read the end of
//     stdin. On other systems the child does.
//   - A descendant that left the process group is not ended, but its pipes are closed.
package subproc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

const (
	// DefaultGrace is the default of [Options.Grace].
	DefaultGrace = 2 * time.Second
	// DefaultStderrLimit is the default of [Options.StderrLimit].
	DefaultStderrLimit = 32 << 10

	// killWait bounds the wait for a killed child, drainWait the wait for the rest
	// of stderr after the child has ended, and holdWait the wait for the rest of
	// stdout.
	killWait  = time.Second
	drainWait = 100 * time.Millisecond
	holdWait  = time.Second
)

// Options configures a child.
type Options struct {
	// Command is looked up on the PATH of Env unless it contains a path separator.
	Command string
	Args    []string
	// Env is the child's whole environment; nil means this process's.
	Env []string
	// Dir is the working directory; empty means this process's.
	Dir string
	// Grace is the time that the child has to end after its stdin is closed. It has
	// half of it after it is asked to terminate. Zero means DefaultGrace.
	Grace time.Duration
	// StderrLimit is the number of bytes kept of the end of stderr. Zero means
	// DefaultStderrLimit.
	StderrLimit int
	// OnStderr is called with each line of stderr, one at a time. If it is too slow,
	// lines are dropped, and a line in parentheses gives their number. The tail keeps
	// them.
	OnStderr func(line string)
}

// An Exit is the way in which a child ended.
type Exit struct {
	Code   int    // -1 if a signal ended it
	Signal string // such as "killed"; empty if it exited
}

// String describes the exit for people.
func (e Exit) String() string {
	if e.Signal != "" {
		return "killed by signal: " + e.Signal
	}
	return fmt.Sprintf("exited with code %d", e.Code)
}

// A Proc is a running child. Its methods may be called from any goroutine.
type Proc struct {
	// Stdin and Stdout are the child's. Stdout is readable after the end of the child,
	// until [Proc.Close].
	Stdin  *os.File
	Stdout *os.File

	pid    int
	grace  time.Duration
	group  group
	exited chan struct{} // closed when exit is set
	gone   chan struct{} // closed when the group has ended, too, and stderr is read
	exit   Exit
	tail   *tail
	close  func() error
}

// Start starts a child. The context bounds the starting only; the child lives
// until it ends or is closed.
func Start(ctx context.Context, o Options) (*Proc, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	env := o.Env
	if env == nil {
		env = os.Environ()
	}
	path, err := LookPath(o.Command, o.Dir, env)
	if err != nil {
		return nil, err
	}
	p := &Proc{
		grace:  o.Grace,
		exited: make(chan struct{}),
		gone:   make(chan struct{}),
		tail:   newTail(o.StderrLimit),
	}
	if p.grace == 0 {
		p.grace = DefaultGrace
	}
	p.close = sync.OnceValue(p.shutdown)
	if err := p.start(path, env, o); err != nil {
		return nil, err
	}
	return p, nil
}

// start makes the pipes and starts the child. With StdoutPipe, Wait would close stdout
// while there are lines to read; with an io.Writer for stderr, Wait would wait for
// grandchildren.
func (p *Proc) start(path string, env []string, o Options) error {
	// Not CommandContext: the context bounds the starting only, see Start.
	cmd := exec.Command(path) //nolint:noctx // the child outlives the context; Close ends it
	cmd.Args = append([]string{o.Command}, o.Args...)
	cmd.Env, cmd.Dir = env, o.Dir
	prepare(cmd)
	var pipes pipeSet
	stdin, toStdin := pipes.pipe()
	fromStdout, stdout := pipes.pipe()
	fromStderr, stderr := pipes.pipe()
	if pipes.err != nil {
		pipes.closeAll()
		return fmt.Errorf("making pipes: %w", pipes.err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	started := make(chan error, 1)
	go p.run(cmd, started)
	if err := <-started; err != nil {
		pipes.closeAll()
		return fmt.Errorf("starting %s: %w", path, withoutPath(err))
	}
	stdin.Close()
	stdout.Close()
	stderr.Close()
	p.Stdin, p.Stdout = toStdin, fromStdout
	drained := p.tail.drain(fromStderr, o.OnStderr)
	go p.settle(fromStderr, drained)
	return nil
}

// run starts the child, reports on started, and waits for its end. It keeps to
// one thread: Linux sends the parent death signal when the thread that started
// the child ends, not when the process does.
func (p *Proc) run(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		started <- err
		return
	}
	p.pid = cmd.Process.Pid
	p.group = newGroup(cmd.Process)
	started <- nil
	// The rest of the group is ended before the child is reaped, where possible: then
	// no other process can have its number.
	ended := p.group.awaitExit()
	if ended {
		p.group.terminate()
	}
	err := cmd.Wait()
	if !ended {
		p.group.terminate()
	}
	p.exit = exitOf(cmd, err)
	close(p.exited)
}

// settle ends the rest of the group after the child, and waits for the rest of stderr.
func (p *Proc) settle(stderr *os.File, drained <-chan struct{}) {
	defer close(p.gone)
	<-p.exited
	if !p.group.waitGone(p.grace / 2) {
		p.group.kill()
		p.group.waitGone(killWait)
	}
	p.group.release()
	// A descendant that left the group may keep the pipes open: only what they hold
	// now is read.
	_ = p.Stdout.SetReadDeadline(time.Now().Add(holdWait))
	defer stderr.Close()
	select {
	case <-drained:
	case <-time.After(drainWait):
	}
}

// PID returns the child's process id.
func (p *Proc) PID() int { return p.pid }

// Exited is closed when the child has ended.
func (p *Proc) Exited() <-chan struct{} { return p.exited }

// Exit returns how the child ended. It must not be called before [Proc.Exited] is closed.
func (p *Proc) Exit() Exit { return p.exit }

// Stderr returns the end of the child's stderr.
func (p *Proc) Stderr() string { return p.tail.String() }

// AwaitExit waits for the end of the child and the rest of its stderr, for atMost. It
// reports whether the child has ended.
func (p *Proc) AwaitExit(ctx context.Context, atMost time.Duration) bool {
	t := time.NewTimer(atMost)
	defer t.Stop()
	select {
	case <-p.gone:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// Close ends the child and its group. It returns within the grace, half of it, and a
// second. It may be called more than once. It fails if the child could not be ended.
func (p *Proc) Close() error { return p.close() }

func (p *Proc) shutdown() error {
	defer p.Stdout.Close() // unblocks a reader if a descendant still holds the pipe
	// A write may be stuck in a full pipe: Close makes it fail.
	_ = p.Stdin.Close()
	if p.wait(p.grace) {
		return nil
	}
	p.group.terminate()
	if p.wait(p.grace / 2) {
		return nil
	}
	p.group.kill()
	if p.wait(killWait) {
		return nil
	}
	return fmt.Errorf("process %d did not end after it was killed", p.pid)
}

func (p *Proc) wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.gone:
		return true
	case <-t.C:
		return false
	}
}

// withoutPath returns an error of fork and exec without the path.
func withoutPath(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func exitOf(cmd *exec.Cmd, err error) Exit {
	if cmd.ProcessState == nil {
		return Exit{Code: -1, Signal: fmt.Sprint(err)}
	}
	return Exit{Code: cmd.ProcessState.ExitCode(), Signal: signalOf(cmd.ProcessState)}
}

// A pipeSet makes pipes and keeps the first error.
type pipeSet struct {
	all []io.Closer
	err error
}

func (s *pipeSet) pipe() (r, w *os.File) {
	if s.err != nil {
		return nil, nil
	}
	if r, w, s.err = os.Pipe(); s.err == nil {
		s.all = append(s.all, r, w)
	}
	return r, w
}

func (s *pipeSet) closeAll() {
	for _, c := range s.all {
		_ = c.Close() // nothing was written
	}
}

// A LookupError reports a program that was not found.
type LookupError struct {
	Command string
	// Path is the PATH that was searched, or the path that was tried.
	Path string
	Err  error
}

// Error implements error.
func (e *LookupError) Error() string {
	if strings.ContainsAny(e.Command, `/\`) {
		return fmt.Sprintf("program %q: %v (tried %s)", e.Command, e.Err, e.Path)
	}
	return fmt.Sprintf("program %q not found on the PATH searched: %s", e.Command, e.Path)
}

// Unwrap returns the cause.
func (e *LookupError) Unwrap() error { return e.Err }
