package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Library returns the server as a server of the official library: with the same
// name, tools, resources and prompts, now and later. Clients of the library are
// notified of changes. Calls run as all calls of the server do: validated, limited
// in time, under the server's scheduling and middleware. Library returns the same
// value each time and is safe for concurrent use.
//
// The result may be connected to any of the library's transports. Tools, resources
// and prompts that are added to it directly are served as well; the Server does not
// know them. An unknown tool is the error -32601. [Server.Close] ends the calls; the
// sessions of the library are closed by those who opened them.
func (s *Server) Library() *mcp.Server { return s.library().lib }

// An adapter is a [Server] as a server of the official library. It answers the
// library's requests from sessions of the Server, one for each of the library's.
type adapter struct {
	server *Server
	lib    *mcp.Server
	// resumes says that clients can come back to a stream that was closed.
	resumes bool
	next    mcp.MethodHandler // the library's own
	watcher *Session          // its notifications cover all changes of the server
	wg      sync.WaitGroup    // waits for the library's sessions to end

	toolsMu sync.Mutex       // guards tools
	tools   map[string]*tool // registered with the library

	mu       sync.Mutex // guards the rest
	closed   bool
	sessions map[*mcp.ServerSession]*Session
	requests map[*Session]string // sessions of one request each, with their users
	users    map[string]int      // the number of those for each user
}

func newAdapter(s *Server) *adapter {
	a := &adapter{
		server: s, tools: make(map[string]*tool),
		sessions: make(map[*mcp.ServerSession]*Session), requests: make(map[*Session]string), users: make(map[string]int),
	}
	caps := s.Capabilities()
	caps.Completions = nil // the library adds it
	a.lib = mcp.NewServer(s.Info(), &mcp.ServerOptions{
		Instructions:       s.Instructions(),
		Logger:             slog.New(warnings{s.logger.Handler()}),
		Capabilities:       caps,
		SubscribeHandler:   a.subscribe,
		UnsubscribeHandler: a.unsubscribe,
		CompletionHandler:  a.complete,
	})
	a.lib.AddReceivingMiddleware(a.receive)
	a.watcher = s.NewSession(&SessionOptions{Notify: a.changed, allUpdates: true})
	a.syncTools()
	return a
}

// warnings passes warnings and errors only: the library logs each connection.
type warnings struct{ slog.Handler }

func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}

func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }

// A placeholder is a tool, prompt or resource that is registered with the library
// anew after each change, which makes it notify its clients. No client sees it.
const (
	placeholder    = "tenon-placeholder"
	placeholderURI = "tenon:placeholder"
)

var errPlaceholder = errors.New("it is a placeholder")

// changed passes a change of the server on to the library's clients.
func (a *adapter) changed(ctx context.Context, n Notification) {
	switch n.Method {
	case MethodToolListChanged:
		a.syncTools()
		a.lib.AddTool(&mcp.Tool{Name: placeholder, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return nil, errPlaceholder
		})
	case MethodPromptListChanged:
		a.lib.AddPrompt(&mcp.Prompt{Name: placeholder}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return nil, errPlaceholder
		})
	case MethodResourceListChanged:
		a.lib.AddResource(&mcp.Resource{URI: placeholderURI}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return nil, errPlaceholder
		})
	}
	if p, ok := n.Params.(*mcp.ResourceUpdatedNotificationParams); ok {
		// The library knows which of its sessions subscribed.
		if err := a.lib.ResourceUpdated(ctx, p); err != nil {
			a.server.logger.Warn("resource update not sent", "uri", p.URI, "error", err)
		}
	}
}

// syncTools registers the tools that have header parameters with the library,
// which checks the headers of requests against them.
func (a *adapter) syncTools() {
	a.toolsMu.Lock()
	defer a.toolsMu.Unlock()
	reg := a.server.registry()
	for name, t := range a.tools {
		if reg.tool(name) != t {
			a.lib.RemoveTools(name)
			delete(a.tools, name)
		}
	}
	for name, t := range reg.tools {
		if len(t.headers) == 0 || a.tools[name] != nil {
			continue
		}
		a.tools[name] = t
		if err := a.registerTool(t); err != nil {
			a.server.logger.Error("the headers of a tool's calls are not checked", "tool", name, "error", err)
		}
	}
}

// registerTool contains the panics of the library, which it uses for errors.
func (a *adapter) registerTool(t *tool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	a.lib.AddTool(&mcp.Tool{Name: t.listed.Name, InputSchema: t.listed.InputSchema}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errPlaceholder
	})
	return nil
}

// isRegistered reports whether the adapter registered a tool with the library.
func (a *adapter) isRegistered(t *mcp.Tool) bool {
	a.toolsMu.Lock()
	defer a.toolsMu.Unlock()
	return a.tools[t.Name] != nil || t.Name == placeholder
}

// session returns the session of the server for a session of the library. With a
// protocol version from 2026-07-28 on it lives for one request, and release ends
// it. A user may have as many of those at a time as a session may have calls.
func (a *adapter) session(ss *mcp.ServerSession, version, user string) (session *Session, release func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, nil, ErrClosed
	}
	if session := a.sessions[ss]; session != nil {
		return session, func() {}, nil
	}
	single := version >= v20260728
	if most := a.server.opts.MaxCalls; single && user != "" && most > 0 && a.users[user] >= most {
		return nil, nil, fmt.Errorf("%w: %d of this user run already", ErrTooManyCalls, most)
	}
	session = a.server.NewSession(a.sessionOptions(ss))
	if single {
		a.requests[session] = user
		a.users[user]++
		return session, func() { a.release(session) }, nil
	}
	a.sessions[ss] = session
	a.wg.Go(func() {
		_ = ss.Wait() // its owner handles the error
		a.drop(ss, session)
	})
	return session, func() {}, nil
}

func (a *adapter) release(session *Session) {
	a.mu.Lock()
	if user, open := a.requests[session]; open {
		delete(a.requests, session)
		if a.users[user]--; a.users[user] == 0 {
			delete(a.users, user)
		}
	}
	a.mu.Unlock()
	session.startClose() // its one call is over: nothing to wait for
}

// drop ends the session for a session of the library that has ended. The library
// keeps the URIs that its sessions subscribed to until they are unsubscribed.
func (a *adapter) drop(ss *mcp.ServerSession, session *Session) {
	session.startClose()
	for _, uri := range session.subscriptions() {
		req := &mcp.UnsubscribeRequest{Session: ss, Params: &mcp.UnsubscribeParams{URI: uri}}
		if _, err := a.next(session.lifetime.ctx, "resources/unsubscribe", req); err != nil {
			a.server.logger.Warn("the subscription of an ended session is kept", "uri", uri, "error", err)
		}
	}
	a.mu.Lock()
	delete(a.sessions, ss)
	a.mu.Unlock()
	_ = session.Close()
}

func (a *adapter) sessionOptions(ss *mcp.ServerSession) *SessionOptions {
	scheduling, middleware := a.server.Dispatch()
	supports := func(has func(*mcp.ClientCapabilities) bool) bool {
		params := ss.InitializeParams()
		return params != nil && params.Capabilities != nil && has(params.Capabilities)
	}
	return &SessionOptions{
		ID:         ss.ID(),
		Scheduling: scheduling,
		Middleware: middleware,
		Notify: func(ctx context.Context, n Notification) {
			var err error
			switch p := n.Params.(type) {
			case *mcp.ProgressNotificationParams:
				err = ss.NotifyProgress(ctx, p)
			case *mcp.LoggingMessageParams:
				err = ss.Log(ctx, p) // at the level that the library knows
			}
			if err != nil {
				a.server.logger.Warn("notification not sent", "method", n.Method, "error", err)
			}
		},
		Elicit: func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			if err := checkElicitSchema(p.RequestedSchema); err != nil {
				return nil, err
			}
			return ss.Elicit(ctx, p)
		},
		Sample: func(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			if !supports(func(c *mcp.ClientCapabilities) bool { return c.Sampling != nil }) {
				return nil, errors.New("the client does not support sampling")
			}
			return ss.CreateMessage(ctx, p)
		},
		ListRoots: func(ctx context.Context) ([]*mcp.Root, error) {
			if !supports(func(c *mcp.ClientCapabilities) bool { return c.RootsV2 != nil }) {
				return nil, errors.New("the client does not support roots")
			}
			result, err := ss.ListRoots(ctx, nil)
			if err != nil {
				return nil, err
			}
			return result.Roots, nil
		},
	}
}

// close ends all calls, without waiting for them. The library's sessions can then
// be closed without delay.
func (a *adapter) close() {
	a.watcher.startClose()
	a.mu.Lock()
	a.closed = true
	sessions := slices.AppendSeq(slices.Collect(maps.Values(a.sessions)), maps.Keys(a.requests))
	a.mu.Unlock()
	for _, session := range sessions {
		session.startClose()
	}
}

// checkElicitSchema refuses schemas that the library's validator may not survive.
// The protocol allows flat objects of primitive properties without references.
func checkElicitSchema(schema any) error {
	if schema == nil {
		return nil
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return fmt.Errorf("elicitation schema: %w", err)
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return fmt.Errorf("elicitation schema: %w", err)
	}
	return checkFlat(tree, 0)
}

func checkFlat(tree any, depth int) error {
	const most = 8 // properties, the property, anyOf, its entries, and some
	if depth > most {
		return errors.New("elicitation schema: nested too deeply, want a flat object")
	}
	switch t := tree.(type) {
	case map[string]any:
		for key, value := range t {
			switch key {
			case "$ref", "$dynamicRef", "$recursiveRef", "$defs", "definitions":
				return fmt.Errorf("elicitation schema: %s is not allowed", key)
			}
			if err := checkFlat(value, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, value := range t {
			if err := checkFlat(value, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
