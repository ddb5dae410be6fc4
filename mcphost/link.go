package mcphost

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcphost/internal/transport"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// A link is a live connection to one server.
type link interface {
	info() linkInfo
	// done is closed when the connection broke. lost is closed when it needs to be
	// made anew while calls may still be answered. Then err says why.
	done() <-chan struct{}
	lost() <-chan struct{}
	err() error

	listTools(ctx context.Context) (toolList, error)
	call(ctx context.Context, c linkCall) (*mcpserver.Result, error)

	listResources(ctx context.Context) ([]*mcp.Resource, error)
	listResourceTemplates(ctx context.Context) ([]*mcp.ResourceTemplate, error)
	readResource(ctx context.Context, uri string) (*mcp.ReadResourceResult, error)
	subscribe(ctx context.Context, uri string) error
	unsubscribe(ctx context.Context, uri string) error
	listPrompts(ctx context.Context) ([]*mcp.Prompt, error)
	getPrompt(ctx context.Context, name string, args map[string]string) (*mcp.GetPromptResult, error)
	complete(ctx context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error)
	setLevel(ctx context.Context, level mcp.LoggingLevel) error
	ping(ctx context.Context) error
	// heard grows with each message of the server.
	heard() int64

	diagnostics() diagnostics
	// close ends the connection and all that belongs to it. It is bounded and
	// may be called more than once.
	close() error
}

// linkInfo is what the handshake told.
type linkInfo struct {
	transport.Info
	// limitsCalls reports that the server in this process bounds its calls
	// itself, with callTimeout.
	limitsCalls bool
	callTimeout time.Duration
}

// diagnostics is what a status shows of a connection.
type diagnostics struct {
	pid          int
	stderr       string
	noise        int
	noiseHead    []string
	changesError string // why notifications of changes do not arrive; empty if they do, or there are none
}

// A toolList is all that a server listed.
type toolList struct {
	tools    []Tool
	rejected []RejectedTool
	unnamed  int // rejected that are not in rejected
	// problem is why the list is not whole, nil if it is.
	problem error
}

// A linkCall is one tools/call.
type linkCall struct {
	tool       *Tool
	args       json.RawMessage
	meta       mcp.Meta
	onProgress func(Progress)
	headers    map[string]string
	// answers and state continue a call that asked for input.
	answers mcp.InputResponseMap
	state   string
	// sent is set when the request may have reached the server.
	sent *bool
}

// handlers are what a link tells whoever owns it. They do not block.
type handlers struct {
	listChanged     func(method string) // the method of the notification
	resourceUpdated func(uri string)
	log             func(p *mcp.LoggingMessageParams)
	elicit          func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error)
	sample          func(ctx context.Context, p *mcp.CreateMessageWithToolsParams) (*mcp.CreateMessageWithToolsResult, error)
}
