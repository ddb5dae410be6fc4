package claudecode

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// heldLimit is how many messages of a server wait for the CLI before the server does.
const heldLimit = 256

// An outlet takes the messages of a server in this process to the CLI. A server may have something to
// say before the CLI has heard of it, since it is asked for its tools by then; the CLI would
// acknowledge that and forget it, so until then it is held.
type outlet struct {
	session *session
	server  string
	ready   chan struct{} // closed when nothing is held any more

	mu      sync.Mutex // guards the rest
	opened  bool
	held    []json.RawMessage
	changed bool // a list of tools has changed before the CLI knew the server
}

func newOutlet(s *session, server string) *outlet {
	return &outlet{session: s, server: server, ready: make(chan struct{})}
}

// send sends a message, or holds it.
func (o *outlet) send(ctx context.Context, raw json.RawMessage) error {
	if o.hold(raw) {
		return nil
	}
	select {
	case <-o.ready:
	case <-o.session.ch.ctx.Done():
		return context.Cause(o.session.ch.ctx) //nolint:contextcheck // the CLI's life, which the caller's context does not know
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return o.pass(ctx, raw)
}

func (o *outlet) pass(ctx context.Context, raw json.RawMessage) error {
	return o.session.ch.request(ctx, "mcp_message", mcpMessage{Server: o.server, Message: raw}, nil)
}

// hold keeps a message until the CLI knows the server. It reports false if the CLI does, or if there are too many.
func (o *outlet) hold(raw json.RawMessage) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.opened {
		return false
	}
	var head struct {
		Method string `json:"method"`
	}
	if json.Unmarshal(raw, &head) == nil && head.Method == mcpserver.MethodToolListChanged {
		o.changed = true
	}
	if len(o.held) >= heldLimit {
		return false
	}
	o.held = append(o.held, raw)
	return true
}

// toolsChanged reports whether the server has said so while it was held.
func (o *outlet) toolsChanged() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.changed
}

// open runs when the CLI knows the server: it has answered initialize, or speaks to the server. What
// was held is sent, in its order; the rest waits for that. It may be called more than once.
func (o *outlet) open() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.opened {
		return
	}
	o.opened = true
	held := o.held
	o.held = nil
	if len(held) == 0 {
		close(o.ready)
		return
	}
	o.session.ch.wg.Go(func() {
		defer close(o.ready)
		for _, raw := range held {
			if err := o.pass(o.session.ch.ctx, raw); err != nil {
				o.session.opts.Logger.Warn("claude-code: a server's message was not sent", "server", o.server, "error", err)
			}
		}
	})
}
