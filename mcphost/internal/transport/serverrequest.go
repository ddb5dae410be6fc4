package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/jsonscan"
	"github.com/tenon-sdk/tenon/internal/rpcmsg"
)

const (
	// maxServerRequests is how many requests of the server run at once, and how many refusals of
	// others may be on their way. maxServerBytes bounds what the requests hold together.
	maxServerRequests = 64
	maxServerBytes    = 64 << 20
	// maxUnread is how many requests may come while the server reads neither an answer nor a
	// refusal. Some servers write a lot before they read again.
	maxUnread = 50_000
)

// codeBusy is the code of the error of a request for which there is no room.
const codeBusy = -32000

// serverRequests are the requests of the server.
type serverRequests struct {
	refusing atomic.Int64 // refusals on their way
	unread   atomic.Int64 // requests dropped since the server last read an answer
	refused  atomic.Int64 // requests for which there was no room

	mu      sync.Mutex                // guards the rest
	running map[string]*serverRequest // by id
	count   int                       // of those that run or whose reply is being sent
	size    int                       // of those, in bytes
}

// A serverRequest is a request of the server that runs.
type serverRequest struct{ cancel context.CancelFunc }

// serverRequest answers a request of the server, or refuses it for want of room.
func (c *Client) serverRequest(m *rpcmsg.Message) {
	if jsonscan.IsNull(m.ID) {
		return // it could not be answered
	}
	s, key, size := &c.requests, rpcmsg.IDKey(m.ID), len(m.ID)+len(m.Params)
	ctx, cancel := context.WithCancel(c.live)
	s.mu.Lock()
	room := s.count < maxServerRequests && s.size+size <= maxServerBytes
	_, twice := s.running[key]
	if room && !twice {
		s.running[key] = &serverRequest{cancel}
		s.count++
		s.size += size
	}
	s.mu.Unlock()
	switch {
	case twice:
		cancel()
		c.refuse(m.ID, rpcmsg.InvalidRequest("another request with this id is under way"))
	case !room:
		cancel()
		if n := s.refused.Add(1); n == 1 || n%1000 == 0 { // a flood of requests must not become one of records
			c.o.Log.Warn("request of the server refused: too many at once", "method", c.o.Mask.Head([]byte(m.Method), textHead), "limit", maxServerRequests, "refused", n)
		}
		c.refuse(m.ID, &jsonrpc.Error{Code: codeBusy, Message: fmt.Sprintf("more than %d requests at once", maxServerRequests)})
	default:
		if !c.spawn(func() { defer cancel(); c.serve(ctx, m, key, size) }) {
			cancel()
		}
	}
}

// serve answers a request of the server. The request counts until its reply is sent: a server that
// does not read must not be able to ask for ever more.
func (c *Client) serve(ctx context.Context, m *rpcmsg.Message, key string, size int) {
	result, err := c.answer(ctx, m)
	s := &c.requests
	s.mu.Lock()
	delete(s.running, key) // the server may use the id again when it has the reply
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.count--
		s.size -= size
	}()
	data := rpcmsg.ResultReply(m.ID, result)
	if err != nil {
		data = rpcmsg.ErrorReply(m.ID, asServerError(err))
	}
	c.sendReply("replying to the server", data)
}

func asServerError(err error) *jsonrpc.Error {
	var e *jsonrpc.Error
	if errors.As(err, &e) {
		return e
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}

// answer returns the result of a request of the server.
func (c *Client) answer(ctx context.Context, m *rpcmsg.Message) (json.RawMessage, error) {
	switch {
	case m.Fault != nil:
		return nil, m.Fault
	case m.Method == "ping":
		return json.RawMessage("{}"), nil
	case m.Method == "roots/list":
		return json.Marshal(&mcp.ListRootsResult{Roots: append([]*mcp.Root{}, c.o.Roots...)})
	case m.Method == "elicitation/create" && c.o.Elicit != nil:
		return answerWith(ctx, m.Params, c.o.Elicit)
	case m.Method == "sampling/createMessage" && c.o.Sample != nil:
		return answerWith(ctx, m.Params, c.o.Sample)
	}
	return nil, rpcmsg.MethodNotFound(m.Method)
}

func answerWith[P, R any](ctx context.Context, params json.RawMessage, f func(context.Context, *P) (*R, error)) (json.RawMessage, error) {
	if params == nil {
		return nil, rpcmsg.InvalidParams("params are missing")
	}
	p := new(P)
	if err := unmarshal(params, p); err != nil {
		return nil, rpcmsg.InvalidParams(err.Error())
	}
	res, err := f(ctx, p)
	if err != nil {
		return nil, err
	}
	return json.Marshal(res)
}

// refuse answers a request of the server that does not run. If too many refusals are on their way,
// requests are dropped, and the connection ends if the server goes on and never reads.
func (c *Client) refuse(id json.RawMessage, why *jsonrpc.Error) {
	s := &c.requests
	if s.refusing.Add(1) > maxServerRequests {
		s.refusing.Add(-1)
		if s.unread.Add(1) > maxUnread {
			c.broken(errors.New("the server sends requests and does not read the answers"))
		}
		return
	}
	c.spawn(func() {
		defer s.refusing.Add(-1)
		c.sendReply("refusing a request of the server", rpcmsg.ErrorReply(id, why))
	})
}

func (c *Client) sendReply(what string, data []byte) {
	err := c.conn.send(c.ctx, &message{data: data, version: c.protocol()})
	if err == nil {
		c.requests.unread.Store(0)
	}
	c.report(what, err)
}

// cancelled ends a request of the server that needs no reply any more.
func (c *Client) cancelled(m *rpcmsg.Message) {
	id := m.Param("requestId")
	if id == nil || jsonscan.IsNull(id) {
		return
	}
	c.requests.mu.Lock()
	defer c.requests.mu.Unlock()
	if r := c.requests.running[rpcmsg.IDKey(id)]; r != nil {
		r.cancel()
	}
}
