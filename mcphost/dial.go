package mcphost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/callback"
	"github.com/tenon-sdk/tenon/internal/lograte"
	"github.com/tenon-sdk/tenon/internal/secret"
	"github.com/tenon-sdk/tenon/internal/subproc"
	"github.com/tenon-sdk/tenon/mcphost/internal/transport"
)

// A dialer connects to one server.
type dialer struct {
	name    string
	cfg     ServerConfig
	opts    *Options
	log     *slog.Logger
	shared  *http.Client
	limited *lograte.Logger // of panics of the program's functions, and of what a server can repeat
	mask    *secret.Masker
	limits  limits
	handle  handlers

	version atomic.Pointer[string] // of the protocol, at the last connection; nil if unknown
	extra   atomic.Int32           // handshakes that attempts made beyond their first, since the owner last asked

	mu       sync.Mutex            // guards the rest
	rejected map[RejectedTool]bool // that were logged, of the latest list
	// closed is closed when the links of failed attempts are closed, nil if there were none. An
	// attempt returns before that, since ending a child process may take its whole grace. The next
	// attempt waits for it.
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
		list, lerr := d.listTools(ctx, l)
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

// discard closes the link of a failed attempt in the background; see awaitClosed.
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

// awaitClosed waits for discarded links, or giveUp; nil means never.
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

// open connects and initializes.
func (d *dialer) open(ctx context.Context) (link, error) {
	if err := d.cfg.validate(); err != nil {
		return nil, d.fault(ctx, PhaseConfig, err, nil)
	}
	var l *remoteLink
	var err error
	switch c := d.cfg.(type) {
	case Stdio:
		l, err = d.openStdio(ctx, c)
	case HTTP:
		l, err = d.openHTTP(ctx, c)
	case SSE:
		l, err = d.openSSE(ctx, HTTP(c))
	case Custom:
		l, err = d.openCustom(ctx, c)
	case InProcessServer:
		return d.openLocal(ctx, c)
	default:
		err = d.fault(ctx, PhaseConfig, fmt.Errorf("unknown kind of server %T", d.cfg), nil)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// openStdio starts the process and initializes. Some servers exit if the first message is not
// initialize: a process that exits on server/discover is started again without it.
func (d *dialer) openStdio(ctx context.Context, c Stdio) (*remoteLink, error) {
	l, err := d.tryStdio(ctx, c, d.discovers())
	if err != nil && d.version.Load() == nil && ctx.Err() == nil && exitedInHandshake(err) {
		d.awaitClosed(ctx.Done())
		d.extra.Add(1)
		again, aerr := d.tryStdio(ctx, c, false)
		if aerr == nil || ctx.Err() == nil {
			return again, aerr
		} // else the first error says more than that there was no time for another start
	}
	return l, err
}

// exitedInHandshake reports whether the process exited before it answered.
func exitedInHandshake(err error) bool {
	var ce *ConnectError
	return errors.As(err, &ce) && ce.Exited && ce.Phase == PhaseInitialize
}

func (d *dialer) tryStdio(ctx context.Context, c Stdio, discover bool) (*remoteLink, error) {
	proc, err := startStdio(ctx, c, d.opts, d.onStderr())
	if err != nil {
		phase := PhaseStart
		if errors.As(err, new(*subproc.LookupError)) {
			phase = PhaseLookup
		}
		return nil, d.fault(ctx, phase, err, nil)
	}
	l := d.newRemote(transport.Stdio(ctx, proc, d.transportOptions(min(probeTime, d.limits.connect/3))))
	l.proc = proc
	return d.handshake(ctx, l, discover)
}

// startStdio starts the process of a configuration.
func startStdio(ctx context.Context, c Stdio, o *Options, onStderr func(string)) (*subproc.Proc, error) {
	return subproc.Start(ctx, subproc.Options{
		Command:  c.Command,
		Args:     c.Args,
		Env:      childEnv(c, o.lookupEnv),
		Dir:      cmp.Or(c.Dir, o.Dir),
		Grace:    o.CloseGrace,
		OnStderr: onStderr,
	})
}

// childEnv returns the environment of a process: this process's without the model's credentials,
// with the configuration's added, or the configuration's only.
func childEnv(c Stdio, lookup func(string) (string, bool)) []string {
	env := []string{} // not nil, which would mean the parent's
	if !c.CleanEnv {
		env = slices.DeleteFunc(os.Environ(), func(kv string) bool {
			name, _, _ := strings.Cut(kv, "=")
			return IsModelCredential(name, lookup)
		})
	}
	for k, v := range c.Env {
		env = append(env, k+"="+v) // the last of two with one name applies
	}
	return env
}

func (d *dialer) onStderr() func(string) {
	if d.opts.OnStderr == nil {
		return nil
	}
	return func(line string) {
		_ = callback.Run(d.limited, "OnStderr", func() error { d.opts.OnStderr(d.name, line); return nil }) // the log has it
	}
}

func (d *dialer) openHTTP(ctx context.Context, c HTTP) (*remoteLink, error) {
	e, err := d.endpoint(ctx, c, d.limits.connect/2) // a login may go on meanwhile
	if err != nil {
		return nil, err
	}
	return d.handshake(ctx, d.newRemote(transport.HTTP(ctx, e)), d.discovers())
}

func (d *dialer) openSSE(ctx context.Context, c HTTP) (*remoteLink, error) {
	e, err := d.endpoint(ctx, c, 0)
	if err != nil {
		return nil, err
	}
	client, err := transport.SSE(ctx, e)
	if err != nil {
		return nil, d.fault(ctx, PhaseStart, err, nil)
	}
	return d.handshake(ctx, d.newRemote(client), false)
}

func (d *dialer) openCustom(ctx context.Context, c Custom) (*remoteLink, error) {
	conn, err := c.connect(ctx, d.limited)
	if err != nil {
		return nil, d.fault(ctx, PhaseStart, err, nil)
	}
	client := transport.Custom(ctx, conn, d.transportOptions(min(probeTime, d.limits.connect/3)))
	return d.handshake(ctx, d.newRemote(client), d.discovers())
}

// endpoint returns the endpoint of a configuration with its headers. The error is a *ConnectError.
func (d *dialer) endpoint(ctx context.Context, c HTTP, probe time.Duration) (*transport.Endpoint, error) {
	headers := maps.Clone(c.Headers)
	if c.HeadersFunc != nil {
		var more map[string]string
		err := callback.Run(d.limited, "HeadersFunc", func() (err error) { more, err = c.HeadersFunc(ctx); return err })
		if err != nil {
			return nil, d.fault(ctx, PhaseStart, fmt.Errorf("computing headers: %w", err), nil)
		}
		if headers == nil {
			headers = map[string]string{}
		}
		maps.Copy(headers, more)
		d.mask.Learn(secret.InNamed(more))
	}
	e, err := transport.NewEndpoint(transport.EndpointOptions{
		URL: c.URL, Headers: headers, Recomputed: c.HeadersFunc != nil, Client: c.HTTPClient, Shared: d.shared, Auth: c.Auth,
	}, d.transportOptions(probe))
	if err != nil {
		return nil, d.fault(ctx, PhaseConfig, err, nil)
	}
	return e, nil
}

// newSharedClient returns the host's own HTTP client.
func newSharedClient() *http.Client {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if d, ok := http.DefaultTransport.(*http.Transport); ok {
		t = d.Clone()
	}
	t.MaxIdleConnsPerHost = 32
	return &http.Client{Transport: t}
}

// transportOptions returns the options of a connection. probe is how long the server may take to answer server/discover.
func (d *dialer) transportOptions(probe time.Duration) *transport.Options {
	return &transport.Options{
		Log: d.log, Limited: d.limited, Mask: d.mask, MaxMessageBytes: d.limits.message, ProbeTime: probe,
		Info: d.opts.Client, Roots: d.roots(), Elicit: d.handle.elicit, Sample: d.handle.sample,
		OnLog: d.handle.log, OnListChanged: d.handle.listChanged, OnResourceUpdated: d.handle.resourceUpdated,
	}
}

func (d *dialer) newRemote(c *transport.Client) *remoteLink {
	return &remoteLink{Client: c, name: d.name, log: d.log, limited: d.limited, mask: d.mask, answer: d.answerInput}
}

// discovers reports whether to begin with server/discover: unless the server is known to have a
// version without it.
func (d *dialer) discovers() bool {
	v := d.version.Load()
	return v == nil || *v >= transport.V20260728
}

// handshake initializes the connection. On an error, a *ConnectError, it discards the link.
func (d *dialer) handshake(ctx context.Context, l *remoteLink, discover bool) (*remoteLink, error) {
	if err := l.Handshake(ctx, discover); err != nil {
		ce := d.fault(ctx, PhaseInitialize, err, l)
		if errors.As(err, new(*HTTPError)) || errors.As(err, new(*jsonrpc.Error)) {
			d.version.Store(nil) // perhaps it is another server by now, of another version
		}
		d.discard(l)
		return nil, ce
	}
	version := l.Info().Version
	d.version.Store(&version)
	return l, nil
}

// roots are those that the server is told.
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

// maxNamed is how many tools that are left out are logged for one list.
const maxNamed = 100

// listTools lists the tools of a server and masks secrets in them. It logs each tool that is left
// out, unless it was already.
func (d *dialer) listTools(ctx context.Context, l link) (toolList, error) {
	list, err := l.listTools(ctx)
	list.problem = maskError(d.mask, list.problem)
	now := make(map[RejectedTool]bool, len(list.rejected))
	for i := range list.rejected {
		r := &list.rejected[i]
		r.Name, r.Reason = d.mask.Hide(r.Name), d.mask.Hide(r.Reason)
		now[*r] = true
	}
	d.mu.Lock()
	before := d.rejected
	d.rejected = now
	d.mu.Unlock()
	named, more := 0, 0
	for _, r := range list.rejected {
		switch {
		case before[r]:
		case named == maxNamed:
			more++
		default:
			named++
			d.log.Warn("tool left out", "tool", r.Name, "reason", r.Reason)
		}
	}
	if more > 0 {
		d.log.Warn("more tools left out; the status has them", "count", more)
	}
	return list, err
}
