package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/internal/jsonscan"
)

// Protocol versions at which the protocol changes. From V20260728 on there are no sessions, and
// server/discover takes the place of initialize.
const (
	V20260728 = "2026-07-28"
	v20251125 = "2025-11-25"
)

const (
	methodInitialize  = "initialize"
	methodInitialized = "notifications/initialized"
	methodDiscover    = "server/discover"
	methodListen      = "subscriptions/listen"
	methodCancelled   = "notifications/cancelled"
)

// Info is what a server says about itself in the handshake.
type Info struct {
	Server       *mcp.Implementation
	Version      string
	Instructions string
	Capabilities *mcp.ServerCapabilities // never nil after a handshake
}

// Info returns what the server said in the handshake.
func (c *Client) Info() Info { return c.info }

// SendsChanges reports whether the server declared that it sends notifications of changes.
func (c *Client) SendsChanges() bool {
	caps := c.info.Capabilities
	return caps != nil && (caps.Tools != nil && caps.Tools.ListChanged || caps.Prompts != nil && caps.Prompts.ListChanged ||
		caps.Resources != nil && (caps.Resources.ListChanged || caps.Resources.Subscribe))
}

// Handshake negotiates the protocol version. With discover it begins with server/discover; servers
// that refuse that, or do not answer it in time, are sent initialize.
func (c *Client) Handshake(ctx context.Context, discover bool) error {
	info, err := c.negotiate(ctx, discover)
	if err != nil {
		if failure := c.failure(); errors.Is(failure, ErrConnectionLost) {
			return failure // which says more than that a request failed
		}
		return err
	}
	if info.Capabilities == nil {
		info.Capabilities = &mcp.ServerCapabilities{}
	}
	c.info = info
	c.version.Store(&info.Version)
	if info.Version >= V20260728 {
		c.listenToLists(ctx)
		return nil
	}
	c.report("sending "+methodInitialized, c.notify(ctx, methodInitialized, struct{}{}))
	if h, ok := c.conn.(*httpConn); ok {
		h.standing(ctx)
	}
	return nil
}

type handshake struct {
	info Info
	err  error
}

// lateAnswer is how long a late answer to server/discover is waited for after initialize has failed.
const lateAnswer = time.Second

// negotiate sends server/discover and, if that fails or takes too long, initialize. The first good
// answer decides: a slow server may answer both, and one of version 2026-07-28 refuses the second.
func (c *Client) negotiate(ctx context.Context, discover bool) (Info, error) {
	if !discover {
		return c.initialize(ctx)
	}
	ctx, cancel := context.WithCancel(ctx) // ends what is not needed any more
	defer cancel()
	discovered, tooLate := c.inBackground(ctx, c.discover), (<-chan time.Time)(nil)
	if c.o.ProbeTime > 0 {
		t := time.NewTimer(c.o.ProbeTime)
		defer t.Stop()
		tooLate = t.C
	}
	select {
	case h := <-discovered:
		if h.err == nil || ctx.Err() != nil || c.Failed() {
			return h.info, h.err
		}
		return c.initialize(ctx)
	case <-tooLate:
	}
	initialized := c.inBackground(ctx, c.initialize)
	for {
		select {
		case h := <-initialized:
			if h.err != nil && discovered != nil {
				select { // the server may refuse initialize because it has just answered server/discover
				case late := <-discovered:
					if late.err == nil {
						return late.info, nil
					}
				case <-time.After(lateAnswer):
				}
			}
			return h.info, h.err
		case h := <-discovered:
			if h.err == nil {
				return h.info, nil
			}
			discovered = nil
		}
	}
}

func (c *Client) inBackground(ctx context.Context, f func(context.Context) (Info, error)) <-chan handshake {
	out := make(chan handshake, 1)
	if !c.spawn(func() {
		info, err := f(ctx)
		out <- handshake{info, err}
	}) {
		out <- handshake{err: c.ended()}
	}
	return out
}

// discover asks for what servers of version 2026-07-28 and later say about themselves.
func (c *Client) discover(ctx context.Context) (Info, error) {
	raw, err := c.roundTripOf(ctx, methodDiscover, V20260728, c.discoverParams())
	if offers(err, V20260728) { // the server asks to be sent the request again with a version that it supports
		raw, err = c.roundTripOf(ctx, methodDiscover, V20260728, c.discoverParams())
	}
	if err != nil {
		return Info{}, err
	}
	var res mcp.DiscoverResult
	if err := unmarshal(raw, &res); err != nil {
		return Info{}, fmt.Errorf("the result of %s cannot be read: %w", methodDiscover, err)
	}
	if !slices.Contains(res.SupportedVersions, V20260728) {
		return Info{}, fmt.Errorf("the server supports none of the protocol versions that follow %s", v20251125)
	}
	info := Info{Version: V20260728, Instructions: res.Instructions, Capabilities: res.Capabilities}
	if server, err := json.Marshal(res.Meta[mcp.MetaKeyServerInfo]); err == nil {
		_ = json.Unmarshal(server, &info.Server) // optional
	}
	return info, nil
}

// offers reports whether the error of an unsupported protocol version lists one as supported.
func offers(err error, version string) bool {
	var e *jsonrpc.Error
	var data mcp.UnsupportedProtocolVersionData
	return errors.As(err, &e) && e.Code == mcp.CodeUnsupportedProtocolVersion && json.Unmarshal(e.Data, &data) == nil &&
		slices.Contains(data.Supported, version)
}

func (c *Client) discoverParams() *mcp.DiscoverParams {
	p := &mcp.DiscoverParams{Meta: mcp.Meta{}}
	c.addRequestMeta(p.Meta, V20260728)
	return p
}

// initialize opens a session of a protocol version before 2026-07-28.
func (c *Client) initialize(ctx context.Context) (Info, error) {
	raw, err := c.roundTripOf(ctx, methodInitialize, "", map[string]any{
		"protocolVersion": v20251125, "clientInfo": c.o.Info, "capabilities": c.capabilities(),
	})
	if err != nil {
		return Info{}, err
	}
	var res mcp.InitializeResult
	if err := unmarshal(raw, &res); err != nil {
		return Info{}, fmt.Errorf("the result of %s cannot be read: %w", methodInitialize, err)
	}
	if !slices.Contains(mcp.SupportedProtocolVersions(), res.ProtocolVersion) {
		return Info{}, fmt.Errorf("unsupported protocol version: %q", clip.Text(res.ProtocolVersion, textHead))
	}
	return Info{Server: res.ServerInfo, Version: res.ProtocolVersion, Instructions: res.Instructions, Capabilities: res.Capabilities}, nil
}

// roundTripOf makes a request of the handshake.
func (c *Client) roundTripOf(ctx context.Context, method, version string, params any) (json.RawMessage, error) {
	m := &message{method: method, version: version}
	if err := c.addData(m, params); err != nil {
		return nil, err
	}
	raw, err := c.roundTrip(ctx, m)
	if err != nil {
		return nil, err
	}
	return c.trimHandshake(raw), nil
}

// capabilities returns what the host declares.
func (c *Client) capabilities() map[string]any {
	caps := map[string]any{}
	if len(c.o.Roots) > 0 {
		caps["roots"] = mcp.RootCapabilities{ListChanged: true}
	}
	if c.o.Elicit != nil {
		caps["elicitation"] = mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}
	}
	if c.o.Sample != nil {
		caps["sampling"] = mcp.SamplingCapabilities{Tools: &mcp.SamplingToolsCapabilities{}}
	}
	return caps
}

const (
	// maxInstructions bounds the instructions of a server, in bytes.
	maxInstructions = 64 << 10
	// maxHandshake bounds the answer to the handshake, and each member of it, before it is cut.
	maxHandshake = 256 << 10
)

// trimHandshake cuts an answer to the handshake that is too long: its instructions, and without a
// trace but in the log its other members.
func (c *Client) trimHandshake(result json.RawMessage) json.RawMessage {
	if len(result) <= maxHandshake {
		return result
	}
	short := map[string]json.RawMessage{}
	_ = jsonscan.Object(result, func(key []byte, value json.RawMessage) { // what is no object is refused later
		if string(key) == "instructions" {
			value = cutText(value, maxInstructions)
		}
		if len(value) > maxHandshake || len(key) > textHead {
			c.o.Limited.Warn("member of the answer to the handshake left out: it is too long", "member", c.o.Mask.Head(key, textHead), "bytes", len(value))
			return
		}
		short[string(key)] = bytes.Clone(value)
	})
	c.o.Log.Warn("answer to the handshake cut", "bytes", len(result), "limit", maxHandshake)
	out, err := json.Marshal(short)
	if err != nil {
		return result
	}
	return out
}

// cutText returns a JSON string with at most about n bytes of its text. Other values are returned
// as they are.
func cutText(raw json.RawMessage, n int) json.RawMessage {
	text, ok := jsonscan.Text(raw)
	if len(raw) <= n || !ok {
		return raw
	}
	short, err := json.Marshal(clip.Text(text, n))
	if err != nil {
		return raw
	}
	return short
}

// Ping asks for a sign of life. A server that does not know ping is alive. From version 2026-07-28
// on there is no ping, and server/discover may be sent at any time.
func (c *Client) Ping(ctx context.Context) error {
	r := &Request{Method: "ping", Params: &mcp.PingParams{}}
	if c.info.Version >= V20260728 {
		r = &Request{Method: methodDiscover, Params: &mcp.DiscoverParams{}}
	}
	_, err := c.Do(ctx, r)
	if IsCode(err, jsonrpc.CodeMethodNotFound) {
		return nil
	}
	return err
}

// IsCode reports whether an error is that of a server with a JSON-RPC error code.
func IsCode(err error, code int64) bool {
	var e *jsonrpc.Error
	return errors.As(err, &e) && e.Code == code
}

// unmarshal is json.Unmarshal for types of the MCP library, some of which panic on null.
func unmarshal[T any](raw json.RawMessage, v *T) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("malformed JSON: %v", p)
		}
	}()
	return json.Unmarshal(raw, v)
}

// listenToLists asks for notifications of changes of the lists that the server declares.
func (c *Client) listenToLists(ctx context.Context) {
	caps := c.info.Capabilities
	n := &mcp.NotificationSubscriptions{
		ToolsListChanged:     caps.Tools != nil && caps.Tools.ListChanged,
		PromptsListChanged:   caps.Prompts != nil && caps.Prompts.ListChanged,
		ResourcesListChanged: caps.Resources != nil && caps.Resources.ListChanged,
	}
	if n.ToolsListChanged || n.PromptsListChanged || n.ResourcesListChanged {
		c.report("asking for notifications of changes", c.listen(c.ctx, n)) // it ends with the connection
	}
}

// listen asks for notifications until ctx ends. The reply would be the end of them.
func (c *Client) listen(ctx context.Context, n *mcp.NotificationSubscriptions) error {
	m, _, err := c.encode(&Request{Method: methodListen, Params: &mcp.SubscriptionsListenParams{Notifications: n}})
	if err != nil {
		return err
	}
	p := c.start(ctx, m)
	c.spawn(func() {
		_, err := c.await(ctx, p)
		c.report("listening to changes", err)
	})
	return nil
}

// Subscribe asks for notifications of changes of a resource.
func (c *Client) Subscribe(ctx context.Context, uri string) error {
	if c.info.Version < V20260728 {
		_, err := c.Do(ctx, &Request{Method: "resources/subscribe", Params: &mcp.SubscribeParams{URI: uri}})
		return err
	}
	c.mu.Lock()
	if c.listens[uri] != nil {
		c.mu.Unlock()
		return nil
	}
	life, stop := context.WithCancel(c.ctx) // it ends with Unsubscribe or the connection
	c.listens[uri] = stop
	c.mu.Unlock()
	return c.listen(life, &mcp.NotificationSubscriptions{ResourceSubscriptions: []string{uri}}) // as above
}

// Unsubscribe ends what Subscribe began.
func (c *Client) Unsubscribe(ctx context.Context, uri string) error {
	if c.info.Version < V20260728 {
		_, err := c.Do(ctx, &Request{Method: "resources/unsubscribe", Params: &mcp.UnsubscribeParams{URI: uri}})
		return err
	}
	c.mu.Lock()
	stop := c.listens[uri]
	delete(c.listens, uri)
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
	return nil
}
