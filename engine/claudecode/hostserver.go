package claudecode

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// A hostServer presents a server of a host as a server in this process.
type hostServer struct {
	host      *mcphost.Host
	name      string
	sessionID string
}

var _ mcpserver.Provider = (*hostServer)(nil)

func (p *hostServer) status() mcphost.ServerStatus {
	st, _ := p.host.ServerStatus(p.name)
	return st
}

// Info returns the server's own name, or its key while that is unknown.
func (p *hostServer) Info() *mcp.Implementation {
	return cmp.Or(p.status().ServerInfo, &mcp.Implementation{Name: p.name, Version: "0"})
}

// Rejected returns the tools that the host left out.
func (p *hostServer) Rejected() []mcpserver.Rejection {
	var all []mcpserver.Rejection
	for _, r := range p.status().Rejected {
		all = append(all, mcpserver.Rejection{Kind: mcpserver.KindTool, Name: r.Name, Err: errors.New(r.Reason)})
	}
	return all
}

// Instructions returns the server's own instructions.
func (p *hostServer) Instructions() string { return p.status().Instructions }

// Capabilities returns the server's capabilities. A server that is not connected yet may have tools.
func (p *hostServer) Capabilities() *mcp.ServerCapabilities {
	c := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}
	if known := p.status().Capabilities; known != nil && known.Resources != nil {
		c.Resources = &mcp.ResourceCapabilities{ListChanged: true}
	}
	return c
}

// OpenSession returns a session over the host's connection.
func (p *hostServer) OpenSession(ctx context.Context, o *mcpserver.SessionOptions) (mcpserver.ServerSession, error) {
	unused, err := mcpserver.New(p.name, nil).OpenSession(ctx, nil)
	if err != nil {
		return nil, err
	}
	hs := &hostSession{ServerSession: unused, hostServer: p, stop: func() {}}
	if o != nil && o.Notify != nil {
		hs.notify = o.Notify
		ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
		hs.stop = stop
		events := p.host.Watch(ctx)
		hs.wg.Go(func() { hs.follow(ctx, events) })
	}
	return hs, nil
}

// A hostSession is a session over a host's connection. What the CLI does not use of servers in this
// process, such as prompts and subscriptions, is that of an empty server.
type hostSession struct {
	mcpserver.ServerSession
	*hostServer
	notify func(ctx context.Context, n mcpserver.Notification) // may be nil
	stop   context.CancelFunc
	wg     sync.WaitGroup
}

// follow notifies of changed lists. The list of tools changes, too, when the server comes or goes.
func (hs *hostSession) follow(ctx context.Context, events <-chan mcphost.Event) {
	for e := range events {
		if e.Server != hs.name {
			continue
		}
		if e.Tools || e.Status != "" {
			hs.notify(ctx, mcpserver.Notification{Method: mcpserver.MethodToolListChanged, Params: &mcp.ToolListChangedParams{}})
		}
		if e.Resources {
			hs.notify(ctx, mcpserver.Notification{Method: mcpserver.MethodResourceListChanged, Params: &mcp.ResourceListChangedParams{}})
		}
	}
}

// Close ends the session. The server stays connected.
func (hs *hostSession) Close() error {
	hs.stop()
	hs.wg.Wait()
	return hs.ServerSession.Close()
}

// ListTools returns the tools that the host has of the server now.
func (hs *hostSession) ListTools(context.Context) ([]*mcp.Tool, error) {
	var all []*mcp.Tool
	for _, t := range hs.host.Tools() {
		if t.Server != hs.name {
			continue
		}
		meta := t.Meta
		if t.AlwaysLoad {
			meta = alwaysLoaded(meta)
		}
		all = append(all, &mcp.Tool{
			Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema,
			Annotations: t.Annotations, Icons: t.Icons, Meta: meta,
		})
	}
	return all, nil
}

// alwaysLoaded returns a tool's _meta with the mark that its definition is in every request.
func alwaysLoaded(meta mcp.Meta) mcp.Meta {
	out := maps.Clone(meta)
	if out == nil {
		out = mcp.Meta{}
	}
	out["anthropic/alwaysLoad"] = true
	return out
}

// CallTool calls a tool under the host's limits.
func (hs *hostSession) CallTool(ctx context.Context, c mcpserver.Call) (*mcpserver.Result, error) {
	o := &mcphost.CallOptions{Meta: maps.Clone(c.Meta), Session: hs.sessionID}
	o.ToolUseID, _ = c.Meta[toolUseIDKey].(string)
	delete(o.Meta, "progressToken") // the host has its own
	if c.ProgressToken != nil && hs.notify != nil {
		o.OnProgress = func(p mcphost.Progress) {
			hs.notify(ctx, mcpserver.Notification{Method: mcpserver.MethodProgress, Params: &mcp.ProgressNotificationParams{
				ProgressToken: c.ProgressToken, Progress: p.Progress, Total: p.Total, Message: p.Message,
			}})
		}
	}
	r, err := hs.host.CallServer(ctx, hs.name, c.Name, c.Arguments, o)
	switch {
	case err == nil:
		return r, nil
	case ctx.Err() != nil:
		return nil, err
	case errors.Is(err, mcphost.ErrUnknownTool):
		return mcpserver.Errorf("Tool '%s' not found", c.Name), nil
	}
	return mcpserver.Errorf("%v", err), nil
}

// ListResources lists the server's resources.
func (hs *hostSession) ListResources(ctx context.Context) ([]*mcp.Resource, error) {
	all, err := hs.host.Resources(ctx, hs.name)
	var out []*mcp.Resource
	for _, r := range all {
		out = append(out, r.Resource)
	}
	return out, err
}

// ListResourceTemplates lists the server's resource templates.
func (hs *hostSession) ListResourceTemplates(ctx context.Context) ([]*mcp.ResourceTemplate, error) {
	all, err := hs.host.ResourceTemplates(ctx, hs.name)
	var out []*mcp.ResourceTemplate
	for _, r := range all {
		out = append(out, r.ResourceTemplate)
	}
	return out, err
}

// ReadResource reads a resource of the server.
func (hs *hostSession) ReadResource(ctx context.Context, uri string) (*mcp.ReadResourceResult, error) {
	return hs.host.ReadResource(ctx, hs.name, uri)
}
