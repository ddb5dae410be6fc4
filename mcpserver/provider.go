package mcpserver

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Provider is an MCP server in this process, such as a [*Server]. Hosts and
// bridges open a session on it and use nothing but the session.
//
// A Provider is safe for concurrent use and serves any number of sessions at once.
type Provider interface {
	// Info describes the server. The caller must not modify it.
	Info() *mcp.Implementation
	// Instructions is the server's advice to the model; it may be empty.
	Instructions() string
	// Capabilities is what the server offers now. The caller owns the copy.
	Capabilities() *mcp.ServerCapabilities
	// OpenSession starts a session. A nil o means the defaults. The context
	// bounds the opening only; the session lives until it is closed.
	OpenSession(ctx context.Context, o *SessionOptions) (ServerSession, error)
}

// A ServerSession is one client's conversation with a [Provider]. It is safe for
// concurrent use. Whoever opened it closes it.
type ServerSession interface {
	// ListTools returns all tools in a stable order. The caller must not modify them.
	ListTools(ctx context.Context) ([]*mcp.Tool, error)
	// CallTool calls a tool. Whatever goes wrong in the call itself is a result
	// with IsError set; an error means that ctx or the session ended.
	CallTool(ctx context.Context, c Call) (*Result, error)
	ListResources(ctx context.Context) ([]*mcp.Resource, error)
	ListResourceTemplates(ctx context.Context) ([]*mcp.ResourceTemplate, error)
	// ReadResource reads one resource. An unknown URI is a [*NotFoundError].
	ReadResource(ctx context.Context, uri string) (*mcp.ReadResourceResult, error)
	// Subscribe asks for notifications about one resource.
	Subscribe(ctx context.Context, uri string) error
	Unsubscribe(ctx context.Context, uri string) error
	ListPrompts(ctx context.Context) ([]*mcp.Prompt, error)
	// GetPrompt makes one prompt. An unknown name is a [*NotFoundError].
	GetPrompt(ctx context.Context, name string, args map[string]string) (*mcp.GetPromptResult, error)
	Complete(ctx context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error)
	// SetLevel sets the least severe level that reaches [SessionOptions.Notify].
	SetLevel(ctx context.Context, level mcp.LoggingLevel) error
	// Close ends the session and cancels its calls. It is bounded, and may be
	// called more than once and from any goroutine.
	Close() error
}

// A Call is one tools/call request.
type Call struct {
	// Name is the tool's exact name.
	Name string
	// Arguments is a JSON object. Nil, empty and null mean {}.
	Arguments json.RawMessage
	// RequestID is the id of the request that carried the call, as its JSON
	// text; empty when there was none.
	RequestID string
	// ProgressToken is what progress notifications carry, a string or a
	// number; nil when the caller wants none.
	ProgressToken any
	// Meta is the request's _meta.
	Meta mcp.Meta
	// InputResponses and RequestState continue a call that asked for input
	// (see [Result.InputRequests]).
	InputResponses mcp.InputResponseMap
	RequestState   string
	// MultiRoundTrip says that the client cannot be asked while the call runs: what the
	// handler asks for becomes [Result.InputRequests], and the call comes
	// again with the answers (protocol 2026-07-28).
	MultiRoundTrip bool
	// Client, ClientCapabilities and ProtocolVersion describe the client where
	// they come with each request; nil and "" mean the session's.
	Client             *mcp.Implementation
	ClientCapabilities *mcp.ClientCapabilities
	ProtocolVersion    string
}

// A Notification is a message from the server to a client of one session.
type Notification struct {
	// Method is the JSON-RPC method, such as [MethodToolListChanged].
	Method string
	// Params is a pointer to the mcp package's params type of that method.
	Params any
}

type callKey struct{}

// WithCall returns a context that carries c to the next [ServerSession.GetPrompt],
// [ServerSession.ReadResource] or [ServerSession.Complete]: its request id,
// progress token, _meta, client, and the answers to what the last round asked
// for. The name and the arguments of c do not count, and CallTool takes its own
// Call instead.
func WithCall(ctx context.Context, c Call) context.Context {
	return context.WithValue(ctx, callKey{}, &c)
}

// callFrom is the Call that ctx carries, the zero Call if there is none.
func callFrom(ctx context.Context) Call {
	if c, _ := ctx.Value(callKey{}).(*Call); c != nil {
		return *c
	}
	return Call{}
}
