package peers

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// A Loopback is a network that has a loopback device and nothing else: a Linux
// network namespace. A program that [Loopback.Wrap] puts there reaches the
// listeners that were opened there, and no other address, whatever it tries.
//
// Making one takes privileges. Where they are missing it is the machine's own
// network, and Isolated is false.
type Loopback struct {
	// Isolated tells whether this is a network of its own.
	Isolated bool

	enter string      // the nsenter program
	space string      // the namespace, as a path
	work  chan func() // run on the thread that lives in the namespace
}

// NewLoopback makes a network. It is gone when the test ends.
func NewLoopback(t testing.TB) *Loopback {
	t.Helper()
	l := &Loopback{work: make(chan func())}
	ready := make(chan error)
	var wg sync.WaitGroup
	wg.Go(func() { l.live(ready) })
	err := <-ready
	t.Cleanup(func() {
		close(l.work)
		wg.Wait()
	})
	if err != nil {
		t.Logf("peers: no network namespace, the machine's own network is used: %v", err)
		return l
	}
	l.Isolated = true
	return l
}

// live makes the namespace on a thread of its own and serves work there until
// the channel is closed. The thread ends with it: it is never unlocked.
func (l *Loopback) live(ready chan<- error) {
	runtime.LockOSThread()
	space, err := l.unshare()
	ready <- err
	if space != nil {
		defer func() { _ = space.Close() }()
	}
	for do := range l.work {
		do()
	}
}

// unshare moves the calling thread into a new network namespace and returns
// what keeps it open.
func (l *Loopback) unshare() (*os.File, error) {
	enter, err := exec.LookPath("nsenter")
	if err != nil {
		return nil, err
	}
	if l.enter, err = filepath.Abs(enter); err != nil {
		return nil, err
	}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("unshare: %w", err)
	}
	if err := loopbackUp(); err != nil {
		return nil, err
	}
	space, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	l.space = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), space.Fd())
	return space, nil
}

// loopbackUp switches the loopback device of the thread's namespace on.
func loopbackUp() error {
	sock, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer func() { _ = unix.Close(sock) }()
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(sock, unix.SIOCSIFFLAGS, req); err != nil {
		return fmt.Errorf("switching lo on: %w", err)
	}
	return nil
}

// Listen opens a listener on a free port of 127.0.0.1 in this network. It is
// closed when the test ends, if it is not before.
func (l *Loopback) Listen(t testing.TB) net.Listener {
	t.Helper()
	type opened struct {
		net.Listener
		error
	}
	done := make(chan opened, 1)
	l.work <- func() {
		lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		done <- opened{lis, err}
	}
	got := <-done
	if got.error != nil {
		t.Fatalf("peers: %v", got.error)
	}
	t.Cleanup(func() {
		if err := got.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("peers: %v", err)
		}
	})
	return got.Listener
}

// Wrap returns c changed so that it runs in this network. Its process id and
// its pipes are those of the program itself.
func (l *Loopback) Wrap(c Command) Command {
	if !l.Isolated {
		return c
	}
	c.Args = append([]string{"--net=" + l.space, "--", c.Path}, c.Args...)
	c.Path = l.enter
	return c
}

// Executable returns the path of one file that runs the program at path in
// this network with whatever arguments it is given, for code that wants a path
// and builds the arguments itself.
func (l *Loopback) Executable(t testing.TB, path string) string {
	t.Helper()
	if !l.Isolated {
		return path
	}
	wrapper := filepath.Join(t.TempDir(), filepath.Base(path))
	script := fmt.Sprintf("#!/bin/sh\nexec %s --net=%s -- %s \"$@\"\n", quote(l.enter), l.space, quote(path))
	if err := os.WriteFile(wrapper, []byte(script), 0o700); err != nil {
		t.Fatalf("peers: %v", err)
	}
	return wrapper
}

// quote makes s one word of a shell command.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
