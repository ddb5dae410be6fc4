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

// send sends one notification. One that cannot be sent is lost and logged.
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

// notify sends what the session has to say to those who want it.
func (b *Bridge) notify(ctx context.Context, n mcpserver.Notification) {
	switch n.Method {
	case mcpserver.MethodProgress:
		b.send(ctx, n.Method, n.Params)
	case mcpserver.MethodMessage:
		if b.wantsLog(ctx, n) {
			b.send(ctx, n.Method, n.Params)
		}
	default:
		b.announce(ctx, n)
	}
}

// wantsLog reports whether a log message is sent: in a modern request only at
// the level that the request names, or above. A level that there is not asks for
// nothing.
func (b *Bridge) wantsLog(ctx context.Context, n mcpserver.Notification) bool {
	r := requestFrom(ctx)
	p, ok := n.Params.(*mcp.LoggingMessageParams)
	if r == nil || !r.modern || !ok {
		return true
	}
	least := severity(r.level)
	return least >= 0 && severity(p.Level) >= least
}

// announce sends a notification about the server itself: to the client of the
// handshake as it is, to each listener under its subscription.
func (b *Bridge) announce(ctx context.Context, n mcpserver.Notification) {
	uri := ""
	if p, ok := n.Params.(*mcp.ResourceUpdatedNotificationParams); ok {
		uri = p.URI
	}
	b.mu.Lock()
	plain := b.shaken || !b.modern // who never shook hands gets what it listens for
	listeners := slices.Clone(b.listeners)
	b.mu.Unlock()
	if uri != "" {
		plain = b.watches.subscribed(uri)
	}
	if plain {
		b.send(ctx, n.Method, n.Params)
	}
	for _, l := range listeners {
		if l.wants(n.Method, uri) {
			b.send(ctx, n.Method, l.params(uri))
		}
	}
}
