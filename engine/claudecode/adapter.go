package claudecode

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/toolresult"
	"github.com/tenon-sdk/tenon/toolschema"
)

// An adapter presents a server in this process in the form that the CLI accepts. The CLI drops a server's
// whole list for one malformed tool, drops other tools silently, and loses parts of results. An adapter
// repairs tools, reports those that it cannot repair, and converts results so that the model sees everything.
type adapter struct {
	mcpserver.Provider
	name   string
	inputs *toolInputs
	log    *slog.Logger
	// siblings returns the names of all servers of the session.
	siblings func() []string
	// onElicit asks the user. Nil means that nobody can be asked.
	onElicit func(ctx context.Context, server string, p *mcp.ElicitParams) (*mcp.ElicitResult, error)
	// alwaysLoad puts the definitions of all tools in every request.
	alwaysLoad bool
	// logged reports that the log of the session already has the tools that are left out.
	logged bool

	mu    sync.Mutex // guards the rest
	begun int        // how many lists were begun
	last  toolList
}

// A toolList is a list of a server's tools. It is immutable.
type toolList struct {
	n     int // the number of the list; 0 if there is none
	tools map[string]toolDefinition
	left  []agent.MCPServerError // the tools that are left out
}

// A toolDefinition is a tool under the name that the CLI has for it.
type toolDefinition struct {
	name        string // the server's
	title       string
	annotations *mcp.ToolAnnotations // may be nil
	model       toolschema.Model
	numbers     bool // the input may have numbers
}

// readOnly reports whether the tool says that it changes nothing.
func (d toolDefinition) readOnly() bool { return d.annotations != nil && d.annotations.ReadOnlyHint }

// maxName is the length of the longest full name that the CLI does not drop.
const maxName = 128

// OpenSession opens a session on the server with adapted tools and results.
func (a *adapter) OpenSession(ctx context.Context, o *mcpserver.SessionOptions) (mcpserver.ServerSession, error) {
	opts := *cmp.Or(o, new(mcpserver.SessionOptions))
	opts.Elicit = nil // the CLI answers no server in this process
	if a.onElicit != nil {
		opts.Elicit = func(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return a.onElicit(ctx, a.name, p)
		}
	}
	opts.OnFailure = a.logFailure
	ss, err := a.Provider.OpenSession(ctx, &opts)
	if err != nil {
		return nil, err
	}
	return &adapterSession{ss, a}, nil
}

// logFailure logs a call that exceeded its time limit or panicked.
func (a *adapter) logFailure(ctx context.Context, f mcpserver.Failure) {
	if f.Timeout == 0 {
		a.log.ErrorContext(ctx, "panic in a server of this process", "server", a.name, "tool", f.Name, "panic", f.Panic, "stack", f.Stack)
		return
	}
	a.log.WarnContext(ctx, "call timed out in a server of this process", "server", a.name, "tool", f.Name, "limit", f.Timeout)
}

// list returns the last list.
func (a *adapter) list() toolList {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}

// find returns the tool with a full name. Without one, the definition is empty.
func (a *adapter) find(full string) toolDefinition {
	for alias, d := range a.list().tools {
		if toolname.Full(a.name, alias) == full {
			return d
		}
	}
	return toolDefinition{}
}

// ownName returns the server's name of a tool.
func (a *adapter) ownName(alias string) string { return cmp.Or(a.list().tools[alias].name, alias) }

// takesNumbers reports whether the input of a tool may have numbers, or the tools are not known.
func (a *adapter) takesNumbers() bool {
	l := a.list()
	for _, d := range l.tools {
		if d.numbers {
			return true
		}
	}
	return l.n == 0
}

type adapterSession struct {
	mcpserver.ServerSession
	a *adapter
}

// ListTools returns the tools that the CLI accepts, under names that it accepts.
func (ss *adapterSession) ListTools(ctx context.Context) ([]*mcp.Tool, error) {
	a := ss.a
	a.mu.Lock()
	a.begun++
	n := a.begun
	a.mu.Unlock()
	tools, err := ss.ServerSession.ListTools(ctx)
	if err != nil {
		return nil, err
	}
	out, definitions, left := a.adapt(ctx, tools)
	a.mu.Lock()
	before := a.last.left
	if n > a.last.n { // a slow list does not replace a later one
		a.last = toolList{n, definitions, left}
	}
	a.mu.Unlock()
	for _, e := range left {
		if !a.logged && !slices.ContainsFunc(before, func(b agent.MCPServerError) bool { return b.Message == e.Message }) {
			a.log.WarnContext(ctx, "tool left out", "server", a.name, "reason", e.Message)
		}
	}
	return out, nil
}

// adapt returns the tools for the CLI, their definitions by name, and the tools that are left out.
func (a *adapter) adapt(ctx context.Context, tools []*mcp.Tool) (out []*mcp.Tool, definitions map[string]toolDefinition, left []agent.MCPServerError) {
	out, definitions = make([]*mcp.Tool, 0, len(tools)), map[string]toolDefinition{}
	leaveOut := func(tool, why string) {
		left = append(left, agent.MCPServerError{Name: a.name, Type: "tool_left_out", Message: fmt.Sprintf("tool %q is left out: %s", tool, why)})
	}
	if p, ok := a.Provider.(interface{ Rejected() []mcpserver.Rejection }); ok {
		for _, r := range p.Rejected() {
			if r.Kind == mcpserver.KindTool {
				leaveOut(r.Name, r.Err.Error())
			}
		}
	}
	prefix := toolname.Server(a.name) + "__"
	servers := toolname.NewServers(a.siblings())
	alike := make(map[string]int, len(tools)) // how many tools have a name once it is normalized
	for _, t := range tools {
		alike[toolname.Normalize(t.Name)]++
	}
	o := &toolschema.Options{MaxName: maxName, Budget: &toolschema.Budget{}}
	for _, t := range tools {
		schema, err := json.Marshal(t.InputSchema)
		if err != nil {
			leaveOut(t.Name, err.Error())
			continue
		}
		full := "" // made of the two names
		if normal := toolname.Normalize(t.Name); alike[normal] > 1 && normal != t.Name || servers.Unclear(a.name, t.Name) {
			full = toolname.FitHashed(a.name, t.Name, maxName)
		}
		m, q := toolschema.ForModel(ctx, toolschema.Tool{Server: a.name, Name: t.Name, FullName: full, Description: t.Description, InputSchema: schema}, o)
		alias, fits := strings.CutPrefix(m.Name, prefix)
		first, taken := definitions[alias]
		switch {
		case q != nil:
			leaveOut(t.Name, q.Reason)
			continue
		case !fits || alias == "":
			leaveOut(t.Name, "with its server's name it is too long")
			continue
		case taken:
			leaveOut(t.Name, fmt.Sprintf("its name %s belongs to tool %q", m.Name, first.name))
			continue
		}
		title := cmp.Or(t.Title, cmp.Or(t.Annotations, new(mcp.ToolAnnotations)).Title)
		definitions[alias] = toolDefinition{t.Name, title, t.Annotations, m, allowsNumbers(schema)}
		adapted := *t
		adapted.Name, adapted.Description, adapted.InputSchema = alias, m.Description, m.InputSchema
		if a.alwaysLoad {
			adapted.Meta = alwaysLoaded(t.Meta)
		}
		out = append(out, &adapted)
	}
	return out, definitions, left
}

// CallTool calls a tool by the CLI's name for it.
func (ss *adapterSession) CallTool(ctx context.Context, c mcpserver.Call) (*mcpserver.Result, error) {
	a := ss.a
	id, _ := c.Meta[toolUseIDKey].(string)
	if n := unsafeInteger(c.Arguments); n != "" && !a.inputs.certain(id, c.Arguments) {
		return a.refuseRounded(ctx, c.Name, n), nil
	}
	if d, ok := a.list().tools[c.Name]; ok {
		c.Name, c.Arguments = d.name, d.model.RestoreArgs(c.Arguments)
	}
	r, err := ss.ServerSession.CallTool(ctx, c)
	if err != nil || r == nil {
		return r, err
	}
	shown := a.convert(ctx, c.Name, r)
	if shown != r && id != "" && !r.IsError {
		a.keepResult(id, r)
	}
	return shown, nil
}

// refuseRounded refuses a call whose input has an integer that the CLI may have rounded: the wrong
// record is worse than none. The engine has the model's text except in calls of subagents, whose
// stream the CLI does not repeat, and in sessions that began without a tool that takes numbers.
func (a *adapter) refuseRounded(ctx context.Context, tool, number string) *mcpserver.Result {
	a.log.WarnContext(ctx, "claude-code: a call was refused because the CLI may have rounded an integer in its input; set Options.IncludePartialMessages to read the digits",
		"server", a.name, "tool", a.ownName(tool), "number", number)
	return mcpserver.Errorf("The arguments have the integer %s, which may have lost digits on its way here: integers beyond %d are rounded. "+
		"The tool was not called. Give it as a string if the tool takes one.", number, maxSafeInteger)
}

// convert returns a result in a form that the CLI shows to the model completely. Of an error result
// the CLI shows only the texts. Structured content replaces all texts, and its numbers are rounded.
func (a *adapter) convert(ctx context.Context, tool string, r *mcpserver.Result) *mcpserver.Result {
	out := *r
	isStructured := func(b mcp.Content) bool {
		t, ok := b.(*mcp.TextContent)
		return ok && (t.Text == string(r.StructuredContent) || sameExact(json.RawMessage(t.Text), r.StructuredContent))
	}
	isOther := func(b mcp.Content) bool { return !isStructured(b) }
	switch {
	case r.IsError:
		out.Content, out.StructuredContent = nil, nil
		for _, b := range toolresult.Convert(ctx, a.name, tool, r, nil) {
			out.Content = append(out.Content, &mcp.TextContent{Text: b.Text})
		}
		return &out
	case len(r.StructuredContent) == 0, isLossless(r.StructuredContent) && !slices.ContainsFunc(r.Content, isOther):
		return r
	}
	out.Content, out.StructuredContent = slices.Clone(r.Content), nil
	if !slices.ContainsFunc(r.Content, isStructured) {
		out.Content = append(out.Content, &mcp.TextContent{Text: string(r.StructuredContent)})
	}
	return &out
}

// keepResult keeps the tool's own result for the program, in the CLI's form.
func (a *adapter) keepResult(id string, r *mcpserver.Result) {
	raw, err := json.Marshal(struct {
		Content    []mcp.Content   `json:"content"`
		Structured json.RawMessage `json:"structuredContent,omitempty"`
		Meta       mcp.Meta        `json:"_meta,omitempty"`
	}{append([]mcp.Content{}, r.Content...), r.StructuredContent, r.Meta})
	if err == nil {
		a.inputs.keepResult(id, raw)
	}
}

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
