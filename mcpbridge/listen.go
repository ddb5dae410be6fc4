package mcpbridge

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// A listener is one subscriptions/listen request in flight.
type listener struct {
	id   json.RawMessage
	want mcp.NotificationSubscriptions
}

func (l *listener) wants(method, uri string) bool {
	switch method {
	case mcpserver.MethodToolListChanged:
		return l.want.ToolsListChanged
	case mcpserver.MethodPromptListChanged:
		return l.want.PromptsListChanged
	case mcpserver.MethodResourceListChanged:
		return l.want.ResourcesListChanged
	case mcpserver.MethodResourceUpdated:
		return slices.Contains(l.want.ResourceSubscriptions, uri)
	}
	return false
}

func (l *listener) wantsAny() bool {
	w := l.want
	return w.ToolsListChanged || w.PromptsListChanged || w.ResourcesListChanged || len(w.ResourceSubscriptions) > 0
}

// meta names the subscription by the id of its request, byte for byte.
func (l *listener) meta() map[string]any {
	return map[string]any{mcp.MetaKeySubscriptionID: l.id}
}

// params returns the params of a notification to l.
func (l *listener) params(uri string) any {
	return &struct {
		Meta map[string]any `json:"_meta"`
		URI  string         `json:"uri,omitempty"`
	}{l.meta(), uri}
}

// listen acknowledges the subscription and returns when the request is cancelled
// or the bridge is closed, or at once if the subscription is empty.
func (b *Bridge) listen(ctx context.Context, r *request) (any, error) {
	var want *mcp.NotificationSubscriptions
	if fail := r.DecodeParam("notifications", &want); fail != nil {
		return nil, fail
	}
	if want == nil {
		return nil, rpcmsg.InvalidParams("params.notifications is missing")
	}
	l := &listener{id: r.ID}
	if b.opts.Send != nil {
		l.want = supported(want, b.capabilities())
	}
	if err := b.subscriptions.addListener(ctx, r.session, l.want.ResourceSubscriptions); err != nil {
		return nil, err
	}
	defer b.subscriptions.removeListener(context.WithoutCancel(ctx), r.session, l.want.ResourceSubscriptions)
	b.mu.Lock()
	b.listeners = append(b.listeners, l)
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.listeners = slices.DeleteFunc(b.listeners, func(other *listener) bool { return other == l })
	}()
	b.send(ctx, "notifications/subscriptions/acknowledged", &struct {
		Meta          map[string]any                `json:"_meta"`
		Notifications mcp.NotificationSubscriptions `json:"notifications"`
	}{l.meta(), l.want})
	if l.wantsAny() {
		<-ctx.Done()
	}
	meta := l.meta()
	meta[mcp.MetaKeyServerInfo] = b.server.Info()
	return &resultHead{ResultType: resultComplete, Meta: meta}, nil
}

// supported returns the part of want that the server supports.
func supported(want *mcp.NotificationSubscriptions, caps *mcp.ServerCapabilities) mcp.NotificationSubscriptions {
	var out mcp.NotificationSubscriptions
	out.ToolsListChanged = want.ToolsListChanged && (caps.Tools == nil || caps.Tools.ListChanged)
	out.PromptsListChanged = want.PromptsListChanged && caps.Prompts != nil && caps.Prompts.ListChanged
	if caps.Resources != nil {
		out.ResourcesListChanged = want.ResourcesListChanged && caps.Resources.ListChanged
		if caps.Resources.Subscribe {
			out.ResourceSubscriptions = slices.Compact(slices.Sorted(slices.Values(want.ResourceSubscriptions)))
		}
	}
	return out
}
