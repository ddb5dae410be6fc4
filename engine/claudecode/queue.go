package claudecode

import (
	"context"
	"slices"
	"time"

	"github.com/tenon-sdk/tenon/agent"
)

// What may wait for a receiver.
const (
	// queueLimit is how many messages may wait before the CLI's requests are not answered.
	queueLimit = 1024
	// queueBytes is how many bytes of messages may wait before the CLI's output is not read. While a request
	// of this process waits for its answer, which comes behind the messages, it is read up to queueMax.
	queueBytes = 64 << 20
	queueMax   = 256 << 20
	// callWait is how long a question about a call waits for the message with the call.
	callWait = time.Second
	// queueCost is what a message costs beside its text.
	queueCost = 512
)

// A queued message waits for the program.
type queued struct {
	message agent.Message
	bytes   int
}

// deliver puts a message of size bytes into the queue. The caller holds s.mu. Nothing is received before
// the first SystemInit, or a result without one: it is the first message of a session.
func (s *session) deliver(m agent.Message, size int) {
	q := queued{m, 2*size + queueCost} // the line is kept beside what was read of it
	s.queueSize += q.bytes
	_, isInit := m.(*agent.SystemInit)
	if isInit && !s.introduced {
		s.queue = slices.Insert(s.queue, 0, q)
	} else {
		s.queue = append(s.queue, q)
	}
	_, isResult := m.(*agent.Result)
	// One that never comes does not hold up what waits for room.
	s.introduced = s.introduced || isInit || isResult || len(s.queue) >= queueLimit || s.queueSize >= queueBytes
	s.wake()
}

// take removes the first message. The caller holds s.mu, and there is one.
func (s *session) take() agent.Message {
	q := s.queue[0]
	s.queue[0] = queued{}
	s.queue = s.queue[1:]
	s.queueSize -= q.bytes
	if a, ok := q.message.(*agent.Assistant); ok {
		for _, u := range a.ToolUses() {
			s.handed = append(s.handed, u.ID)
		}
	}
	s.advance()
	return q.message
}

// advance tells those that wait for the program. The caller holds s.mu.
func (s *session) advance() {
	close(s.read)
	s.read = make(chan struct{})
}

// asksForMore notes that the program is done with what it was handed. The caller holds s.mu.
func (s *session) asksForMore() {
	if len(s.handed) == 0 {
		return
	}
	for _, id := range s.handed {
		s.shown[id] = true
	}
	s.handed = nil
	s.advance()
}

// awaitShown waits until the program is done with the message that has a call, so that it knows of the call
// before it is asked about it: the CLI may ask first. A call that the CLI does not show, and a program that
// does not receive, delay the question no longer than callWait.
func (s *session) awaitShown(ctx context.Context, id string) {
	late := time.NewTimer(s.engine.callWait)
	defer late.Stop()
	for {
		s.mu.Lock()
		shown, read := s.shown[id], s.read
		s.mu.Unlock()
		if shown {
			return
		}
		select {
		case <-read:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// room waits until the program has caught up with the messages, so that the CLI waits for its answer.
func (s *session) room(ctx context.Context) error {
	for {
		s.mu.Lock()
		if len(s.queue) < queueLimit || s.closed {
			s.mu.Unlock()
			return nil
		}
		read := s.read
		s.mu.Unlock()
		select {
		case <-read:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// mayRead waits until there is room for what the CLI says next, so that a program that does not receive
// holds up the CLI and does not collect what it says.
func (s *session) mayRead() {
	for {
		s.mu.Lock()
		limit := queueBytes
		if s.ch.waits() {
			limit = queueMax
		}
		full := s.queueSize >= limit && !s.closed
		read := s.read
		s.mu.Unlock()
		if !full {
			return
		}
		select {
		case <-read:
		case <-s.ch.asked:
		case <-s.ch.ctx.Done():
			return
		}
	}
}
