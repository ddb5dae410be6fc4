package mcpbridge

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// resultHead holds the members that results of all methods share. Results up to
// 2025-11-25 have only _meta.
type resultHead struct {
	ResultType string   `json:"resultType,omitempty"`
	Meta       mcp.Meta `json:"_meta,omitempty"`
	TTL        *int     `json:"ttlMs,omitempty"`
	Scope      string   `json:"cacheScope,omitempty"`
}

// The values of resultType.
const (
	resultComplete      = "complete"
	resultInputRequired = "input_required"
)

// emptyResult is the result of methods that return nothing.
var emptyResult = json.RawMessage("{}")

// head returns the head of a result of r. A nil cache means that results of the
// method cannot be cached.
func (b *Bridge) head(r *request, meta mcp.Meta, cache *mcp.Cacheable) resultHead {
	h := resultHead{Meta: meta}
	if !r.v20260728 {
		return h
	}
	h.ResultType = resultComplete
	h.Meta = b.withServerInfo(meta)
	if cache != nil {
		h.TTL, h.Scope = &cache.TTLMs, cache.CacheScope
		if h.Scope == "" {
			h.Scope = "public"
		}
	}
	return h
}

// withServerInfo returns meta with the description of the server, which each
// result of 2026-07-28 has.
func (b *Bridge) withServerInfo(meta mcp.Meta) mcp.Meta {
	out := make(mcp.Meta, len(meta)+1)
	out[mcp.MetaKeyServerInfo] = b.server.Info()
	for k, v := range meta {
		out[k] = v
	}
	return out
}

// inputRequired returns a result that asks the client for input.
func (b *Bridge) inputRequired(r *request, meta mcp.Meta, requests mcp.InputRequestMap, state string) any {
	h := b.head(r, meta, nil)
	h.ResultType = resultInputRequired
	return &struct {
		resultHead
		InputRequests mcp.InputRequestMap `json:"inputRequests"`
		RequestState  string              `json:"requestState,omitempty"`
	}{h, requests, state}
}

// array returns items, or an empty array if items is nil: the protocol has no null there.
func array[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// encode returns the JSON of v without escapes for <, > and &, as the official
// library writes it.
func encode(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, internalError(fmt.Sprintf("encoding the result: %v", err))
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// An internalError is a failure of the bridge itself. The client sees its text.
type internalError string

func (e internalError) Error() string { return "internal error: " + string(e) }
