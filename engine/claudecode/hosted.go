package claudecode

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// byHost takes the servers that the CLI cannot connect as their configurations say to a host of
// the session's own, and returns all of them as the CLI is to get them: those as servers in this
// process, which the CLI takes for its own, the others as they are. The host is started with the
// first server that needs it and closed with the session.
func (v *servers) byHost(ctx context.Context, configs map[string]mcphost.ServerConfig) (map[string]mcphost.ServerConfig, error) {
	hosted := map[string]mcphost.ServerConfig{}
	for name, config := range configs {
		if needsHost(config) || v.s.opts.Stderr != nil && isStdio(config) {
			hosted[name] = config
		}
	}
	switch {
	case v.ownHost != nil:
		if _, err := v.ownHost.SetServers(ctx, hosted); err != nil {
			return nil, fmt.Errorf("claude-code: %w", err)
		}
	case len(hosted) == 0:
		return configs, nil
	default:
		o := v.s.opts
		h, err := mcphost.New(&mcphost.Options{
			Servers: hosted, Logger: o.Logger, Dir: o.Dir, Env: o.Env, OnStderr: o.Stderr, Roots: kit.Roots(o), Elicit: kit.Elicit(o),
		})
		if err != nil {
			return nil, fmt.Errorf("claude-code: %w", err)
		}
		v.ownHost = h
		h.Start(context.WithoutCancel(ctx)) // Close ends it
	}
	all := maps.Clone(configs)
	for name := range hosted {
		all[name] = v.guestOf(v.ownHost, name)
	}
	return all, nil
}

// guestOf is a server of a host as a server in this process. The host keeps the limits.
func (v *servers) guestOf(h *mcphost.Host, name string) mcphost.InProcessServer {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.hosts[name] = h
	p := mcpserver.Provider(&hostServer{host: h, name: name, s: v.s})
	if a := v.attached[name]; a != nil {
		if old, ok := a.provider.(*hostServer); ok && old.host == h {
			p = old
		}
	}
	return mcphost.InProcessServer{Provider: p, Common: mcphost.Common{CallTimeout: mcphost.NoTimeout}}
}

// hostOf returns the host that a server belongs to, nil for one of the CLI's or the program's.
func (v *servers) hostOf(name string) *mcphost.Host {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.hosts[name]
}

// wait waits for the servers of the session's host as the first turn has to, and of a shared host, which is
// waited for by whoever started it, for the one server that has the permission prompt tool.
func (v *servers) wait(ctx context.Context) error {
	o := v.s.opts
	if v.ownHost != nil {
		err := v.ownHost.WaitFirstTurn(ctx, mcphost.WaitInput{
			Named: o.AllowedTools, PermissionPromptTool: o.PermissionPromptTool,
			ToolSearchOff: o.ToolSearch == agent.ToolSearchOff, ToolSearchSet: o.ToolSearch != "", BaseURL: o.Env["ANTHROPIC_BASE_URL"],
		})
		if err != nil {
			return err
		}
	}
	if o.Host == nil || o.PermissionPromptTool == "" {
		return nil
	}
	return o.Host.ReadyFor(ctx, o.PermissionPromptTool)
}

func isStdio(config mcphost.ServerConfig) bool {
	_, ok := config.(mcphost.Stdio)
	return ok
}

// needsHost reports whether a configuration says what the CLI's form of it has no member for, or has a text
// that the CLI would expand: references were expanded when files were read, and those of programs are meant as they are.
func needsHost(config mcphost.ServerConfig) bool {
	common := func(c mcphost.Common) bool {
		return c.ConnectTimeout != 0 || c.IdleTimeout != 0 || len(c.ToolTimeouts) > 0 || c.Required || c.MaxMessageBytes != 0 || c.Roots != nil
	}
	remote := func(h mcphost.HTTP) bool {
		return hasReference(h.URL) || slices.ContainsFunc(slices.Collect(maps.Values(h.Headers)), hasReference) ||
			h.HTTPClient != nil || h.HeadersFunc != nil || h.Auth != nil || common(h.Common)
	}
	switch c := config.(type) {
	case mcphost.Stdio:
		return hasReference(c.Command) || slices.ContainsFunc(c.Args, hasReference) || slices.ContainsFunc(slices.Collect(maps.Values(c.Env)), hasReference) ||
			c.CleanEnv || c.Dir != "" || common(c.Common)
	case mcphost.HTTP:
		return remote(c)
	case mcphost.SSE:
		return remote(mcphost.HTTP(c))
	case mcphost.InProcessServer:
		return common(c.Common)
	}
	return true
}
