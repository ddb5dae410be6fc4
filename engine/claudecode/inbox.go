package claudecode

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tenon-sdk/tenon/agent"
)

// Bounds of what waits for the program.
const (
	// queueLimit is how many messages may wait before the CLI's requests are not answered.
	queueLimit = 1024
	// queueBytes is how many bytes of messages may wait before the CLI's output is not read. While a
	// request to the CLI waits for its answer, which follows the messages, the limit is queueMax.
	queueBytes = 64 << 20
	queueMax   = 256 << 20
	// queueCost is what a message costs beside its text.
	queueCost = 512
)

// An inbox holds the messages that wait for the program. It is safe for concurrent use.
type inbox struct {
	arrived chan struct{} // holds a token when messages or end have changed

	mu       sync.Mutex // guards the rest
	messages []queued
	size     int             // bytes
	open     bool            // messages may be received: the first SystemInit or result is there
	current  []string        // IDs of the calls in the message that the program has received last
	shown    map[string]bool // IDs of the calls that the program has finished receiving
	progress chan struct{}   // closed and replaced when the program receives
	end      error           // why no message follows; nil while one may
	closed   bool
}

// A queued message waits for the program.
type queued struct {
	message agent.Message
	bytes   int
}

func newInbox() *inbox {
	return &inbox{arrived: make(chan struct{}, 1), shown: map[string]bool{}, progress: make(chan struct{})}
}

// put adds a message of size bytes. Until the first SystemInit, or a result without one, the program
// receives nothing, so that SystemInit is the first message of a session.
func (q *inbox) put(m agent.Message, size int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := queued{m, 2*size + queueCost} // the text is kept beside what was decoded
	q.size += w.bytes
	_, isInit := m.(*agent.SystemInit)
	_, isResult := m.(*agent.Result)
	if isInit && !q.open {
		q.messages = slices.Insert(q.messages, 0, w)
	} else {
		q.messages = append(q.messages, w)
	}
	q.open = q.open || isInit || isResult || len(q.messages) >= queueLimit || q.size >= queueBytes
	q.wake()
}

// finish ends the inbox with an error for the program after the last message. The first error wins.
func (q *inbox) finish(err error) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	first := q.end == nil
	if first {
		q.end = err
	}
	q.wake()
	return first
}

// close ends the inbox at once.
func (q *inbox) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.advance()
	q.wake()
}

// wake wakes one receiver. The caller holds q.mu.
func (q *inbox) wake() {
	select {
	case q.arrived <- struct{}{}:
	default:
	}
}

// advance wakes those that wait for the program to receive. The caller holds q.mu.
func (q *inbox) advance() {
	close(q.progress)
	q.progress = make(chan struct{})
}

// receive returns the next message. With the call, the program has finished the message before.
func (q *inbox) receive(ctx context.Context) (agent.Message, error) {
	for {
		if m, err := q.next(); m != nil || err != nil {
			return m, err
		}
		select {
		case <-q.arrived:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// next removes the first message. It returns neither a message nor an error if none may be received yet.
func (q *inbox) next() (agent.Message, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.current) > 0 {
		for _, id := range q.current {
			q.shown[id] = true
		}
		q.current = nil
		q.advance()
	}
	switch {
	case q.closed:
		return nil, agent.ErrClosed
	case len(q.messages) > 0 && (q.open || q.end != nil):
	case q.end != nil:
		q.wake() // the next caller gets the error, too
		return nil, q.end
	default:
		return nil, nil //nolint:nilnil // as documented
	}
	first := q.messages[0]
	q.messages[0] = queued{}
	q.messages = q.messages[1:]
	q.size -= first.bytes
	if a, ok := first.message.(*agent.Assistant); ok {
		for _, u := range a.ToolUses() {
			q.current = append(q.current, u.ID)
		}
	}
	q.advance()
	return first.message, nil
}

// forget forgets a call that has its result.
func (q *inbox) forget(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.shown, id)
}

// awaitShown waits until the program has finished receiving the message with a call, so that it knows
// the call before it is asked about it. It waits no longer than limit, because the CLI does not show
// every call and not every program receives.
func (q *inbox) awaitShown(ctx context.Context, id string, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_ = q.await(ctx, nil, func() bool { return q.shown[id] })
}

// awaitRoom waits until fewer than queueLimit messages wait.
func (q *inbox) awaitRoom(ctx context.Context) error {
	return q.await(ctx, nil, func() bool { return len(q.messages) < queueLimit })
}

// awaitSpace waits until the messages are smaller than queueBytes or, while waits returns true, queueMax.
// changed has a token when waits may have changed.
func (q *inbox) awaitSpace(ctx context.Context, waits func() bool, changed <-chan struct{}) {
	_ = q.await(ctx, changed, func() bool { return q.size < queueBytes || q.size < queueMax && waits() })
}

// await waits until ok returns true or the inbox is closed. It calls ok with q.mu held.
func (q *inbox) await(ctx context.Context, changed <-chan struct{}, ok func() bool) error {
	for {
		q.mu.Lock()
		done, progress := q.closed || ok(), q.progress
		q.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-progress:
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
