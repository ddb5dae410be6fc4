package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// A signalError is the signal that asked a command to stop. It is the cause of its context.
type signalError struct{ sig syscall.Signal }

func (e *signalError) Error() string {
	if e.sig == syscall.SIGINT {
		return "interrupted"
	}
	return fmt.Sprintf("stopped by signal %d (%v)", int(e.sig), e.sig)
}

// watchSignals returns a context that ends with the first SIGINT, SIGTERM or SIGHUP. The command
// then closes what it opened. The second signal kills the servers and ends the process. The
// function stop restores the usual effect of signals.
func watchSignals(parent context.Context, kill *killList) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	ch := make(chan os.Signal, 4)
	// SIGPIPE is caught and dropped, so that a write to a reader that is gone is an error instead of
	// the end of the process without the servers'. Servers would inherit that it is ignored.
	signal.Notify(ch, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	var wg sync.WaitGroup
	wg.Go(func() {
		for got := range ch {
			sig, ok := got.(syscall.Signal)
			switch {
			case !ok || sig == syscall.SIGPIPE:
			case ctx.Err() != nil:
				kill.all()
				os.Exit(128 + int(sig))
			default:
				kill.note()
				cancel(&signalError{sig})
			}
		}
	})
	return ctx, func() {
		signal.Stop(ch)
		close(ch)
		wg.Wait()
		cancel(nil)
	}
}

// A killList knows the child processes to kill if there is no time to close them in steps. The zero
// value is ready for use; it is safe for concurrent use.
type killList struct {
	mu    sync.Mutex
	pids  func() []int
	known []int
}

// set sets the function that returns the ids of the process groups to kill.
func (k *killList) set(pids func() []int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pids = pids
}

// note calls the function now, because a host that is being closed may not know its processes.
func (k *killList) note() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pids != nil {
		k.known = append(k.known, k.pids()...)
	}
}

func (k *killList) all() {
	k.note()
	for _, pid := range append(children(), k.known...) {
		if pid > 1 {
			killGroup(pid)
		}
	}
}

// children returns the ids of this process's children, including servers that are being connected
// or closed. Only Linux has these files.
func children() []int {
	files, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is valid
	var pids []int
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			continue // a thread that has ended
		}
		for _, field := range bytes.Fields(data) {
			if pid, err := strconv.Atoi(string(field)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
