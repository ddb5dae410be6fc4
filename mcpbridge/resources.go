package mcpbridge

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
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
		resultHead
		Resources  []*mcp.Resource `json:"resources"`
		NextCursor string          `json:"nextCursor,omitempty"`
	}{b.head(r, nil, &mcp.Cacheable{}), array(part), next}, nil
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
		resultHead
		Templates  []*mcp.ResourceTemplate `json:"resourceTemplates"`
		NextCursor string                  `json:"nextCursor,omitempty"`
	}{b.head(r, nil, &mcp.Cacheable{}), array(part), next}, nil
}

// resourceContents is one part of a resource. Unlike in the library's type, text
// is present even if it is empty, unless there is a blob.
type resourceContents struct {
	URI      string   `json:"uri"`
	MIMEType string   `json:"mimeType,omitempty"`
	Text     *string  `json:"text,omitempty"`
	Blob     []byte   `json:"blob,omitzero"`
	Meta     mcp.Meta `json:"_meta,omitempty"`
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
	contents := make([]resourceContents, 0, len(result.Contents))
	for _, c := range result.Contents {
		if c == nil {
			continue
		}
		one := resourceContents{URI: c.URI, MIMEType: c.MIMEType, Blob: c.Blob, Meta: c.Meta}
		if one.URI == "" {
			one.URI = uri
		}
		if c.Blob == nil || c.Text != "" {
			one.Text = &c.Text
		}
		contents = append(contents, one)
	}
	return &struct {
		resultHead
		Contents []resourceContents `json:"contents"`
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
