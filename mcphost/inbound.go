package mcphost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
)

const (
	// maxInbound is how many requests of the server may be under way at once.
	maxInbound = 64
	// maxInboundBytes bounds what they hold together.
	maxInboundBytes = 64 << 20
	// maxUnread is how many requests may come while the server reads neither an answer nor a refusal. Some servers write a lot
	// before they read again.
	maxUnread = 50_000
)

// codeBusy is the code of the error for a request for which there is no room.
const codeBusy = -32000

// An inbound is a request of the server under way.
type inbound struct {
	size      int
	cancelled bool
}

func (w *wire) serverRequest(m *rpcmsg.Message) {
	var v any
	if json.Unmarshal(m.ID, &v) != nil || v == nil { // the library takes a null id for a notification
		return
	}
	id, err := jsonrpc.MakeID(v)
	if err != nil {
		return
	}
	key, size := requestKey(id.Raw()), len(m.ID)+len(m.Params)
	w.mu.Lock()
	room := w.askedN < maxInbound && w.askedSize+size <= maxInboundBytes
	_, twice := w.asked[key]
	if room && !twice {
		w.asked[key] = &inbound{size: size}
		w.askedN++
		w.askedSize += size
	}
	w.mu.Unlock()
	switch {
	case twice:
		w.refuse(m.ID, rpcmsg.InvalidRequest("another request with this id is under way"))
	case !room:
		if n := w.dropped.Add(1); n == 1 || n%1000 == 0 { // a flood of them must not become one of lines
			w.log.Warn("request of the server refused: too many at once", "method", w.mask.Head([]byte(m.Method), noiseLine), "limit", maxInbound, "refused", n)
		}
		w.refuse(m.ID, &jsonrpc.Error{Code: codeBusy, Message: fmt.Sprintf("more than %d requests at once", maxInbound)})
	default:
		w.push(&jsonrpc.Request{ID: id, Method: m.Method, Params: m.Params})
	}
}

// refuse answers a request of the server that does not reach the library. As many refusals may be on their way as answers;
// then requests are dropped and, if the server goes on and never reads, the connection ends.
func (w *wire) refuse(id json.RawMessage, why *jsonrpc.Error) {
	if w.refusing.Add(1) > maxInbound {
		w.refusing.Add(-1)
		if w.unread.Add(1) > maxUnread {
			w.broken(errors.New("the server sends requests and does not read the answers"))
		}
		return
	}
	out := &outgoing{data: rpcmsg.ErrorReply(id, why)}
	w.wg.Go(func() {
		defer w.refusing.Add(-1)
		w.answer(w.ctx, "refusing a request of the server", out)
	})
}

// answer sends an answer to a request of the server.
func (w *wire) answer(ctx context.Context, what string, out *outgoing) {
	err := w.car.send(ctx, out)
	if err == nil {
		w.unread.Store(0)
	}
	w.report(what, err)
}

// requestKey is the id of a request of the server as a key.
func requestKey(id any) string {
	if f, ok := id.(float64); ok {
		id = int64(f)
	}
	return fmt.Sprintf("%T %v", id, id)
}

// replying makes the id of a request of the server free for another. The request counts until the returned function is
// called.
func (w *wire) replying(id jsonrpc.ID) (sent func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := requestKey(id.Raw())
	r := w.asked[key]
	if r == nil {
		return func() {}
	}
	delete(w.asked, key)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.askedN--
		w.askedSize -= r.size
	}
}

// cancelled passes on that the server needs no answer to a request of its own any more, once for each that is under way.
func (w *wire) cancelled(m *rpcmsg.Message) {
	var p struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(m.Params, &p) != nil {
		return
	}
	w.mu.Lock()
	r := w.asked[requestKey(p.RequestID)]
	known := r != nil && !r.cancelled
	if known {
		r.cancelled = true
	}
	w.mu.Unlock()
	if known {
		w.push(&jsonrpc.Request{Method: m.Method, Params: m.Params})
	}
}
