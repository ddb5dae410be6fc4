package mcpbridge

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// versions says in which protocol versions a method exists.
type versions int

const (
	allVersions   versions = iota
	until20251125          // up to 2025-11-25
	since20260728          // from 2026-07-28 on
)

// A method is one method that a client may call.
type method struct {
	run      func(*Bridge, context.Context, *request) (any, error)
	versions versions
	requires func(*mcp.ServerCapabilities) bool // nil: every server has the method
}

// methods holds all methods that a client may call. It never changes.
var methods = map[string]method{
	methodInitialize:           {run: (*Bridge).initialize, versions: until20251125},
	"ping":                     {run: (*Bridge).ping, versions: until20251125},
	"server/discover":          {run: (*Bridge).discover, versions: since20260728},
	methodListen:               {run: (*Bridge).listen, versions: since20260728},
	"logging/setLevel":         {run: (*Bridge).setLevel, versions: until20251125, requires: hasLogging},
	"completion/complete":      {run: (*Bridge).complete, requires: hasCompletions},
	"tools/list":               {run: (*Bridge).listTools},
	"tools/call":               {run: (*Bridge).callTool},
	"resources/list":           {run: (*Bridge).listResources, requires: hasResources},
	"resources/templates/list": {run: (*Bridge).listTemplates, requires: hasResources},
	"resources/read":           {run: (*Bridge).readResource, requires: hasResources},
	"resources/subscribe":      {run: (*Bridge).subscribe, versions: until20251125, requires: hasSubscriptions},
	"resources/unsubscribe":    {run: (*Bridge).unsubscribe, versions: until20251125, requires: hasSubscriptions},
	"prompts/list":             {run: (*Bridge).listPrompts, requires: hasPrompts},
	"prompts/get":              {run: (*Bridge).getPrompt, requires: hasPrompts},
}

func hasLogging(c *mcp.ServerCapabilities) bool     { return c.Logging != nil }
func hasCompletions(c *mcp.ServerCapabilities) bool { return c.Completions != nil }
func hasResources(c *mcp.ServerCapabilities) bool   { return c.Resources != nil }
func hasPrompts(c *mcp.ServerCapabilities) bool     { return c.Prompts != nil }
func hasSubscriptions(c *mcp.ServerCapabilities) bool {
	return c.Resources != nil && c.Resources.Subscribe
}

// serve runs the method of one request and encodes its result.
func (b *Bridge) serve(ctx context.Context, m *rpcmsg.Message) (json.RawMessage, error) {
	r, err := b.newRequest(m)
	if err != nil {
		return nil, err
	}
	method, known := methods[m.Method]
	if !known || method.versions == until20251125 && r.v20260728 || method.versions == since20260728 && !r.v20260728 {
		return nil, rpcmsg.MethodNotFound(m.Method)
	}
	if r.session, err = b.openSession(ctx); err != nil {
		return nil, mcpserver.ProtocolError(err, r.client.version)
	}
	if method.requires != nil && !method.requires(b.capabilities()) {
		return nil, rpcmsg.MethodNotFound(m.Method)
	}
	result, err := method.run(b, context.WithValue(ctx, requestKey{}, r), r)
	if err != nil {
		return nil, mcpserver.ProtocolError(err, r.client.version)
	}
	if raw, ok := result.(json.RawMessage); ok {
		return raw, nil
	}
	return encode(result)
}
