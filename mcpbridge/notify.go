package mcpbridge

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/mcpserver"
)

func encodeNotification(method string, params any) (json.RawMessage, error) {
	return encode(&struct {
		JSONRPC string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{"2.0", method, params})
}

// send sends one notification. It logs a failure; the notification is lost then.
func (b *Bridge) send(ctx context.Context, method string, params any) {
	if b.opts.Send == nil {
		return
	}
	raw, err := encodeNotification(method, params)
	if err == nil {
		err = b.opts.Send(ctx, raw)
	}
	if err != nil {
		b.log.Warn("mcpbridge: notification not sent", "method", method, "error", err)
	}
}

// notify sends a notification of the session.
func (b *Bridge) notify(ctx context.Context, n mcpserver.Notification) {
	switch n.Method {
	case mcpserver.MethodProgress:
		b.send(ctx, n.Method, n.Params)
	case mcpserver.MethodMessage:
		if b.wantsLog(ctx, n) {
			b.send(ctx, n.Method, n.Params)
		}
	default:
		b.sendChange(ctx, n)
	}
}

// wantsLog reports whether to send a log message. A request of 2026-07-28 names
// the least severe level; without a known level it gets none.
func (b *Bridge) wantsLog(ctx context.Context, n mcpserver.Notification) bool {
	r := requestFrom(ctx)
	p, ok := n.Params.(*mcp.LoggingMessageParams)
	if r == nil || !r.v20260728 || !ok {
		return true
	}
	least := severity(r.level)
	return least >= 0 && severity(p.Level) >= least
}

// sendChange sends a notification about the server: unchanged to the client of a
// handshake, and under its subscription to each listener.
func (b *Bridge) sendChange(ctx context.Context, n mcpserver.Notification) {
	uri := ""
	if p, ok := n.Params.(*mcp.ResourceUpdatedNotificationParams); ok {
		uri = p.URI
	}
	b.mu.Lock()
	unchanged := b.initialized || !b.v20260728
	listeners := slices.Clone(b.listeners)
	b.mu.Unlock()
	if uri != "" {
		unchanged = b.subscriptions.has(uri)
	}
	if unchanged {
		b.send(ctx, n.Method, n.Params)
	}
	for _, l := range listeners {
		if l.wants(n.Method, uri) {
			b.send(ctx, n.Method, l.params(uri))
		}
	}
}
