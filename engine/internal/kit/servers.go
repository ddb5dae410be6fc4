package kit

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
)

// Elicit returns [agent.Options.OnElicitation] with its failures handled: an error, a panic and a nil
// result are logged and decline, and an empty mode is "form". If ctx has ended, its cause is the error.
// Without a callback Elicit returns nil, so that servers learn that nobody can be asked.
func Elicit(o *agent.Options) func(ctx context.Context, server string, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	if o.OnElicitation == nil {
		return nil
	}
	return func(ctx context.Context, server string, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		params := *p // shared with the server if it runs in this process
		if params.Mode == "" {
			params.Mode = "form"
		}
		res, err := Guard(o.Logger, "OnElicitation", func() (*mcp.ElicitResult, error) { return o.OnElicitation(ctx, server, &params) })
		if err == nil && res == nil {
			err = errors.New("OnElicitation returned no result")
		}
		switch {
		case err == nil:
			return res, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		o.Logger.WarnContext(ctx, "elicitation failed and was declined", "server", server, "error", err)
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
}

// NewHost returns a host for servers of a run.
func NewHost(o *agent.Options, configs map[string]mcphost.ServerConfig) (*mcphost.Host, error) {
	return mcphost.New(&mcphost.Options{
		Servers: configs, Logger: o.Logger, Dir: o.Dir, Env: o.Env, OnStderr: o.Stderr, Roots: roots(o), Elicit: Elicit(o),
	})
}

// roots returns the directories that servers get as roots, the session's directory first. It returns
// nil if there are no additional directories.
func roots(o *agent.Options) []string {
	if len(o.AdditionalDirectories) == 0 {
		return nil
	}
	roots := []string{o.Dir}
	for _, dir := range o.AdditionalDirectories {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(o.Dir, dir)
		}
		roots = append(roots, dir)
	}
	return roots
}

// WaitFirstTurn waits for the servers of own, which may be nil, as a first turn does. Of o.Host, which the
// program has started, it waits for the server with the permission prompt tool. It completes in by o.
func WaitFirstTurn(ctx context.Context, own *mcphost.Host, o *agent.Options, in mcphost.WaitInput) error {
	tool := o.PermissionPromptTool
	if own != nil {
		in.Named, in.PermissionPromptTool, in.ToolSearchSet = o.AllowedTools, tool, o.ToolSearch != ""
		if err := own.WaitFirstTurn(ctx, in); err != nil {
			return err
		}
	}
	if o.Host == nil || tool == "" {
		return nil
	}
	return o.Host.ReadyFor(ctx, tool)
}
