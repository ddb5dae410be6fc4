package mcphost

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcphost/internal/transport"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// A link is a connection to a server.
type link interface {
	info() linkInfo
	// done is closed when the connection has ended, and lost when a new one is needed while calls
	// on this one may still be answered. err returns the reason.
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
	// received counts the server's messages.
	received() int64

	diagnostics() diagnostics
	// close closes the connection within a bounded time. It may be called more than once.
	close() error
}

// linkInfo is the result of the handshake.
type linkInfo struct {
	transport.Info
	// limitsCalls reports that the server in this process limits its calls itself, to callTimeout.
	limitsCalls bool
	callTimeout time.Duration
}

// diagnostics are the details of a connection in a status.
type diagnostics struct {
	pid          int
	stderr       string
	noise        int
	noiseHead    []string
	changesError string // why notifications of changes do not arrive; empty if they do, or there are none
}

// A toolList is the result of tools/list.
type toolList struct {
	tools    []Tool
	rejected []RejectedTool
	unnamed  int // rejected that are not in rejected
	// problem is why the list is incomplete, or nil.
	problem error
}

// A linkCall is a tools/call request.
type linkCall struct {
	tool       *Tool
	args       json.RawMessage
	meta       mcp.Meta
	onProgress func(Progress)
	headers    map[string]string
	// answers and state continue a call that requested input.
	answers mcp.InputResponseMap
	state   string
	// sent is set if the request may have reached the server.
	sent *bool
}

// handlers handle notifications and requests of a server. They do not block.
type handlers struct {
	listChanged     func(method string) // the method of the notification
	resourceUpdated func(uri string)
	log             func(p *mcp.LoggingMessageParams)
	elicit          func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error)
	sample          func(ctx context.Context, p *mcp.CreateMessageWithToolsParams) (*mcp.CreateMessageWithToolsResult, error)
}

// isClosed reports whether a channel is closed.
func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// A liveLink is a link with the number of its users.
type liveLink struct {
	link
	users    int
	draining bool // it takes no more users, who get refusal or, if that is nil, wait
	refusal  error
	why      error         // it is closed on request; nil if it is not
	idle     chan struct{} // closed when unused; nil when nobody waits for that: see unused

	silent     int           // calls in a row that timed out while nothing was heard
	receivedAt int64         // what link.heard said at the first of them
	suspected  chan struct{} // whether the server still answers is to be found out; holds one, nil if it cannot be
}

// unused returns a channel that is closed when nobody uses the link and nobody may start to. The
// caller holds c.mu.
func (l *liveLink) unused() <-chan struct{} {
	if l.idle == nil || isClosed(l.idle) && l.users > 0 {
		l.idle = make(chan struct{})
		if l.users == 0 {
			close(l.idle)
		}
	}
	return l.idle
}

// maxInputRequests is how often a call may request input.
const maxInputRequests = 10

var errInputRequests = fmt.Errorf("the server asked for input more than %d times", maxInputRequests)

func (list *toolList) reject(t Tool, why string) {
	if len(list.rejected) == maxRejected {
		list.unnamed++
		return
	}
	list.rejected = append(list.rejected, RejectedTool{Server: t.Server, Name: t.Name, Reason: why})
}

// sumUp adds how many tools are left out without being named.
func (list *toolList) sumUp(server string) {
	if list.unnamed > 0 {
		list.rejected = append(list.rejected, RejectedTool{Server: server, Name: "...", Reason: fmt.Sprintf("%d more tools cannot be used", list.unnamed)})
	}
}
