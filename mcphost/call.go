package mcphost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/callback"
	"github.com/tenon-sdk/tenon/internal/jsonscan"
	"github.com/tenon-sdk/tenon/internal/lograte"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcphost/internal/transport"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// metaToolUseID is the key of _meta for the model's ID of a call.
const metaToolUseID = "claudecode/toolUseId"

// maxTries limits how often a call that was never sent is tried.
const maxTries = 3

// repeatPause is the pause before a call that could not be sent is made again.
const repeatPause = 250 * time.Millisecond

// Call calls a tool by its full name. See [Host.CallServer].
func (h *Host) Call(ctx context.Context, full string, args json.RawMessage, o *CallOptions) (*mcpserver.Result, error) {
	t, ok := h.Tool(full)
	if !ok {
		if err := h.awaitOwner(ctx, full); err != nil {
			return nil, err
		}
		if t, ok = h.Tool(full); !ok {
			return nil, h.unknown(full)
		}
	}
	return h.CallServer(ctx, t.Server, t.Name, args, o)
}

// awaitOwner waits for the servers that may still provide a tool of this name.
func (h *Host) awaitOwner(ctx context.Context, full string) error {
	conns, err := h.named(nil)
	if err != nil {
		return err
	}
	for _, c := range conns {
		if !strings.HasPrefix(full, toolname.Server(c.name)+toolname.Separator) {
			continue
		}
		err := c.await(ctx, func() bool { return !c.state.trying() && c.state.phase != phaseIdle })
		if err != nil {
			return err
		}
	}
	return nil
}

// unknown returns the error for a name that no connected server has: that of the server that had
// it, or would have by its name, if that is not connected.
func (h *Host) unknown(full string) error {
	conns, err := h.named(nil)
	if err != nil {
		return err
	}
	for _, c := range conns {
		if !strings.HasPrefix(full, toolname.Server(c.name)+toolname.Separator) {
			continue
		}
		c.mu.Lock()
		down := c.state.phase != phaseReady
		err, phase := c.rec.err, c.state.phase
		c.mu.Unlock()
		if phase == phaseDisabled {
			err = ErrDisabled
		}
		if down && err != nil {
			tool := strings.TrimPrefix(full, toolname.Server(c.name)+toolname.Separator)
			return &CallError{Server: c.name, Tool: tool, Err: err}
		}
	}
	return fmt.Errorf("%w: %q", ErrUnknownTool, full)
}

// CallServer calls a tool by the key of its server and its name there. If the server is connecting,
// CallServer waits for the result; the limits of the call begin afterwards.
//
// Whatever the tool returns is a result, including its errors. The error is a *[CallError], ctx's
// error, [ErrUnknownTool], [ErrUnknownServer] or [ErrClosed]. A call that was ended because its
// connection was closed on request is a CallError that wraps [ErrRemoved], [ErrReplaced],
// [ErrDisabled], [ErrReconnected] or ErrClosed. One beyond a limit of concurrency wraps a
// *[BusyError].
//
// A call whose connection broke is repeated once on a new one if that is safe: if it did not reach
// the tool, or the tool is read-only or idempotent by its annotations.
func (h *Host) CallServer(ctx context.Context, server, tool string, args json.RawMessage, o *CallOptions) (*mcpserver.Result, error) {
	c, err := h.conn(server)
	if err != nil {
		return nil, err
	}
	if o == nil {
		o = &CallOptions{}
	}
	if len(args) == 0 || jsonscan.IsNull(args) {
		args = json.RawMessage("{}")
	}
	leave, err := h.enter(ctx, c, c.dialer.limits.forCall(tool, o.Timeout))
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		ce := c.callError(tool, false, err)
		c.recordCall(o.logged(ctx), ce)
		return nil, ce
	}
	defer leave()
	var ran error // of the attempt that may have run, if the call was made again after it
	for try := 0; ; try++ {
		res, sent, t, err := h.tryCall(ctx, c, tool, args, o)
		if err == nil {
			return res, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.Is(err, ErrUnknownTool) || errors.Is(err, ErrClosed) && isClosed(h.done) && !sent && ran == nil {
			return nil, err
		}
		if errors.Is(err, ErrReplaced) && !sent && try < maxTries { // the new one has not heard of it
			if c, err = h.conn(server); err != nil {
				return nil, err
			}
			continue
		}
		// A call that was never sent may be sent again. One that may have run is repeated once.
		again := try == 0 || try < maxTries && !sent && (errors.Is(err, ErrConnectionLost) || errors.Is(err, transport.ErrSessionLost))
		if again && t != nil && mayRepeat(err, sent, t) {
			if sent {
				ran = err
			}
			c.log.LogAttrs(ctx, slog.LevelInfo, "call is made again", callAttrs(o.logged(ctx), tool, slog.String("reason", maskError(c.dialer.mask, err).Error()))...)
			if !transport.NeverSent(err) || transport.Sleep(ctx, repeatPause) {
				continue
			}
		}
		if ran != nil && !sent {
			sent, err = true, fmt.Errorf("%w (made again after: %w)", err, ran)
		}
		ce := c.callError(tool, sent, err)
		c.recordCall(o.logged(ctx), ce)
		return nil, ce
	}
}

// logged returns a context whose log records have the model's ID of the call.
func (o *CallOptions) logged(ctx context.Context) context.Context {
	if o.Session != "" {
		ctx = WithLogAttrs(ctx, slog.String("session", o.Session))
	}
	if o.ToolUseID != "" {
		ctx = WithLogAttrs(ctx, slog.String("tool_use_id", o.ToolUseID))
	}
	return ctx
}

// mayRepeat reports whether a failed call may be repeated.
func mayRepeat(err error, sent bool, t *Tool) bool {
	if transport.Permanent(err) {
		return false
	}
	if !sent && (errors.Is(err, transport.ErrSessionLost) || errors.Is(err, ErrReconnected) || transport.NeverSent(err)) {
		return true // refused before it was processed
	}
	lost := errors.Is(err, ErrConnectionLost) || errors.Is(err, transport.ErrSessionLost)
	return lost && (!sent || t.ReadOnly || t.Idempotent)
}

func (c *conn) callError(tool string, sent bool, err error) *CallError {
	e := &CallError{Server: c.name, Tool: tool, Sent: sent, Err: maskError(c.dialer.mask, err)}
	var died *diedError
	if errors.As(err, &died) {
		e.Stderr, e.Err = died.stderr, maskError(c.dialer.mask, died.err)
	}
	var rpc *jsonrpc.Error
	if errors.As(err, &rpc) {
		e.Code = rpc.Code
	}
	return e
}

// tryCall makes one attempt. The tool is nil if the server is not connected.
func (h *Host) tryCall(ctx context.Context, c *conn, name string, args json.RawMessage, o *CallOptions) (res *mcpserver.Result, sent bool, t *Tool, err error) {
	l, err := c.acquire(ctx)
	if err != nil {
		return nil, false, nil, err
	}
	defer func() { c.release(l, err) }()
	c.mu.Lock()
	t = c.rec.byName[name]
	c.mu.Unlock()
	if t == nil {
		return nil, false, nil, fmt.Errorf("%w: %q on server %q", ErrUnknownTool, name, c.name)
	}
	ctx, clock := c.clock(ctx, l, t, o)
	defer clock.stop()
	feed := newFeed(c.dialer.limited, o.OnProgress)
	defer feed.finish(ctx)
	call := linkCall{tool: t, args: args, meta: callMeta(o), headers: paramHeaders(t.headerParams, args), sent: &sent}
	maps.Copy(orEmpty(&call.headers, o.Headers), o.Headers)
	if o.OnProgress != nil || clock.idle > 0 || !c.inProcess() {
		call.onProgress = func(p Progress) { clock.progress(); feed.put(p) }
	}
	res, err = h.callUntilResult(o.logged(ctx), c, l, call)
	if err != nil && clock.cause() != nil {
		err = clock.cause()
	}
	err = c.cause(l, err)
	return res, sent, t, c.dialer.lastWords(ctx, l.link, err)
}

// orEmpty returns m, or a new map if there is something to add.
func orEmpty(m *map[string]string, more map[string]string) map[string]string {
	if *m == nil && len(more) > 0 {
		*m = map[string]string{}
	}
	return *m
}

func callMeta(o *CallOptions) mcp.Meta {
	if o.ToolUseID == "" && len(o.Meta) == 0 {
		return nil
	}
	meta := maps.Clone(o.Meta)
	if meta == nil {
		meta = mcp.Meta{}
	}
	if o.ToolUseID != "" {
		meta[metaToolUseID] = o.ToolUseID
	}
	return meta
}

// callUntilResult calls a tool and answers its requests for input until it returns a result. After
// a state without requests it calls again with the state.
func (h *Host) callUntilResult(ctx context.Context, c *conn, l *liveLink, call linkCall) (*mcpserver.Result, error) {
	for range maxInputRequests {
		res, err := l.call(ctx, call)
		if err != nil || len(res.InputRequests) == 0 && res.RequestState == "" {
			return res, err
		}
		if call.answers, err = c.dialer.answerInput(ctx, res.InputRequests); err != nil {
			return nil, err
		}
		call.state = res.RequestState
	}
	return nil, errInputRequests
}

// A callClock has the time limits of a call.
type callClock struct {
	idle   time.Duration
	timer  *time.Timer // of the idle limit; nil without one
	cancel context.CancelCauseFunc
	ctx    context.Context
	end    context.CancelFunc
}

// clock starts the limits of a call: a hard one, and one that progress resets.
func (c *conn) clock(ctx context.Context, l *liveLink, t *Tool, o *CallOptions) (context.Context, *callClock) {
	lim := &c.dialer.limits
	hard := lim.forCall(t.Name, o.Timeout)
	if l.info().limitsCalls && o.Timeout == 0 && lim.tools[t.Name] == 0 {
		hard = 0 // the server applies its own, the host's wish included
	}
	k := &callClock{idle: lim.idle}
	ctx, k.cancel = context.WithCancelCause(ctx)
	k.end = func() { k.cancel(nil) }
	if hard > 0 {
		inner, stop := context.WithTimeoutCause(ctx, hard, fmt.Errorf("%w after %v", ErrTimeout, hard))
		outer := k.end
		ctx, k.end = inner, func() { stop(); outer() }
	}
	if k.idle > 0 {
		k.timer = time.AfterFunc(k.idle, func() { k.cancel(fmt.Errorf("%w: no progress for %v", ErrTimeout, k.idle)) })
	}
	k.ctx = ctx
	return ctx, k
}

// progress resets the second limit.
func (k *callClock) progress() {
	if k.timer != nil {
		k.timer.Reset(k.idle)
	}
}

func (k *callClock) stop() {
	if k.timer != nil {
		k.timer.Stop()
	}
	k.end()
}

// cause returns the limit that ended the call, or nil.
func (k *callClock) cause() error {
	if err := context.Cause(k.ctx); errors.Is(err, ErrTimeout) {
		return err
	}
	return nil
}

// feedSize is how many progress reports may wait for a slow receiver. Beyond it the oldest are
// dropped.
const feedSize = 64

// A feed delivers progress without blocking the connection.
type feed struct {
	to   func(Progress)
	done chan struct{}

	mu     sync.Mutex
	closed bool
	ch     chan Progress
}

// newFeed starts a feed, nil if there is no receiver.
func newFeed(log *lograte.Logger, to func(Progress)) *feed {
	if to == nil {
		return nil
	}
	f := &feed{to: to, done: make(chan struct{}), ch: make(chan Progress, feedSize)}
	go func() { // ends with finish
		defer close(f.done)
		for p := range f.ch {
			if callback.Run(log, "OnProgress", func() error { f.to(p); return nil }) != nil {
				f.to = func(Progress) {} // it would panic each time
			}
		}
	}()
	return f
}

func (f *feed) put(p Progress) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	select {
	case f.ch <- p:
	default:
		select {
		case <-f.ch:
		default: // the receiver was quicker
		}
		f.ch <- p // never blocks: there is room, and only put fills it
	}
}

// finish waits until all reports are delivered, or ctx ends.
func (f *feed) finish(ctx context.Context) {
	if f == nil {
		return
	}
	f.mu.Lock()
	f.closed = true
	close(f.ch)
	f.mu.Unlock()
	select {
	case <-f.done:
	case <-ctx.Done():
	}
}

// enter takes a slot of the server and of the host. leave returns them.
func (h *Host) enter(ctx context.Context, c *conn, longest time.Duration) (leave func(), err error) {
	if err := c.slots.take(ctx, longest); err != nil {
		return nil, err
	}
	if err := h.slots.take(ctx, longest); err != nil {
		c.slots.give()
		return nil, err
	}
	return func() { h.slots.give(); c.slots.give() }, nil
}

// recordCall logs a call that timed out, was ended, or exceeded a limit. Failures to connect are
// logged elsewhere, and results are the caller's.
func (c *conn) recordCall(ctx context.Context, e *CallError) {
	what := "call failed"
	switch {
	case errors.Is(e.Err, ErrTimeout):
		what = "call timed out"
	case e.mayHaveRun():
	case errors.As(e.Err, new(*BusyError)):
		what = "call refused"
	default:
		return
	}
	c.calls.LogAttrs(ctx, slog.LevelWarn, what, callAttrs(ctx, e.Tool, slog.String("error", e.Error()))...)
}
