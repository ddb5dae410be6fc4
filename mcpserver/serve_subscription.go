package mcpserver

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A subscription is known by the id of the subscriptions/listen request that opened it, in the
// metadata of all that belongs to it (protocol 2026-07-28). The library sees our number for that
// request; a client that reads a number that it never sent waits for its subscription in vain.

// subscribed is the params of a message to the client with its own id for a subscription.
func (c *stdioConn) subscribed(params json.RawMessage) json.RawMessage {
	return withSubscription(params, func(raw json.RawMessage) json.RawMessage {
		var n int64
		if json.Unmarshal(raw, &n) != nil {
			return nil
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if call := c.calls[n]; call != nil {
			return call.id
		}
		return nil
	})
}

// withSubscription replaces the id of a subscription in the metadata of params or of a result, if
// there is one and id knows another for it.
func withSubscription(object json.RawMessage, id func(json.RawMessage) json.RawMessage) json.RawMessage {
	if !bytes.Contains(object, []byte(mcp.MetaKeySubscriptionID)) {
		return object
	}
	var members, meta map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil || json.Unmarshal(members["_meta"], &meta) != nil || meta[mcp.MetaKeySubscriptionID] == nil {
		return object
	}
	own := id(meta[mcp.MetaKeySubscriptionID])
	if own == nil {
		return object
	}
	meta[mcp.MetaKeySubscriptionID] = own
	var err error
	if members["_meta"], err = json.Marshal(meta); err != nil {
		return object
	}
	out, err := json.Marshal(members)
	if err != nil {
		return object
	}
	return out
}
