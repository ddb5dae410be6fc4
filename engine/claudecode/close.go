package claudecode

import (
	"fmt"
	"io"
	"time"

	"github.com/tenon-sdk/tenon/agent"
)

// exited waits for the CLI's end after its output has ended, and ends what waits for it.
func (s *session) exited() {
	select {
	case <-s.proc.Exited():
	case <-time.After(s.engine.grace):
	}
	s.proc.AwaitExit(s.ch.ctx, s.engine.grace)
	exit := "its output ended"
	select {
	case <-s.proc.Exited():
		exit = s.proc.Exit().String()
	default:
	}
	var end error = &ProcessError{Path: s.path, Exit: exit, Stderr: s.proc.Stderr()}
	s.ch.cancel(end)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended && s.turn.allAnswered() {
		end = io.EOF
	}
	s.inbox.finish(end)
}

// Close ends the process: it closes the CLI's stdin, then asks the CLI to terminate, then kills it.
// Before that it ends the contexts of callbacks and servers of the program. If one of them does not
// return within 10 s, Close leaves it behind and returns an error.
func (s *session) Close() error {
	var err error
	s.closeOnce.Do(func() {
		s.mu.Lock()
		s.closed = true
		s.turn.stopClock()
		s.mu.Unlock()
		s.inbox.close()
		if s.ch == nil {
			return
		}
		s.ch.cancel(agent.ErrClosed)
		s.endStdin.Do(func() { close(s.closing) })
		if s.proc != nil {
			if err := s.proc.Close(); err != nil {
				s.opts.Logger.Warn("claude-code: closing the CLI", "error", err)
			}
		}
		ended := within(s.engine.patience, func() {
			s.servers.close()
			s.ch.end(agent.ErrClosed)
			s.readers.Wait()
		})
		if !ended {
			err = fmt.Errorf("claude-code: a callback or a server of the program did not return within %v after its context had ended", s.engine.patience)
			return
		}
		s.runSessionEnd()
	})
	return err
}

// within calls f and reports whether it returned within limit. If not, f continues.
func within(limit time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-done:
		return true
	case <-late.C:
		return false
	}
}
