package mcpserver

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// requestIDHeader carries the JSON text of a request's id through the official
// library, which does not pass it on.
const requestIDHeader = "Tenon-Request-Id"

type extraKey struct{}

// requestExtra returns what the transport knows of the request of ctx.
func requestExtra(ctx context.Context) *mcp.RequestExtra {
	if extra, _ := ctx.Value(extraKey{}).(*mcp.RequestExtra); extra != nil {
		return extra
	}
	return &mcp.RequestExtra{}
}

// TokenInfo returns the content of the bearer token that the HTTP request of ctx
// came with, nil if there was none (see [HTTPOptions.Auth]).
func TokenInfo(ctx context.Context) *auth.TokenInfo { return requestExtra(ctx).TokenInfo }

// CloseStream ends the HTTP response that the client of ctx's call waits for, so
// that a long call does not keep a connection open. The client reconnects after
// the delay and finds the result. CloseStream needs [HTTPOptions.EventStore] and a
// client of a protocol version up to 2025-11-25. It reports whether it succeeded.
func CloseStream(ctx context.Context, delay time.Duration) bool {
	closeStream := requestExtra(ctx).CloseSSEStream
	if closeStream == nil {
		return false
	}
	closeStream(mcp.CloseSSEStreamArgs{RetryAfter: delay})
	return true
}
