package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
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

// Progress tells the client how far the call is: done of total units, total 0
// if unknown. If the client did not ask for progress it does nothing. After
// the end of the call it returns [ErrCallEnded].
func (r *Request) Progress(ctx context.Context, done, total float64, msg string) error {
	ss, err := r.session()
	if err != nil || ss == nil || r.ProgressToken == nil {
		return err
	}
	return ss.notify(ctx, Notification{MethodProgress, &mcp.ProgressNotificationParams{
		ProgressToken: r.ProgressToken, Progress: done, Total: total, Message: msg,
	}})
}

// Log sends a log message to the client, unless it is below the level that the
// client set. A direct call logs to the server's logger instead. Data is any
// value that has a JSON form.
func (r *Request) Log(ctx context.Context, level mcp.LoggingLevel, logger string, data any) error {
	ss, err := r.session()
	if err != nil || r.callCtx == nil {
		return err
	}
	if ss == nil {
		text, err := json.Marshal(data)
		if err != nil {
			return fmt.Errorf("mcpserver: encoding a log message: %w", err)
		}
		r.callCtx.server.logger.Log(ctx, slogLevel(level), string(text), "logger", logger)
		return nil
	}
	if !ss.wants(level, r.Meta) {
		return nil
	}
	return ss.notify(ctx, Notification{MethodMessage, &mcp.LoggingMessageParams{Level: level, Logger: logger, Data: data}})
}

// Elicit asks the user through the client and waits for the answer. The call's
// time limit goes on meanwhile: a tool that waits for people sets its own, or
// [NoTimeout]. If the client cannot be asked it returns [ErrNotSupported].
//
// The answer's Action is accept, decline or cancel. The content of one that is
// accepted matches p.RequestedSchema, with defaults set; others have none. An
// answer that breaks this is an error, and so is a schema that cannot be used.
//
// Where the client cannot be asked during a call (protocol 2026-07-28), Elicit
// returns an error that the handler has to return; the handler is then called
// again from its beginning and gets the answer from the same call of Elicit.
func (r *Request) Elicit(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	if r.callCtx != nil && r.callCtx.roundTrip != nil {
		check, err := newElicitCheck(p)
		if err != nil {
			return nil, err
		}
		answer, err := r.callCtx.roundTrip.ask(p)
		if err != nil {
			return nil, err
		}
		if result, ok := answer.(*mcp.ElicitResult); ok {
			return check.take(result)
		}
		return nil, fmt.Errorf("mcpserver: the client answered an elicitation with a %T", answer)
	}
	ss, err := r.session()
	if err != nil {
		return nil, err
	}
	if ss == nil {
		return nil, fmt.Errorf("asking the user: %w", ErrNotSupported)
	}
	return ss.askUser(ctx, p)
}

// Sample asks the client's model. See [Request.Elicit] for when that is possible.
func (r *Request) Sample(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	if r.callCtx != nil && r.callCtx.roundTrip != nil {
		answer, err := r.callCtx.roundTrip.ask(p)
		if err != nil {
			return nil, err
		}
		switch result := answer.(type) {
		case *mcp.CreateMessageResult:
			return result, nil
		case *mcp.CreateMessageWithToolsResult:
			return oneMessage(result)
		}
		return nil, fmt.Errorf("mcpserver: the client answered a sampling request with a %T", answer)
	}
	ss, err := r.session()
	if err != nil {
		return nil, err
	}
	if ss == nil {
		return nil, fmt.Errorf("asking the client's model: %w", ErrNotSupported)
	}
	return ss.askModel(ctx, p)
}

// ListRoots asks for the client's roots. See [Request.Elicit] for when that is possible.
func (r *Request) ListRoots(ctx context.Context) ([]*mcp.Root, error) {
	if r.callCtx != nil && r.callCtx.roundTrip != nil {
		answer, err := r.callCtx.roundTrip.ask(&mcp.ListRootsParams{})
		if err != nil {
			return nil, err
		}
		if result, ok := answer.(*mcp.ListRootsResult); ok {
			return result.Roots, nil
		}
		return nil, fmt.Errorf("mcpserver: the client answered a roots request with a %T", answer)
	}
	ss, err := r.session()
	if err != nil {
		return nil, err
	}
	if ss == nil {
		return nil, fmt.Errorf("asking for roots: %w", ErrNotSupported)
	}
	return ss.askRoots(ctx)
}

// oneMessage converts an answer that may have several blocks.
func oneMessage(r *mcp.CreateMessageWithToolsResult) (*mcp.CreateMessageResult, error) {
	if len(r.Content) != 1 {
		return nil, fmt.Errorf("mcpserver: the client's model answered with %d blocks, want 1", len(r.Content))
	}
	return &mcp.CreateMessageResult{Meta: r.Meta, Content: r.Content[0], Model: r.Model, Role: r.Role, StopReason: r.StopReason}, nil
}
