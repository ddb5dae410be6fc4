package transport

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A libraryConn is a connection of the official library's interface.
type libraryConn struct {
	c    *Client
	conn mcp.Connection
}

// Custom returns a client of a connection of the official library's interface, which it closes.
func Custom(ctx context.Context, conn mcp.Connection, o *Options) *Client {
	c := newClient(ctx, o)
	l := &libraryConn{c: c, conn: conn}
	c.conn = l
	c.spawn(l.read)
	return c
}

func (l *libraryConn) read() {
	limit := l.c.o.MaxMessageBytes
	for {
		m, err := l.conn.Read(l.c.ctx)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the server closed the connection")
			}
			l.c.broken(err)
			return
		}
		data, err := jsonrpc.EncodeMessage(m)
		switch {
		case err != nil:
			l.c.report("reading a message", err)
		case limit >= 0 && len(data) > limit:
			l.tooLarge(m, len(data))
		default:
			l.c.receive(data)
		}
	}
}

// tooLarge fails the request that a message above the size limit answers.
func (l *libraryConn) tooLarge(m jsonrpc.Message, size int) {
	err := tooLarge(fmt.Sprintf("%d bytes", size), l.c.o.MaxMessageBytes)
	l.c.o.Limited.Warn("message of the server thrown away", "error", err)
	if r, ok := m.(*jsonrpc.Response); ok {
		if id, ok := r.ID.Raw().(int64); ok {
			l.c.fail(id, err)
		}
	}
}

// send implements connection.
func (l *libraryConn) send(ctx context.Context, m *message) error {
	msg, err := jsonrpc.DecodeMessage(m.data)
	if err != nil {
		return err
	}
	m.sent.Store(true)
	if err := l.conn.Write(ctx, msg); err != nil {
		return fmt.Errorf("%w: %w", ErrConnectionLost, err)
	}
	return nil
}

// close implements connection.
func (l *libraryConn) close() error { return l.conn.Close() }
