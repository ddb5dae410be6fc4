package mcphost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Custom is a server that is reached over a transport of the program's own. [InMemory] returns one
// for a server made with the official MCP library.
type Custom struct {
	// Open returns the transport of one connection.
	Open func(ctx context.Context) (mcp.Transport, error)
	// Key identifies the server for [Host.SetServers], since functions cannot be compared: a
	// server whose key is the same, and not empty, stays connected.
	Key string
	Common
}

// InMemory returns the configuration of a server that is made with the official MCP library and
// runs in this process. A server may be part of any number of hosts. A panic of its handlers fails
// the request.
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
				if log, ok := ctx.Value(panicLogKey{}).(*limitedLog); ok {
					log.Error("panic in a server of this process", "method", method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				}
				err = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server panicked while handling " + method}
			}
		}()
		return next(ctx, method, req)
	}
}

func (Custom) transport() string { return TransportSDK }

func (c Custom) validate() error {
	if c.Open == nil {
		return errors.New("no server given")
	}
	return nil
}

func (d *dialer) openCustom(ctx context.Context, c Custom) (link, error) {
	var conn mcp.Connection
	err := contain(d.panics, "Custom.Open", func() error {
		t, err := c.Open(context.WithValue(ctx, panicLogKey{}, d.panics))
		if err != nil {
			return err
		}
		if isNil(t) {
			return errors.New("it returned no transport")
		}
		conn, err = t.Connect(ctx)
		return err
	})
	if err != nil {
		return nil, d.fault(ctx, PhaseStart, err, nil)
	}
	l := d.newRemote(ctx, min(probeTime, d.limits.connect/3))
	car := newCustomCarrier(ctx, conn, l.wire, d.limits.message)
	l.car, l.wire.car = car, car
	if err := d.handshake(ctx, l, d.era.Load() != eraSessions); err != nil {
		return nil, err
	}
	return l, nil
}

// A customCarrier is a connection of the official library's interface.
type customCarrier struct {
	conn  mcp.Connection
	wire  *wire
	limit int
	wg    sync.WaitGroup
}

func newCustomCarrier(ctx context.Context, conn mcp.Connection, w *wire, limit int) *customCarrier {
	c := &customCarrier{conn: conn, wire: w, limit: limit}
	ctx = context.WithoutCancel(ctx)
	c.wg.Go(func() { c.read(ctx) })
	return c
}

func (c *customCarrier) read(ctx context.Context) {
	for {
		m, err := c.conn.Read(ctx)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the server closed the connection")
			}
			c.wire.broken(err)
			return
		}
		data, err := jsonrpc.EncodeMessage(m)
		switch {
		case err != nil:
			c.wire.report("reading a message", err)
		case c.limit >= 0 && len(data) > c.limit:
			c.tooLarge(m, len(data))
		default:
			c.wire.receive(data)
		}
	}
}

// tooLarge fails the request that a message above the size limit answers.
func (c *customCarrier) tooLarge(m jsonrpc.Message, size int) {
	err := tooLarge(fmt.Sprintf("%d bytes", size), c.limit)
	c.wire.often.Warn("message of the server thrown away", "error", err)
	if r, ok := m.(*jsonrpc.Response); ok {
		if id, ok := r.ID.Raw().(int64); ok {
			c.wire.fail(id, err)
		}
	}
}

func (c *customCarrier) send(ctx context.Context, m *outgoing) error {
	msg, err := jsonrpc.DecodeMessage(m.data)
	if err != nil {
		return err
	}
	if m.call != nil {
		m.call.sent.Store(true)
	}
	if err := c.conn.Write(ctx, msg); err != nil {
		return fmt.Errorf("%w: %w", ErrConnectionLost, err)
	}
	return nil
}

func (c *customCarrier) close() error {
	c.wire.end(io.EOF)
	return errors.Join(c.conn.Close(), awaitAll(&c.wg))
}
