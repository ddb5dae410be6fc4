package claudecode

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
)

func newPool(t *testing.T, mode string, p *PoolOptions, change func(*agent.Options)) *Pool {
	t.Helper()
	e, o := fake(mode)
	if change != nil {
		change(o)
	}
	pool, err := NewPool(t.Context(), e, o, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

// pids are the processes that wait in the pool.
func (p *Pool) pids() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []int
	for _, w := range p.ready {
		all = append(all, w.s.proc.PID())
	}
	return all
}

func gone(pid int) bool {
	p, err := os.FindProcess(pid)
	return err != nil || p.Signal(syscall.Signal(0)) != nil
}

// kill ends a process as kill -9 does.
func kill(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A pool hands out what is ready, one for each session, and refills itself.
//
// fault F20
func TestPoolHandsOutAndRefills(t *testing.T) {
	pool := newPool(t, "polite", &PoolOptions{Size: 2}, func(o *agent.Options) {
		o.MCPServers = map[string]mcphost.ServerConfig{"mine": mcphost.InProcess(echo(t))}
	})
	if err := pool.Ready(limited(t, "the pool")); err != nil {
		t.Fatal(err)
	}
	warm := pool.pids()
	ids := map[string]bool{}
	for i := range 2 {
		c, err := agent.Open(limited(t, "a session of the pool"), pool, nil)
		if err != nil {
			t.Fatal(err)
		}
		control, ok := ControlOf(c)
		if !ok || control.s.proc.PID() != warm[i] {
			t.Errorf("session %d is not the one that was ready", i)
		}
		ids[control.s.opts.SessionID] = true
		if err := c.Send(t.Context(), "hi"); err != nil {
			t.Fatal(err)
		}
		if r := response(t, c); r == nil || !strings.Contains(r.Result, "hello yourself") {
			t.Errorf("result %+v", r)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(ids) != 2 {
		t.Errorf("session IDs %v", ids)
	}
	if err := pool.Ready(limited(t, "the pool")); err != nil {
		t.Fatal(err)
	}
	again := pool.pids()
	if len(again) != 2 || again[0] == warm[0] {
		t.Errorf("first %v, then %v", warm, again)
	}
	// Queries at once: two from the pool, the others start theirs.
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, err := ask(t, pool, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := pool.Ready(limited(t, "the pool")); err != nil {
		t.Fatal(err)
	}
	last := pool.pids()
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range append(last, again...) {
		if !gone(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
	if _, err := agent.Open(t.Context(), pool, nil); !errors.Is(err, agent.ErrClosed) {
		t.Errorf("a closed pool: %v", err)
	}
	if err := pool.Ready(limited(t, "the pool")); !errors.Is(err, agent.ErrClosed) {
		t.Errorf("a closed pool: %v", err)
	}
}

// A CLI that dies while it waits is replaced and never handed out.
//
// fault F20
func TestPoolReplacesTheBroken(t *testing.T) {
	pool := newPool(t, "polite", nil, nil)
	if err := pool.Ready(limited(t, "the pool")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		pool.mu.Lock()
		w, changed := pool.ready[0], pool.changed
		pool.mu.Unlock()
		kill(t, w.s.proc.PID())
		await(t, changed, "the pool to take a dead CLI out")
		if err := pool.Ready(limited(t, "the pool")); err != nil {
			t.Fatal(err)
		}
		if pids := pool.pids(); len(pids) != 1 || pids[0] == w.s.proc.PID() {
			t.Errorf("in the pool: %v, killed %d", pids, w.s.proc.PID())
		}
	}
	if _, err := ask(t, pool, nil); err != nil {
		t.Error(err)
	}
}

// Where no CLI starts, waiting says why, and so does a session.
func TestPoolThatCannotStart(t *testing.T) {
	pool := newPool(t, "dies-at-initialize", &PoolOptions{Size: 2}, nil)
	var pe *ProcessError
	if err := pool.Ready(limited(t, "the pool")); !errors.As(err, &pe) || !strings.Contains(pe.Stderr, "gone at initialize") {
		t.Errorf("got %v", err)
	}
	if _, err := ask(t, pool, nil); !errors.As(err, &pe) {
		t.Errorf("got %v", err)
	}
}

// Closing a pool whose CLI does not answer does not hang, and leaves nothing behind.
func TestPoolOfTheDeaf(t *testing.T) {
	pool := newPool(t, "deaf", nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := pool.Ready(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
}

// One that is too old is taken out, and another takes its place.
//
// fault F20
func TestPoolReplacesTheOld(t *testing.T) {
	pool := newPool(t, "polite", &PoolOptions{MaxAge: 1}, nil)
	pool.mu.Lock()
	changed := pool.changed
	pool.mu.Unlock()
	for range 4 { // in and out, twice
		await(t, changed, "the pool to replace an old CLI")
		pool.mu.Lock()
		changed = pool.changed
		pool.mu.Unlock()
	}
}

func TestPoolRefusesWhatItCannotKeep(t *testing.T) {
	e, o := fake("polite")
	for _, bad := range []agent.Options{{SessionID: someID}, {Resume: agent.Resume{Latest: true}}, {History: []agent.Message{&agent.User{}}}} {
		if _, err := NewPool(t.Context(), e, &bad, nil); err == nil {
			t.Errorf("a pool for %+v", bad)
		}
	}
	if _, err := NewPool(t.Context(), e, o, &PoolOptions{Size: -1}); err == nil {
		t.Error("a pool of less than nothing")
	}
	pool := newPool(t, "polite", nil, nil)
	_, err := agent.Open(t.Context(), pool, &agent.Options{Model: "m", Dir: os.TempDir()})
	var ue *agent.UnsupportedError
	if !errors.As(err, &ue) || strings.Join(ue.Fields, ",") != "Model,Dir" {
		t.Errorf("got %v", err)
	}
}

// The pool's bound of inputs is that of each session; a session that asks for none gets the pool's.
//
// fault G11
func TestPoolBoundsInputs(t *testing.T) {
	pool := newPool(t, "deaf-in-turn", nil, func(o *agent.Options) { o.MaxQueuedInputs = 2 })
	c, err := agent.Open(limited(t, "a session of the pool"), pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := range 3 {
		if err := c.Send(t.Context(), "hi"); (err != nil) != (i == 2) || i == 2 && !errors.Is(err, agent.ErrTooManyInputs) {
			t.Errorf("input %d: %v", i, err)
		}
	}
	var ue *agent.UnsupportedError
	if _, err := agent.Open(t.Context(), pool, &agent.Options{MaxQueuedInputs: 3}); !errors.As(err, &ue) || strings.Join(ue.Fields, ",") != "MaxQueuedInputs" {
		t.Errorf("a bound of the session's own: %v", err)
	}
}
