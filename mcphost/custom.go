package mcphost

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/callback"
	"github.com/tenon-sdk/tenon/internal/lograte"
)

// InMemory returns the configuration of a server that is made with the official MCP library and
// runs in this process. Any number of hosts may use it. A panic of the server's handlers fails the
// request: InMemory adds a middleware to s for that, so call it once for each server and reuse the
// configuration.
func InMemory(s *mcp.Server) Custom {
	if s == nil {
		return Custom{}
	}
	s.AddReceivingMiddleware(recovering)
	open := func(ctx context.Context) (mcp.Transport, error) {
		client, server := mcp.NewInMemoryTransports()
		if _, err := s.Connect(ctx, server, nil); err != nil {
			return nil, err
		}
		return client, nil
	}
	return Custom{Open: open, Key: fmt.Sprintf("%p", s)}
}

// panicLogKey is the context key of the log of panics in servers in memory.
type panicLogKey struct{}

// recovering turns the panics of a server's handlers into errors.
func recovering(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				if log, ok := ctx.Value(panicLogKey{}).(*lograte.Logger); ok {
					log.Error("panic in a server of this process", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				}
				err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server panicked while handling " + method}
			}
		}()
		return next(ctx, method, req)
	}
}

// connect opens a connection.
func (c Custom) connect(ctx context.Context, log *lograte.Logger) (conn mcp.Connection, err error) {
	err = callback.Run(log, "Custom.Open", func() error {
		t, err := c.Open(context.WithValue(ctx, panicLogKey{}, log))
		if err != nil {
			return err
		}
		if isNil(t) {
			return errors.New("it returned no transport")
		}
		conn, err = t.Connect(ctx)
		return err
	})
	return conn, err
}
