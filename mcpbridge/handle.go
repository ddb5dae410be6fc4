package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// Handle handles one message or one batch and returns the reply. It blocks until
// the reply is complete and may be called from several goroutines; a slow call
// delays no other. The bridge keeps raw, which must not be modified even after
// Handle has returned: a handler may still run. The caller bounds the length of
// raw. The bridge bounds its content: an id has at most 4,096 bytes, params and a
// batch have at most 1,000 entries.
//
// The reply is nil where the protocol has none: to notifications, to answers to
// the server's requests, and to requests that notifications/cancelled ended. The
// error is not nil only if ctx ended before the reply was complete. Every other
// failure, including a message that is not JSON, is part of the reply.
func (b *Bridge) Handle(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	x := b.accept(ctx, raw)
	defer x.release()
	return x.run()
}

// An exchange is one message or one batch from the client, and the reply to it.
type exchange struct {
	bridge *Bridge
	parent context.Context
	batch  bool
	parts  []part
	first  [1]part // backs parts outside of a batch
}

// A part is one message of an exchange.
type part struct {
	call  *call // nil unless a request has to be served
	reply json.RawMessage
	err   error
}

// accept parses raw and acts on all of it that needs no waiting: it registers
// requests, cancels requests and delivers answers, in the order of the messages.
// The caller calls run and then release.
func (b *Bridge) accept(ctx context.Context, raw json.RawMessage) *exchange {
	x := &exchange{bridge: b, parent: ctx}
	x.parts = x.first[:]
	msgs, batch, err := rpcmsg.Parse(raw)
	switch {
	case err != nil:
		b.log.Warn("mcpbridge: cannot parse a message", "error", err, "bytes", len(raw), "message", fmt.Sprintf("%.120s", raw))
		x.parts[0].reply = rpcmsg.ErrorReply(nil, rpcmsg.ParseError(err))
		return x
	case len(msgs) == 0:
		x.parts[0].reply = rpcmsg.ErrorReply(nil, rpcmsg.InvalidRequest("an empty batch"))
		return x
	}
	if x.batch = batch; batch {
		x.parts = make([]part, len(msgs))
	}
	for i, m := range msgs {
		x.parts[i].call, x.parts[i].reply = b.acceptMessage(ctx, m)
	}
	return x
}

func (b *Bridge) acceptMessage(ctx context.Context, m *rpcmsg.Message) (*call, json.RawMessage) {
	switch {
	case m.Reply():
		if !b.clientRequests.answer(m) {
			b.log.Warn("mcpbridge: an answer to no request of the server", "id", string(m.ID))
		}
		return nil, nil
	case m.Notification():
		if id := m.Param("requestId"); m.Method == notificationCancelled && id != nil && len(id) <= rpcmsg.MaxID {
			b.inFlight.cancel(rpcmsg.IDKey(id))
		}
		return nil, nil
	case m.Fault != nil:
		b.log.Warn("mcpbridge: malformed message", "error", m.Fault)
		return nil, rpcmsg.ErrorReply(m.ID, m.Fault)
	}
	c := b.inFlight.begin(ctx, m)
	if c == nil {
		b.log.Warn("mcpbridge: too many requests at a time", "limit", b.opts.MaxRequests, "method", fmt.Sprintf("%.200s", m.Method))
		return nil, rpcmsg.ErrorReply(m.ID, rpcmsg.Busy(b.opts.MaxRequests))
	}
	return c, nil
}

// method returns the method of an exchange that is one request, "" for any other.
func (x *exchange) method() string {
	if x.batch || x.parts[0].call == nil {
		return ""
	}
	return x.parts[0].call.message.Method
}

// waits reports whether run has requests to serve.
func (x *exchange) waits() bool {
	for i := range x.parts {
		if x.parts[i].call != nil {
			return true
		}
	}
	return false
}

// run serves the requests, those of a batch concurrently, and returns the reply.
func (x *exchange) run() (json.RawMessage, error) {
	if !x.batch {
		x.runPart(&x.parts[0])
		return x.parts[0].reply, x.parts[0].err
	}
	var wg sync.WaitGroup
	for i := range x.parts {
		wg.Go(func() { x.runPart(&x.parts[i]) })
	}
	wg.Wait()
	var out json.RawMessage
	var errs []error
	for _, p := range x.parts {
		errs = append(errs, p.err)
		if p.reply != nil {
			out = append(append(out, ','), p.reply...)
		}
	}
	if out == nil {
		return nil, errors.Join(errs...)
	}
	out[0] = '['
	return append(out, ']'), nil
}

func (x *exchange) runPart(p *part) {
	if p.call == nil {
		return
	}
	if p.reply, p.err = x.bridge.request(x.parent, p.call); x.batch {
		x.bridge.inFlight.hold(int64(len(p.reply)))
	}
}

// release makes room for other requests. Until then the requests of a batch take
// up room, and so do their replies.
func (x *exchange) release() {
	count, bytes := 0, int64(0)
	for _, p := range x.parts {
		if p.call == nil {
			continue
		}
		count++
		bytes += requestSize(p.call.message)
		if x.batch {
			bytes += int64(len(p.reply))
		}
	}
	x.bridge.inFlight.leave(count, bytes)
}

// request serves one request and returns its reply, nil if the client cancelled it.
func (b *Bridge) request(parent context.Context, c *call) (json.RawMessage, error) {
	defer c.end()
	result, err := b.dispatch(c.ctx, c.message)
	switch cause := context.Cause(c.ctx); {
	case errors.Is(cause, errCancelled):
		return nil, nil
	case err == nil:
		return rpcmsg.ResultReply(c.message.ID, result), nil
	case errors.Is(cause, mcpserver.ErrClosed):
		if errors.Is(err, mcpserver.ErrClosed) {
			cause = err // says whether a tool may have run
		}
		err = mcpserver.ProtocolError(cause, "")
	case parent.Err() != nil:
		return nil, parent.Err()
	}
	var coded *jsonrpc.Error
	if !errors.As(err, &coded) {
		coded = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
	return rpcmsg.ErrorReply(c.message.ID, coded), nil
}

// dispatch runs one request. A panic in the bridge, or in a server that does not
// recover from its own, fails that request alone.
func (b *Bridge) dispatch(ctx context.Context, m *rpcmsg.Message) (result json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			b.log.Error("mcpbridge: panic", "method", m.Method, "panic", p, "stack", string(debug.Stack()))
			result, err = nil, internalError("the server failed to handle the request")
		}
	}()
	return b.serve(ctx, m)
}
