package mcpbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// modernVersion is the first version of the protocol without a handshake. Dates
// compare as texts.
const modernVersion = "2026-07-28"

// A request is a message that wants an answer, with what its _meta says.
type request struct {
	*rpcmsg.Message
	session mcpserver.ServerSession
	meta    mcp.Meta
	modern  bool // it follows 2026-07-28: no handshake, all in _meta
	client  client
	level   mcp.LoggingLevel // the least level to be sent, in a modern request
}

type requestKey struct{}

// requestFrom is the request that ctx belongs to, nil if there is none.
func requestFrom(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{}).(*request)
	return r
}

// versions are the versions of the protocol that the bridge speaks, newest first.
func versions() []string { return mcp.SupportedProtocolVersions() }

// latestLegacy is the newest version that a handshake can agree on.
func latestLegacy() string {
	for _, v := range versions() {
		if v < modernVersion {
			return v
		}
	}
	return modernVersion // not reached: the library knows older versions
}

// read takes the _meta of a request apart. A request that names a version from
// 2026-07-28 on there follows that version, whatever came before.
func (b *Bridge) read(m *rpcmsg.Message) (*request, error) {
	r := &request{Message: m}
	if err := m.DecodeParam("_meta", &r.meta); err != nil {
		return nil, err
	}
	if version, _ := r.meta[mcp.MetaKeyProtocolVersion].(string); version >= modernVersion {
		return r, b.readModern(r, version)
	}
	b.mu.Lock()
	r.client = b.client
	b.mu.Unlock()
	return r, nil
}

func (b *Bridge) readModern(r *request, version string) error {
	r.modern = true
	if !slices.Contains(versions(), version) {
		data, err := json.Marshal(mcp.UnsupportedProtocolVersionData{Supported: versions(), Requested: version})
		if err != nil {
			return err
		}
		return &jsonrpc.Error{
			Code: mcp.CodeUnsupportedProtocolVersion, Message: "unsupported protocol version", Data: data,
		}
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
	b.mu.Lock()
	b.modern = true
	b.mu.Unlock()
	return nil
}

// decodeCapabilities reads a client's capabilities, nil when raw is absent. The
// library's type cannot tell absent roots from empty ones; its RootsV2 can.
func decodeCapabilities(raw json.RawMessage) (*mcp.ClientCapabilities, error) {
	if len(raw) == 0 || bytes.Equal(raw, rpcmsg.Null) {
		return nil, nil
	}
	var caps mcp.ClientCapabilities
	var roots struct {
		Roots *mcp.RootCapabilities `json:"roots"`
	}
	if err := json.Unmarshal(raw, &caps); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &roots); err != nil {
		return nil, err
	}
	caps.RootsV2 = roots.Roots
	return &caps, nil
}

// call is r as the server's session takes it.
func (r *request) call() (mcpserver.Call, error) {
	c := mcpserver.Call{
		RequestID:          string(r.ID),
		ProgressToken:      r.progressToken(),
		Meta:               r.meta,
		Client:             r.client.info,
		ClientCapabilities: r.client.caps,
		ProtocolVersion:    r.client.version,
	}
	if !r.modern { // without rounds these members mean nothing, and no handler may take them for answers
		return c, nil
	}
	if err := r.DecodeParam("inputResponses", &c.InputResponses); err != nil {
		return c, err
	}
	state, err := r.TextParam("requestState")
	if err != nil {
		return c, err
	}
	c.RequestState = state
	return c, nil
}

// progressToken is the token as it goes out again: a text, a whole number, or
// the bytes of any other value.
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
	if err := r.DecodeParam("_meta", &meta); err != nil {
		return nil // not reached: _meta has been decoded before
	}
	if len(meta.Token) > rpcmsg.MaxID {
		return nil
	}
	return meta.Token
}
