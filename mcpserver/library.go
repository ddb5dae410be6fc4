package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// firstModern is the first version of the protocol without a handshake. Versions
// are dates and compare as texts.
const firstModern = "2026-07-28"

// Library returns the same server as a server of the official library: same name,
// tools, resources and prompts, now and later; what is added or removed reaches
// the library's clients as list_changed. Calls run as everywhere: validated,
// limited in time, under the server's scheduling and middleware. It is one value,
// made at the first call, and safe for concurrent use.
//
// The result may be connected to any of the library's transports, and may be
// extended; what is added to it directly the server does not know of. An unknown
// tool is the error -32601 here as well. [Server.Close] ends the calls, the
// sessions of the library are closed by whoever opened them.
func (s *Server) Library() *mcp.Server {
	f := s.library.get(s)
	f.sync()
	return f.lib
}

// A libraryFace makes the face behind [Server.Library], once.
type libraryFace struct {
	once sync.Once
	face *face
}

func (l *libraryFace) get(s *Server) *face {
	l.once.Do(func() { l.face = newFace(s) })
	return l.face
}

// A face is a [Server] as a server of the official library. Clients talk to the
// library, and the library's handlers talk to sessions of the Server, one for each
// of the library's.
type face struct {
	server *Server
	lib    *mcp.Server
	follow *Session // hears of each change of the server
	mirror mirror
	// resumes says that clients can come back to a stream that was closed.
	resumes bool
	handle  mcp.MethodHandler // the library's own
	wg      sync.WaitGroup    // waits for the library's sessions to end

	mu       sync.Mutex // guards the rest
	closed   bool
	sessions map[*mcp.ServerSession]*Session
	requests map[*Session]string // sessions of one request each, with their users
	users    map[string]int      // how many of those each user has
}

func newFace(s *Server) *face {
	f := &face{server: s, sessions: make(map[*mcp.ServerSession]*Session), requests: make(map[*Session]string), users: make(map[string]int)}
	caps := s.Capabilities()
	f.lib = mcp.NewServer(s.Info(), &mcp.ServerOptions{
		Instructions: s.Instructions(),
		Logger:       slog.New(quiet{s.logger.Handler()}),
		Capabilities: &mcp.ServerCapabilities{
			Logging: caps.Logging, Tools: caps.Tools, Resources: caps.Resources, Prompts: caps.Prompts,
		},
		SubscribeHandler:   f.subscribe,
		UnsubscribeHandler: f.unsubscribe,
		CompletionHandler:  f.complete,
	})
	f.lib.AddReceivingMiddleware(f.receive)
	f.mirror.init(f)
	f.follow = s.NewSession(&SessionOptions{Notify: f.changed, everything: true})
	f.sync()
	return f
}

// quiet passes warnings and errors only: the library tells of each connection.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }
func (q quiet) WithGroup(name string) slog.Handler       { return quiet{q.Handler.WithGroup(name)} }

// changed follows the server.
func (f *face) changed(ctx context.Context, n Notification) {
	p, ok := n.Params.(*mcp.ResourceUpdatedNotificationParams)
	if !ok {
		f.syncAnd(n.Method)
		return
	}
	// The library knows which of its sessions subscribed, and bounds the sending.
	if err := f.lib.ResourceUpdated(ctx, p); err != nil {
		f.server.logger.Warn("resource update not sent", "uri", p.URI, "error", err)
	}
}

// session is the session of the server behind one of the library's. A session of
// the protocol from 2026-07-28 on is one request: what it needs comes and goes
// with it, and release ends it. Of those, a user may have as many at a time as a
// session may have calls.
func (f *face) session(ss *mcp.ServerSession, modern bool, user string) (session *Session, release func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, nil, ErrClosed
	}
	if session := f.sessions[ss]; session != nil {
		return session, func() {}, nil
	}
	if most := f.server.opts.MaxCalls; modern && user != "" && most > 0 && f.users[user] >= most {
		return nil, nil, fmt.Errorf("%w: %d of this user run already", ErrTooManyCalls, most)
	}
	session = f.server.NewSession(f.sessionOptions(ss))
	if modern {
		f.requests[session] = user
		f.users[user]++
		return session, func() { f.release(session) }, nil
	}
	f.sessions[ss] = session
	f.wg.Go(func() {
		_ = ss.Wait() // how it ended is its owner's concern
		f.drop(ss, session)
	})
	return session, func() {}, nil
}

func (f *face) release(session *Session) {
	f.mu.Lock()
	if user, open := f.requests[session]; open {
		delete(f.requests, session)
		if f.users[user]--; f.users[user] == 0 {
			delete(f.users, user)
		}
	}
	f.mu.Unlock()
	session.begin() // its one call is over: nothing to wait for
}

// drop ends the session behind one of the library's that has ended. The library
// keeps the URIs that its sessions had subscribed to until somebody unsubscribes.
func (f *face) drop(ss *mcp.ServerSession, session *Session) {
	session.begin()
	for _, uri := range session.subscriptions() {
		req := &mcp.UnsubscribeRequest{Session: ss, Params: &mcp.UnsubscribeParams{URI: uri}}
		if _, err := f.handle(closeContext{session.life}, "resources/unsubscribe", req); err != nil {
			f.server.logger.Warn("subscription of a session that ended is kept", "uri", uri, "error", err)
		}
	}
	f.mu.Lock()
	delete(f.sessions, ss)
	f.mu.Unlock()
	_ = session.Close()
}

func (f *face) sessionOptions(ss *mcp.ServerSession) *SessionOptions {
	scheduling, middleware := f.server.Dispatch()
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
				f.server.logger.Warn("notification not sent", "method", n.Method, "error", err)
			}
		},
		Elicit: func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			if err := checkElicitSchema(p.RequestedSchema); err != nil {
				return nil, err
			}
			return ss.Elicit(ctx, p)
		},
		Sample: func(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			if params := ss.InitializeParams(); params == nil || params.Capabilities == nil || params.Capabilities.Sampling == nil {
				return nil, errors.New("the client does not support sampling")
			}
			return ss.CreateMessage(ctx, p)
		},
		ListRoots: func(ctx context.Context) ([]*mcp.Root, error) {
			if params := ss.InitializeParams(); params == nil || params.Capabilities == nil || params.Capabilities.RootsV2 == nil {
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

// close ends following the server and all calls, without waiting for them. The
// library's sessions can then be closed without delay.
func (f *face) close() {
	f.follow.begin()
	f.mu.Lock()
	f.closed = true
	sessions := slices.AppendSeq(slices.Collect(maps.Values(f.sessions)), maps.Keys(f.requests))
	f.mu.Unlock()
	for _, session := range sessions {
		session.begin()
	}
}
