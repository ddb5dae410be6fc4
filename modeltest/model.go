package modeltest

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
)

// TB is the part of *testing.T that a [Model] uses.
type TB interface {
	Errorf(format string, args ...any)
	Cleanup(func())
}

// Options configures a [Model]. The zero value, like a nil pointer, means the
// defaults.
type Options struct {
	// TB is the test of the model. If set, it fails at its end for each refused request, unless
	// AllowViolations is set, and what Serve started is closed.
	TB TB
	// AllowViolations keeps refused requests from failing the test.
	AllowViolations bool
	// Turns are the answers, in order, to requests that Script has none for.
	Turns []Turn
	// Script returns the answers to one conversation. It is called once for each key, and may be
	// called concurrently. If it is nil or returns nil, the requests are answered from Turns, which
	// all such conversations share.
	Script func(key string) []Turn
	// Key identifies the conversation of a request. Nil means [Request.FirstUserText].
	Key func(*Request) string
	// KeepRequests is the number of latest requests and violations that are kept. Zero means all.
	// Negative means no requests and the latest 16 violations.
	KeepRequests int
	// NoToolReferences makes the model a gateway that does not support defer_loading and
	// tool_reference. It refuses them as unknown. These refusals are no violations.
	NoToolReferences bool
	// CountTokens returns the number of a request's input tokens. Nil means a quarter of the bytes
	// of its body.
	CountTokens func(*Request) int
}

// A Model is a Messages API with scripted answers. It is an [http.RoundTripper] and an
// [http.Handler]. See the package comment for what it answers and refuses.
//
// A Model is safe for concurrent use. It needs no closing, apart from what Serve starts.
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

// NewModel returns a model with the given options.
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

// finish is called at the end of the test.
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

// AllowViolations keeps refused requests from failing the test.
func (m *Model) AllowViolations() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.allowed = true
}

// Add appends turns to those that all conversations share.
func (m *Model) Add(turns ...Turn) { m.shared.add(turns) }

// Left returns how many of the shared turns are not used yet.
func (m *Model) Left() int { return m.shared.left() }

// Requests returns the POST /v1/messages requests so far, oldest first, including refused ones.
func (m *Model) Requests() []*Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Last returns the latest of Requests, or nil.
func (m *Model) Last() *Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.requests) == 0 {
		return nil
	}
	return m.requests[len(m.requests)-1]
}

// Violations returns the reasons of the refused requests, oldest first.
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

// record stores a request.
func (m *Model) record(r *Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.received++
	r.number = m.received
	m.requests = keep(m.requests, r, m.o.KeepRequests)
}

// fewViolations is how many violations are kept without requests, and how many are reported at the
// end of a test.
const fewViolations = 16

// refuse stores the reason of a refusal.
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

// answerTo returns the answer to a valid request.
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

// nextID returns the next ID of a series, such as msg_000001.
func (m *Model) nextID(prefix string, counter *int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	*counter++
	return fmt.Sprintf("%s_%06d", prefix, *counter)
}

// nextCallID returns the next ID of a tool call that the conversation does not have: it may have
// begun with another model.
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

// queueFor returns the script for a request.
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

// queue is a script and its position.
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

// take returns the next turn, or nil.
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

// Client returns an HTTP client whose requests the model answers without a network, for any URL. It
// has no timeout.
func (m *Model) Client() *http.Client { return &http.Client{Transport: m} }
