// Package subproc runs child processes that speak on stdin and stdout, and makes
// sure that they go away.
//
// A child runs in a process group of its own (a job on Windows), so that what it
// starts itself goes with it. Its stderr is drained always, into a bounded tail
// and to a callback. Closing climbs a ladder with a bound on each step: close
// stdin, ask the group to terminate, kill the group.
//
// What ends when:
//   - [Proc.Close] ends the child and its group, in at most the grace, half the
//     grace and a second.
//   - A child that ends by itself takes what is left of its group with it.
//   - When this process dies, by kill -9 too, the child is killed on Linux (the
//     parent death signal) and on Windows (the job closes). Grandchildren see
//     their stdin end. On other systems so does the child, and no more.
//   - A descendant that left the process group is out of reach; its hold on the
//     pipes is broken all the same.
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
	// DefaultGrace is how long a child has after its stdin was closed.
	DefaultGrace = 2 * time.Second
	// DefaultStderrLimit is how much of the end of stderr is kept.
	DefaultStderrLimit = 32 << 10

	// killWait bounds the wait for a killed child, which the kernel may hold
	// back; drainWait that for the last of stderr after the child ended, and
	// holdWait that for the last of stdout.
	killWait  = time.Second
	drainWait = 100 * time.Millisecond
	holdWait  = time.Second
)

// Options say what to start.
type Options struct {
	// Command is looked up on the PATH of Env unless it holds a path separator.
	Command string
	Args    []string
	// Env is the child's whole environment; nil means this process's.
	Env []string
	// Dir is the working directory; empty means this process's.
	Dir string
	// Grace is how long the child has after its stdin was closed, and half of
	// it again after it was asked to terminate. Zero means DefaultGrace.
	Grace time.Duration
	// StderrLimit is how many bytes of the end of stderr are kept. Zero means
	// DefaultStderrLimit.
	StderrLimit int
	// OnStderr is called with each line of stderr, one at a time. While it
	// falls behind, lines are dropped from it, not from the tail, and a line in
	// parentheses says how many.
	OnStderr func(line string)
}

// Exit says how a child ended.
type Exit struct {
	Code   int    // -1 when a signal ended it
	Signal string // such as "killed"; empty when it exited
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
	// Stdin and Stdout are the child's. Stdout stays readable after the child
	// ended, until its end or [Proc.Close].
	Stdin  *os.File
	Stdout *os.File

	pid    int
	grace  time.Duration
	group  group
	exited chan struct{} // closed when exit is set
	gone   chan struct{} // closed when the group is gone, too, and stderr drained
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

// start makes the pipes and starts the child. The pipes are our own: with
// StdoutPipe, Wait would close stdout under a reader that still has lines to
// read; with an io.Writer for stderr, Wait would wait for grandchildren.
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
	// What the child leaves behind goes with it; where that can be, it is told
	// so while the child's number cannot be given to another yet.
	told := p.group.awaitExit()
	if told {
		p.group.terminate()
	}
	err := cmd.Wait()
	if !told {
		p.group.terminate()
	}
	p.exit = exitOf(cmd, err)
	close(p.exited)
}

// settle sees to what a child leaves behind when it ends: the rest of its group
// and of its stderr.
func (p *Proc) settle(stderr *os.File, drained <-chan struct{}) {
	defer close(p.gone)
	<-p.exited
	if !p.group.waitGone(p.grace / 2) {
		p.group.kill()
		p.group.waitGone(killWait)
	}
	p.group.release()
	// A descendant that left the group may hold the pipes; what they hold now is
	// all that counts.
	_ = p.Stdout.SetReadDeadline(time.Now().Add(holdWait))
	defer stderr.Close()
	select {
	case <-drained:
	case <-time.After(drainWait):
	}
}

// Reader reads Stdout. It costs less per line than the file itself does; it is for one goroutine.
func (p *Proc) Reader() io.Reader { return direct(p.Stdout) }

// PID returns the child's process id.
func (p *Proc) PID() int { return p.pid }

// Exited is closed when the child has ended.
func (p *Proc) Exited() <-chan struct{} { return p.exited }

// Exit says how the child ended. It must not be called before [Proc.Exited] is closed.
func (p *Proc) Exit() Exit { return p.exit }

// Stderr returns the end of what the child wrote to stderr.
func (p *Proc) Stderr() string { return p.tail.String() }

// AwaitExit waits a short while for a child that seems to be ending, and for
// the last of its stderr. It reports whether the child has ended.
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

// Close ends the child and its group and waits until they are gone, at most the
// grace, half of it, and a second. It may be called more than once. The error
// says that something could not be ended.
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

// withoutPath drops the path from an error of fork and exec, which the caller
// names already.
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

// A pipeSet makes pipes and remembers the first error.
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
