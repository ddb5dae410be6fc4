package kit

import (
	"context"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
)

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
