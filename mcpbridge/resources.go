package mcpbridge

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

func (b *Bridge) listResources(ctx context.Context, r *request) (any, error) {
	all, err := r.session.ListResources(ctx)
	part, next, err := page(b, r, all, err, func(x *mcp.Resource) string { return x.URI })
	if err != nil {
		return nil, err
	}
	return &struct {
		resultHead
		Resources  []*mcp.Resource `json:"resources"`
		NextCursor string          `json:"nextCursor,omitempty"`
	}{b.head(r, nil, &mcp.Cacheable{}), array(part), next}, nil
}

func (b *Bridge) listTemplates(ctx context.Context, r *request) (any, error) {
	all, err := r.session.ListResourceTemplates(ctx)
	part, next, err := page(b, r, all, err, func(x *mcp.ResourceTemplate) string { return x.URITemplate })
	if err != nil {
		return nil, err
	}
	return &struct {
		resultHead
		Templates  []*mcp.ResourceTemplate `json:"resourceTemplates"`
		NextCursor string                  `json:"nextCursor,omitempty"`
	}{b.head(r, nil, &mcp.Cacheable{}), array(part), next}, nil
}

func (b *Bridge) readResource(ctx context.Context, r *request) (any, error) {
	uri, err := r.requiredParam("uri")
	if err != nil {
		return nil, err
	}
	if ctx, err = r.withCall(ctx); err != nil {
		return nil, err
	}
	result, err := r.session.ReadResource(ctx, uri)
	switch {
	case err != nil:
		return nil, err
	case result == nil:
		return nil, internalError("the resource " + uri + " has no result")
	case result.InputRequests != nil && r.v20260728:
		return b.inputRequired(r, result.Meta, result.InputRequests, result.RequestState), nil
	}
	contents, err := mcpserver.ContentsJSON(result, uri)
	if err != nil {
		return nil, internalError("encoding the resource " + uri + ": " + err.Error())
	}
	return &struct {
		resultHead
		Contents json.RawMessage `json:"contents"`
	}{b.head(r, result.Meta, &result.Cacheable), contents}, nil
}

func (b *Bridge) subscribe(ctx context.Context, r *request) (any, error) {
	uri, err := r.requiredParam("uri")
	if err != nil {
		return nil, err
	}
	return emptyResult, b.subscriptions.subscribe(ctx, r.session, uri)
}

func (b *Bridge) unsubscribe(ctx context.Context, r *request) (any, error) {
	uri, err := r.requiredParam("uri")
	if err != nil {
		return nil, err
	}
	return emptyResult, b.subscriptions.unsubscribe(ctx, r.session, uri)
}
