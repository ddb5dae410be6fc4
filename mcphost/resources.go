package mcphost

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// request makes a request to one server within its call limit, waiting for the
// server as a call does.
func request[T any](ctx context.Context, h *Host, server string, do func(ctx context.Context, l link) (T, error)) (T, error) {
	var zero T
	c, err := h.conn(server)
	if err != nil {
		return zero, err
	}
	leave, err := h.enter(ctx, c, c.dialer.limits.call)
	if err != nil {
		if ctx.Err() != nil {
			return zero, ctx.Err()
		}
		return zero, c.callError("", false, err)
	}
	defer leave()
	return attempts(ctx, h, c, do)
}

// attempts makes a request, and makes it again if the connection was lost.
func attempts[T any](ctx context.Context, h *Host, c *conn, do func(ctx context.Context, l link) (T, error)) (T, error) {
	var zero T
	for try := 0; ; try++ {
		v, err := requestOnce(ctx, c, do)
		switch {
		case err == nil:
			return v, nil
		case ctx.Err() != nil:
			return zero, ctx.Err()
		case errors.Is(err, ErrReplaced) && try < maxTries:
			if c, err = h.conn(c.name); err != nil {
				return zero, err
			}
			continue
		case try == 0 && mayRepeat(err, true, &Tool{ReadOnly: true}):
			continue // reading twice does no harm
		}
		return zero, c.callError("", true, err)
	}
}

func requestOnce[T any](ctx context.Context, c *conn, do func(ctx context.Context, l link) (T, error)) (T, error) {
	var zero T
	l, err := c.acquire(ctx)
	if err != nil {
		return zero, err
	}
	ctx, clock := c.clock(ctx, l, &Tool{}, &CallOptions{})
	defer clock.stop()
	v, err := do(ctx, l.link)
	err = c.cause(l, err)
	if err != nil && clock.cause() != nil {
		err = clock.cause()
	}
	c.release(l, err)
	return v, c.dialer.lastWords(ctx, l.link, err)
}

// fromServers makes a request to one server, or to all that are connected now if server
// is empty: there a server that fails is left out, with a line in the log.
func fromServers[T, R any](ctx context.Context, h *Host, server string, do func(ctx context.Context, l link) ([]*T, error), wrap func(server string, v *T) R) ([]R, error) {
	names := []string{server}
	if server == "" {
		names = nil
		for _, s := range h.Status() {
			if s.Status == StatusConnected {
				names = append(names, s.Name)
			}
		}
	}
	var out []R
	for _, name := range names {
		vs, err := request(ctx, h, name, do)
		if err != nil && server != "" || ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			h.opts.Logger.Warn("listing", "server", name, "error", err)
		}
		for _, v := range vs {
			if v != nil {
				out = append(out, wrap(name, v))
			}
		}
	}
	return out, nil
}

// Resources lists the resources of a server, or of all connected ones if server
// is empty.
func (h *Host) Resources(ctx context.Context, server string) ([]Resource, error) {
	return fromServers(ctx, h, server,
		func(ctx context.Context, l link) ([]*mcp.Resource, error) { return l.listResources(ctx) },
		func(server string, r *mcp.Resource) Resource { return Resource{server, r} })
}

// ResourceTemplates lists the resource templates of a server, or of all
// connected ones if server is empty.
func (h *Host) ResourceTemplates(ctx context.Context, server string) ([]ResourceTemplate, error) {
	return fromServers(ctx, h, server,
		func(ctx context.Context, l link) ([]*mcp.ResourceTemplate, error) {
			return l.listResourceTemplates(ctx)
		},
		func(server string, r *mcp.ResourceTemplate) ResourceTemplate { return ResourceTemplate{server, r} })
}

// ReadResource reads a resource of a server.
func (h *Host) ReadResource(ctx context.Context, server, uri string) (*mcp.ReadResourceResult, error) {
	return request(ctx, h, server, func(ctx context.Context, l link) (*mcp.ReadResourceResult, error) { return l.readResource(ctx, uri) })
}

// Subscribe asks for notice of changes of a resource; see
// [Options.OnResourceUpdated]. It holds until [Host.Unsubscribe], over
// connections made anew, too.
func (h *Host) Subscribe(ctx context.Context, server, uri string) error {
	return h.remember(ctx, server, func(ctx context.Context, l link) error { return l.subscribe(ctx, uri) },
		func(c *conn) { c.subs[uri] = true })
}

// Unsubscribe ends what Subscribe began.
func (h *Host) Unsubscribe(ctx context.Context, server, uri string) error {
	return h.remember(ctx, server, func(ctx context.Context, l link) error { return l.unsubscribe(ctx, uri) },
		func(c *conn) { delete(c.subs, uri) })
}

// Prompts lists the prompts of a server, or of all connected ones if server is
// empty.
func (h *Host) Prompts(ctx context.Context, server string) ([]Prompt, error) {
	return fromServers(ctx, h, server,
		func(ctx context.Context, l link) ([]*mcp.Prompt, error) { return l.listPrompts(ctx) },
		func(server string, p *mcp.Prompt) Prompt { return Prompt{server, p} })
}

// GetPrompt gets a prompt of a server.
func (h *Host) GetPrompt(ctx context.Context, server, name string, args map[string]string) (*mcp.GetPromptResult, error) {
	return request(ctx, h, server, func(ctx context.Context, l link) (*mcp.GetPromptResult, error) { return l.getPrompt(ctx, name, args) })
}

// Complete asks a server to complete an argument.
func (h *Host) Complete(ctx context.Context, server string, p *mcp.CompleteParams) (*mcp.CompleteResult, error) {
	return request(ctx, h, server, func(ctx context.Context, l link) (*mcp.CompleteResult, error) { return l.complete(ctx, p) })
}

// SetLogLevel sets the least severe level of log messages that a server sends,
// over connections made anew, too.
func (h *Host) SetLogLevel(ctx context.Context, server string, level mcp.LoggingLevel) error {
	return h.remember(ctx, server, func(ctx context.Context, l link) error { return l.setLevel(ctx, level) },
		func(c *conn) { c.level = level })
}

// remember makes a request and, if it succeeds, notes down what connections made
// anew have to restore.
func (h *Host) remember(ctx context.Context, server string, f func(ctx context.Context, l link) error, note func(c *conn)) error {
	if err := h.do(ctx, server, f); err != nil {
		return err
	}
	c, err := h.conn(server)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	note(c)
	return nil
}

// Ping asks a server for a sign of life. One that does not know ping is alive. It
// does not wait behind calls: see [Options.MaxServerCalls].
func (h *Host) Ping(ctx context.Context, server string) error {
	c, err := h.conn(server)
	if err != nil {
		return err
	}
	_, err = attempts(ctx, h, c, func(ctx context.Context, l link) (struct{}, error) { return struct{}{}, l.ping(ctx) })
	return err
}

func (h *Host) do(ctx context.Context, server string, f func(ctx context.Context, l link) error) error {
	_, err := request(ctx, h, server, func(ctx context.Context, l link) (struct{}, error) { return struct{}{}, f(ctx, l) })
	return err
}
