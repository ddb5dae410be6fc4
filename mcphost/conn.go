package mcphost

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/callback"
	"github.com/tenon-sdk/tenon/internal/lograte"
	"github.com/tenon-sdk/tenon/mcpserver"
)

const (
	// stableAfter is how long a connection must last to count as stable. A successful call proves
	// it too.
	stableAfter = 10 * time.Second
	// relistPause is the time to wait for further list changes. It grows to relistPauseMax while
	// they continue.
	relistPause    = 50 * time.Millisecond
	relistPauseMax = 10 * time.Second
	// useHold is the pause after a call's attempt to connect a failed server, doubled each time up
	// to useHoldMax.
	useHold    = 10 * time.Second
	useHoldMax = time.Minute
)

// A conn is a configured server: the goroutine that manages its connection, and the state for
// status, tools and calls.
type conn struct {
	name   string
	cfg    ServerConfig
	dialer *dialer
	log    *slog.Logger
	remote bool // HTTP or SSE
	cache  *toolCache
	notify func(Event)
	// breakAfter and probeInterval are those of [Options]; zero or less means never.
	breakAfter    int
	probeInterval time.Duration
	calls         *lograte.Logger // of calls that timed out
	touch         func()          // the catalogue must be built anew; c.mu may be held
	revised       *atomic.Uint64  // the host's count of changes
	slots         *slots          // of calls at once; nil without a limit
	updates       *updates        // of resources; nil if nobody listens
	gone          atomic.Bool     // SetServers took it out: nothing is told of it any more

	quit   chan struct{} // closed by close
	wg     sync.WaitGroup
	cmds   chan command
	use    chan struct{} // a call needs the server; holds one
	relist chan struct{} // the server's tools changed; holds one

	mu      sync.Mutex // guards the rest
	started bool
	closing bool
	why     error // of closing, if that is not the host's; see leave
	state   state
	rec     record
	subs    map[string]bool  // resources subscribed to, also over connections made anew
	level   mcp.LoggingLevel // asked for; empty if none was
	changed chan struct{}    // closed and replaced at each change of state or record
}

// A record is the state of a server.
type record struct {
	link     *liveLink // non-nil in phaseReady alone
	info     linkInfo
	list     toolList
	byName   map[string]*Tool // of list.tools
	err      error            // why it is not connected, or not wholly
	stalled  error            // why calls fail at once though it is connected, nil if they do not
	diag     diagnostics      // of the last connection, once it is gone
	cached   bool             // list comes from the cache
	since    time.Time        // of the shown status
	lastOK   time.Time
	lastBad  time.Time
	upSince  time.Time // of the connection
	proven   bool      // the connection served a call
	took     time.Duration
	nextTry  time.Time
	holdTill time.Time // no call may try to revive the server before
	hold     time.Duration
	settled  bool // it left pending once
}

// A command is a request to the goroutine.
type command struct {
	ev    event
	reply chan error // gets the outcome of the attempt that it leads to; holds one
}

func newConn(name string, cfg ServerConfig, h *Host) *conn {
	c := &conn{
		name: name, cfg: cfg, quit: make(chan struct{}),
		log:        h.opts.Logger.With("server", name),
		remote:     cfg.transport() == TransportHTTP || cfg.transport() == TransportSSE,
		slots:      newSlots(name, h.opts.MaxServerCalls, h.opts.MaxQueuedCalls),
		breakAfter: h.opts.BreakAfter, probeInterval: h.opts.ProbeInterval,
		touch:   func() { h.revision.Add(1) },
		revised: &h.revision,
		cmds:    make(chan command),
		use:     make(chan struct{}, 1),
		relist:  make(chan struct{}, 1),
		subs:    map[string]bool{},
		changed: make(chan struct{}),
	}
	c.notify = func(ev Event) {
		if !c.gone.Load() {
			h.publish(ev)
		}
	}
	if tell := h.opts.OnResourceUpdated; tell != nil {
		c.updates = newUpdates(c.log, func(uri string) { tell(name, uri) })
	}
	c.rec.since = time.Now()
	c.calls = lograte.New(c.log)
	c.dialer = &dialer{
		name: name, cfg: cfg, opts: &h.opts, log: c.log, shared: h.client, limited: lograte.New(c.log),
		mask: newMasker(cfg), limits: h.opts.limitsFor(cfg.common()),
		handle: h.handlersFor(name, c),
	}
	if cfg.common().Disabled {
		c.state.phase = phaseDisabled
		c.rec.settled = true
	}
	if c.remote {
		c.cache = h.cache
	}
	return c
}

// remember uses the stored tool list of a server that is not started yet.
func (c *conn) remember(ctx context.Context) {
	if c.cache == nil {
		return
	}
	info, list, ok := c.cache.load(ctx, c.name, c.cfg)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rec.info = info
	c.setList(list)
	c.rec.cached = true
}

// close closes the conn and waits for its goroutines. It may be called more than once.
func (c *conn) close() {
	c.mu.Lock()
	if !c.closing {
		c.closing = true
		close(c.quit)
		if !c.started {
			c.state = state{phase: phaseClosed}
			c.broadcast()
		}
	}
	c.mu.Unlock()
	if c.updates != nil {
		c.updates.close()
	}
	c.wg.Wait()
	c.dialer.awaitClosed(nil)
}

// inProcess reports whether the server is in this process.
func (c *conn) inProcess() bool { _, ok := c.cfg.(InProcessServer); return ok }

// leave removes the conn from the host: it publishes no further changes, and its users learn why.
func (c *conn) leave(why error) {
	c.gone.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.why = why
}

// ended returns the error of requests to a closed conn.
func (c *conn) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.why, ErrClosed)
}

// toolsChanged handles the server's notice. It does not block.
func (c *conn) toolsChanged() {
	select {
	case c.relist <- struct{}{}:
	default: // one is waiting already
	}
}

// command sends a command and waits for the result of its attempt.
func (c *conn) command(ctx context.Context, ev event) error {
	cmd := command{ev: ev, reply: make(chan error, 1)}
	select {
	case c.cmds <- cmd:
	case <-c.quit:
		return c.ended()
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-cmd.reply:
		return err
	case <-c.quit:
		return c.ended()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// broadcast wakes those who wait for a change, after the host's revision has grown. The caller
// holds c.mu.
func (c *conn) broadcast() {
	c.revised.Add(1)
	close(c.changed)
	c.changed = make(chan struct{})
}

// acquire returns the link for one use, which release ends. It waits while the server is
// connecting, and makes one attempt if it is not connected.
func (c *conn) acquire(ctx context.Context) (*liveLink, error) {
	waited := false
	for {
		c.mu.Lock()
		l, changed, err := c.tryAcquire(waited)
		c.mu.Unlock()
		if l != nil || err != nil {
			return l, err
		}
		waited = true
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// tryAcquire returns the link, an error, or the channel to wait on. The caller holds c.mu.
func (c *conn) tryAcquire(waited bool) (*liveLink, <-chan struct{}, error) {
	switch c.state.phase {
	case phaseReady:
		switch l := c.rec.link; {
		case l.draining:
			return nil, c.changed, l.refusal
		case c.rec.stalled != nil:
			return nil, nil, c.rec.stalled
		case !isClosed(l.done()) && !isClosed(l.lost()):
			l.users++
			return l, nil, nil
		}
	case phaseClosed:
		return nil, nil, cmp.Or(c.why, ErrClosed)
	case phaseDisabled:
		return nil, nil, ErrDisabled
	case phaseFailed, phaseNeedsAuth:
		if waited || time.Now().Before(c.rec.holdTill) {
			return nil, nil, c.rec.err
		}
		c.rec.hold = min(max(2*c.rec.hold, useHold), useHoldMax)
		c.rec.holdTill = time.Now().Add(c.rec.hold)
		c.wantUse()
	case phaseLazy:
		c.wantUse()
	}
	return nil, c.changed, nil
}

func (c *conn) wantUse() {
	select {
	case c.use <- struct{}{}:
	default: // somebody asked already
	}
}

// release ends a use. err is its error, nil if the server answered.
func (c *conn) release(l *liveLink, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.users--; l.users == 0 && l.idle != nil && !isClosed(l.idle) {
		close(l.idle)
	}
	if err == nil {
		c.rec.lastOK = time.Now()
		c.rec.proven = c.rec.proven || c.rec.link == l
		l.silent = 0
	} else if errors.Is(err, ErrTimeout) {
		c.timedOut(l)
	}
}

// settle waits until the server has left pending once, or connects on first use.
func (c *conn) settle(ctx context.Context) error {
	return c.await(ctx, func() bool { return c.rec.settled || c.state.phase == phaseLazy || c.state.phase == phaseClosed })
}

// await waits until cond is true. It calls cond with c.mu held.
func (c *conn) await(ctx context.Context, cond func() bool) error {
	for {
		c.mu.Lock()
		ok, changed := cond(), c.changed
		c.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// showsTools reports whether the catalog has the server's tools: while it is connected, while it
// reconnects, and while they come from the cache. The caller holds c.mu.
func (c *conn) showsTools() bool {
	switch c.state.phase {
	case phaseReady, phaseLazy:
		return true
	case phaseConnecting, phaseBackoff:
		return c.state.purpose == purposeRecovery || c.state.purpose == purposeManual && c.rec.byName != nil || c.rec.cached
	}
	return false
}

// setList replaces the tool list. The caller holds c.mu.
func (c *conn) setList(list toolList) {
	c.rec.info.Instructions = c.dialer.mask.Hide(c.rec.info.Instructions)
	keepSchemas(c.rec.byName, list.tools)
	for i := range list.tools {
		c.finish(&list.tools[i])
	}
	c.rec.list, c.rec.cached = list, false
	c.rec.byName = make(map[string]*Tool, len(list.tools))
	for i := range list.tools {
		c.rec.byName[list.tools[i].Name] = &list.tools[i]
	}
}

// finish sets the fields of a tool that the configuration determines.
func (c *conn) finish(t *Tool) {
	t.AlwaysLoad = c.cfg.common().AlwaysLoad
	if own, ok := t.Meta["anthropic/alwaysLoad"].(bool); ok {
		t.AlwaysLoad = own
	}
	if c.cfg.transport() == TransportHTTP {
		t.headerParams, _ = mcpserver.HeaderParams(t.InputSchema) // an invalid one was rejected
	}
}

// timedOut counts a call that timed out. After several in a row without any message from the
// server, the server is pinged. The caller holds c.mu.
func (c *conn) timedOut(l *liveLink) {
	if heard := l.received(); heard != l.receivedAt {
		l.receivedAt, l.silent = heard, 0
	}
	if l.silent++; c.breakAfter > 0 && l.silent >= c.breakAfter {
		select {
		case l.suspected <- struct{}{}:
		default: // it is asked already, or cannot be
		}
	}
}

// handlersFor returns the handlers of a server's links.
func (h *Host) handlersFor(name string, c *conn) handlers {
	hs := handlers{
		listChanged: func(method string) {
			if method == mcpserver.MethodToolListChanged {
				c.toolsChanged()
				return
			}
			ev := Event{Server: name, Status: StatusConnected, Time: time.Now()}
			ev.Resources = method == mcpserver.MethodResourceListChanged
			ev.Prompts = method == mcpserver.MethodPromptListChanged
			h.revision.Add(1)
			h.publish(ev)
		},
		resourceUpdated: func(uri string) {
			if c.updates != nil {
				c.updates.put(uri)
			}
		},
		log: func(p *mcp.LoggingMessageParams) { logFromServer(c.log, c.dialer.mask, p) },
	}
	if ask := h.opts.Elicit; ask != nil {
		hs.elicit = func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			res, err := noneIsError(callback.Detached(ctx, c.dialer.limited, "Elicit", func() (*mcp.ElicitResult, error) { return ask(ctx, name, p) }))
			if err != nil {
				return nil, err
			}
			return fillDefaults(res, p.RequestedSchema), nil
		}
	}
	if ask := h.opts.Sample; ask != nil {
		hs.sample = func(ctx context.Context, p *mcp.CreateMessageWithToolsParams) (*mcp.CreateMessageWithToolsResult, error) {
			return noneIsError(callback.Detached(ctx, c.dialer.limited, "Sample", func() (*mcp.CreateMessageWithToolsResult, error) { return ask(ctx, name, p) }))
		}
	}
	return hs
}
