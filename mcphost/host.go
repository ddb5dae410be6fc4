package mcphost

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenon-sdk/tenon/internal/toolname"
)

// errNotStarted reports that [Host.Start] was not called.
var errNotStarted = errors.New("mcphost: the host was not started")

// A Host connects to MCP servers and keeps them connected. All methods are safe
// for concurrent use. Its life ends with [Host.Close].
type Host struct {
	opts   Options
	client *http.Client
	cache  *toolCache // nil when it is off
	// revision counts the changes: see Revision.
	revision atomic.Uint64

	slots *slots // of calls at once; nil without a limit

	done    chan struct{}  // closed by Close
	wg      sync.WaitGroup // of watchers
	setting chan struct{}  // holds one while SetServers runs

	mu       sync.Mutex // guards the rest
	start    context.Context
	closed   bool
	conns    map[string]*conn
	catalog  *catalog
	built    uint64 // the revision that catalog was built from
	watchers map[*watcher]struct{}
}

// New returns a host for the servers of o. Nothing is started before
// [Host.Start]. A faulty server configuration is not an error here: that server
// is failed from the start, with the reason in its status.
func New(o *Options) (*Host, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	h := &Host{
		client:   newSharedClient(),
		done:     make(chan struct{}),
		setting:  make(chan struct{}, 1),
		slots:    newSlots("", opts.MaxCalls, opts.MaxQueuedCalls),
		conns:    map[string]*conn{},
		watchers: map[*watcher]struct{}{},
		catalog:  newCatalog(nil, opts.NameLimit),
	}
	servers := opts.Servers
	opts.Servers = nil
	h.opts = opts
	for _, p := range EnvProblems(opts.lookupEnv) {
		opts.Logger.Warn("environment variable cannot be used", "name", p.Name, "value", p.Value, "want", p.Want)
	}
	h.cache = newToolCache(&h.opts)
	for name, cfg := range servers {
		if isNil(cfg) {
			return nil, fmt.Errorf("mcphost: server %q has no configuration", name)
		}
		h.conns[name] = newConn(name, clone(cfg), h)
	}
	return h, nil
}

// Start begins connecting all servers and returns at once. The context's values
// reach the requests made for that; its end stops the first attempts that are under
// way, but the host's life ends with Close. A second Start does nothing.
func (h *Host) Start(ctx context.Context) {
	h.mu.Lock()
	if h.start != nil || h.closed {
		h.mu.Unlock()
		return
	}
	h.start = ctx
	conns := sortedConns(h.conns)
	h.mu.Unlock()
	for _, c := range conns { // without the lock: a store of credentials may be slow
		c.remember(ctx)
		c.run(ctx)
	}
}

// Ready waits until each of the named servers (none: every one) has left
// pending for the first time or is known to connect on first use. It returns
// ctx's error, [ErrUnknownServer] or [ErrClosed]; a server that failed is not an
// error, see [Host.Status].
func (h *Host) Ready(ctx context.Context, names ...string) error {
	conns, err := h.named(names)
	if err != nil {
		return err
	}
	for _, c := range conns {
		if err := c.settle(ctx); err != nil {
			return err
		}
	}
	if isClosed(h.done) {
		return ErrClosed
	}
	return nil
}

// named returns the servers with these names, or all of them, once the host is started.
func (h *Host) named(names []string) ([]*conn, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return nil, ErrClosed
	case h.start == nil:
		return nil, errNotStarted
	case len(names) == 0:
		return sortedConns(h.conns), nil
	}
	conns := make([]*conn, 0, len(names))
	for _, name := range names {
		c := h.conns[name]
		if c == nil {
			return nil, fmt.Errorf("%w: %q", ErrUnknownServer, name)
		}
		conns = append(conns, c)
	}
	return conns, nil
}

func (h *Host) conn(name string) (*conn, error) {
	conns, err := h.named([]string{name})
	if err != nil {
		return nil, err
	}
	return conns[0], nil
}

func sortedConns(m map[string]*conn) []*conn {
	conns := make([]*conn, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		conns = append(conns, m[name])
	}
	return conns
}

// Tools returns the tools of all connected servers, sorted by full name without
// regard to case. The slice is the caller's, what the tools point to is not. A
// server whose lost connection is being made again keeps its tools meanwhile.
func (h *Host) Tools() []Tool { return slices.Clone(h.current().tools) }

// Revision returns a number that grows with every change of [Host.Tools], [Host.Status] and the
// lists of resources and prompts. It is cheap.
func (h *Host) Revision() uint64 { return h.revision.Load() }

// Tool returns the tool with a full name.
func (h *Host) Tool(full string) (Tool, bool) {
	if t := h.current().byFull[full]; t != nil {
		return *t, true
	}
	return Tool{}, false
}

// current returns the catalogue, built anew if anything changed since.
func (h *Host) current() *catalog {
	h.mu.Lock()
	now := h.revision.Load()
	if now == h.built {
		defer h.mu.Unlock()
		return h.catalog
	}
	h.built = now
	servers := make([]listedServer, 0, len(h.conns))
	for name, c := range h.conns {
		c.mu.Lock()
		if c.showsTools() {
			servers = append(servers, listedServer{name, c.rec.list.tools})
		}
		c.mu.Unlock()
	}
	before, cat := h.catalog, newCatalog(servers, h.opts.NameLimit, slices.Collect(maps.Keys(h.conns))...)
	h.catalog = cat
	h.mu.Unlock() // the logger may ask the host
	for _, r := range cat.rejected {
		if !before.left[r] {
			h.opts.Logger.Warn("tool left out", "server", r.Server, "tool", r.Name, "reason", r.Reason)
		}
	}
	return cat
}

// Reconnect makes one attempt to connect a server now, in any state, and
// returns that attempt's error. A server that is switched off is switched on.
// Calls that run have [Options.CallGrace] to end; those that come meanwhile wait
// for the new connection. Attempts are at most eight in ten seconds, whoever
// asks for them: the next waits, and [ServerStatus.NextAttempt] says until when.
func (h *Host) Reconnect(ctx context.Context, name string) error {
	c, err := h.conn(name)
	if err != nil {
		return err
	}
	return h.closing(ctx, c, evReconnect, ErrReconnected, nil)
}

// closing gives the calls of a server their grace and then sends it a command that
// closes its connection.
func (h *Host) closing(ctx context.Context, c *conn, ev event, why, refusal error) error {
	restore := c.cut(why, refusal, h.opts.CallGrace, ctx.Done())
	if ctx.Err() != nil {
		restore()
		return ctx.Err()
	}
	err := c.command(ctx, ev)
	if ctx.Err() != nil {
		restore() // if it has its connection still
	}
	return err
}

// SetEnabled switches a server off or on again. Switching on makes one attempt
// to connect and returns its error. When it is switched off, calls that run have
// [Options.CallGrace] to end, and there are no new ones.
func (h *Host) SetEnabled(ctx context.Context, name string, on bool) error {
	c, err := h.conn(name)
	if err != nil {
		return err
	}
	if on {
		return c.command(ctx, evEnable)
	}
	return h.closing(ctx, c, evDisable, ErrDisabled, ErrDisabled)
}

// A SetResult says what [Host.SetServers] did.
type SetResult struct {
	Added, Removed, Changed []string
	// Errors has the servers that could not be connected, with the reasons.
	Errors map[string]error
}

// SetServers makes want the host's servers: it adds, removes and reconnects
// what differs, leaves the others alone, and waits until those it touched have
// left pending or ctx ends, whose error it returns then. Calls of SetServers wait for each other; if
// ctx ends meanwhile, nothing is changed. Calls that run on servers that are removed or replaced have
// [Options.CallGrace] to end, and no longer than ctx. [Host.Watch] reports those servers: see [Event].
func (h *Host) SetServers(ctx context.Context, want map[string]ServerConfig) (SetResult, error) {
	for name, cfg := range want {
		if isNil(cfg) {
			return SetResult{}, fmt.Errorf("mcphost: server %q has no configuration", name)
		}
	}
	select {
	case h.setting <- struct{}{}:
		defer func() { <-h.setting }()
	case <-ctx.Done():
		return SetResult{}, ctx.Err()
	}
	p, old, fresh, err := h.swap(want)
	if err != nil {
		return SetResult{}, err
	}
	h.publishSwap(p)
	var wg sync.WaitGroup
	for _, c := range old {
		wg.Go(func() {
			c.cut(c.why, c.why, h.opts.CallGrace, ctx.Done())
			c.close()
		})
	}
	wg.Wait()
	for _, c := range fresh { // not before: two generations of a process may share files
		c.remember(ctx)
		c.run(h.startContext()) // the life of a server is the host's, not the caller's
	}
	res := SetResult{Added: p.add, Removed: p.remove, Changed: p.change, Errors: map[string]error{}}
	for _, c := range fresh {
		if err := c.settle(ctx); err != nil {
			return res, err
		}
		c.mu.Lock()
		if c.rec.err != nil && c.state.phase != phaseReady {
			res.Errors[c.name] = c.rec.err
		}
		c.mu.Unlock()
	}
	return res, nil
}

// publishSwap tells watchers which servers left.
func (h *Host) publishSwap(p plan) {
	now := time.Now()
	for _, name := range p.remove {
		h.publish(Event{Server: name, Removed: true, Tools: true, Resources: true, Prompts: true, Err: ErrRemoved, Time: now})
	}
	for _, name := range p.change {
		h.publish(Event{Server: name, Status: StatusPending, Replaced: true, Tools: true, Resources: true, Prompts: true, Time: now})
	}
}

// swap puts the wanted servers in place and returns those that left and those
// that came, which are to be started.
func (h *Host) swap(want map[string]ServerConfig) (p plan, old, fresh []*conn, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return p, nil, nil, ErrClosed
	case h.start == nil:
		return p, nil, nil, errNotStarted
	}
	running := make(map[string]ServerConfig, len(h.conns))
	for name, c := range h.conns {
		running[name] = c.cfg
	}
	p = reconcile(running, want)
	leave := func(name string, why error) {
		h.conns[name].leave(why)
		old = append(old, h.conns[name])
		delete(h.conns, name)
	}
	for _, name := range p.remove {
		leave(name, ErrRemoved)
	}
	for _, name := range p.change {
		leave(name, ErrReplaced)
	}
	for _, name := range slices.Concat(p.add, p.change) {
		c := newConn(name, clone(want[name]), h)
		h.conns[name] = c
		fresh = append(fresh, c)
	}
	h.revision.Add(1)
	return p, old, fresh, nil
}

func (h *Host) startContext() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	return context.WithoutCancel(h.start)
}

// Closed reports whether [Host.Close] was called: then every call fails with
// [ErrClosed].
func (h *Host) Closed() bool { return isClosed(h.done) }

// Close ends all connections and processes and waits for them: at most
// [Options.CallGrace], the grace for polite children ([Options.CloseGrace], one
// and a half times) and two seconds, however many servers there are. It may be
// called more than once and from any goroutine.
func (h *Host) Close() error {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		close(h.done)
	}
	conns := sortedConns(h.conns)
	h.revision.Add(1)
	h.mu.Unlock()
	var wg sync.WaitGroup
	for _, c := range conns {
		wg.Go(func() {
			c.cut(ErrClosed, ErrClosed, h.opts.CallGrace, nil)
			c.close()
		})
	}
	wg.Wait()
	h.wg.Wait()
	h.client.CloseIdleConnections()
	return nil
}

// ReadyFor waits like [Host.Ready] for the server that has the tool with this full name, if there may
// be one that is still pending: mcp__a__b__c is a tool of a or of a__b, and both are waited for.
// It returns at once if none is.
func (h *Host) ReadyFor(ctx context.Context, fullName string) error {
	var pending []string
	for _, st := range h.Status() {
		if st.Status == StatusPending && strings.HasPrefix(fullName, toolname.Server(st.Name)+toolname.Separator) {
			pending = append(pending, st.Name)
		}
	}
	if len(pending) == 0 { // Ready would wait for all
		return nil
	}
	return h.Ready(ctx, pending...)
}
