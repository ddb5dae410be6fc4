package claudecode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/permission"
)

const (
	// poolBackoff is the wait before a pool starts another CLI after a failure. It doubles up to poolMaxBackoff.
	poolBackoff    = 100 * time.Millisecond
	poolMaxBackoff = 30 * time.Second
	// poolRest is how long a pool waits for the first answer of a CLI that it handed out before it starts
	// another CLI, which takes a core for a second.
	poolRest = 3 * time.Second
	// poolSettle limits the time for what a CLI does in the background when it starts.
	poolSettle = 10 * time.Second
)

// PoolOptions configures a [Pool]. The zero value, like a nil pointer, means the defaults.
type PoolOptions struct {
	// Size is the number of CLIs that are kept ready. Zero means 1. A CLI is a process of about 200 MB.
	Size int
	// MaxAge is how long a CLI is kept ready before the pool replaces it. Zero means no limit.
	MaxAge time.Duration
}

// A Pool keeps started CLIs ready and gives one to each session, so that a session does not wait for
// the start. It is an [agent.Engine]:
//
//	pool, err := claudecode.NewPool(ctx, claudecode.New(nil), opts, &claudecode.PoolOptions{Size: 2})
//	defer pool.Close()
//	for msg, err := range agent.Query(ctx, pool, "How many are left?", nil) {
//
// All sessions have the options of the pool and IDs of their own. They share its callbacks and servers
// in this process. The pool replaces a CLI when its session has the first answer, or after a few
// seconds. It replaces a CLI that exits while it waits, with a growing delay after failures. If no CLI
// is ready, a session starts its own. A Pool is safe for concurrent use.
type Pool struct {
	engine *Engine
	opts   agent.Options
	size   int
	maxAge time.Duration
	logger *slog.Logger

	life context.Context // ends with Close
	stop context.CancelCauseFunc
	wg   sync.WaitGroup
	wake chan struct{} // holds a token when there may be something to start

	mu      sync.Mutex // guards the rest
	closed  bool
	ready   []*warm
	resting int           // CLIs that were handed out and are not replaced yet
	changed chan struct{} // closed and replaced when ready or failure changes
	failure error         // of the last start; nil after one that succeeded
}

// A warm session waits for its first input.
type warm struct {
	s     *session
	taken chan struct{} // closed when it is handed out
	born  time.Time
}

// errPoolClosed ends sessions that a pool is starting when it is closed.
var errPoolClosed = errors.New("claude-code: the pool is closed")

// NewPool returns a pool that starts CLIs with the options o, which must not name or resume a session.
// The pool uses the values of ctx and ignores its end: Close ends the pool.
func NewPool(ctx context.Context, e *Engine, o *agent.Options, p *PoolOptions) (*Pool, error) {
	pool := &Pool{
		engine: e, size: 1, wake: make(chan struct{}, 1), changed: make(chan struct{}),
		logger: slog.New(slog.DiscardHandler),
	}
	if o != nil {
		pool.opts = *o
	}
	if pool.opts.Logger != nil {
		pool.logger = pool.opts.Logger
	}
	if p != nil {
		if p.Size < 0 || p.MaxAge < 0 {
			return nil, fmt.Errorf("claude-code: PoolOptions has Size %d and MaxAge %v, want 0 or more", p.Size, p.MaxAge)
		}
		pool.size, pool.maxAge = max(p.Size, 1), p.MaxAge
	}
	if err := unsupported("claude-code pool", &pool.opts); err != nil {
		return nil, err
	}
	if pool.opts.SessionID != "" || pool.opts.Resume != (agent.Resume{}) {
		return nil, errors.New("claude-code: a pool's sessions are new ones: SessionID and Resume must not be set")
	}
	pool.life, pool.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	pool.wg.Go(pool.fill)
	return pool, nil
}

// Name returns "claude-code".
func (p *Pool) Name() string { return p.engine.Name() }

// Open returns a session on a CLI that is ready, or starts one. o must be nil or empty: the options are
// those of the pool.
func (p *Pool) Open(ctx context.Context, o *agent.Options) (agent.Session, error) {
	if fields := beyondDefaults(o); len(fields) > 0 {
		return nil, &agent.UnsupportedError{Engine: "claude-code pool", Fields: fields}
	}
	for {
		w, err := p.take()
		switch {
		case err != nil:
			return nil, err
		case w == nil:
			return p.open(ctx)
		case w.s.alive():
			return w.s, nil
		}
		_ = w.s.Close() //nolint:contextcheck // it closes what has ended; there is no caller to ask
	}
}

// take removes the session that has been ready longest. It returns nil if none is ready.
func (p *Pool) take() (*warm, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, agent.ErrClosed
	}
	if len(p.ready) == 0 {
		return nil, nil //nolint:nilnil // none is no error
	}
	w := p.ready[0]
	p.ready = slices.Delete(p.ready, 0, 1)
	close(w.taken)
	p.resting++
	p.wg.Go(func() { p.rest(w.s) })
	return w, nil
}

// rest delays the replacement of a session that was handed out until it has its first answer.
func (p *Pool) rest(s *session) {
	timer := time.NewTimer(poolRest)
	defer timer.Stop()
	select {
	case <-s.answered:
	case <-s.ch.ctx.Done():
	case <-timer.C:
	case <-p.life.Done():
	}
	p.mu.Lock()
	p.resting--
	p.mu.Unlock()
	p.wakeUp()
}

// settle waits until a CLI has connected its servers and prepared its first turn, which it does after
// it has answered the first request.
func (p *Pool) settle(s *session) {
	ctx, cancel := context.WithTimeout(p.life, poolSettle)
	defer cancel()
	for _, request := range []string{"mcp_status", "get_context_usage"} {
		if err := s.control(ctx, request, map[string]string{"detail": "summary"}, nil); err != nil {
			p.logger.Debug("claude-code: a CLI of the pool did not settle", "request", request, "error", err)
			return // the CLI is usable nevertheless, or watch sees its end
		}
	}
}

// Ready waits until the pool is full. If a CLI cannot be started, Ready returns the reason.
func (p *Pool) Ready(ctx context.Context) error {
	for {
		p.mu.Lock()
		full, failure, closed, changed := len(p.ready) >= p.size, p.failure, p.closed, p.changed
		p.mu.Unlock()
		switch {
		case closed:
			return agent.ErrClosed
		case full:
			return nil
		case failure != nil:
			return failure
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Close ends the CLIs that are ready, within bounded time. Sessions that were handed out continue, and
// their users close them. Close may be called more than once.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	p.signal()
	p.mu.Unlock()
	p.stop(errPoolClosed)
	p.wg.Wait()
	return nil
}

// open starts a session with the pool's options.
func (p *Pool) open(ctx context.Context) (*session, error) {
	client, err := agent.Open(ctx, p.engine, &p.opts)
	if err != nil {
		return nil, err
	}
	s, ok := client.Session().(*session)
	if !ok {
		return nil, fmt.Errorf("claude-code: the engine opened a %T", client.Session())
	}
	return s, nil
}

// fill keeps the pool full until it is closed.
func (p *Pool) fill() {
	wait := poolBackoff
	for p.life.Err() == nil {
		if p.full() {
			select {
			case <-p.wake:
			case <-p.life.Done():
			}
			continue
		}
		s, err := p.open(p.life)
		if err == nil {
			wait = poolBackoff
			p.settle(s)
			p.keep(s)
			continue
		}
		if p.life.Err() != nil {
			return
		}
		p.logger.Warn("claude-code: the pool could not start a CLI", "error", err, "again in", wait)
		p.mu.Lock()
		p.failure = err
		p.signal()
		p.mu.Unlock()
		select {
		case <-time.After(wait):
		case <-p.life.Done():
		}
		wait = min(2*wait, poolMaxBackoff)
	}
}

func (p *Pool) full() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ready)+p.resting >= p.size
}

// keep adds a session to the pool and starts watch for it.
func (p *Pool) keep(s *session) {
	w := &warm{s: s, taken: make(chan struct{}), born: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready = append(p.ready, w)
	p.failure = nil
	p.signal()
	p.wg.Go(func() { p.watch(w) })
}

// watch waits until a session is handed out. If the session ends or becomes too old, watch removes it.
func (p *Pool) watch(w *warm) {
	var old <-chan time.Time
	if p.maxAge > 0 {
		timer := time.NewTimer(p.maxAge)
		defer timer.Stop()
		old = timer.C
	}
	died := false
	select {
	case <-w.taken:
		return
	case <-w.s.ch.ctx.Done():
		died = true
	case <-old:
	case <-p.life.Done():
	}
	p.mu.Lock()
	i := slices.Index(p.ready, w)
	if i >= 0 {
		p.ready = slices.Delete(p.ready, i, i+1)
		p.signal()
	}
	p.mu.Unlock()
	if i < 0 {
		return // handed out at the same moment, so its user sees the end
	}
	if died {
		p.logger.Warn("claude-code: a CLI of the pool exited before it was used", "error", context.Cause(w.s.ch.ctx))
		// A CLI that dies at once is not replaced at once.
		if young := poolBackoff - time.Since(w.born); young > 0 {
			select {
			case <-time.After(young):
			case <-p.life.Done():
			}
		}
	}
	_ = w.s.Close()
	p.wakeUp()
}

// wakeUp wakes fill.
func (p *Pool) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// signal wakes Ready. The caller holds p.mu.
func (p *Pool) signal() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// beyondDefaults returns the names of the options that are set to other values than package agent sets
// by default.
func beyondDefaults(o *agent.Options) []string {
	if o == nil {
		return nil
	}
	c := *o
	c.SessionID, c.Logger = "", nil
	if c.PermissionMode == permission.ModeDefault {
		c.PermissionMode = ""
	}
	if c.MaxToolConcurrency == agent.DefaultMaxToolConcurrency {
		c.MaxToolConcurrency = 0
	}
	if c.MaxQueuedInputs == agent.DefaultMaxQueuedInputs {
		c.MaxQueuedInputs = 0
	}
	var fields []string
	v := reflect.ValueOf(c)
	for _, f := range reflect.VisibleFields(v.Type()) {
		if !v.FieldByIndex(f.Index).IsZero() {
			fields = append(fields, f.Name)
		}
	}
	return fields
}

var _ agent.Engine = (*Pool)(nil)
