package claudecode

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/tenon-sdk/tenon/agent"
)

// inputIDs makes the UUIDs of inputs that the program gave none, and tells them from its own: those of a
// session begin alike.
type inputIDs struct {
	first uuid.UUID
	n     atomic.Uint32
}

func newInputIDs() *inputIDs { return &inputIDs{first: uuid.New()} }

func (u *inputIDs) next() string {
	id := u.first
	binary.BigEndian.PutUint32(id[12:], u.n.Add(1))
	return id.String()
}

func (u *inputIDs) has(id string) bool {
	got, err := uuid.Parse(id)
	return err == nil && [12]byte(got[:12]) == [12]byte(u.first[:12])
}

// A turnClock ends a turn in time.
type turnClock struct {
	timer *time.Timer
	over  chan struct{} // closed when the turn has ended
	late  bool          // the turn took too long, and is interrupted
}

// turnStarts begins to count the time of a turn, unless one runs. The caller holds s.mu.
func (s *session) turnStarts() {
	limit := s.opts.TurnTimeout
	if limit <= 0 || s.clock != nil {
		return
	}
	c := &turnClock{over: make(chan struct{})}
	c.timer = time.AfterFunc(limit, func() { s.ch.spawn(func() { s.tooLong(c) }) })
	s.clock = c
}

// turnEnds ends the count. The caller holds s.mu.
func (s *session) turnEnds() {
	if s.clock == nil {
		return
	}
	s.clock.timer.Stop()
	close(s.clock.over)
	s.clock = nil
}

// tooLong interrupts a turn. A CLI that does not end it ends with the session.
func (s *session) tooLong(c *turnClock) {
	s.mu.Lock()
	current := s.clock == c
	c.late = current
	s.mu.Unlock()
	if !current {
		return
	}
	ctx, cancel := context.WithTimeout(s.ch.ctx, s.engine.patience)
	defer cancel()
	err := s.Interrupt(ctx)
	if err == nil {
		select {
		case <-c.over:
			return
		case <-ctx.Done():
		}
	}
	if s.ch.ctx.Err() != nil {
		return // the CLI is gone, and the session says why
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over == nil {
		s.over = fmt.Errorf("claude-code: the CLI %s did not end a turn that took longer than Options.TurnTimeout, %v", s.path, s.opts.TurnTimeout)
		s.ch.cancel(s.over)
		s.wake()
	}
}

// judgeTime makes of the result of a turn that took too long what package agent says that it is. The
// caller holds s.mu. It reports false for any other result.
func (s *session) judgeTime(m *agent.Result) bool {
	if s.clock == nil || !s.clock.late {
		return false
	}
	switch m.TerminalReason {
	case agent.ReasonAbortedStreaming, agent.ReasonAbortedTools:
	default:
		return false // it had ended by itself
	}
	m.Subtype, m.TerminalReason, m.IsError, m.Result = agent.SubtypeErrorTurnTimeout, agent.ReasonTurnTimeout, true, ""
	m.Errors = []string{fmt.Sprintf("The turn was stopped because it took longer than %v (Options.TurnTimeout).", s.opts.TurnTimeout)}
	return true
}

// Interrupt stops the running turn, or the one that the next input is about to begin: the CLI takes an
// interrupt that comes before the turn has begun, and nothing follows from it. Then it is sent again when
// the CLI asks about the input, before the model is.
func (s *session) Interrupt(ctx context.Context) error {
	return s.interrupt(ctx, nil, nil)
}

func (s *session) interrupt(ctx context.Context, fields, receipt any) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return agent.ErrClosed
	}
	return s.ch.requestThen(ctx, "interrupt", fields, receipt, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.interruptNext = !s.turning && len(s.waiting) > 0
	})
}

// registerTurn has the CLI ask before the model sees an input.
func (s *session) registerTurn(all map[string][]hookMatcher) {
	const id = "turn"
	all["UserPromptSubmit"] = append(all["UserPromptSubmit"], hookMatcher{Callbacks: []string{id}, Timeout: agent.DefaultHookTimeout.Seconds(), OnFailure: "continue"})
	s.rawHooks[id] = func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		s.mu.Lock()
		late := s.interruptNext
		s.interruptNext, s.turning = false, true
		s.mu.Unlock()
		if late {
			if err := s.ch.request(ctx, "interrupt", nil, nil); err != nil {
				return nil, err
			}
		}
		return json.RawMessage("{}"), nil
	}
}
