package mcpbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// The methods and notifications that more than the table of methods knows.
const (
	methodInitialize      = "initialize"
	methodListen          = "subscriptions/listen"
	notificationCancelled = "notifications/cancelled"
)

// v20260728 is the first protocol version without a handshake. Versions are dates
// and compare as strings.
const v20260728 = "2026-07-28"

// latestWithHandshake returns the newest version that a handshake can agree on.
func latestWithHandshake() string {
	all := mcp.SupportedProtocolVersions() // the newest first
	return all[slices.IndexFunc(all, func(v string) bool { return v < v20260728 })]
}

// A request is a message that needs a reply, with the content of its _meta.
type request struct {
	*rpcmsg.Message
	session   mcpserver.ServerSession
	meta      mcp.Meta
	v20260728 bool // the request follows 2026-07-28: _meta describes the client
	client    client
	level     mcp.LoggingLevel // the least severe level of log messages that the request asks for; 2026-07-28 only
}

type requestKey struct{}

// requestFrom returns the request that ctx belongs to, nil if there is none.
func requestFrom(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{}).(*request)
	return r
}

// newRequest reads the _meta of m. A request whose _meta names a version from
// 2026-07-28 on follows that version, whatever the handshake agreed on.
func (b *Bridge) newRequest(m *rpcmsg.Message) (*request, error) {
	r := &request{Message: m}
	if err := m.DecodeParam("_meta", &r.meta); err != nil {
		return nil, err
	}
	version, _ := r.meta[mcp.MetaKeyProtocolVersion].(string)
	if version >= v20260728 {
		if err := r.readClient(version); err != nil {
			return nil, err
		}
		b.mu.Lock()
		b.v20260728 = true
		b.mu.Unlock()
		return r, nil
	}
	b.mu.Lock()
	r.client = b.client
	b.mu.Unlock()
	return r, nil
}

// readClient reads the description of the client in _meta.
func (r *request) readClient(version string) error {
	r.v20260728 = true
	if supported := mcp.SupportedProtocolVersions(); !slices.Contains(supported, version) {
		data, err := json.Marshal(mcp.UnsupportedProtocolVersionData{Supported: supported, Requested: version})
		if err != nil {
			return err
		}
		return &jsonrpc.Error{Code: mcp.CodeUnsupportedProtocolVersion, Message: "unsupported protocol version", Data: data}
	}
	var meta struct {
		Client *mcp.Implementation `json:"io.modelcontextprotocol/clientInfo"`
		Caps   json.RawMessage     `json:"io.modelcontextprotocol/clientCapabilities"`
		Level  mcp.LoggingLevel    `json:"io.modelcontextprotocol/logLevel"`
	}
	if err := r.DecodeParam("_meta", &meta); err != nil {
		return err
	}
	caps, err := decodeCapabilities(meta.Caps)
	if err != nil || caps == nil {
		return rpcmsg.InvalidParams(fmt.Sprintf("missing or invalid _meta field %q", mcp.MetaKeyClientCapabilities))
	}
	r.client = client{info: meta.Client, caps: caps, version: version}
	r.level = meta.Level
	return nil
}

// decodeCapabilities decodes a client's capabilities, nil if raw is absent. The
// library's Roots cannot tell an absent member from an empty one; RootsV2 can.
func decodeCapabilities(raw json.RawMessage) (*mcp.ClientCapabilities, error) {
	if len(raw) == 0 || bytes.Equal(raw, rpcmsg.Null) {
		return nil, nil
	}
	var caps mcp.ClientCapabilities
	var roots struct {
		Roots *mcp.RootCapabilities `json:"roots"`
	}
	if err := errors.Join(json.Unmarshal(raw, &caps), json.Unmarshal(raw, &roots)); err != nil {
		return nil, err
	}
	caps.RootsV2 = roots.Roots
	return &caps, nil
}

// requiredParam returns the string under key in params.
func (r *request) requiredParam(key string) (string, error) {
	text, fail := r.TextParam(key)
	if fail != nil {
		return "", fail
	}
	if text == "" {
		return "", rpcmsg.InvalidParams("params." + key + " is missing")
	}
	return text, nil
}

// call returns the request as a call of the server's session.
func (r *request) call() (mcpserver.Call, error) {
	c := mcpserver.Call{
		RequestID:          string(r.ID),
		ProgressToken:      r.progressToken(),
		Meta:               r.meta,
		Client:             r.client.info,
		ClientCapabilities: r.client.caps,
		ProtocolVersion:    r.client.version,
		MultiRoundTrip:     r.v20260728,
	}
	if !r.v20260728 { // these members mean nothing then, and must not reach a handler as answers
		return c, nil
	}
	if err := r.DecodeParam("inputResponses", &c.InputResponses); err != nil {
		return c, err
	}
	state, fail := r.TextParam("requestState")
	if fail != nil {
		return c, fail
	}
	c.RequestState = state
	return c, nil
}

// withCall returns a context that carries the request to the session's next call.
func (r *request) withCall(ctx context.Context) (context.Context, error) {
	c, err := r.call()
	if err != nil {
		return nil, err
	}
	return mcpserver.WithCall(ctx, c), nil
}

// progressToken returns the token in the form in which notifications repeat it: a
// string, a whole number, or the bytes of any other value.
func (r *request) progressToken() any {
	const exact = 1 << 53 // beyond it a float64 loses digits
	switch token := r.meta["progressToken"].(type) {
	case nil:
		return nil
	case string:
		if len(token) > rpcmsg.MaxID {
			return nil // each notification would repeat it
		}
		return token
	case float64:
		if token == math.Trunc(token) && math.Abs(token) <= exact {
			return int64(token)
		}
	}
	var meta struct {
		Token json.RawMessage `json:"progressToken"`
	}
	if r.DecodeParam("_meta", &meta) != nil || len(meta.Token) > rpcmsg.MaxID {
		return nil
	}
	return meta.Token
}
