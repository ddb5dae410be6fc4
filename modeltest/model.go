package modeltest

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
)

// TB is what a [Model] needs of a *testing.T.
type TB interface {
	Errorf(format string, args ...any)
	Cleanup(func())
}

// Options configures a [Model]. The zero value, like a nil pointer, means the
// defaults.
type Options struct {
	// TB is the test that the model works for. If set, the test is failed at its
	// end by each request that was refused (unless AllowViolations), and what
	// Serve has started is closed.
	TB TB
	// AllowViolations says that refused requests don't fail the test.
	AllowViolations bool
	// Turns are the answers, in order, to requests that Script has none for.
	Turns []Turn
	// Script returns the answers to one conversation. It is called once for each
	// key, perhaps from several goroutines at once. nil, or a nil result: the
	// requests are answered from Turns, which all such conversations share.
	Script func(key string) []Turn
	// Key tells conversations apart. nil: by [Request.FirstUserText].
	Key func(*Request) string
	// KeepRequests is how many of the latest requests are kept for Requests, and
	// how many of the latest violations. If zero, all are; if negative, no
	// requests and the latest 16 violations.
	KeepRequests int
	// NoToolReferences makes it a gateway that knows neither defer_loading nor tool_reference: it
	// refuses them as what it does not know. These refusals are no violations.
	NoToolReferences bool
	// CountTokens is the number of a request's input tokens, of which the usage of
	// the answer and count_tokens tell. nil: a quarter of the bytes of its body.
	CountTokens func(*Request) int
}

// A Model is a Messages API whose answers are scripted. It is an
// [http.RoundTripper] and an [http.Handler]; see the package comment for what it
// answers and what it refuses.
//
// A Model is safe for concurrent use. It holds no goroutines and nothing to be
// closed, apart from what Serve starts.
type Model struct {
	o        Options
	thoughts thoughts
	schemas  schemaCache
	cache    promptCache
	shared   queue

	mu         sync.Mutex // guards the rest
	requests   []*Request
	violations []*Violation
	allowed    bool
	received   int // POST /v1/messages
	answered   int
	calls      int
	responses  int
	queues     map[string]*queue
	servers    []*Server
}

// New returns a model that answers with the turns, one for each request, in
// order. t may be nil.
func New(t TB, turns ...Turn) *Model { return NewModel(&Options{TB: t, Turns: turns}) }

// NewModel returns a model with these options.
func NewModel(o *Options) *Model {
	m := &Model{}
	if o != nil {
		m.o = *o
	}
	m.shared.turns = slices.Clone(m.o.Turns)
	m.allowed = m.o.AllowViolations
	if m.o.Key == nil {
		m.o.Key = (*Request).FirstUserText
	}
	if m.o.CountTokens == nil {
		m.o.CountTokens = func(r *Request) int { return len(r.Body) / 4 }
	}
	if m.o.TB != nil {
		m.o.TB.Cleanup(m.finish)
	}
	return m
}

// finish is the end of the test that the model works for.
func (m *Model) finish() {
	m.mu.Lock()
	servers, violations := m.servers, m.violations
	if m.allowed {
		violations = nil
	}
	m.mu.Unlock()
	for _, s := range servers {
		_ = s.Close() // a listener that is closed already is no matter
	}
	for i, v := range violations {
		if i == fewViolations {
			m.o.TB.Errorf("modeltest: and %d more requests", len(violations)-i)
			break
		}
		m.o.TB.Errorf("modeltest: request %d to %s would have been refused: %v", v.Request.number, v.Request.Path, v)
	}
}

// AllowViolations says that refused requests don't fail the test.
func (m *Model) AllowViolations() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.allowed = true
}

// Add appends turns to those that all conversations share.
func (m *Model) Add(turns ...Turn) { m.shared.add(turns) }

// Left returns how many of the shared turns have not been used.
func (m *Model) Left() int { return m.shared.left() }

// Requests returns the POST /v1/messages requests so far, oldest first, refused
// ones too.
func (m *Model) Requests() []*Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Last returns the latest of Requests, nil if there is none.
func (m *Model) Last() *Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.requests) == 0 {
		return nil
	}
	return m.requests[len(m.requests)-1]
}

// Violations returns what was wrong with the refused requests, oldest first.
func (m *Model) Violations() []*Violation {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.violations)
}

// A Violation is a request that the real API would have refused.
type Violation struct {
	Request *Request
	Status  int    // of the response: mostly 400
	Type    string // the API's error type
	Message string // names the path of what is wrong
}

// Error returns status, type and message.
func (v *Violation) Error() string { return fmt.Sprintf("%d %s: %s", v.Status, v.Type, v.Message) }

// record keeps a request.
func (m *Model) record(r *Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.received++
	r.number = m.received
	m.requests = keep(m.requests, r, m.o.KeepRequests)
}

// fewViolations is how many violations are kept when no requests are, and how
// many are told at the end of a test.
const fewViolations = 16

// refuse keeps what was wrong with a request.
func (m *Model) refuse(r *Request, p *problem) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := &Violation{Request: r, Status: p.status, Type: p.typ, Message: p.msg}
	limit := m.o.KeepRequests
	if limit < 0 {
		limit = fewViolations
	}
	m.violations = keep(m.violations, v, limit)
}

func keep[T any](list []T, v T, limit int) []T {
	if limit < 0 {
		return nil
	}
	if limit > 0 && len(list) >= limit {
		list = slices.Clone(list[len(list)-limit+1:]) // a clone, so that what falls out can be freed
	}
	return append(list, v)
}

// answerTo makes the answer to a request that is in order.
func (m *Model) answerTo(r *Request, requestID string) (*answer, *problem) {
	turn := m.queueFor(r).take(r)
	if turn == nil {
		return nil, invalid("modeltest: the script is exhausted: it has no turn left for request %d (%d messages, last user text %.80q)",
			r.number, len(r.Messages), r.LastUserText())
	}
	reply := replyOf(turn)
	a := &answer{reply: reply, id: reply.id, model: reply.model, requestID: requestID}
	if reply.fail != nil {
		return a, nil
	}
	if a.id == "" {
		a.id = m.nextID("msg", &m.answered)
	}
	if a.model == "" {
		a.model = r.Model
	}
	a.blocks = blocksOf(reply, func() string { return m.nextCallID(r) })
	a.stop = stopReason(reply, a.blocks)
	a.usage = m.cache.use(r, m.o.CountTokens(r))
	a.usage.OutputTokens = outputTokens(a.blocks)
	if reply.usage != nil {
		a.usage = *reply.usage
	}
	m.thoughts.given(a.blocks)
	return a, nil
}

func replyOf(t Turn) *Reply {
	switch t := t.(type) {
	case *Reply:
		return t
	case Part:
		return Say(t)
	}
	panic(fmt.Sprintf("modeltest: a turn of type %T", t))
}

// nextID is the next of a row of ids, such as msg_000001.
func (m *Model) nextID(prefix string, counter *int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	*counter++
	return fmt.Sprintf("%s_%06d", prefix, *counter)
}

// nextCallID is the next id of a tool call, but none that the conversation
// already has: it may have begun with another model.
func (m *Model) nextCallID(r *Request) string {
	for {
		id := m.nextID("toolu", &m.calls)
		if !r.hasCall(id) {
			return id
		}
	}
}

func (r *Request) hasCall(id string) bool {
	for _, msg := range r.Messages {
		for i := range msg.Content {
			if msg.Content[i].ID == id {
				return true
			}
		}
	}
	return false
}

// queueFor is the script that a request is answered from.
func (m *Model) queueFor(r *Request) *queue {
	if m.o.Script == nil {
		return &m.shared
	}
	key := m.o.Key(r)
	m.mu.Lock()
	if m.queues == nil {
		m.queues = map[string]*queue{}
	}
	q, ok := m.queues[key]
	if !ok {
		q = &queue{}
		m.queues[key] = q
	}
	m.mu.Unlock()
	q.fill.Do(func() {
		turns := m.o.Script(key)
		q.add(turns)
		q.none = turns == nil
	})
	if q.none {
		return &m.shared
	}
	return q
}

// queue is a script and how far it has been played.
type queue struct {
	fill sync.Once
	none bool // set by fill: there is no such script

	mu    sync.Mutex // guards the rest
	turns []Turn
	next  int
}

func (q *queue) add(turns []Turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.turns = append(q.turns, turns...)
}

func (q *queue) left() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.turns) - q.next
}

// take returns the next turn, nil when there is none.
func (q *queue) take(r *Request) Turn {
	for {
		q.mu.Lock()
		if q.next >= len(q.turns) {
			q.mu.Unlock()
			return nil
		}
		at := q.next
		turn := q.turns[at]
		f, stays := turn.(Func)
		if !stays {
			q.next++
		}
		q.mu.Unlock()
		if !stays {
			return turn
		}
		for stays && turn != nil {
			turn = f(r) // no lock is held: it may take its time
			f, stays = turn.(Func)
		}
		if turn != nil {
			return turn
		}
		q.mu.Lock()
		if q.next == at {
			q.next++
		}
		q.mu.Unlock()
	}
}

// Client returns an HTTP client that reaches the model without a socket, under
// any URL. It has no time limit.
func (m *Model) Client() *http.Client { return &http.Client{Transport: m} }
