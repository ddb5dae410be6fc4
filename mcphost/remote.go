package mcphost

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/internal/lograte"
	"github.com/tenon-sdk/tenon/internal/secret"
	"github.com/tenon-sdk/tenon/internal/subproc"
	"github.com/tenon-sdk/tenon/mcpauth"
	"github.com/tenon-sdk/tenon/mcphost/internal/transport"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/toolresult"
)

const (
	// maxPages bounds the pages of one list.
	maxPages = 1000
	// probeTime is how long a server may take to answer server/discover, if the limit for connecting is not shorter.
	probeTime = 5 * time.Second
	// maxCursor and maxListBytes bound a cursor and all pages of a list, in bytes.
	maxCursor    = 64 << 10
	maxListBytes = 128 << 20
	// maxProgress bounds the message of a progress notification, in bytes: many may wait for the program.
	maxProgress = 8 << 10
)

// listPauses are the pauses before a failed tools/list is tried again.
var listPauses = [...]time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second}

// A remoteLink is a connection to a server outside of this process, or one over a transport of the program.
type remoteLink struct {
	*transport.Client
	name    string
	log     *slog.Logger
	limited *lograte.Logger
	mask    *secret.Masker
	// answer answers the requests for input that a server makes in place of a result.
	answer func(context.Context, mcp.InputRequestMap) (mcp.InputResponseMap, error)
	proc   *subproc.Proc // nil without one
}

func (l *remoteLink) info() linkInfo        { return linkInfo{Info: l.Info()} }
func (l *remoteLink) done() <-chan struct{} { return l.Done() }
func (l *remoteLink) lost() <-chan struct{} { return l.Lost() }
func (l *remoteLink) received() int64       { return l.Received() }
func (l *remoteLink) err() error            { return l.Err() }
func (l *remoteLink) close() error          { return l.Close() }

func (l *remoteLink) diagnostics() diagnostics {
	d := diagnostics{changesError: l.ChangesError()}
	d.noise, d.noiseHead = l.Noise()
	if l.proc != nil {
		d.pid, d.stderr = l.proc.PID(), l.proc.Stderr()
	}
	return d
}

// call calls a tool.
func (l *remoteLink) call(ctx context.Context, c linkCall) (*mcpserver.Result, error) {
	r := &transport.Request{
		Method:     "tools/call",
		Params:     &mcp.CallToolParams{Meta: maps.Clone(c.meta), Name: c.tool.Name, Arguments: c.args, InputResponses: c.answers, RequestState: c.state},
		Headers:    c.headers,
		OnProgress: func(p *mcp.ProgressNotificationParams) { c.onProgress(progressOf(p)) },
	}
	raw, err := l.Do(ctx, r)
	*c.sent = *c.sent || r.Sent
	if err != nil {
		return nil, err
	}
	return toolresult.Decode(raw)
}

func progressOf(p *mcp.ProgressNotificationParams) Progress {
	return Progress{Progress: p.Progress, Total: p.Total, Message: clip.Text(p.Message[:min(len(p.Message), maxProgress+1)], maxProgress)}
}

// pages follows the cursors of a list to its end: until a page has none, a cursor comes twice, or there are too many.
// page makes the params of the request for a page, and each reads the result and returns the next cursor.
func (l *remoteLink) pages(ctx context.Context, method string, page func(cursor string) mcp.Params, each func(raw json.RawMessage) (string, error)) error {
	seen := map[[sha256.Size]byte]bool{}
	cursor, size := "", 0
	for range maxPages {
		raw, err := l.Do(ctx, &transport.Request{Method: method, Params: page(cursor)})
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		size += len(raw)
		if cursor, err = each(raw); err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		sum := sha256.Sum256([]byte(cursor))
		switch {
		case cursor == "":
			return nil
		case len(cursor) > maxCursor:
			return endlessf("%s: the server gives a cursor of %d bytes, limit %d; the pages so far are used", method, len(cursor), maxCursor)
		case size > maxListBytes:
			return endlessf("%s: the pages are longer than %d bytes together; those so far are used", method, maxListBytes)
		case seen[sum]:
			return endlessf("%s: the server gives the same cursor twice; the pages so far are used", method)
		}
		cursor = strings.Clone(cursor) // not the whole page with it
		seen[sum] = true
	}
	return endlessf("%s: more than %d pages; the pages so far are used", method, maxPages)
}

// listTools lists the tools. A list that fails is tried again a few times; then it is empty, with the problem in it. An
// error means that the connection or ctx ended.
func (l *remoteLink) listTools(ctx context.Context) (toolList, error) {
	if caps := l.Info().Capabilities; caps.Tools == nil && (caps.Resources != nil || caps.Prompts != nil) {
		return toolList{}, nil // a server that declares nothing at all is asked: some forget to
	}
	for try := 0; ; try++ {
		list := l.listOnce(ctx)
		if list.problem == nil || len(list.tools) > 0 {
			return list, nil
		}
		switch {
		case l.Failed():
			return list, l.Err()
		case ctx.Err() != nil:
			return list, ctx.Err()
		case transport.IsCode(list.problem, jsonrpc.CodeMethodNotFound):
			if l.Info().Capabilities.Tools == nil {
				list.problem = nil // it never declared tools
			}
			return list, nil
		case connectionFault(list.problem):
			return list, list.problem
		case try == len(listPauses):
			return list, nil
		}
		if !transport.Sleep(ctx, listPauses[try]) {
			return list, ctx.Err()
		}
	}
}

// connectionFault reports whether an error is one of the connection rather than an answer of the server.
func connectionFault(err error) bool {
	return errors.As(err, new(*HTTPError)) || errors.As(err, new(net.Error)) || errors.As(err, new(*mcpauth.NeedsAuthError)) ||
		transport.Permanent(err) || errors.Is(err, ErrConnectionLost) || errors.Is(err, transport.ErrSessionLost) || errors.Is(err, transport.ErrClosed)
}

func (l *remoteLink) listOnce(ctx context.Context) (list toolList) {
	seen, count := map[string]bool{}, 0
	defer list.sumUp(l.name)
	list.problem = l.pages(ctx, "tools/list",
		func(cursor string) mcp.Params { return &mcp.ListToolsParams{Cursor: cursor} },
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
				case l.IsHTTP() && err != nil:
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
