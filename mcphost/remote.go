package mcphost

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/internal/subproc"
	"github.com/tenon-sdk/tenon/mcpauth"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/toolresult"
)

// lastInitialize is the newest version that is offered in initialize; newer
// ones are negotiated by server/discover alone.
const lastInitialize = "2025-11-25"

const (
	// maxPages bounds the pages of one list.
	maxPages = 1000
	// probeTime is how long a server may think about server/discover, if the
	// limit for connecting is not shorter.
	probeTime = 5 * time.Second
	// maxCursor is how long a cursor may be, in bytes, and maxListBytes how long all pages of one list.
	maxCursor    = 64 << 10
	maxListBytes = 128 << 20
	// maxListed is how many elements of one list are used, and maxRejected how many tools that are left out are named.
	maxListed   = 50_000
	maxRejected = 1000
	// maxProgress is how much of the message of a progress notification is passed on, in bytes: many may wait for the program.
	maxProgress = 8 << 10
)

// A endlessError is why a list was not read to its end though the server would have gone on. What was read is used.
type endlessError struct{ why string }

func (e *endlessError) Error() string { return e.why }

func endlessf(format string, args ...any) error { return &endlessError{fmt.Sprintf(format, args...)} }

var errTooMany = endlessf("the list has more than %d elements; those before are used", maxListed)

// listPauses are the pauses before a failed tools/list is tried again.
var listPauses = [...]time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second}

// A remoteLink is a session of the official library's client over a wire.
type remoteLink struct {
	name string
	log  *slog.Logger
	http bool // arguments may be mirrored into headers
	// answer answers what the server asks in place of a result.
	answer func(context.Context, mcp.InputRequestMap) (mcp.InputResponseMap, error)
	proc   *subproc.Proc

	wire  *wire
	car   carrier
	inner *mcp.ClientSession
	told  linkInfo

	tokens atomic.Int64 // progress tokens given out
	ender  func() error

	mu       sync.Mutex
	progress map[int64]func(Progress) // by token

	doubts doubts
}

// connect performs the handshake. probe says whether the stateless protocol is
// asked for first. On an error the carrier is closed.
func (l *remoteLink) connect(ctx context.Context, client *mcp.Client, probe bool) error {
	var so *mcp.ClientSessionOptions
	if !probe {
		so = &mcp.ClientSessionOptions{ProtocolVersion: lastInitialize}
	}
	inner, err := client.Connect(ctx, l.wire, so)
	if err != nil {
		if werr := l.wire.failure(); errors.Is(werr, ErrConnectionLost) {
			err = werr // says more than that the connection is closed
		}
		return err
	}
	l.inner = inner
	if late := l.wire.answeredLate(); late != nil {
		l.wire.listenLate(ctx, late)
	}
	res := inner.InitializeResult()
	l.told = linkInfo{
		server: res.ServerInfo, version: res.ProtocolVersion,
		instructions: res.Instructions, capabilities: res.Capabilities,
	}
	if l.told.capabilities == nil {
		l.told.capabilities = &mcp.ServerCapabilities{}
	}
	return nil
}

// failure is why the wire broke, nil if it did not.
func (w *wire) failure() error {
	select {
	case <-w.done:
		return w.err
	default:
		return nil
	}
}

func (l *remoteLink) info() linkInfo        { return l.told }
func (l *remoteLink) done() <-chan struct{} { return l.wire.done }
func (l *remoteLink) lost() <-chan struct{} { return l.wire.lost }
func (l *remoteLink) heard() int64          { return l.wire.heard.Load() }

func (l *remoteLink) err() error {
	if err := l.wire.failure(); err != nil || !isClosed(l.wire.lost) {
		return err
	}
	return l.wire.left
}

func (l *remoteLink) diagnostics() diagnostics {
	var d diagnostics
	d.noise, d.noiseHead = l.wire.noiseSeen()
	if l.proc != nil {
		d.pid, d.stderr = l.proc.PID(), l.proc.Stderr()
	}
	if c, ok := l.car.(*httpCarrier); ok && l.tellsChanges() {
		d.unheard = c.notHeard()
	}
	return d
}

// close ends the session. The library waits for messages that it sends, which the end of the carrier ends, and for
// handlers of the server's questions, which may be the program's and heed nothing.
func (l *remoteLink) close() error { return l.ender() }

func (l *remoteLink) shutdown() error {
	l.wire.end(errLinkClosed)
	var wg sync.WaitGroup
	if l.inner != nil {
		wg.Go(func() { _ = l.inner.Close() }) // what it has to say the carrier says better
	}
	return errors.Join(l.car.close(), awaitAll(&wg), awaitAll(&l.wire.wg))
}

var errLinkClosed = errors.New("the connection was closed")

// raw sends a request through do and returns its raw result.
func (l *remoteLink) raw(ctx context.Context, scope *callScope, do func(context.Context) error) (json.RawMessage, error) {
	err := do(withCallScope(ctx, scope))
	switch {
	case err == nil:
		return scope.raw, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case scope.refusal != nil:
		return nil, l.doubt(ctx, scope, scope.refusal)
	}
	if werr := l.wire.failure(); werr != nil && errors.Is(err, mcp.ErrConnectionClosed) {
		return nil, werr
	}
	return nil, l.doubt(ctx, scope, unwrapCalling(err))
}

// unwrapCalling drops the library's `calling "method"` around an error.
func unwrapCalling(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// call calls a tool and returns what it answered.
func (l *remoteLink) call(ctx context.Context, c linkCall) (*mcpserver.Result, error) {
	scope := &callScope{headers: c.headers}
	defer func() { *c.sent = *c.sent || scope.sent.Load() }()
	meta := mcp.Meta{}
	for k, v := range c.meta {
		meta[k] = v
	}
	token := l.tokens.Add(1)
	meta["progressToken"] = token
	l.mu.Lock()
	l.progress[token] = c.onProgress
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.progress, token)
	}()
	params := &mcp.CallToolParams{Meta: meta, Name: c.tool.Name, Arguments: c.args, InputResponses: c.answers, RequestState: c.state}
	raw, err := l.raw(ctx, scope, func(ctx context.Context) error {
		_, err := l.inner.CallTool(ctx, params)
		return err
	})
	if err != nil {
		return nil, err
	}
	return toolresult.Decode(raw)
}

// onProgress finds the call that a server's progress is about.
func (l *remoteLink) onProgress(p *mcp.ProgressNotificationParams) {
	f, ok := p.ProgressToken.(float64)
	if !ok || f != math.Trunc(f) {
		return
	}
	l.mu.Lock()
	on := l.progress[int64(f)]
	l.mu.Unlock()
	if on != nil {
		on(Progress{Progress: p.Progress, Total: p.Total, Message: clip.Text(p.Message[:min(len(p.Message), maxProgress+1)], maxProgress)})
	}
}

// pages follows the cursors of a list to its end: until a page has none, one
// comes twice, or there are too many. each takes the raw result of a page and
// returns the next cursor.
func (l *remoteLink) pages(ctx context.Context, what string, get func(ctx context.Context, cursor string) error, each func(raw json.RawMessage) (string, error)) error {
	seen := map[[sha256.Size]byte]bool{}
	cursor, size := "", 0
	for range maxPages {
		scope := new(callScope)
		raw, err := l.raw(ctx, scope, func(ctx context.Context) error { return get(ctx, cursor) })
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		size += len(raw)
		if cursor, err = each(raw); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		sum := sha256.Sum256([]byte(cursor))
		switch {
		case cursor == "":
			return nil
		case len(cursor) > maxCursor:
			return endlessf("%s: the server gives a cursor of %d bytes, limit %d; the pages so far are used", what, len(cursor), maxCursor)
		case size > maxListBytes:
			return endlessf("%s: the pages are longer than %d bytes together; those so far are used", what, maxListBytes)
		case seen[sum]:
			return endlessf("%s: the server gives the same cursor twice; the pages so far are used", what)
		}
		cursor = strings.Clone(cursor) // not the whole page with it
		seen[sum] = true
	}
	return endlessf("%s: more than %d pages; the pages so far are used", what, maxPages)
}

// listTools lists the tools. A list that cannot be had is tried again a few
// times; then it is empty, with the problem in it. The error says that the
// connection or ctx ended.
func (l *remoteLink) listTools(ctx context.Context) (toolList, error) {
	if !l.declares(l.told.capabilities.Tools != nil) {
		return toolList{}, nil
	}
	for try := 0; ; try++ {
		list := l.listOnce(ctx)
		if list.problem == nil || len(list.tools) > 0 {
			return list, nil
		}
		if err := l.wire.failure(); err != nil {
			return list, err
		}
		if ctx.Err() != nil {
			return list, ctx.Err()
		}
		if isCode(list.problem, jsonrpc.CodeMethodNotFound) {
			if l.told.capabilities.Tools == nil {
				list.problem = nil // it never said that it has tools
			}
			return list, nil
		}
		if connectionFault(list.problem) {
			return list, list.problem
		}
		if try == len(listPauses) {
			return list, nil
		}
		if !sleep(ctx, listPauses[try]) {
			return list, ctx.Err()
		}
	}
}

// declares says whether to ask for something. A server that declares nothing at
// all is asked: some forget to.
func (l *remoteLink) declares(it bool) bool {
	c := l.told.capabilities
	return it || c.Tools == nil && c.Resources == nil && c.Prompts == nil
}

func isCode(err error, code int64) bool {
	var e *jsonrpc.Error
	return errors.As(err, &e) && e.Code == code
}

// connectionFault reports whether an error speaks of the connection rather than
// of what the server answered.
func connectionFault(err error) bool {
	return errors.As(err, new(*HTTPError)) || errors.As(err, new(net.Error)) || errors.As(err, new(*mcpauth.NeedsAuthError)) ||
		unmendable(err) || errors.Is(err, ErrConnectionLost) || errors.Is(err, errSessionLost) || errors.Is(err, ErrClosed)
}

func (l *remoteLink) listOnce(ctx context.Context) (list toolList) {
	seen, count := map[string]bool{}, 0
	defer list.sumUp(l.name)
	list.problem = l.pages(ctx, "tools/list",
		func(ctx context.Context, cursor string) error {
			_, err := l.inner.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
			return err
		},
		func(raw json.RawMessage) (string, error) {
			page, err := decodeToolPage(l.name, raw, count)
			count = page.count
			for _, r := range page.rejected {
				list.reject(Tool{Server: r.Server, Name: r.Name}, r.Reason)
			}
			for _, t := range page.tools {
				switch _, err := mcpserver.HeaderParams(t.InputSchema); {
				case seen[t.Name]:
					list.reject(t, "the server lists another tool of this name before it")
				case l.http && err != nil:
					list.reject(t, fmt.Sprintf("its x-mcp-header annotations are invalid: %v", err))
				default:
					seen[t.Name] = true
					list.tools = append(list.tools, t)
				}
			}
			return page.next, err
		})
	return list
}

func (list *toolList) reject(t Tool, why string) {
	if len(list.rejected) == maxRejected {
		list.unnamed++
		return
	}
	list.rejected = append(list.rejected, RejectedTool{Server: t.Server, Name: t.Name, Reason: why})
}

// sumUp adds how many tools were left out that are not named.
func (list *toolList) sumUp(server string) {
	if list.unnamed > 0 {
		list.rejected = append(list.rejected, RejectedTool{Server: server, Name: "...", Reason: fmt.Sprintf("%d more tools cannot be used", list.unnamed)})
	}
}
