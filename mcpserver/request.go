package mcpserver

import (
	"context"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Request describes the call that a handler serves. Its methods send messages to
// the client. It is safe for concurrent use. The handler must not modify what its
// fields refer to.
type Request struct {
	Kind Kind
	// Name is the name of the tool or prompt, or the URI of the resource.
	Name string
	// SessionID is empty for a direct call.
	SessionID string
	// RequestID is the JSON text of the id of the JSON-RPC request, empty if there was none.
	RequestID string
	// ProgressToken is nil if the caller wants no progress notifications.
	ProgressToken any
	Meta          mcp.Meta
	// Client, ClientCapabilities and ProtocolVersion describe the client, where known.
	Client             *mcp.Implementation
	ClientCapabilities *mcp.ClientCapabilities
	ProtocolVersion    string
	// InputResponses are the answers to [Result.InputRequests] of an earlier call,
	// RequestState is its state.
	InputResponses mcp.InputResponseMap
	RequestState   string

	callCtx *callContext
}

// A callContext is one call, and the context of its handler. Nested calls find it
// there. Its dispatch applies to them while the call lasts.
type callContext struct {
	context.Context

	request   Request
	server    *Server
	session   *Session   // nil for a direct call outside of all sessions
	serial    bool       // the call, or one around it, holds the server's serial slot
	roundTrip *roundTrip // nil if the client can be asked while the call runs

	dispatch atomic.Pointer[dispatch] // nil after the call
}

type callContextKey struct{}

// Value returns the callContext itself for its key.
func (c *callContext) Value(key any) any {
	if _, ok := key.(callContextKey); ok {
		return c
	}
	return c.Context.Value(key)
}

func callContextFrom(ctx context.Context) *callContext {
	c, _ := ctx.Value(callContextKey{}).(*callContext)
	return c
}

// close ends the call: its context cannot be used for more.
func (c *callContext) close() { c.dispatch.Store(nil) }

// RequestFrom returns the request of the call that ctx belongs to. Outside of calls
// it is empty, never nil.
func RequestFrom(ctx context.Context) *Request {
	if c := callContextFrom(ctx); c != nil {
		return &c.request
	}
	return &Request{}
}

// Dispatch returns the scheduling and middleware of the call while it lasts, then
// those of the server.
func (r *Request) Dispatch() (Scheduling, Middleware) {
	if r.callCtx == nil {
		return Concurrent, nil
	}
	if d := r.callCtx.dispatch.Load(); d != nil {
		return d.scheduling, d.middleware
	}
	return r.callCtx.server.Dispatch()
}

// session returns the session, nil without one, or an error after the call.
func (r *Request) session() (*Session, error) {
	switch {
	case r.callCtx == nil:
		return nil, nil
	case r.callCtx.dispatch.Load() == nil:
		return nil, ErrCallEnded
	}
	return r.callCtx.session, nil
}

// newCallContext returns the context of a call, and the lifetime that counts it.
func (s *Server) newCallContext(ctx context.Context, ss *Session, kind Kind, c Call) (*callContext, *lifetime) {
	cc := &callContext{server: s, session: ss}
	cc.request = Request{
		Kind: kind, Name: c.Name, RequestID: c.RequestID, ProgressToken: c.ProgressToken, Meta: c.Meta,
		Client: c.Client, ClientCapabilities: c.ClientCapabilities, ProtocolVersion: c.ProtocolVersion,
		InputResponses: c.InputResponses, RequestState: c.RequestState, callCtx: cc,
	}
	how, counts := s.dispatch.Load(), s.lifetime
	if outer := callContextFrom(ctx); outer != nil {
		cc.serial = outer.serial && outer.server == s
		if d := outer.dispatch.Load(); d != nil && ss == nil {
			how = d
			if outer.server == s {
				cc.session = outer.session
			}
		}
	}
	if ss != nil {
		how, counts = ss.dispatch, ss.lifetime
	}
	cc.dispatch.Store(how)
	if ss := cc.session; ss != nil {
		cc.request.SessionID = ss.id
		if cc.request.Client == nil {
			cc.request.Client = ss.client
		}
	}
	return cc, counts
}
