package mcpbridge

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
	"github.com/tenon-sdk/tenon/mcpserver"
)

func (b *Bridge) listResources(ctx context.Context, r *request) (any, error) {
	all, err := r.session.ListResources(ctx)
	if err != nil {
		return nil, err
	}
	part, next, err := page(b, r, all, func(x *mcp.Resource) string { return x.URI })
	if err != nil {
		return nil, err
	}
	return &struct {
		head
		Resources  []*mcp.Resource `json:"resources"`
		NextCursor string          `json:"nextCursor,omitempty"`
	}{b.head(r, nil, &mcp.Cacheable{}), list(part), next}, nil
}

func (b *Bridge) listTemplates(ctx context.Context, r *request) (any, error) {
	all, err := r.session.ListResourceTemplates(ctx)
	if err != nil {
		return nil, err
	}
	part, next, err := page(b, r, all, func(x *mcp.ResourceTemplate) string { return x.URITemplate })
	if err != nil {
		return nil, err
	}
	return &struct {
		head
		Templates  []*mcp.ResourceTemplate `json:"resourceTemplates"`
		NextCursor string                  `json:"nextCursor,omitempty"`
	}{b.head(r, nil, &mcp.Cacheable{}), list(part), next}, nil
}

func (b *Bridge) listPrompts(ctx context.Context, r *request) (any, error) {
	all, err := r.session.ListPrompts(ctx)
	if err != nil {
		return nil, err
	}
	part, next, err := page(b, r, all, func(x *mcp.Prompt) string { return x.Name })
	if err != nil {
		return nil, err
	}
	return &struct {
		head
		Prompts    []*mcp.Prompt `json:"prompts"`
		NextCursor string        `json:"nextCursor,omitempty"`
	}{b.head(r, nil, &mcp.Cacheable{}), list(part), next}, nil
}

// list is items, never nil: the protocol wants an array.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// needs is the text under key in params, which must be there.
func (r *request) needs(key string) (string, error) {
	text, fail := r.TextParam(key)
	if fail != nil {
		return "", fail
	}
	if text == "" {
		return "", rpcmsg.InvalidParams("params." + key + " is missing")
	}
	return text, nil
}

// withCall hands the session what a read or a prompt has beside its arguments.
func (r *request) withCall(ctx context.Context) (context.Context, error) {
	c, err := r.call()
	if err != nil {
		return nil, err
	}
	c.Rounds = r.modern
	return mcpserver.WithCall(ctx, c), nil
}

// wireContents is one part of a resource as it is read: text is there even when
// it is empty, unless there is a blob.
type wireContents struct {
	URI      string   `json:"uri"`
	MIMEType string   `json:"mimeType,omitempty"`
	Text     *string  `json:"text,omitempty"`
	Blob     []byte   `json:"blob,omitzero"`
	Meta     mcp.Meta `json:"_meta,omitempty"`
}

// inputHead is the head of a result that asks for input instead of answering.
type inputHead struct {
	head
	InputRequests mcp.InputRequestMap `json:"inputRequests"`
	RequestState  string              `json:"requestState,omitempty"`
}

func (b *Bridge) inputRequired(r *request, meta mcp.Meta, in mcp.InputRequestMap, state string) any {
	h := b.head(r, meta, nil)
	h.ResultType = resultInputRequired
	return &inputHead{h, in, state}
}

func (b *Bridge) readResource(ctx context.Context, r *request) (any, error) {
	uri, err := r.needs("uri")
	if err != nil {
		return nil, err
	}
	if ctx, err = r.withCall(ctx); err != nil {
		return nil, err
	}
	result, err := r.session.ReadResource(ctx, uri)
	if err != nil {
		return nil, err
	}
	if result == nil {
		return nil, fault("the resource " + uri + " has no result")
	}
	if result.InputRequests != nil && r.modern {
		return b.inputRequired(r, result.Meta, result.InputRequests, result.RequestState), nil
	}
	contents := make([]wireContents, 0, len(result.Contents))
	for _, c := range result.Contents {
		if c == nil {
			continue
		}
		w := wireContents{URI: c.URI, MIMEType: c.MIMEType, Blob: c.Blob, Meta: c.Meta}
		if w.URI == "" {
			w.URI = uri
		}
		if c.Blob == nil || c.Text != "" {
			w.Text = &c.Text
		}
		contents = append(contents, w)
	}
	return &struct {
		head
		Contents []wireContents `json:"contents"`
	}{b.head(r, result.Meta, &result.Cacheable), contents}, nil
}

func (b *Bridge) getPrompt(ctx context.Context, r *request) (any, error) {
	name, err := r.needs("name")
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
	if err != nil {
		return nil, err
	}
	if result == nil {
		return nil, fault("the prompt " + name + " has no result")
	}
	if result.InputRequests != nil && r.modern {
		return b.inputRequired(r, result.Meta, result.InputRequests, result.RequestState), nil
	}
	return &struct {
		head
		Description string               `json:"description,omitempty"`
		Messages    []*mcp.PromptMessage `json:"messages"`
	}{b.head(r, result.Meta, nil), result.Description, list(result.Messages)}, nil
}

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
		return nil, fault("the completion has no result")
	}
	done := result.Completion
	done.Values = list(done.Values)
	return &struct {
		head
		Completion mcp.CompletionResultDetails `json:"completion"`
	}{b.head(r, result.Meta, nil), done}, nil
}

func (b *Bridge) subscribeResource(ctx context.Context, r *request) (any, error) {
	uri, err := r.needs("uri")
	if err != nil {
		return nil, err
	}
	if err := b.watches.subscribe(ctx, r.session, uri); err != nil {
		return nil, err
	}
	return json.RawMessage("{}"), nil
}

func (b *Bridge) unsubscribeResource(ctx context.Context, r *request) (any, error) {
	uri, err := r.needs("uri")
	if err != nil {
		return nil, err
	}
	if err := b.watches.unsubscribe(ctx, r.session, uri); err != nil {
		return nil, err
	}
	return json.RawMessage("{}"), nil
}
