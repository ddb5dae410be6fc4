package mcpbridge

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
)

func (b *Bridge) listPrompts(ctx context.Context, r *request) (any, error) {
	all, err := r.session.ListPrompts(ctx)
	part, next, err := page(b, r, all, err, func(x *mcp.Prompt) string { return x.Name })
	if err != nil {
		return nil, err
	}
	return &struct {
		resultHead
		Prompts    []*mcp.Prompt `json:"prompts"`
		NextCursor string        `json:"nextCursor,omitempty"`
	}{b.head(r, nil, &mcp.Cacheable{}), array(part), next}, nil
}

func (b *Bridge) getPrompt(ctx context.Context, r *request) (any, error) {
	name, err := r.requiredParam("name")
	if err != nil {
		return nil, err
	}
	args := map[string]string{}
	if fail := r.DecodeParam("arguments", &args); fail != nil {
		return nil, fail
	}
	if ctx, err = r.withCall(ctx); err != nil {
		return nil, err
	}
	result, err := r.session.GetPrompt(ctx, name, args)
	switch {
	case err != nil:
		return nil, err
	case result == nil:
		return nil, internalError("the prompt " + name + " has no result")
	case result.InputRequests != nil && r.v20260728:
		return b.inputRequired(r, result.Meta, result.InputRequests, result.RequestState), nil
	}
	return &struct {
		resultHead
		Description string               `json:"description,omitempty"`
		Messages    []*mcp.PromptMessage `json:"messages"`
	}{b.head(r, result.Meta, nil), result.Description, array(result.Messages)}, nil
}

// complete suggests values for an argument of a prompt or resource template.
func (b *Bridge) complete(ctx context.Context, r *request) (any, error) {
	p := &mcp.CompleteParams{Meta: r.meta}
	for key, v := range map[string]any{"ref": &p.Ref, "argument": &p.Argument, "context": &p.Context} {
		if fail := r.DecodeParam(key, v); fail != nil {
			return nil, fail
		}
	}
	switch {
	case p.Ref == nil:
		return nil, rpcmsg.InvalidParams("params.ref is missing")
	case p.Argument.Name == "":
		return nil, rpcmsg.InvalidParams("params.argument.name is missing")
	}
	ctx, err := r.withCall(ctx)
	if err != nil {
		return nil, err
	}
	result, err := r.session.Complete(ctx, p)
	if err != nil {
		return nil, err
	}
	if result == nil {
		return nil, internalError("the completion has no result")
	}
	completion := result.Completion
	completion.Values = array(completion.Values)
	return &struct {
		resultHead
		Completion mcp.CompletionResultDetails `json:"completion"`
	}{b.head(r, result.Meta, nil), completion}, nil
}
