package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/jsonl"
	"github.com/tenon-sdk/tenon/internal/jsonscan"
	"github.com/tenon-sdk/tenon/internal/rpcmsg"
)

// requestIDHeader carries a request's id, as its JSON text, to the handler of the
// official library, which has no other way to learn it.
const requestIDHeader = "Tenon-Request-Id"

// A stdioConn is a connection of the official library over two streams of
// lines. Unlike the library's own it lives on after a line that makes no sense
// or is too long, and it accepts ids of any form and messages without jsonrpc:
// the library sees numbers of ours, the client gets its own ids back.
type stdioConn struct {
	in    *jsonl.Reader
	limit int
	most  int // requests that are not answered yet; negative: any number
	grace time.Duration
	log   *slog.Logger
	lines chan stdioLine
	done  chan struct{} // closed by Close

	closeOnce sync.Once
	queue     []jsonrpc.Message // read, not yet handed out; for Read only

	writing chan struct{} // holds a token while a line is written
	out     io.Writer

	mu    sync.Mutex // guards the rest
	open  int        // requests whose answers have not been written
	bytes int64      // of those
	last  int64
	calls map[int64]*stdioCall
	byID  map[string]int64 // id of the client -> the newest call with it
	idle  chan struct{}    // closed when no call is open; nil while nobody waits
}

type stdioLine struct {
	jsonl.Line
	err error
}

// A stdioCall is a request of the client that has not been answered.
type stdioCall struct {
	id        json.RawMessage
	size      int64       // of the request, in bytes
	batch     *stdioBatch // nil outside of a batch
	stays     bool        // it stays open until it is cancelled
	cancelled bool
}

// A stdioBatch collects the replies to the requests of one batch. What it holds
// counts as not answered until all of it is.
type stdioBatch struct {
	open    int
	replies []json.RawMessage
	held    int   // requests with a reply
	bytes   int64 // of those, with their replies
}

func newStdioConn(o *StdioOptions, most int) *stdioConn {
	return &stdioConn{
		in: jsonl.NewReader(o.In, o.MaxLine), limit: o.MaxLine, most: most, grace: o.Grace, log: o.Logger, out: o.Out,
		lines: make(chan stdioLine), writing: make(chan struct{}, 1),
		done:  make(chan struct{}),
		calls: make(map[int64]*stdioCall),
		byID:  make(map[string]int64),
	}
}

// readLines feeds Read. It ends with the stream or, once the connection is
// closed, with the next line.
func (c *stdioConn) readLines() {
	for {
		line, err := c.in.Next()
		select {
		case c.lines <- stdioLine{line, err}:
		case <-c.done:
			return
		}
		if err != nil {
			return
		}
	}
}

// Connect makes c its own transport.
func (c *stdioConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID is empty: there is one session a connection.
func (c *stdioConn) SessionID() string { return "" }

// Close ends Read. It does not wait for a line that is being written, since
// nobody may be reading it, and leaves the streams to their owner.
func (c *stdioConn) Close() error {
	c.closeOnce.Do(func() { close(c.done) })
	return nil
}

// Read returns the next message. At the end of the stream it first gives the
// calls in flight a little time, so that a client that sends its requests and
// closes the stream gets its answers.
func (c *stdioConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		if len(c.queue) > 0 {
			next := c.queue[0]
			c.queue = c.queue[1:]
			return next, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.done:
			return nil, io.EOF
		case line := <-c.lines:
			if line.err != nil {
				c.drain(ctx)
				return nil, line.err
			}
			if err := c.take(line.Line); err != nil {
				return nil, err
			}
		}
	}
}

// drain waits until no call is open, for the grace period at most.
func (c *stdioConn) drain(ctx context.Context) {
	if c.grace <= 0 {
		return
	}
	timer := time.NewTimer(c.grace)
	defer timer.Stop()
	select {
	case <-c.whenIdle():
	case <-timer.C:
		c.log.Warn("calls are still running after the end of the input", "grace", c.grace)
	case <-ctx.Done():
	case <-c.done:
	}
}

func (c *stdioConn) whenIdle() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	idle := make(chan struct{})
	c.idle = idle
	c.checkIdle()
	return idle
}

// checkIdle needs c.mu.
func (c *stdioConn) checkIdle() {
	if c.idle == nil {
		return
	}
	for _, call := range c.calls {
		if !call.stays {
			return
		}
	}
	close(c.idle)
	c.idle = nil
}

// take puts the messages of a line into the queue and answers by itself what is
// no message.
func (c *stdioConn) take(line jsonl.Line) error {
	if line.Oversized() {
		c.log.Warn("message is too long", "bytes", line.Size, "limit", c.limit)
		id, _ := rpcmsg.OversizedID(line.Head, line.Tail)
		return c.refuse(id, rpcmsg.InvalidRequest(fmt.Sprintf("the message has %d bytes, more than the limit of %d", line.Size, c.limit)))
	}
	if first := line.Data[0]; first != '{' && first != '[' {
		c.log.Warn("line is no message", "line", head(line.Data))
		return nil // noise: nobody waits for an answer
	}
	msgs, isBatch, err := rpcmsg.Parse(line.Data)
	switch {
	case err != nil:
		c.log.Warn("line is no JSON", "error", err, "line", head(line.Data))
		return c.refuse(nil, rpcmsg.ParseError(err))
	case len(msgs) == 0:
		return c.refuse(nil, rpcmsg.InvalidRequest("an empty batch"))
	}
	if !isBatch {
		return c.takeMessage(msgs[0], nil)
	}
	batch := &stdioBatch{open: 1} // so that it stays open until all of it has been read
	for _, m := range msgs {
		if err := c.takeMessage(m, batch); err != nil {
			return err
		}
	}
	return c.addTo(batch, -1)
}

// head is the beginning of a line, for the log.
func head(line []byte) string {
	const most = 120
	if len(line) > most {
		return string(line[:most]) + "…"
	}
	return string(line)
}

func (c *stdioConn) takeMessage(m *rpcmsg.Message, batch *stdioBatch) error {
	switch {
	case m.Reply():
		c.takeReply(m)
	case m.Notification():
		if m.Fault == nil {
			c.queue = append(c.queue, &jsonrpc.Request{Method: m.Method, Params: c.translate(m), Extra: &mcp.RequestExtra{}})
		}
	case m.Fault != nil:
		c.log.Warn("malformed message", "error", m.Fault)
		if batch == nil {
			return c.refuse(m.ID, m.Fault)
		}
		c.addReply(batch, rpcmsg.ErrorReply(m.ID, m.Fault))
	default:
		return c.takeCall(m, batch)
	}
	return nil
}

// takeReply hands on an answer to a request of the library's, whose ids are numbers.
func (c *stdioConn) takeReply(m *rpcmsg.Message) {
	text, isText := jsonscan.Text(m.ID)
	if !isText {
		text = string(m.ID)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		c.log.Warn("an answer to no request of ours", "id", text)
		return
	}
	reply := &jsonrpc.Response{ID: numberID(n), Result: m.Result}
	if m.Error != nil && string(m.Error) != "null" {
		refused := new(jsonrpc.Error)
		if err := json.Unmarshal(m.Error, refused); err != nil {
			refused = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "an error that makes no sense: " + head(m.Error)}
		}
		reply.Result, reply.Error = nil, refused
	}
	c.queue = append(c.queue, reply)
}

// numberID is n as the library's id. Its constructor takes what JSON decodes to.
func numberID(n int64) jsonrpc.ID {
	id, _ := jsonrpc.MakeID(float64(n)) // never fails for a number
	return id
}

// maxOpenBytes bounds the requests that are not answered yet beside their number.
const maxOpenBytes = 256 << 20

func (c *stdioConn) takeCall(m *rpcmsg.Message, batch *stdioBatch) error {
	call := &stdioCall{id: m.ID, size: int64(len(m.ID) + len(m.Params)), batch: batch, stays: m.Method == methodListen}
	c.mu.Lock()
	if c.most >= 0 && (c.open >= c.most || c.open > 0 && c.bytes+call.size > maxOpenBytes) {
		c.mu.Unlock()
		// The refusal goes out before more is read: who reads no answers is not read from.
		if batch == nil {
			return c.refuse(m.ID, rpcmsg.Busy(c.most))
		}
		c.addReply(batch, rpcmsg.ErrorReply(m.ID, rpcmsg.Busy(c.most)))
		return nil
	}
	c.open++
	c.bytes += call.size
	c.last++
	n := c.last
	c.calls[n] = call
	c.byID[rpcmsg.IDKey(m.ID)] = n
	if batch != nil {
		batch.open++
	}
	c.mu.Unlock()
	c.queue = append(c.queue, &jsonrpc.Request{
		ID: numberID(n), Method: m.Method, Params: m.Params,
		Extra: &mcp.RequestExtra{Header: http.Header{requestIDHeader: {string(m.ID)}}},
	})
	return nil
}

// translate is the params of a notification with our number for the client's id.
func (c *stdioConn) translate(m *rpcmsg.Message) json.RawMessage {
	id := m.Param("requestId")
	if len(id) > rpcmsg.MaxID {
		id = rpcmsg.Null // no request has it
	}
	if m.Method != "notifications/cancelled" || id == nil {
		return m.Params
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n, open := c.byID[rpcmsg.IDKey(id)]
	if !open {
		n = 0 // no call of ours has this number
	} else if call := c.calls[n]; call != nil {
		call.cancelled = true
	}
	return json.RawMessage(`{"requestId":` + strconv.FormatInt(n, 10) + `}`)
}

// Write sends one message to the client. Replies get the client's ids back; to a
// request that the client has cancelled there is none.
func (c *stdioConn) Write(_ context.Context, msg jsonrpc.Message) error {
	reply, ok := msg.(*jsonrpc.Response)
	if !ok {
		if r, ok := msg.(*jsonrpc.Request); ok {
			own := *r
			own.Params = c.subscribed(r.Params)
			msg = &own
		}
		raw, err := jsonrpc.EncodeMessage(msg)
		if err != nil {
			return err
		}
		return c.line(raw)
	}
	n, _ := reply.ID.Raw().(int64)
	c.mu.Lock()
	call := c.calls[n]
	if call == nil {
		c.mu.Unlock()
		return nil // answered before, or refused by the library as a repetition
	}
	delete(c.calls, n)
	if key := rpcmsg.IDKey(call.id); c.byID[key] == n {
		delete(c.byID, key)
	}
	c.mu.Unlock()
	var raw json.RawMessage
	if !call.cancelled {
		if call.stays {
			own := *reply
			own.Result = withSubscription(reply.Result, func(json.RawMessage) json.RawMessage { return call.id })
			reply = &own
		}
		raw = encodeReply(call.id, reply)
	}
	if call.batch != nil {
		c.hold(call, raw)
		return c.addTo(call.batch, -1)
	}
	defer c.answered(1, call.size) // after the line is out: the end of the input waits for it
	if raw == nil {
		return nil
	}
	return c.line(raw)
}

// answered counts requests that are answered.
func (c *stdioConn) answered(n int, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open -= n
	c.bytes -= bytes
	c.checkIdle()
}

// hold keeps the reply to a request of a batch, nil if there is none.
func (c *stdioConn) hold(call *stdioCall, raw json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, size := call.batch, int64(len(raw))
	c.bytes += size
	b.held++
	b.bytes += call.size + size
	if raw != nil {
		b.replies = append(b.replies, raw)
	}
}

func encodeReply(id json.RawMessage, reply *jsonrpc.Response) json.RawMessage {
	if reply.Error == nil {
		return rpcmsg.ResultReply(id, reply.Result)
	}
	out := jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: reply.Error.Error()}
	var coded *jsonrpc.Error
	if errors.As(reply.Error, &coded) {
		out.Code, out.Data = coded.Code, coded.Data
	}
	return rpcmsg.ErrorReply(id, &out)
}

func (c *stdioConn) addReply(b *stdioBatch, raw json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b.replies = append(b.replies, raw)
}

// addTo counts n calls more in b and sends the replies once none is open.
func (c *stdioConn) addTo(b *stdioBatch, n int) error {
	c.mu.Lock()
	b.open += n
	open, replies := b.open, b.replies
	c.mu.Unlock()
	if open > 0 {
		return nil
	}
	defer c.answered(b.held, b.bytes) // after the line is out
	if len(replies) == 0 {
		return nil
	}
	raw, err := json.Marshal(replies)
	if err != nil {
		return err
	}
	return c.line(raw)
}

// refuse answers a message that does not reach the library.
func (c *stdioConn) refuse(id json.RawMessage, why *jsonrpc.Error) error {
	return c.line(rpcmsg.ErrorReply(id, why))
}

// line writes one line. The whole of it goes out in one call of Write. Who waits
// for a line before that does not go out waits until Close.
func (c *stdioConn) line(raw json.RawMessage) error {
	select {
	case c.writing <- struct{}{}:
	default:
		select {
		case c.writing <- struct{}{}:
		case <-c.done:
			return io.ErrClosedPipe
		}
	}
	defer func() { <-c.writing }()
	_, err := c.out.Write(append(raw, '\n'))
	return err
}
