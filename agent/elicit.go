package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Elicit is [Options.OnElicitation] as engines call it: an error, a panic and no answer decline and
// are logged, a question without a mode is one by form, and a question that was withdrawn is ctx's
// error. It is nil without a callback, so that servers are told that nobody can be asked.
func (o *Options) Elicit() func(ctx context.Context, server string, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	if o.OnElicitation == nil {
		return nil
	}
	return func(ctx context.Context, server string, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		asked := *p // the server's own in a server of this process
		if asked.Mode == "" {
			asked.Mode = "form"
		}
		res, err := o.elicit(ctx, server, &asked)
		if err == nil && res == nil {
			err = errors.New("the callback gave no answer")
		}
		switch {
		case err == nil:
			return res, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		o.Logger.WarnContext(ctx, "elicitation was not answered and counts as declined", "server", server, "error", err)
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
}

// elicit calls the callback; a panic in it is an error, and its stack goes to the log.
func (o *Options) elicit(ctx context.Context, server string, p *mcp.ElicitParams) (res *mcp.ElicitResult, err error) {
	defer func() {
		if p := recover(); p != nil {
			o.Logger.ErrorContext(ctx, "panic in OnElicitation", "server", server, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = errors.New("OnElicitation panicked")
		}
	}()
	return o.OnElicitation(ctx, server, p)
}
