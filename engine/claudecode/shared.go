package claudecode

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// withShared adds the servers of the run's host, each as a server in this process: the host has
// connected them once, and any number of CLIs use them. A server of the run's own with the same
// name stands before the host's.
func (v *servers) withShared(own map[string]mcphost.ServerConfig) map[string]mcphost.ServerConfig {
	h := v.s.opts.Host
	if h == nil {
		return own
	}
	all := maps.Clone(own)
	if all == nil {
		all = map[string]mcphost.ServerConfig{}
	}
	for _, st := range h.Status() {
		if all[st.Name] == nil {
			all[st.Name] = v.guestOf(h, st.Name)
		}
	}
	return all
}

// truth replaces what the CLI says of a host's servers, which it takes for connected, by what
// the host knows, and the source of servers that were read from files for it.
func (v *servers) truth(rows []agent.MCPServer) {
	for i := range rows {
		if source := commonOf(v.s.opts.MCPServers[rows[i].Name]).Source; source != "" {
			rows[i].Source = source
		}
		h := v.hostOf(rows[i].Name)
		if h == nil || rows[i].Status != string(mcphost.StatusConnected) {
			continue
		}
		if st, ok := h.ServerStatus(rows[i].Name); ok {
			rows[i].Status = string(st.Status)
		}
	}
}

// sharedStatus is the host's status of a server that the CLI takes for connected.
func (v *servers) sharedStatus(st mcphost.ServerStatus) mcphost.ServerStatus {
	if c := commonOf(v.s.opts.MCPServers[st.Name]); c.Source != "" {
		st.Scope, st.Source = c.Scope, c.Source
	}
	h := v.hostOf(st.Name)
	if h == nil || st.Status != mcphost.StatusConnected {
		return st
	}
	if real, ok := h.ServerStatus(st.Name); ok {
		return real
	}
	return st
}

// A hostServer is a server of a host, seen as a server in this process.
type hostServer struct {
	host *mcphost.Host
	name string
	s    *session
}

var _ mcpserver.Provider = (*hostServer)(nil)

func (p *hostServer) status() mcphost.ServerStatus {
	st, _ := p.host.ServerStatus(p.name)
	return st
}

// Info names the server itself, or only its key while it is not known.
func (p *hostServer) Info() *mcp.Implementation {
	if info := p.status().ServerInfo; info != nil {
		return info
	}
	return &mcp.Implementation{Name: p.name, Version: "0"}
}

// Rejected are the tools that the host left out.
func (p *hostServer) Rejected() []mcpserver.Rejection {
	var all []mcpserver.Rejection
	for _, r := range p.status().Rejected {
		all = append(all, mcpserver.Rejection{Kind: mcpserver.KindTool, Name: r.Name, Err: errors.New(r.Reason)})
	}
	return all
}

// Instructions are the server's own.
func (p *hostServer) Instructions() string { return p.status().Instructions }

// Capabilities are the server's. Of one that is not connected yet they are not known; it may have tools.
func (p *hostServer) Capabilities() *mcp.ServerCapabilities {
	c := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}
	if known := p.status().Capabilities; known != nil && known.Resources != nil {
		c.Resources = &mcp.ResourceCapabilities{ListChanged: true}
	}
	return c
}

// OpenSession opens one more view of the host's connection; nothing is connected.
func (p *hostServer) OpenSession(ctx context.Context, o *mcpserver.SessionOptions) (mcpserver.ServerSession, error) {
	hs := &hostSession{hostServer: p}
	if o != nil && o.Notify != nil {
		hs.notify = o.Notify
		life, stop := context.WithCancel(context.WithoutCancel(ctx))
		hs.stop = stop
		events := p.host.Watch(life)
		hs.wg.Go(func() { hs.follow(life, events) })
	}
	return hs, nil
}

// A hostSession is one client's view of a host's server.
type hostSession struct {
	*hostServer
	notify func(ctx context.Context, n mcpserver.Notification)
	stop   context.CancelFunc // nil without notify
	wg     sync.WaitGroup
	once   sync.Once
}

// follow passes on that lists have changed, which a server's coming and going counts as.
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

// Close ends the view. The server stays connected.
func (hs *hostSession) Close() error {
	hs.once.Do(func() {
		if hs.stop != nil {
			hs.stop()
		}
	})
	hs.wg.Wait()
	return nil
}

// ListTools lists what the host has of the server now. The CLI refuses a server's whole list for
// one schema that it does not take, so such schemas are mended.
func (hs *hostSession) ListTools(context.Context) ([]*mcp.Tool, error) {
	var all []*mcp.Tool
	for _, t := range hs.host.Tools() {
		if t.Server != hs.name {
			continue
		}
		schema, mended := cliSchema(t.InputSchema)
		if mended {
			hs.s.opts.Logger.Debug("claude-code: a tool's schema was mended for the CLI", "server", hs.name, "tool", t.Name)
		}
		meta := t.Meta
		if t.AlwaysLoad {
			meta = alwaysLoaded(meta)
		}
		all = append(all, &mcp.Tool{
			Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: schema,
			Annotations: t.Annotations, Icons: t.Icons, Meta: meta,
		})
	}
	return all, nil
}

// cliSchema is a tool's schema in the form that the CLI takes: an object with the root type "object"
// and a list of required properties, if any. What it cannot say this way it leaves to the server.
func cliSchema(schema json.RawMessage) (out json.RawMessage, mended bool) {
	var root map[string]json.RawMessage
	if json.Unmarshal(schema, &root) != nil || root == nil {
		return json.RawMessage(`{"type":"object"}`), true
	}
	if !bytes.Equal(bytes.TrimSpace(root["type"]), []byte(`"object"`)) {
		root["type"], mended = json.RawMessage(`"object"`), true
	}
	if required, ok := root["required"]; ok {
		var names []string
		if json.Unmarshal(required, &names) != nil || names == nil {
			delete(root, "required")
			mended = true
		}
	}
	if !mended {
		return schema, false
	}
	data, err := json.Marshal(root)
	if err != nil {
		return json.RawMessage(`{"type":"object"}`), true
	}
	return data, true
}

// toolUseIDKey is where the CLI puts the model's ID of a call.
const toolUseIDKey = "claudecode/toolUseId"

// CallTool calls the tool on the host's connection, under the host's limits.
func (hs *hostSession) CallTool(ctx context.Context, c mcpserver.Call) (*mcpserver.Result, error) {
	o := &mcphost.CallOptions{Meta: maps.Clone(c.Meta), Session: hs.s.opts.SessionID}
	if id, ok := c.Meta[toolUseIDKey].(string); ok {
		o.ToolUseID = id
	}
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
	if err != nil {
		return nil, err
	}
	var out []*mcp.Resource
	for _, r := range all {
		out = append(out, r.Resource)
	}
	return out, nil
}

// ListResourceTemplates lists the server's resource templates.
func (hs *hostSession) ListResourceTemplates(ctx context.Context) ([]*mcp.ResourceTemplate, error) {
	all, err := hs.host.ResourceTemplates(ctx, hs.name)
	if err != nil {
		return nil, err
	}
	var out []*mcp.ResourceTemplate
	for _, r := range all {
		out = append(out, r.ResourceTemplate)
	}
	return out, nil
}

// ReadResource reads a resource of the server.
func (hs *hostSession) ReadResource(ctx context.Context, uri string) (*mcp.ReadResourceResult, error) {
	return hs.host.ReadResource(ctx, hs.name, uri)
}

// Subscribe asks the server; the host's other users hear of the resource, too.
func (hs *hostSession) Subscribe(ctx context.Context, uri string) error {
	return hs.host.Subscribe(ctx, hs.name, uri)
}

// Unsubscribe does nothing: another user of the connection may still want to hear.
func (hs *hostSession) Unsubscribe(context.Context, string) error { return nil }

// ListPrompts lists the server's prompts.
func (hs *hostSession) ListPrompts(ctx context.Context) ([]*mcp.Prompt, error) {
	all, err := hs.host.Prompts(ctx, hs.name)
	if err != nil {
		return nil, err
	}
	var out []*mcp.Prompt
	for _, p := range all {
		out = append(out, p.Prompt)
	}
	return out, nil
}

// GetPrompt makes a prompt of the server.
func (hs *hostSession) GetPrompt(ctx context.Context, name string, args map[string]string) (*mcp.GetPromptResult, error) {
	return hs.host.GetPrompt(ctx, hs.name, name, args)
}

// Complete asks the server.
func (hs *hostSession) Complete(ctx context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	return hs.host.Complete(ctx, hs.name, p)
}

// SetLevel does nothing: the level of a shared connection is its host's.
func (hs *hostSession) SetLevel(context.Context, mcp.LoggingLevel) error { return nil }
