package mcpbridge

import (
	"context"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
)

// initialize answers a handshake, the first or a later one. The result names the
// client's protocol version if the bridge supports it and it has a handshake, and
// the latest with a handshake otherwise.
func (b *Bridge) initialize(_ context.Context, r *request) (any, error) {
	version, fail := r.TextParam("protocolVersion")
	if fail != nil || version >= v20260728 || !slices.Contains(mcp.SupportedProtocolVersions(), version) {
		version = latestWithHandshake()
	}
	c := client{version: version}
	if err := r.DecodeParam("clientInfo", &c.info); err != nil {
		return nil, err
	}
	var err error
	if c.caps, err = decodeCapabilities(r.Param("capabilities")); err != nil {
		return nil, rpcmsg.InvalidParams("params.capabilities: " + err.Error())
	}
	b.mu.Lock()
	b.client, b.initialized = c, true
	b.mu.Unlock()
	return &struct {
		ProtocolVersion string                  `json:"protocolVersion"`
		Capabilities    *mcp.ServerCapabilities `json:"capabilities"`
		ServerInfo      *mcp.Implementation     `json:"serverInfo"`
		Instructions    string                  `json:"instructions,omitempty"`
	}{version, b.announcedCapabilities(), b.server.Info(), b.server.Instructions()}, nil
}

// discover is the handshake's counterpart in 2026-07-28.
func (b *Bridge) discover(_ context.Context, r *request) (any, error) {
	return &struct {
		resultHead
		SupportedVersions []string                `json:"supportedVersions"`
		Capabilities      *mcp.ServerCapabilities `json:"capabilities"`
		Instructions      string                  `json:"instructions,omitempty"`
	}{b.head(r, nil, &mcp.Cacheable{}), mcp.SupportedProtocolVersions(), b.announcedCapabilities(), b.server.Instructions()}, nil
}

// announcedCapabilities returns the server's capabilities, which always include
// tools: they may still be added.
func (b *Bridge) announcedCapabilities() *mcp.ServerCapabilities {
	caps := b.capabilities()
	if caps.Tools == nil {
		caps.Tools = &mcp.ToolCapabilities{ListChanged: true}
	}
	return caps
}

func (b *Bridge) ping(context.Context, *request) (any, error) { return emptyResult, nil }

func (b *Bridge) setLevel(ctx context.Context, r *request) (any, error) {
	level, fail := r.TextParam("level")
	if fail != nil {
		return nil, fail
	}
	if severity(mcp.LoggingLevel(level)) < 0 {
		return nil, rpcmsg.InvalidParams("params.level must be one of debug, info, notice, warning, error, critical, alert, emergency")
	}
	return emptyResult, r.session.SetLevel(ctx, mcp.LoggingLevel(level))
}

// severity orders the levels of log messages. It is negative for an unknown level.
func severity(level mcp.LoggingLevel) int {
	return slices.Index([]mcp.LoggingLevel{
		"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency",
	}, level)
}
