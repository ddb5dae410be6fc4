package mcpserver

import (
	"context"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Request is what a handler can know about the call that it serves, and its
// line to the client. It is safe for concurrent use. The handler must not
// modify what its fields refer to.
type Request struct {
	Kind Kind
	// Name is the name of the tool or prompt, or the URI of the resource.
	Name string
	// SessionID is empty for a direct call.
	SessionID string
	// RequestID is the id of the request that carried the call, as its JSON text; empty if there was none.
	RequestID string
	// ProgressToken is nil if the caller wants no progress notifications.
	ProgressToken any
	Meta          mcp.Meta
	// Client, ClientCapabilities and ProtocolVersion describe the client, as far as it told.
	Client             *mcp.Implementation
	ClientCapabilities *mcp.ClientCapabilities
	ProtocolVersion    string
	// InputResponses and RequestState are there when the call comes again with
	// the answers to [Result.InputRequests].
	InputResponses mcp.InputResponseMap
	RequestState   string

	callCtx *callContext
}

// A scope is one call. It is the context that its handler gets; handlers of
// nested calls find it there. Its pair governs them while the call lasts.
type callContext struct {
	context.Context

	request   Request
	server    *Server
	session   *Session   // nil for a direct call outside of all sessions
	serial    bool       // the call, or one that it is nested in, holds the server's serial slot
	roundTrip *roundTrip // nil: the client can be asked while the call runs

	dispatch atomic.Pointer[dispatch] // nil once the call has ended
}

type callContextKey struct{}

// Value makes the scope itself what its contexts carry.
func (s *callContext) Value(key any) any {
	if _, ok := key.(callContextKey); ok {
		return s
	}
	return s.Context.Value(key)
}

func callContextFrom(ctx context.Context) *callContext {
	s, _ := ctx.Value(callContextKey{}).(*callContext)
	return s
}

// close ends the scope; who holds its context cannot use it for more calls.
func (s *callContext) close() { s.dispatch.Store(nil) }

func (s *callContext) live() bool { return s.dispatch.Load() != nil }

// RequestFrom returns the request of the call that ctx belongs to. It is never
// nil: outside of calls it is empty and its line leads nowhere.
func RequestFrom(ctx context.Context) *Request {
	if s := callContextFrom(ctx); s != nil {
		return &s.request
	}
	return &Request{}
}

// Dispatch returns the scheduling and middleware in force: the pair of the call
// while it lasts, then the server's own.
func (r *Request) Dispatch() (Scheduling, Middleware) {
	if r.callCtx == nil {
		return Concurrent, nil
	}
	if pair := r.callCtx.dispatch.Load(); pair != nil {
		return pair.scheduling, pair.middleware
	}
	return r.callCtx.server.Dispatch()
}

// session returns the session, nil without one, or an error if the call is over.
func (r *Request) session() (*Session, error) {
	if r.callCtx == nil {
		return nil, nil
	}
	if !r.callCtx.live() {
		return nil, ErrCallEnded
	}
	return r.callCtx.session, nil
}

// newCallContext makes the scope of a call and finds the lifetime that it counts in.
func (s *Server) newCallContext(ctx context.Context, ss *Session, kind Kind, c Call) (*callContext, *lifetime) {
	sc := &callContext{server: s, session: ss}
	sc.request = Request{
		Kind: kind, Name: c.Name, RequestID: c.RequestID, ProgressToken: c.ProgressToken, Meta: c.Meta,
		Client: c.Client, ClientCapabilities: c.ClientCapabilities, ProtocolVersion: c.ProtocolVersion,
		InputResponses: c.InputResponses, RequestState: c.RequestState, callCtx: sc,
	}
	pair, life := s.dispatch.Load(), s.lifetime
	if outer := callContextFrom(ctx); outer != nil {
		sc.serial = outer.serial && outer.server == s
		// One read of the pair decides: governed by it as a whole, or not at all.
		if live := outer.dispatch.Load(); live != nil && ss == nil {
			pair = live
			if outer.server == s {
				sc.session = outer.session
			}
		}
	}
	if ss != nil {
		pair, life = ss.dispatch, ss.lifetime
	}
	sc.dispatch.Store(pair)
	if ss := sc.session; ss != nil {
		sc.request.SessionID = ss.id
		if sc.request.Client == nil {
			sc.request.Client = ss.client
		}
	}
	return sc, life
}
