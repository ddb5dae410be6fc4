package mcphost

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/secret"
	"github.com/tenon-sdk/tenon/internal/subproc"
)

// Eras of the protocol, as remembered of a server.
const (
	eraUnknown int32 = iota
	eraSessions
	eraStateless
)

// A dialer makes connections to one server.
type dialer struct {
	name   string
	cfg    ServerConfig
	opts   *Options
	log    *slog.Logger
	shared *http.Client
	panics *limitedLog // of functions of the program's
	mask   *secret.Masker
	limits limits
	handle handlers

	era   atomic.Int32 // so that a server is probed once, not at each connection
	extra atomic.Int32 // handshakes that attempts made beyond their first, since the owner last asked

	mu       sync.Mutex            // guards the rest
	rejected map[RejectedTool]bool // that were logged, of the latest list
	// closed is closed when the links of failed attempts are, nil if there were none. A failure is told of
	// before that, since a child process may take its whole grace; the next attempt waits for it.
	closed chan struct{}
}

// dial makes one attempt: connect, handshake, tool list. ctx has the limit for connecting. It begins when the one before is over, which closes
// before; nil if there was none. The error is a *ConnectError.
func (d *dialer) dial(ctx context.Context, before <-chan struct{}) (link, toolList, error) {
	began := time.Now()
	if before != nil {
		select {
		case <-before:
		case <-ctx.Done():
			return nil, toolList{}, d.fault(ctx, PhaseStart, ctx.Err(), nil)
		}
	}
	l, err := d.open(ctx)
	if err == nil {
		list, lerr := d.list(ctx, l)
		if lerr == nil {
			return l, list, nil
		}
		err = d.fault(ctx, PhaseList, lerr, l)
		d.discard(l)
	}
	var ce *ConnectError
	if errors.As(err, &ce) {
		ce.Elapsed = ce.failed.Sub(began)
	}
	return nil, toolList{}, err
}

// discard closes the link of a failed attempt, without waiting for it: see awaitClosed.
func (d *dialer) discard(l link) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, closed := d.closed, make(chan struct{})
	d.closed = closed
	go func() { // awaitClosed waits for it
		defer close(closed)
		_ = l.close() // why it failed is known
		if before != nil {
			<-before
		}
	}()
}

// awaitClosed waits until discarded links are closed, or until giveUp; nil is never.
func (d *dialer) awaitClosed(giveUp <-chan struct{}) {
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed == nil {
		return
	}
	select {
	case <-closed:
	case <-giveUp:
	}
}

// open connects and shakes hands.
func (d *dialer) open(ctx context.Context) (link, error) {
	if err := d.cfg.validate(); err != nil {
		return nil, d.fault(ctx, PhaseConfig, err, nil)
	}
	switch c := d.cfg.(type) {
	case Stdio:
		return d.openStdio(ctx, c)
	case HTTP:
		return d.openHTTP(ctx, c)
	case SSE:
		return d.openSSE(ctx, HTTP(c))
	case InProcessServer:
		return d.openLocal(ctx, c)
	case Custom:
		return d.openCustom(ctx, c)
	}
	return nil, d.fault(ctx, PhaseConfig, fmt.Errorf("unknown kind of server %T", d.cfg), nil)
}

// openStdio starts the process and shakes hands. Some servers end, in any way, when the first message is not initialize:
// one that ended on the probe is started again without it, and the handshake's success makes that remembered.
func (d *dialer) openStdio(ctx context.Context, c Stdio) (link, error) {
	l, err := d.tryStdio(ctx, c, d.era.Load() != eraSessions)
	if err != nil && d.era.Load() == eraUnknown && ctx.Err() == nil && endedInHandshake(err) {
		d.awaitClosed(ctx.Done())
		d.extra.Add(1)
		again, aerr := d.tryStdio(ctx, c, false)
		if aerr == nil || ctx.Err() == nil {
			l, err = again, aerr
		} // else the first error says more than that there was no time for another start
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// endedInHandshake reports whether the process ended before it answered.
func endedInHandshake(err error) bool {
	var ce *ConnectError
	return errors.As(err, &ce) && ce.Exited && ce.Phase == PhaseInitialize
}

func (d *dialer) tryStdio(ctx context.Context, c Stdio, probe bool) (*remoteLink, error) {
	proc, err := startStdio(ctx, c, d.opts, d.onStderr())
	if err != nil {
		phase := PhaseStart
		if errors.As(err, new(*subproc.LookupError)) {
			phase = PhaseLookup
		}
		return nil, d.fault(ctx, phase, err, nil)
	}
	l := d.newRemote(ctx, min(probeTime, d.limits.connect/3))
	l.proc = proc
	l.car = newStdioCarrier(proc, l.wire, d.limits.message)
	l.wire.car = l.car
	return l, d.handshake(ctx, l, probe)
}

func (d *dialer) onStderr() func(string) {
	if d.opts.OnStderr == nil {
		return nil
	}
	return func(line string) {
		_ = contain(d.panics, "OnStderr", func() error { d.opts.OnStderr(d.name, line); return nil }) // the log has it
	}
}

func (d *dialer) openHTTP(ctx context.Context, c HTTP) (link, error) {
	at, err := d.endpoint(ctx, c)
	if err != nil {
		return nil, d.fault(ctx, endpointPhase(err), err, nil)
	}
	l := d.newRemote(ctx, d.limits.connect/2) // a login may go on inside of the probe
	l.http = true
	car := newHTTPCarrier(ctx, at, l.wire, d.limits.message)
	l.car, l.wire.car = car, car
	if err := d.handshake(ctx, l, d.era.Load() != eraSessions); err != nil {
		return nil, err
	}
	car.negotiated(l.told.version)
	car.attach(hooks{
		forgot: func(ctx context.Context) bool { return l.refusesAll(ctx) != nil },
		missed: func() {
			if t := l.told.capabilities.Tools; t != nil && t.ListChanged {
				d.handle.toolsChanged()
			}
		},
	})
	if l.told.version < statelessSince {
		car.standing(ctx)
	}
	return l, nil
}

func (d *dialer) openSSE(ctx context.Context, c HTTP) (link, error) {
	at, err := d.endpoint(ctx, c)
	if err != nil {
		return nil, d.fault(ctx, endpointPhase(err), err, nil)
	}
	l := d.newRemote(ctx, 0) // there is no probe
	car, err := openSSE(ctx, at, l.wire, d.limits.message)
	if err != nil {
		return nil, d.fault(ctx, PhaseStart, err, nil)
	}
	l.car, l.wire.car = car, car
	if err := d.handshake(ctx, l, false); err != nil {
		return nil, err
	}
	return l, nil
}

// endpointPhase is the phase of a fault in preparing requests: headers that cannot be computed are no fault of the
// configuration, and may be had later.
func endpointPhase(err error) string {
	if errors.As(err, new(*headersError)) {
		return PhaseStart
	}
	return PhaseConfig
}

func (d *dialer) newRemote(ctx context.Context, probing time.Duration) *remoteLink {
	l := &remoteLink{name: d.name, log: d.log, answer: d.answerInput, progress: map[int64]func(Progress){}}
	l.doubts.turn = make(chan struct{}, 1)
	l.wire = newWire(ctx, d.log, d.mask, notifications{
		progress:        l.onProgress,
		log:             d.handle.log,
		toolsChanged:    d.handle.toolsChanged,
		listChanged:     d.handle.listChanged,
		resourceUpdated: d.handle.resourceUpdated,
	}, probing)
	l.ender = sync.OnceValue(l.shutdown)
	return l
}

// handshake connects the library's client. On an error the link is discarded, and
// the error is a *ConnectError.
func (d *dialer) handshake(ctx context.Context, l *remoteLink, probe bool) error {
	err := l.connect(ctx, d.client(), probe)
	if err != nil {
		ce := d.fault(ctx, PhaseInitialize, err, l)
		if errors.As(err, new(*HTTPError)) || errors.As(err, new(*jsonrpc.Error)) {
			d.era.Store(eraUnknown) // perhaps it is another server by now, which wants another protocol
		}
		d.discard(l)
		return ce
	}
	if l.told.version >= statelessSince {
		d.era.Store(eraStateless)
	} else {
		d.era.Store(eraSessions)
	}
	return nil
}

// client makes the library's client for one connection.
func (d *dialer) client() *mcp.Client {
	caps := &mcp.ClientCapabilities{}
	o := &mcp.ClientOptions{
		Logger:       d.log,
		Capabilities: caps,
		// Results stay raw here, so their requests for input are this package's.
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		// The wire keeps these notifications; the library must only believe that
		// they are wanted, to subscribe to them where that is needed.
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) {},
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) {},
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) {},
	}
	roots := d.roots()
	if len(roots) > 0 {
		caps.RootsV2 = &mcp.RootCapabilities{ListChanged: true}
	}
	if d.handle.elicit != nil {
		caps.Elicitation = &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}
	}
	if d.handle.sample != nil {
		o.CreateMessageWithToolsHandler = func(ctx context.Context, req *mcp.CreateMessageWithToolsRequest) (*mcp.CreateMessageWithToolsResult, error) {
			return d.handle.sample(ctx, req.Params)
		}
	}
	c := mcp.NewClient(d.opts.Client, o)
	c.AddRoots(roots...)
	if d.handle.elicit != nil {
		c.AddReceivingMiddleware(d.elicitation)
	}
	return c
}

// elicitation answers elicitation/create in the library's place, which would
// run a stranger's schema through a validator that {"$ref":"#"} crashes.
func (d *dialer) elicitation(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		p, ok := req.GetParams().(*mcp.ElicitParams)
		if !ok || p == nil {
			return next(ctx, method, req)
		}
		res, err := d.handle.elicit(ctx, p)
		if err != nil {
			return nil, err
		}
		return res, nil
	}
}

// roots are what the server is told about.
func (d *dialer) roots() []*mcp.Root {
	paths := d.cfg.common().Roots
	if paths == nil {
		paths = d.opts.Roots
	}
	if paths == nil {
		paths = []string{d.opts.Dir}
	}
	roots := make([]*mcp.Root, 0, len(paths))
	for _, p := range paths {
		roots = append(roots, &mcp.Root{URI: rootURI(p)})
	}
	return roots
}

func rootURI(path string) string {
	if strings.HasPrefix(path, "file:") {
		return path
	}
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive letter
	}
	return (&url.URL{Scheme: "file", Path: slashed}).String()
}
