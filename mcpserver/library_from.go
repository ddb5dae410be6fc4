package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// latestLegacy is the protocol version of sessions on a library's server: the
// last in which a server can ask and notify its client at any time.
const latestLegacy = "2025-11-25"

// A LibraryServer is a server written for the official library, as a [Provider].
type LibraryServer struct {
	lib *mcp.Server
	log atomic.Pointer[slog.Logger]

	mu       sync.Mutex // guards the rest
	about    *mcp.InitializeResult
	stale    bool // what it offers may have changed
	rejected []Rejection
}

// FromLibrary makes a server that was written for the official library usable
// wherever a [Provider] is. Each session is a session of the library's in
// memory. A panic of a handler becomes an error of that call: FromLibrary adds a
// receiving middleware to srv for that, so call it once for a server and share
// the result. Calls have the time limits of in-process tools.
//
// The library validates the arguments of its typed tools itself; schemas that it
// does not survive, such as {"$ref":"#"}, are the author's risk.
func FromLibrary(srv *mcp.Server) *LibraryServer {
	if srv == nil {
		panic("mcpserver: FromLibrary without a server")
	}
	l := &LibraryServer{lib: srv, stale: true}
	l.log.Store(slog.New(slog.DiscardHandler))
	srv.AddReceivingMiddleware(l.guard)
	return l
}

// SetLogger sets who hears of panics in handlers and of what the server lists that
// makes no sense. Until then nobody does.
func (l *LibraryServer) SetLogger(logger *slog.Logger) { l.log.Store(logger) }

// Rejected lists the tools that the last list of tools left out, at most a
// thousand: those that are no tools, or whose input schema is no object. Each is
// logged as well (see [LibraryServer.SetLogger]).
func (l *LibraryServer) Rejected() []Rejection {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.rejected)
}

// guard turns a panic of a handler into an error.
func (l *LibraryServer) guard(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				l.log.Load().Error("handler of a library server panicked", "method", method, "panic", p, "stack", string(debug.Stack()))
				result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
				if call, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok {
					result, err = Errorf("Tool '%s' failed: internal error", call.Name).Library(), nil
				}
			}
		}()
		return next(ctx, method, req)
	}
}

// Info describes the server.
func (l *LibraryServer) Info() *mcp.Implementation {
	if info := l.read(noContext{}).ServerInfo; info != nil {
		return info
	}
	return &mcp.Implementation{}
}

// Instructions is the server's advice to the model.
func (l *LibraryServer) Instructions() string { return l.read(noContext{}).Instructions }

// Capabilities is what the server offers.
func (l *LibraryServer) Capabilities() *mcp.ServerCapabilities { return l.capabilities(noContext{}) }

func (l *LibraryServer) capabilities(ctx context.Context) *mcp.ServerCapabilities {
	offered := l.read(ctx).Capabilities
	if offered == nil {
		return &mcp.ServerCapabilities{}
	}
	caps := *offered
	return &caps
}

// read is what the server says of itself in a handshake: the library has no
// other way to ask. It is asked again once a session heard of a change.
func (l *LibraryServer) read(ctx context.Context) *mcp.InitializeResult {
	l.mu.Lock()
	about, stale := l.about, l.stale
	l.mu.Unlock()
	if about != nil && !stale {
		return about
	}
	session, err := l.OpenSession(ctx, nil)
	if err != nil {
		l.log.Load().Error("handshake with a library server", "error", err)
		return &mcp.InitializeResult{}
	}
	_ = session.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.about
}

// Timeout is the time limit in force for calls of a session that sets none.
func (l *LibraryServer) Timeout() time.Duration { return l.limit(&SessionOptions{}) }

func (l *LibraryServer) limit(o *SessionOptions) time.Duration {
	lookup := o.LookupEnv
	if lookup == nil {
		lookup = os.LookupEnv
	}
	return effectiveTimeout(o.Timeout, envTimeout(lookup, func(name, value string) {
		l.log.Load().Warn("ignoring an environment variable that is not a usable number", "variable", name, "value", value)
	}))
}

func (l *LibraryServer) changed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stale = true
}

// noContext is the context of a handshake in memory, which waits for nobody.
type noContext struct{}

func (noContext) Deadline() (time.Time, bool) { return time.Time{}, false }
func (noContext) Done() <-chan struct{}       { return nil }
func (noContext) Err() error                  { return nil }
func (noContext) Value(any) any               { return nil }

// OpenSession connects a client of the library to the server, in memory.
func (l *LibraryServer) OpenSession(ctx context.Context, o *SessionOptions) (ServerSession, error) {
	var opts SessionOptions
	if o != nil {
		opts = *o
	}
	near, far := newMemConns()
	served, err := l.lib.Connect(context.WithoutCancel(ctx), far, nil)
	if err != nil {
		return nil, fmt.Errorf("connecting to the library server: %w", err)
	}
	s := &librarySession{owner: l, opts: opts, conn: near, served: served, limit: l.limit(&opts)}
	info := opts.Client
	if info == nil {
		info = &mcp.Implementation{Name: "tenon", Version: "1.0.0"}
	}
	client := mcp.NewClient(info, s.clientOptions())
	client.AddReceivingMiddleware(s.receive)
	s.client, err = client.Connect(ctx, near, &mcp.ClientSessionOptions{ProtocolVersion: latestLegacy})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("handshake with the library server: %w", err), s.Close())
	}
	l.mu.Lock()
	l.about, l.stale = s.client.InitializeResult(), false
	l.mu.Unlock()
	return s, nil
}

// A librarySession is a session on a library's server.
type librarySession struct {
	owner  *LibraryServer
	opts   SessionOptions
	conn   *memConn
	served *mcp.ServerSession
	client *mcp.ClientSession
	limit  time.Duration // of calls

	closing sync.Once
}

func (s *librarySession) clientOptions() *mcp.ClientOptions {
	caps := &mcp.ClientCapabilities{}
	if s.opts.ListRoots != nil {
		caps.RootsV2 = &mcp.RootCapabilities{}
	}
	o := &mcp.ClientOptions{
		Capabilities: caps,
		ToolListChangedHandler: func(ctx context.Context, r *mcp.ToolListChangedRequest) {
			s.notify(ctx, MethodToolListChanged, r.Params)
		},
		PromptListChangedHandler: func(ctx context.Context, r *mcp.PromptListChangedRequest) {
			s.notify(ctx, MethodPromptListChanged, r.Params)
		},
		ResourceListChangedHandler: func(ctx context.Context, r *mcp.ResourceListChangedRequest) {
			s.notify(ctx, MethodResourceListChanged, r.Params)
		},
		ResourceUpdatedHandler: func(ctx context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			s.notify(ctx, MethodResourceUpdated, r.Params)
		},
		LoggingMessageHandler: func(ctx context.Context, r *mcp.LoggingMessageRequest) {
			s.notify(ctx, MethodMessage, r.Params)
		},
		ProgressNotificationHandler: func(ctx context.Context, r *mcp.ProgressNotificationClientRequest) {
			s.notify(ctx, MethodProgress, r.Params)
		},
	}
	if s.opts.Elicit != nil {
		caps.Elicitation = &mcp.ElicitationCapabilities{
			Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{},
		}
		o.ElicitationHandler = func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			check, err := newElicitCheck(r.Params)
			if err != nil {
				return nil, err
			}
			result, err := containResult(ctx, s.owner.log.Load(), "SessionOptions.Elicit", func() (*mcp.ElicitResult, error) {
				return s.opts.Elicit(ctx, r.Params)
			})
			if err != nil {
				return nil, err
			}
			return check.take(result)
		}
	}
	if s.opts.Sample != nil {
		o.CreateMessageHandler = func(ctx context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			result, err := containResult(ctx, s.owner.log.Load(), "SessionOptions.Sample", func() (*mcp.CreateMessageResult, error) {
				return s.opts.Sample(ctx, r.Params)
			})
			if err == nil && result == nil {
				err = errNoAnswer
			}
			return result, err
		}
	}
	return o
}

// receive answers roots/list, for which the library's client has a fixed list,
// and keeps schemas from its validator that it may not survive.
func (s *librarySession) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch p := req.GetParams().(type) {
		case *mcp.ElicitParams:
			if err := checkElicitSchema(p.RequestedSchema); err != nil {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
			}
		default:
			if method == "roots/list" && s.opts.ListRoots != nil {
				roots, err := containResult(ctx, s.owner.log.Load(), "SessionOptions.ListRoots", func() ([]*mcp.Root, error) {
					return s.opts.ListRoots(ctx)
				})
				if err == nil {
					err = checkRoots(roots)
				}
				if err != nil {
					return nil, err
				}
				if roots == nil {
					roots = []*mcp.Root{}
				}
				return &mcp.ListRootsResult{Roots: roots}, nil
			}
		}
		return next(ctx, method, req)
	}
}

func (s *librarySession) notify(ctx context.Context, method string, params any) {
	switch method {
	case MethodToolListChanged, MethodPromptListChanged, MethodResourceListChanged:
		s.owner.changed()
	}
	if s.opts.Notify != nil {
		_ = contain(ctx, s.owner.log.Load(), "SessionOptions.Notify", func() error { // a panic has been logged
			s.opts.Notify(ctx, Notification{Method: method, Params: params})
			return nil
		})
	}
}

// call makes one request and returns its result as the server wrote it.
func (s *librarySession) call(ctx context.Context, do func(ctx context.Context) error) (json.RawMessage, error) {
	var raw json.RawMessage
	if err := do(wantRaw(ctx, &raw)); err != nil {
		return nil, s.errorOf(ctx, err)
	}
	return raw, nil
}

// errorOf is what the caller gets for an error of the library: the end of the
// context or of the session, or what the server answered.
func (s *librarySession) errorOf(ctx context.Context, err error) error {
	var coded *jsonrpc.Error
	switch {
	case errors.As(err, &coded):
		return coded
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case s.conn.closed(), errors.Is(err, mcp.ErrConnectionClosed):
		return ErrClosed
	}
	return err
}

// maxPages bounds the pages of one list.
const maxPages = 1000

// pages collects a list over all its pages. A cursor that comes twice ends it, and
// so does the bound, which is logged.
func pages[R any](s *librarySession, next func(cursor string) (page []R, following string, err error)) ([]R, error) {
	var all []R
	cursor, seen := "", make(map[string]bool)
	for range maxPages {
		page, following, err := next(cursor)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if following == "" || seen[following] {
			return all, nil
		}
		seen[following] = true
		cursor = following
	}
	s.owner.log.Load().Warn("list of a library server does not end; the pages so far are used", "pages", maxPages, "entries", len(all))
	return all, nil
}

func (s *librarySession) ListTools(ctx context.Context) ([]*mcp.Tool, error) {
	if s.owner.capabilities(ctx).Tools == nil {
		return nil, nil
	}
	var rejected []Rejection
	tools, err := pages(s, func(cursor string) ([]*mcp.Tool, string, error) {
		raw, err := s.call(ctx, func(ctx context.Context) error {
			_, err := s.client.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
			return err
		})
		if err != nil {
			return nil, "", err
		}
		var page struct {
			Tools      []json.RawMessage `json:"tools"`
			NextCursor string            `json:"nextCursor"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, "", fmt.Errorf("decoding the tools of the library server: %w", err)
		}
		tools := make([]*mcp.Tool, 0, len(page.Tools))
		for _, one := range page.Tools {
			tool, err := decodeTool(one)
			if err != nil {
				rejected = append(rejected, s.owner.reject(tool.Name, err))
				continue
			}
			tools = append(tools, tool)
		}
		return tools, page.NextCursor, nil
	})
	if err != nil {
		return nil, err
	}
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	s.owner.rejected = rejected[:min(len(rejected), maxRejected)]
	return tools, nil
}

// reject logs a tool that is left out.
func (l *LibraryServer) reject(name string, err error) Rejection {
	server := ""
	l.mu.Lock()
	if l.about != nil && l.about.ServerInfo != nil {
		server = l.about.ServerInfo.Name
	}
	l.mu.Unlock()
	text, attrs := "tool of a library server left out", []any{"server", server, "name", name, "error", err}
	if in := (*inputSchemaError)(nil); errors.As(err, &in) {
		text, attrs = in.warning(server, name), append(attrs, "code", codeUnconvertible)
	}
	l.log.Load().Warn(text, attrs...)
	return Rejection{KindTool, name, fmt.Errorf("mcpserver: %s %q on server %q was left out: %w", KindTool, name, server, err)}
}

// decodeTool reads a tool and keeps its schemas as they were written. The tool is
// never nil: with an error it has its name, if that could be read.
func decodeTool(raw json.RawMessage) (*mcp.Tool, error) {
	tool := new(mcp.Tool)
	if err := json.Unmarshal(raw, tool); err != nil {
		var named struct{ Name string }
		_ = json.Unmarshal(raw, &named) // as far as it goes
		return &mcp.Tool{Name: named.Name}, err
	}
	var schemas struct {
		Input  json.RawMessage `json:"inputSchema"`
		Output json.RawMessage `json:"outputSchema"`
	}
	if err := json.Unmarshal(raw, &schemas); err != nil {
		return tool, err
	}
	if tool.Name == "" {
		return tool, errors.New("it has no name")
	}
	if len(schemas.Input) == 0 || schemas.Input[0] != '{' {
		return tool, &inputSchemaError{fmt.Errorf("the input schema must be a JSON object, and is %s", sample(schemas.Input))}
	}
	tool.InputSchema = schemas.Input
	tool.OutputSchema = nil
	if schemas.Output != nil {
		tool.OutputSchema = schemas.Output
	}
	return tool, nil
}
