package mcpserver

import (
	"context"
	"encoding/json"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A memConn is one end of a connection inside the process: messages pass as they
// are, without being written as JSON again. Closing either end closes both.
type memConn struct {
	in, out chan jsonrpc.Message
	done    chan struct{} // closed when either end is
	close   func()
	raws    *rawResults // on the client's end only
}

// newMemConns returns the client's and the server's end.
func newMemConns() (client, server *memConn) {
	const room = 16 // so that few writers wait for their reader
	up, down, done := make(chan jsonrpc.Message, room), make(chan jsonrpc.Message, room), make(chan struct{})
	shut := sync.OnceFunc(func() { close(done) })
	client = &memConn{in: down, out: up, done: done, close: shut, raws: &rawResults{waiting: make(map[jsonrpc.ID]*json.RawMessage)}}
	server = &memConn{in: up, out: down, done: done, close: shut}
	return client, server
}

func (c *memConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

func (c *memConn) SessionID() string { return "" }

func (c *memConn) Close() error {
	c.close()
	return nil
}

func (c *memConn) closed() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *memConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.done:
		return nil, io.EOF
	case m := <-c.in:
		if c.raws != nil {
			m = c.raws.take(m)
		}
		return m, nil
	}
}

func (c *memConn) Write(ctx context.Context, m jsonrpc.Message) error {
	if c.raws != nil {
		c.raws.expect(ctx, m)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-c.done:
		return io.ErrClosedPipe
	case c.out <- m:
		return nil
	}
}

// rawResults takes results out before the library decodes them: its types lose
// what they do not know, and one unknown content block fails the whole result.
type rawResults struct {
	mu      sync.Mutex // guards the rest
	waiting map[jsonrpc.ID]*json.RawMessage
}

type rawResultKey struct{}

// wantRaw returns a context under which the result of a request goes to raw.
func wantRaw(ctx context.Context, raw *json.RawMessage) context.Context {
	return context.WithValue(ctx, rawResultKey{}, raw)
}

// expect notes that the result of a request is wanted as it is.
func (r *rawResults) expect(ctx context.Context, m jsonrpc.Message) {
	req, ok := m.(*jsonrpc.Request)
	raw, wanted := ctx.Value(rawResultKey{}).(*json.RawMessage)
	if !ok || !wanted || !req.IsCall() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting[req.ID] = raw
}

// take puts a wanted result where it is wanted, and an empty one, which all
// of the library's types accept, in its place.
func (r *rawResults) take(m jsonrpc.Message) jsonrpc.Message {
	reply, ok := m.(*jsonrpc.Response)
	if !ok {
		return m
	}
	r.mu.Lock()
	raw := r.waiting[reply.ID]
	delete(r.waiting, reply.ID)
	r.mu.Unlock()
	if raw == nil || reply.Error != nil {
		return m
	}
	*raw = reply.Result
	return &jsonrpc.Response{ID: reply.ID, Result: json.RawMessage("{}")}
}
