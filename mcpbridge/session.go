package mcpbridge

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
)

// head is what a result of any method may begin with. Results up to 2025-11-25
// carry no more than their own _meta.
type head struct {
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

// head is the head of a result of r. A nil cache means that the method's results
// may not be cached at all.
func (b *Bridge) head(r *request, meta mcp.Meta, cache *mcp.Cacheable) head {
	h := head{Meta: meta}
	if !r.modern {
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

// withServerInfo is meta with the name of the server in it, as 2026-07-28 wants
// it with each result.
func (b *Bridge) withServerInfo(meta mcp.Meta) mcp.Meta {
	out := make(mcp.Meta, len(meta)+1)
	out[mcp.MetaKeyServerInfo] = b.server.Info()
	for k, v := range meta {
		out[k] = v
	}
	return out
}

// initialize answers a handshake, the first or any later one. It never fails
// over a date: a version that the bridge does not speak, or that knows no
// handshake, is answered with the latest that does.
func (b *Bridge) initialize(_ context.Context, r *request) (any, error) {
	version, fault := r.TextParam("protocolVersion")
	if fault != nil || version >= modernVersion || !slices.Contains(versions(), version) {
		version = latestLegacy()
	}
	c := client{version: version}
	if err := r.DecodeParam("clientInfo", &c.info); err != nil {
		return nil, err
	}
	caps, err := decodeCapabilities(r.Param("capabilities"))
	if err != nil {
		return nil, rpcmsg.InvalidParams("params.capabilities: " + err.Error())
	}
	c.caps = caps
	b.mu.Lock()
	b.client, b.shaken = c, true
	b.mu.Unlock()

	offer := b.capabilities()
	if offer.Tools == nil {
		offer.Tools = &mcp.ToolCapabilities{ListChanged: true}
	}
	return &struct {
		ProtocolVersion string                  `json:"protocolVersion"`
		Capabilities    *mcp.ServerCapabilities `json:"capabilities"`
		ServerInfo      *mcp.Implementation     `json:"serverInfo"`
		Instructions    string                  `json:"instructions,omitempty"`
	}{version, offer, b.server.Info(), b.server.Instructions()}, nil
}

// discover answers what a handshake would have told.
func (b *Bridge) discover(_ context.Context, r *request) (any, error) {
	offer := b.capabilities()
	if offer.Tools == nil {
		offer.Tools = &mcp.ToolCapabilities{ListChanged: true}
	}
	return &struct {
		head
		SupportedVersions []string                `json:"supportedVersions"`
		Capabilities      *mcp.ServerCapabilities `json:"capabilities"`
		Instructions      string                  `json:"instructions,omitempty"`
	}{b.head(r, nil, &mcp.Cacheable{}), versions(), offer, b.server.Instructions()}, nil
}

func (b *Bridge) pong(context.Context, *request) (any, error) {
	return json.RawMessage("{}"), nil
}

func (b *Bridge) setLevel(ctx context.Context, r *request) (any, error) {
	level, err := r.TextParam("level")
	if err != nil {
		return nil, err
	}
	if severity(mcp.LoggingLevel(level)) < 0 {
		return nil, rpcmsg.InvalidParams("params.level must be one of debug, info, notice, warning, error, critical, alert, emergency")
	}
	if err := r.session.SetLevel(ctx, mcp.LoggingLevel(level)); err != nil {
		return nil, err
	}
	return json.RawMessage("{}"), nil
}

// severity orders the levels of log messages; it is negative for an unknown one.
func severity(level mcp.LoggingLevel) int {
	return slices.Index([]mcp.LoggingLevel{
		"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency",
	}, level)
}
