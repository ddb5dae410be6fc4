package mcpbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// The methods that dispatch itself must know.
const (
	methodInitialize      = "initialize"
	methodCallTool        = "tools/call"
	notificationCancelled = "notifications/cancelled"
)

// codeResourceNotFound is the code for an unknown resource up to 2025-11-25.
const codeResourceNotFound = -32002

// An era says in which versions of the protocol a method exists.
type era int

const (
	always era = iota
	legacy     // up to 2025-11-25
	modern     // from 2026-07-28
)

// A method is something that a client may ask for.
type method struct {
	run     func(*Bridge, context.Context, *request) (any, error)
	era     era
	offered func(*mcp.ServerCapabilities) bool // nil: by every server
}

// methods is all that a client may ask for. It never changes.
var methods = map[string]method{
	methodInitialize:           {run: (*Bridge).initialize, era: legacy},
	"ping":                     {run: (*Bridge).pong, era: legacy},
	"server/discover":          {run: (*Bridge).discover, era: modern},
	"subscriptions/listen":     {run: (*Bridge).listen, era: modern},
	"logging/setLevel":         {run: (*Bridge).setLevel, era: legacy, offered: logs},
	"completion/complete":      {run: (*Bridge).complete, offered: completes},
	"tools/list":               {run: (*Bridge).listTools},
	methodCallTool:             {run: (*Bridge).callTool},
	"resources/list":           {run: (*Bridge).listResources, offered: hasResources},
	"resources/templates/list": {run: (*Bridge).listTemplates, offered: hasResources},
	"resources/read":           {run: (*Bridge).readResource, offered: hasResources},
	"resources/subscribe":      {run: (*Bridge).subscribeResource, era: legacy, offered: updates},
	"resources/unsubscribe":    {run: (*Bridge).unsubscribeResource, era: legacy, offered: updates},
	"prompts/list":             {run: (*Bridge).listPrompts, offered: hasPrompts},
	"prompts/get":              {run: (*Bridge).getPrompt, offered: hasPrompts},
}

func logs(c *mcp.ServerCapabilities) bool         { return c.Logging != nil }
func completes(c *mcp.ServerCapabilities) bool    { return c.Completions != nil }
func hasResources(c *mcp.ServerCapabilities) bool { return c.Resources != nil }
func hasPrompts(c *mcp.ServerCapabilities) bool   { return c.Prompts != nil }
func updates(c *mcp.ServerCapabilities) bool      { return c.Resources != nil && c.Resources.Subscribe }

// serve runs one request and encodes what came of it.
func (b *Bridge) serve(ctx context.Context, m *rpcmsg.Message) (json.RawMessage, error) {
	r, err := b.read(m)
	if err != nil {
		return nil, err
	}
	method, known := methods[m.Method]
	if !known || method.era == legacy && r.modern || method.era == modern && !r.modern {
		return nil, rpcmsg.MethodNotFound(m.Method)
	}
	if r.session, err = b.open(ctx); err != nil {
		return nil, err
	}
	if method.offered != nil && !method.offered(b.capabilities()) {
		return nil, rpcmsg.MethodNotFound(m.Method)
	}
	result, err := method.run(b, context.WithValue(ctx, requestKey{}, r), r)
	if err != nil {
		return nil, r.wireError(err)
	}
	if raw, ok := result.(json.RawMessage); ok {
		return raw, nil
	}
	return encode(result)
}

// capabilities is what the server offers now.
func (b *Bridge) capabilities() *mcp.ServerCapabilities {
	if caps := b.server.Capabilities(); caps != nil {
		return caps
	}
	return &mcp.ServerCapabilities{}
}

// notification acts on a notification. What it cannot use it ignores: there is
// nobody to tell.
func (b *Bridge) notification(m *rpcmsg.Message) {
	if m.Method != notificationCancelled {
		return
	}
	if id := m.Param("requestId"); id != nil && len(id) <= rpcmsg.MaxID {
		b.calls.cancelled(rpcmsg.IDKey(id))
	}
}

// A fault is a failure of the bridge itself. Its text goes to the client.
type fault string

func (f fault) Error() string { return "internal error: " + string(f) }

// wireError is err as the client gets it: an error that has a code keeps it, any
// other goes out with its text.
func (r *request) wireError(err error) error {
	var missing *mcpserver.NotFoundError
	if errors.As(err, &missing) {
		return r.notFound(missing)
	}
	if errors.Is(err, mcpserver.ErrTooManyCalls) {
		return &jsonrpc.Error{Code: rpcmsg.CodeBusy, Message: err.Error()}
	}
	var coded *jsonrpc.Error
	if errors.As(err, &coded) {
		return &jsonrpc.Error{Code: coded.Code, Message: err.Error(), Data: coded.Data}
	}
	return err
}

// notFound has the code of the protocol version in force.
func (r *request) notFound(err *mcpserver.NotFoundError) error {
	if err.Kind != mcpserver.KindResource {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	code := int64(codeResourceNotFound)
	if r.modern {
		code = jsonrpc.CodeInvalidParams
	}
	data, _ := json.Marshal(map[string]string{"uri": err.Name}) // texts always encode
	return &jsonrpc.Error{Code: code, Message: err.Error(), Data: data}
}

// errorReply is the reply to a request that failed with err.
func errorReply(id json.RawMessage, err error) json.RawMessage {
	var coded *jsonrpc.Error
	if !errors.As(err, &coded) {
		coded = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
	return rpcmsg.ErrorReply(id, coded)
}

// encode writes v without escaping <, > and &, as the official library does.
func encode(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fault(fmt.Sprintf("encoding the result: %v", err))
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
