package mcphost

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcphost/internal/transport"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// A localLink is a session with a server in this process, by method calls. It recovers panics.
type localLink struct {
	log      *slog.Logger
	provider mcpserver.Provider
	session  mcpserver.ServerSession
	told     linkInfo
	on       handlers
	name     string

	life  context.Context // ends when the link is closed
	end   context.CancelFunc
	ender func() error

	tokens   atomic.Int64
	mu       sync.Mutex
	progress map[int64]func(Progress) // by token
}

func (d *dialer) openLocal(ctx context.Context, c InProcessServer) (link, error) {
	l := &localLink{log: d.log, provider: c.Provider, on: d.handle, name: d.name, progress: map[int64]func(Progress){}}
	l.life, l.end = context.WithCancel(context.WithoutCancel(ctx))
	o := &mcpserver.SessionOptions{
		Client:    d.opts.Client,
		Notify:    l.notified,
		Elicit:    d.handle.elicit,
		LookupEnv: d.opts.lookupEnv,
		OnFailure: l.failed,
		ListRoots: func(context.Context) ([]*mcp.Root, error) { return d.roots(), nil },
	}
	if d.limits.own {
		o.Timeout = d.limits.call
		if o.Timeout == 0 {
			o.Timeout = mcpserver.NoTimeout
		}
	}
	if d.handle.sample != nil {
		o.Sample = d.sampleForLocal
	}
	err := l.guard("opening a session", func() (err error) {
		if l.session, err = c.Provider.OpenSession(ctx, o); err != nil {
			return err
		}
		if l.session == nil {
			return errors.New("the server opened no session")
		}
		l.told = linkInfo{Info: transport.Info{Server: c.Provider.Info(), Instructions: c.Provider.Instructions(), Capabilities: c.Provider.Capabilities()}}
		return nil
	})
	if err != nil {
		l.end()
		return nil, d.fault(ctx, PhaseInitialize, err, nil)
	}
	if s, ok := l.session.(interface{ Timeout() time.Duration }); ok {
		l.told.limitsCalls, l.told.callTimeout = true, max(s.Timeout(), 0)
	}
	l.ender = sync.OnceValue(func() error {
		l.end()
		return l.guard("closing", l.session.Close)
	})
	return l, nil
}

// sampleForLocal passes on a sampling request, without tools.
func (d *dialer) sampleForLocal(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	with := &mcp.CreateMessageWithToolsParams{
		Meta: p.Meta, IncludeContext: p.IncludeContext, MaxTokens: p.MaxTokens, Metadata: p.Metadata,
		ModelPreferences: p.ModelPreferences, StopSequences: p.StopSequences, SystemPrompt: p.SystemPrompt, Temperature: p.Temperature,
	}
	for _, m := range p.Messages {
		with.Messages = append(with.Messages, &mcp.SamplingMessageV2{Role: m.Role, Content: []mcp.Content{m.Content}})
	}
	res, err := d.handle.sample(ctx, with)
	if err != nil {
		return nil, err
	}
	out := &mcp.CreateMessageResult{Meta: res.Meta, Model: res.Model, Role: res.Role, StopReason: res.StopReason}
	if len(res.Content) > 0 {
		out.Content = res.Content[0]
	}
	return out, nil
}

// guard runs f and returns a panic as an error.
func (l *localLink) guard(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			l.log.Error("panic in a server of this process", "while", what, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("the server panicked while %s", what)
		}
	}()
	return f()
}

// notified handles a notification of the server.
func (l *localLink) notified(_ context.Context, n mcpserver.Notification) {
	switch p := n.Params.(type) {
	case *mcp.ProgressNotificationParams:
		l.progressed(p)
	case *mcp.LoggingMessageParams:
		l.on.log(p)
	case *mcp.ResourceUpdatedNotificationParams:
		l.on.resourceUpdated(p.URI)
	default:
		switch n.Method {
		case mcpserver.MethodToolListChanged, mcpserver.MethodResourceListChanged, mcpserver.MethodPromptListChanged:
			l.on.listChanged(n.Method)
		}
	}
}

func (l *localLink) progressed(p *mcp.ProgressNotificationParams) {
	var token int64
	switch t := p.ProgressToken.(type) {
	case int64:
		token = t
	case float64:
		token = int64(t)
	default:
		return
	}
	l.mu.Lock()
	on := l.progress[token]
	l.mu.Unlock()
	if on != nil {
		on(Progress{Progress: p.Progress, Total: p.Total, Message: p.Message})
	}
}

func (l *localLink) info() linkInfo           { return l.told }
func (l *localLink) done() <-chan struct{}    { return l.life.Done() }
func (l *localLink) lost() <-chan struct{}    { return nil }
func (l *localLink) err() error               { return transport.ErrClosed }
func (l *localLink) diagnostics() diagnostics { return diagnostics{} }
func (l *localLink) close() error             { return l.ender() }

func (l *localLink) listTools(ctx context.Context) (toolList, error) {
	tools, err := guarded(l, "listing tools", func() ([]*mcp.Tool, error) { return l.session.ListTools(ctx) })
	if err != nil {
		return toolList{problem: err}, ctx.Err()
	}
	var list toolList
	seen := map[string]bool{}
	for _, lt := range tools {
		t, err := fromLibraryTool(l.name, lt)
		switch {
		case err != nil:
			t.Server = l.name
			list.reject(t, err.Error())
		case seen[t.Name]:
			list.reject(t, "the server lists another tool of this name before it")
		default:
			seen[t.Name] = true
			list.tools = append(list.tools, t)
		}
	}
	_ = l.guard("listing what it left out", func() error { l.registrations(&list); return nil }) // a panic there is logged
	list.sumUp(l.name)
	return list, nil
}

func guarded[T any](l *localLink, what string, f func() (T, error)) (v T, err error) {
	err = l.guard(what, func() (err error) { v, err = f(); return err })
	return v, err
}

func (l *localLink) call(ctx context.Context, c linkCall) (*mcpserver.Result, error) {
	*c.sent = true
	call := mcpserver.Call{Name: c.tool.Name, Arguments: c.args, Meta: c.meta, InputResponses: c.answers, RequestState: c.state}
	if c.onProgress != nil {
		token := l.tokens.Add(1)
		call.ProgressToken = token
		call.Meta = maps.Clone(c.meta)
		if call.Meta == nil {
			call.Meta = mcp.Meta{}
		}
		call.Meta["progressToken"] = token
		l.mu.Lock()
		l.progress[token] = c.onProgress
		l.mu.Unlock()
		defer func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.progress, token)
		}()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(l.life, func() { cancel(transport.ErrClosed) })
	defer stop()
	res, err := guarded(l, "calling "+c.tool.Name, func() (*mcpserver.Result, error) { return l.session.CallTool(ctx, call) })
	switch {
	case err != nil && l.life.Err() != nil:
		return nil, transport.ErrClosed
	case err != nil:
		return nil, err
	case res == nil:
		return nil, errors.New("the server answered nothing")
	}
	out := *res // it may be shared
	if len(res.InputRequests) == 0 {
		out.RequestState = "" // it is the result
	}
	return &out, nil
}

func (l *localLink) listResources(ctx context.Context) ([]*mcp.Resource, error) {
	return guarded(l, "listing resources", func() ([]*mcp.Resource, error) { return l.session.ListResources(ctx) })
}

func (l *localLink) listResourceTemplates(ctx context.Context) ([]*mcp.ResourceTemplate, error) {
	return guarded(l, "listing resource templates", func() ([]*mcp.ResourceTemplate, error) { return l.session.ListResourceTemplates(ctx) })
}

func (l *localLink) readResource(ctx context.Context, uri string) (*mcp.ReadResourceResult, error) {
	return guarded(l, "reading a resource", func() (*mcp.ReadResourceResult, error) { return l.session.ReadResource(ctx, uri) })
}

func (l *localLink) subscribe(ctx context.Context, uri string) error {
	return l.guard("subscribing", func() error { return l.session.Subscribe(ctx, uri) })
}

func (l *localLink) unsubscribe(ctx context.Context, uri string) error {
	return l.guard("unsubscribing", func() error { return l.session.Unsubscribe(ctx, uri) })
}

func (l *localLink) listPrompts(ctx context.Context) ([]*mcp.Prompt, error) {
	return guarded(l, "listing prompts", func() ([]*mcp.Prompt, error) { return l.session.ListPrompts(ctx) })
}

func (l *localLink) getPrompt(ctx context.Context, name string, args map[string]string) (*mcp.GetPromptResult, error) {
	return guarded(l, "getting a prompt", func() (*mcp.GetPromptResult, error) { return l.session.GetPrompt(ctx, name, args) })
}

func (l *localLink) complete(ctx context.Context, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	return guarded(l, "completing", func() (*mcp.CompleteResult, error) { return l.session.Complete(ctx, p) })
}

func (l *localLink) setLevel(ctx context.Context, level mcp.LoggingLevel) error {
	return l.guard("setting the log level", func() error { return l.session.SetLevel(ctx, level) })
}

func (l *localLink) ping(context.Context) error { return nil }
func (l *localLink) received() int64            { return 0 }

// registrations adds the tools that a server in this process did not register, so that the host
// reports them too.
func (l *localLink) registrations(list *toolList) {
	p, ok := l.provider.(interface{ Rejected() []mcpserver.Rejection })
	if !ok {
		return
	}
	for _, r := range p.Rejected() {
		if r.Kind == mcpserver.KindTool {
			list.reject(Tool{Server: l.name, Name: r.Name}, r.Err.Error())
		}
	}
}

// failed logs a handler of a server in this process that panicked or timed out.
func (l *localLink) failed(ctx context.Context, f mcpserver.Failure) {
	if f.Timeout > 0 {
		l.log.LogAttrs(ctx, slog.LevelWarn, "call timed out in a server of this process", callAttrs(ctx, f.Name, slog.Duration("limit", f.Timeout))...)
		return
	}
	l.log.LogAttrs(ctx, slog.LevelError, "panic in a server of this process",
		callAttrs(ctx, f.Name, slog.Any("panic", f.Panic), slog.String("stack", f.Stack))...)
}
