package mcpbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// callTool runs a tool. Whatever goes wrong inside is a result with isError set;
// only an unknown tool, a request without a name and a result that cannot be
// written are errors.
func (b *Bridge) callTool(ctx context.Context, r *request) (any, error) {
	c, err := r.call()
	if err != nil {
		return nil, err
	}
	name, fail := r.TextParam("name")
	if fail != nil {
		return nil, fail
	}
	if name == "" {
		return nil, rpcmsg.InvalidParams("params.name is missing")
	}
	c.Name, c.Arguments, c.Rounds = name, r.Param("arguments"), r.modern
	result, err := r.session.CallTool(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case result == nil:
		return nil, fault(fmt.Sprintf("tool %q has no result", name))
	case result.ToolNotFound():
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: result.Text()}
	}
	switch {
	case r.modern && result.InputRequests != nil:
		return b.inputRequired(r, result.Meta, result.InputRequests, result.RequestState), nil
	case r.modern:
		result = b.modernResult(result)
	}
	raw, err := result.MarshalJSON()
	if err != nil {
		return nil, fault(fmt.Sprintf("encoding the result of tool %q: %v", name, err))
	}
	return json.RawMessage(raw), nil
}

// modernResult is a copy of a result with what 2026-07-28 wants in it.
func (b *Bridge) modernResult(result *mcpserver.Result) *mcpserver.Result {
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
	tools, err := r.session.ListTools(ctx)
	if err != nil {
		return nil, err
	}
	tools, next, err := page(b, r, tools, func(t *mcp.Tool) string { return t.Name })
	if err != nil {
		return nil, err
	}
	return &struct {
		head
		Tools      mcpserver.ToolList `json:"tools"`
		NextCursor string             `json:"nextCursor,omitempty"`
	}{b.head(r, nil, &mcp.Cacheable{}), tools, next}, nil
}
