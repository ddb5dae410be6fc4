package mcpbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// callTool runs a tool. A failure of the tool is a result with isError set; an
// unknown tool, a missing name and a result that cannot be encoded are errors.
func (b *Bridge) callTool(ctx context.Context, r *request) (any, error) {
	c, err := r.call()
	if err != nil {
		return nil, err
	}
	if c.Name, err = r.requiredParam("name"); err != nil {
		return nil, err
	}
	c.Arguments = r.Param("arguments")
	result, err := r.session.CallTool(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case result == nil:
		return nil, internalError(fmt.Sprintf("tool %q has no result", c.Name))
	case result.ToolNotFound():
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: result.Text()}
	case r.v20260728 && result.InputRequests != nil:
		return b.inputRequired(r, result.Meta, result.InputRequests, result.RequestState), nil
	case r.v20260728:
		result = b.completeResult(result)
	}
	raw, err := result.MarshalJSON()
	if err != nil {
		return nil, internalError(fmt.Sprintf("encoding the result of tool %q: %v", c.Name, err))
	}
	return json.RawMessage(raw), nil
}

// completeResult returns a copy of a result with the members that 2026-07-28 adds.
func (b *Bridge) completeResult(result *mcpserver.Result) *mcpserver.Result {
	out := *result
	out.Meta = b.withServerInfo(result.Meta)
	out.Extra = maps.Clone(result.Extra)
	if out.Extra == nil {
		out.Extra = make(map[string]json.RawMessage, 1)
	}
	out.Extra["resultType"] = json.RawMessage(`"` + resultComplete + `"`)
	return &out
}

func (b *Bridge) listTools(ctx context.Context, r *request) (any, error) {
	all, err := r.session.ListTools(ctx)
	part, next, err := page(b, r, all, err, func(t *mcp.Tool) string { return t.Name })
	if err != nil {
		return nil, err
	}
	return &struct {
		resultHead
		Tools      mcpserver.ToolList `json:"tools"`
		NextCursor string             `json:"nextCursor,omitempty"`
	}{b.head(r, nil, &mcp.Cacheable{}), part, next}, nil
}
