package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// A signalError is why a command was asked to stop. It is the cause of its context.
type signalError struct{ sig syscall.Signal }

func (e *signalError) Error() string {
	if e.sig == syscall.SIGINT {
		return "interrupted"
	}
	return fmt.Sprintf("stopped by signal %d (%v)", int(e.sig), e.sig)
}

// signals turns the first SIGINT, SIGTERM or SIGHUP into the end of ctx, and the second into the end of
// the process. In between the command closes what it opened, within the bounds of those things.
type signals struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	ch     chan os.Signal
	quit   chan struct{}
	wg     sync.WaitGroup
	kill   killList
}

func watchSignals(parent context.Context) *signals {
	s := &signals{ch: make(chan os.Signal, 4), quit: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(parent)
	// SIGPIPE is caught and dropped, so that a write to a reader that is gone is an error instead of the end
	// of the process, which would leave the servers behind. Ignoring it would be inherited by the servers.
	signal.Notify(s.ch, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	s.wg.Go(s.watch)
	return s
}

func (s *signals) watch() {
	for {
		select {
		case <-s.quit:
			return
		case got := <-s.ch:
			sig, ok := got.(syscall.Signal)
			if !ok || sig == syscall.SIGPIPE {
				continue
			}
			if s.ctx.Err() != nil {
				s.kill.all()
				os.Exit(128 + int(sig))
			}
			s.kill.note()
			s.cancel(&signalError{sig})
		}
	}
}

// stop gives the signals back their usual effect and waits for the watcher.
func (s *signals) stop() {
	signal.Stop(s.ch)
	close(s.quit)
	s.wg.Wait()
	s.cancel(nil)
}

// A killList knows the child processes that are alive, for the one moment when there is no time to close
// them in steps. The zero value is ready; it is safe for concurrent use.
type killList struct {
	mu    sync.Mutex
	pids  func() []int
	known []int
}

// set says where to ask for the ids of the process groups to kill.
func (k *killList) set(pids func() []int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pids = pids
}

// note asks now, for the case that nobody answers any more when it comes to killing: what is being closed
// may not say what it has.
func (k *killList) note() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pids != nil {
		k.known = append(k.known, k.pids()...)
	}
}

func (k *killList) all() {
	k.note()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, pid := range append(children(), k.known...) {
		if pid > 1 {
			killGroup(pid)
		}
	}
}
