package claudecode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/permission"
)

const (
	// poolBackoff is the wait before another start after a failure. It doubles up to poolMaxBackoff.
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
	engine   *Engine
	opts     agent.Options
	size     int
	maxAge   time.Duration
	logger   *slog.Logger
	starting chan struct{} // holds a token while a CLI starts: one after the other

	life context.Context // ends with Close
	stop context.CancelCauseFunc
	wg   sync.WaitGroup // one goroutine for each CLI that is kept ready

	mu      sync.Mutex      // guards the rest
	ready   []*readySession // the one that has been ready longest first
	changed chan struct{}   // closed and replaced when ready or failure changes
	failure error           // of the last start; nil after a success
}

// A readySession waits for its first input.
type readySession struct {
	s     *session
	taken chan struct{} // closed when the session is handed out
}

// errPoolClosed ends sessions that a pool is starting when it is closed.
var errPoolClosed = errors.New("claude-code: the pool is closed")

// NewPool returns a pool that starts CLIs with the options o, which must not name or resume a session.
// The pool uses the values of ctx and ignores its end: Close ends the pool.
func NewPool(ctx context.Context, e *Engine, o *agent.Options, p *PoolOptions) (*Pool, error) {
	p = cmp.Or(p, new(PoolOptions))
	if p.Size < 0 || p.MaxAge < 0 {
		return nil, fmt.Errorf("claude-code: PoolOptions has Size %d and MaxAge %v, want 0 or more", p.Size, p.MaxAge)
	}
	pool := &Pool{
		engine: e, opts: *cmp.Or(o, new(agent.Options)), size: max(p.Size, 1), maxAge: cmp.Or(p.MaxAge, math.MaxInt64),
		starting: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	pool.logger = cmp.Or(pool.opts.Logger, slog.New(slog.DiscardHandler))
	if err := unsupported("claude-code pool", &pool.opts); err != nil {
		return nil, err
	}
	if pool.opts.SessionID != "" || pool.opts.Resume != (agent.Resume{}) {
		return nil, errors.New("claude-code: a pool's sessions are new ones: SessionID and Resume must not be set")
	}
	pool.life, pool.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	for range pool.size {
		pool.wg.Go(pool.keepReady)
	}
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
	if p.life.Err() != nil {
		return nil, agent.ErrClosed
	}
	if s := p.take(); s != nil {
		return s, nil
	}
	s, err := p.start(ctx)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// take removes the session that has been ready longest. It returns nil if none is ready.
func (p *Pool) take() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.ready) > 0 {
		r := p.ready[0]
		p.ready = p.ready[1:]
		if r.s.alive() { // else offer closes it
			close(r.taken)
			return r.s
		}
	}
	return nil
}

// Ready waits until the pool is full. If a CLI cannot be started, Ready returns the reason.
func (p *Pool) Ready(ctx context.Context) error {
	for {
		p.mu.Lock()
		full, failure, changed := len(p.ready) >= p.size, p.failure, p.changed
		p.mu.Unlock()
		switch {
		case p.life.Err() != nil:
			return agent.ErrClosed
		case full:
			return nil
		case failure != nil:
			return failure
		}
		select {
		case <-changed:
		case <-p.life.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Close ends the CLIs that are ready, within bounded time. Sessions that were handed out continue, and
// their users close them. Close may be called more than once.
func (p *Pool) Close() error {
	p.stop(errPoolClosed)
	p.wg.Wait()
	return nil
}

// update changes what mu guards and wakes Ready.
func (p *Pool) update(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

// start starts a session with the options of the pool.
func (p *Pool) start(ctx context.Context) (*session, error) {
	client, err := agent.Open(ctx, p.engine, &p.opts)
	if err != nil {
		return nil, err
	}
	return client.Session().(*session), nil
}

// keepReady keeps one CLI ready until the pool is closed.
func (p *Pool) keepReady() {
	wait := poolBackoff
	for p.life.Err() == nil {
		s, err := p.startSettled()
		if err == nil {
			if p.offer(s) > poolBackoff {
				wait = poolBackoff
				continue
			}
		} else if p.life.Err() == nil {
			p.logger.Warn("claude-code: the pool could not start a CLI", "error", err, "again in", wait)
			p.update(func() { p.failure = err })
		}
		p.sleep(wait, nil, nil)
		wait = min(2*wait, poolMaxBackoff)
	}
}

// sleep waits until a time has passed, one of the channels is closed, or the pool is closed.
func (p *Pool) sleep(d time.Duration, a, b <-chan struct{}) {
	select {
	case <-time.After(d):
	case <-a:
	case <-b:
	case <-p.life.Done():
	}
}

// startSettled starts a session and waits until its CLI has connected its servers and prepared the
// first turn, which the CLI does after it has answered the first request.
func (p *Pool) startSettled() (*session, error) {
	select {
	case p.starting <- struct{}{}:
		defer func() { <-p.starting }()
	case <-p.life.Done():
		return nil, context.Cause(p.life)
	}
	s, err := p.start(p.life)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(p.life, poolSettle)
	defer cancel()
	for _, request := range []string{"mcp_status", "get_context_usage"} {
		if err := s.control(ctx, request, map[string]string{"detail": "summary"}, nil); err != nil {
			p.logger.Debug("claude-code: a CLI of the pool did not settle", "request", request, "error", err)
			break // the CLI is usable nevertheless, or offer sees its end
		}
	}
	return s, nil
}

// offer keeps a session in the pool until it is handed out, ends, or is too old. It returns how long
// the session was alive, or more.
func (p *Pool) offer(s *session) time.Duration {
	r := &readySession{s: s, taken: make(chan struct{})}
	began := time.Now()
	p.update(func() { p.ready, p.failure = append(p.ready, r), nil })
	p.sleep(p.maxAge, r.taken, s.ch.ctx.Done())
	p.update(func() { p.ready = slices.DeleteFunc(p.ready, func(other *readySession) bool { return other == r }) })
	select {
	case <-r.taken: // its user closes it
		p.sleep(poolRest, s.answered, s.ch.ctx.Done())
		return math.MaxInt64
	default:
	}
	lasted := time.Duration(math.MaxInt64)
	if !s.alive() {
		lasted = time.Since(began)
		p.logger.Warn("claude-code: a CLI of the pool exited before it was used", "error", context.Cause(s.ch.ctx))
	}
	_ = s.Close()
	return lasted
}

// beyondDefaults returns the names of the options that are set to other values than package agent sets
// by default.
func beyondDefaults(o *agent.Options) []string {
	if o == nil {
		return nil
	}
	defaults := reflect.ValueOf(agent.Options{
		SessionID: o.SessionID, Logger: o.Logger, PermissionMode: permission.ModeDefault,
		MaxToolConcurrency: agent.DefaultMaxToolConcurrency, MaxQueuedInputs: agent.DefaultMaxQueuedInputs,
	})
	var fields []string
	for f, v := range reflect.ValueOf(*o).Fields() {
		if !v.IsZero() && !reflect.DeepEqual(v.Interface(), defaults.FieldByIndex(f.Index).Interface()) {
			fields = append(fields, f.Name)
		}
	}
	return fields
}

var _ agent.Engine = (*Pool)(nil)
