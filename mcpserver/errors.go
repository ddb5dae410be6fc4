package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
)

var (
	// ErrClosed reports that a server or session was closed.
	ErrClosed = errors.New("mcpserver: closed")
	// ErrTooManyCalls reports that a session has as many calls running as it may.
	ErrTooManyCalls = errors.New("mcpserver: too many calls at once")
	// ErrCallEnded reports that the result of the call was returned or dropped.
	ErrCallEnded = errors.New("mcpserver: the call has ended")
	// ErrNotSupported reports that the client does not support a request.
	ErrNotSupported = errors.New("mcpserver: the client does not support this")
)

// errClosedInCall is ErrClosed for a tool that had started.
var errClosedInCall = fmt.Errorf("%w; the tool may have run", ErrClosed)

// A NotFoundError reports that a server has no such resource or prompt.
type NotFoundError struct {
	Kind Kind   // KindResource or KindPrompt
	Name string // the URI or the name
}

func (e *NotFoundError) Error() string {
	if e.Kind == KindPrompt {
		return fmt.Sprintf("Prompt '%s' not found", shown(e.Name))
	}
	return fmt.Sprintf("Resource '%s' not found", shown(e.Name))
}

// Error codes that JSON-RPC leaves to servers.
const (
	codeClosed           = -32000 // as in the official TypeScript library
	codeResourceNotFound = -32002 // up to 2025-11-25
)

// ProtocolError returns the JSON-RPC error for err in a protocol version. An error
// that has a code keeps it.
func ProtocolError(err error, version string) error {
	var missing *NotFoundError
	var coded *jsonrpc.Error
	switch {
	case errors.Is(err, errClosedInCall):
		return &jsonrpc.Error{Code: codeClosed, Message: "the server was closed; the tool may have run"}
	case errors.Is(err, ErrClosed):
		return &jsonrpc.Error{Code: codeClosed, Message: "the server is closed"}
	case errors.Is(err, ErrTooManyCalls):
		return &jsonrpc.Error{Code: rpcmsg.CodeBusy, Message: err.Error()}
	case errors.As(err, &missing):
		out := &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: missing.Error()}
		if missing.Kind != KindResource {
			return out
		}
		if version < v20260728 {
			out.Code = codeResourceNotFound
		}
		out.Data, _ = json.Marshal(map[string]string{"uri": missing.Name}) // strings always encode
		return out
	case errors.As(err, &coded):
		return &jsonrpc.Error{Code: coded.Code, Message: err.Error(), Data: coded.Data}
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}

// shown returns a name from a client as errors repeat it. It shortens only names
// that no tool, resource or prompt has.
func shown(name string) string {
	const most = 2048
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "..."
}

// ctxError returns the error of a call whose context ended.
func ctxError(ctx context.Context, action, name string) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return fmt.Errorf("%s %q: %w", action, name, cause)
	}
	return fmt.Errorf("%s %q: %w (%w)", action, name, err, cause)
}

// An unknownToolError is the error -32601 with its own text. It is not a
// *jsonrpc.Error, because the library replaces the text of those with that code.
type unknownToolError string

func (e unknownToolError) Error() string { return string(e) }

// As makes [errors.As] find the code.
func (e unknownToolError) As(target any) bool {
	t, ok := target.(**jsonrpc.Error)
	if ok {
		*t = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: string(e)}
	}
	return ok
}
