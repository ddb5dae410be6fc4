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
	// Instructions returns the server's advice to the model, which may be empty.
	Instructions() string
	// Capabilities returns the server's capabilities now. The caller owns them.
	Capabilities() *mcp.ServerCapabilities
	// OpenSession opens a session. A nil o means the defaults. The context bounds
	// the opening only; the session lives until it is closed.
	OpenSession(ctx context.Context, o *SessionOptions) (ServerSession, error)
}

// A ServerSession is a session of one client with a [Provider]. It is safe for
// concurrent use. The caller of OpenSession closes it.
type ServerSession interface {
	// ListTools returns all tools in a stable order. The caller must not modify them.
	ListTools(ctx context.Context) ([]*mcp.Tool, error)
	// CallTool calls a tool. A failure of the tool is a result with IsError set;
	// an error means that ctx or the session ended.
	CallTool(ctx context.Context, c Call) (*Result, error)
	ListResources(ctx context.Context) ([]*mcp.Resource, error)
	ListResourceTemplates(ctx context.Context) ([]*mcp.ResourceTemplate, error)
	// ReadResource reads one resource. An unknown URI is a [*NotFoundError].
	ReadResource(ctx context.Context, uri string) (*mcp.ReadResourceResult, error)
	// Subscribe requests notifications of changes of one resource.
	Subscribe(ctx context.Context, uri string) error
	Unsubscribe(ctx context.Context, uri string) error
	ListPrompts(ctx context.Context) ([]*mcp.Prompt, error)
	// GetPrompt returns one prompt. An unknown name is a [*NotFoundError].
	GetPrompt(ctx context.Context, name string, args map[string]string) (*mcp.GetPromptResult, error)
	Complete(ctx context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error)
	// SetLevel sets the least severe level that reaches [SessionOptions.Notify].
	SetLevel(ctx context.Context, level mcp.LoggingLevel) error
	// Close ends the session and cancels its calls. It returns after a bounded
	// time and may be called more than once, from any goroutine.
	Close() error
}

// A Call is one tools/call request.
type Call struct {
	// Name is the tool's exact name.
	Name string
	// Arguments is a JSON object. Nil, empty and null mean {}.
	Arguments json.RawMessage
	// RequestID is the JSON text of the id of the JSON-RPC request, empty if there
	// was none.
	RequestID string
	// ProgressToken identifies the call in progress notifications: a string or a
	// number, nil if the caller wants none.
	ProgressToken any
	// Meta is the request's _meta.
	Meta mcp.Meta
	// InputResponses and RequestState continue a call that asked for input
	// (see [Result.InputRequests]).
	InputResponses mcp.InputResponseMap
	RequestState   string
	// MultiRoundTrip is set if the client cannot be asked while the call runs: the
	// handler's requests become [Result.InputRequests], and the client calls again
	// with the answers (protocol 2026-07-28).
	MultiRoundTrip bool
	// Client, ClientCapabilities and ProtocolVersion describe the client if each
	// request does so; nil and "" mean those of the session.
	Client             *mcp.Implementation
	ClientCapabilities *mcp.ClientCapabilities
	ProtocolVersion    string
}

// A Notification is a JSON-RPC notification to the client of a session.
type Notification struct {
	// Method is the JSON-RPC method, such as [MethodToolListChanged].
	Method string
	// Params is a pointer to the mcp package's params type of that method.
	Params any
}

type callKey struct{}

// WithCall returns a context that carries c to [ServerSession.GetPrompt],
// [ServerSession.ReadResource] or [ServerSession.Complete], which ignore its name
// and arguments. CallTool takes its own Call instead.
func WithCall(ctx context.Context, c Call) context.Context {
	return context.WithValue(ctx, callKey{}, &c)
}

// callFrom returns the Call that ctx carries, the zero Call if there is none.
func callFrom(ctx context.Context) Call {
	if c, _ := ctx.Value(callKey{}).(*Call); c != nil {
		return *c
	}
	return Call{}
}
