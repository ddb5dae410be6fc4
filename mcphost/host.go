package mcphost

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

var errTodo = errors.New("not implemented yet")

// A Host connects to MCP servers and keeps them connected. All methods are safe
// for concurrent use. Its life ends with [Host.Close].
type Host struct{ opts Options }

// New returns a host for the servers of o. Nothing is started before
// [Host.Start]. A faulty server configuration is not an error here: that server
// is failed from the start, with the reason in its status.
func New(o *Options) (*Host, error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Host{opts: opts}, nil
}

// Start begins connecting all servers and returns at once. The context's values
// reach the requests made for that; its end stops the attempts that are under
// way, but the host's life ends with Close. A second Start does nothing.
func (h *Host) Start(ctx context.Context) {}

// Ready waits until each of the named servers (none: every one) has left
// pending for the first time or is known to connect on first use. It returns
// ctx's error, [ErrUnknownServer] or [ErrClosed]; a server that failed is not an
// error, see [Host.Status].
func (h *Host) Ready(ctx context.Context, names ...string) error { return errTodo }

// Tools returns the tools of all connected servers, sorted by full name without
// regard to case. The slice is the caller's, what the tools point to is not.
func (h *Host) Tools() []Tool { return nil }

// Tool returns the tool with a full name.
func (h *Host) Tool(full string) (Tool, bool) { return Tool{}, false }

// Call calls a tool by its full name. See [Host.CallServer].
func (h *Host) Call(ctx context.Context, full string, args json.RawMessage, o *CallOptions) (*mcpserver.Result, error) {
	return nil, errTodo
}

// CallServer calls a tool by the names that its server is configured under and
// that it has there. A server still connecting is waited for.
//
// Whatever the tool answers is a result, its failures included. The error is a
// *[CallError], ctx's error, [ErrUnknownTool], [ErrUnknownServer] or [ErrClosed].
func (h *Host) CallServer(ctx context.Context, server, tool string, args json.RawMessage, o *CallOptions) (*mcpserver.Result, error) {
	return nil, errTodo
}

// Status returns a snapshot of every server, sorted by name.
func (h *Host) Status() []ServerStatus { return nil }

// Watch returns a channel of events. It is closed when ctx ends or the host is
// closed. A slow receiver gets the latest event of each server rather than all.
func (h *Host) Watch(ctx context.Context) <-chan Event { return nil }

// Reconnect makes one attempt to connect a server now, in any state, and
// returns that attempt's error.
func (h *Host) Reconnect(ctx context.Context, name string) error { return errTodo }

// SetEnabled switches a server off or on again. Switching on makes one attempt
// to connect and returns its error.
func (h *Host) SetEnabled(ctx context.Context, name string, on bool) error { return errTodo }

// A SetResult says what [Host.SetServers] did.
type SetResult struct {
	Added, Removed, Changed []string
	// Errors has the servers that could not be connected, with the reasons.
	Errors map[string]error
}

// SetServers makes want the host's servers: it adds, removes and reconnects
// what differs, leaves the others alone, and waits until those it touched have
// left pending or ctx ends.
func (h *Host) SetServers(ctx context.Context, want map[string]ServerConfig) (SetResult, error) {
	return SetResult{}, errTodo
}

// Close ends all connections and processes and waits for them: at most the
// grace for polite children ([Options.CloseGrace], one and a half times) and
// two seconds, however many servers there are. It may be called more than once
// and from any goroutine.
func (h *Host) Close() error { return nil }

// A Resource is a resource of a server.
type Resource struct {
	Server string
	*mcp.Resource
}

// A ResourceTemplate is a resource template of a server.
type ResourceTemplate struct {
	Server string
	*mcp.ResourceTemplate
}

// A Prompt is a prompt of a server.
type Prompt struct {
	Server string
	*mcp.Prompt
}

// Resources lists the resources of a server, or of all connected ones if server is empty.
func (h *Host) Resources(ctx context.Context, server string) ([]Resource, error) { return nil, errTodo }

// ResourceTemplates lists the resource templates of a server, or of all connected ones if server is empty.
func (h *Host) ResourceTemplates(ctx context.Context, server string) ([]ResourceTemplate, error) {
	return nil, errTodo
}

// ReadResource reads a resource of a server.
func (h *Host) ReadResource(ctx context.Context, server, uri string) (*mcp.ReadResourceResult, error) {
	return nil, errTodo
}

// Subscribe asks for notice of changes of a resource; see [Options.OnResourceUpdated].
func (h *Host) Subscribe(ctx context.Context, server, uri string) error { return errTodo }

// Unsubscribe ends what Subscribe began.
func (h *Host) Unsubscribe(ctx context.Context, server, uri string) error { return errTodo }

// Prompts lists the prompts of a server, or of all connected ones if server is empty.
func (h *Host) Prompts(ctx context.Context, server string) ([]Prompt, error) { return nil, errTodo }

// GetPrompt gets a prompt of a server.
func (h *Host) GetPrompt(ctx context.Context, server, name string, args map[string]string) (*mcp.GetPromptResult, error) {
	return nil, errTodo
}

// Complete asks a server to complete an argument.
func (h *Host) Complete(ctx context.Context, server string, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	return nil, errTodo
}

// SetLogLevel sets the least severe level of log messages that a server sends.
func (h *Host) SetLogLevel(ctx context.Context, server string, level mcp.LoggingLevel) error {
	return errTodo
}

// WaitFirstTurn waits as long as the first turn of a run should, see [WaitInput].
// It returns a *[NotReadyError] when a required server is not connected then.
func (h *Host) WaitFirstTurn(ctx context.Context, in WaitInput) error { return errTodo }
