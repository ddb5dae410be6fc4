package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/internal/jsonl"
	"github.com/tenon-sdk/tenon/internal/jsonscan"
	"github.com/tenon-sdk/tenon/internal/rpcmsg"
	"github.com/tenon-sdk/tenon/mcpserver"
)

const (
	// textHead is how many bytes of a server's text are shown in errors and logs.
	textHead = 300
	// maxNoise is how many lines that are no messages are kept.
	maxNoise = 5
	// maxErrorText and maxErrorData bound the message and the data of a server's error, in bytes.
	maxErrorText = 64 << 10
	maxErrorData = 1 << 20
)

// receive takes a message or a batch of messages. It reports false for any other text, which is
// noise.
func (c *Client) receive(data []byte) bool {
	if data[0] != '{' && data[0] != '[' {
		return false
	}
	data = bytes.ToValidUTF8(data, []byte("\uFFFD")) // readers of JSON differ in what they make of other bytes
	msgs, _, err := rpcmsg.Parse(data)
	if err != nil {
		// A reply that is broken somewhere fails its request.
		id, ok := c.oversizedID(data, data)
		if ok {
			c.fail(id, fmt.Errorf("the reply cannot be read: %w", err))
		}
		return ok
	}
	known := false
	for _, m := range msgs {
		known = c.message(m) || known
	}
	if known {
		c.received.Add(1)
	}
	return known
}

func (c *Client) message(m *rpcmsg.Message) bool {
	switch {
	case m.Reply():
		c.replied(m)
	case m.Notification():
		c.notified(m)
	case m.Fault != nil && jsonscan.IsNull(m.ID):
		c.o.Log.Debug("message of the server cannot be used", "error", m.Fault.Message)
	case m.Method != "" && m.ID != nil:
		c.serverRequest(m)
	case m.ID != nil && m.Method == "":
		id, ok := ownID(m.ID)
		if ok {
			c.fail(id, errors.New("the reply has neither a result nor an error"))
		}
		return ok
	default:
		return false
	}
	return true
}

func (c *Client) replied(m *rpcmsg.Message) {
	id, ok := ownID(m.ID)
	if jsonscan.IsNull(m.ID) && m.Error != nil { // the server could not read the id of the request
		if id, ok = c.onlyPending(); !ok {
			c.o.Limited.Warn("the server reports an error of no request in particular", "error", c.o.Mask.Head(m.Error, textHead))
		}
	}
	var p *pending
	if ok {
		p = c.take(id)
	}
	switch {
	case p == nil:
		c.o.Log.Debug("reply to no request thrown away", "id", c.o.Mask.Head(m.ID, textHead))
	case m.Error != nil && !jsonscan.IsNull(m.Error):
		p.reply <- reply{err: serverError(m.Error)}
	default:
		if strings.HasSuffix(p.method, "/list") {
			c.mu.Lock()
			c.listed[p.method] = true
			c.mu.Unlock()
		}
		p.reply <- reply{result: m.Result}
	}
}

// ownID returns the id of a request of the client. Servers are known to answer 3 with "3".
func ownID(raw json.RawMessage) (int64, bool) {
	if s, ok := jsonscan.Text(raw); ok {
		raw = json.RawMessage(s)
	}
	var f float64
	if err := json.Unmarshal(raw, &f); err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// serverError reads the error of a reply.
func serverError(raw json.RawMessage) *jsonrpc.Error {
	var e struct {
		Code    json.RawMessage `json:"code"`
		Message json.RawMessage `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	out := &jsonrpc.Error{Code: jsonrpc.CodeInternalError}
	if err := json.Unmarshal(raw, &e); err != nil {
		out.Message = clip.Text(string(raw), textHead)
		return out
	}
	var code float64
	if json.Unmarshal(e.Code, &code) == nil {
		out.Code = int64(code)
	}
	if json.Unmarshal(e.Message, &out.Message) != nil || out.Message == "" {
		out.Message = clip.Text(string(raw), textHead)
	}
	out.Data = e.Data
	return shortened(out)
}

// shortened bounds a server's error, which is shown in statuses, logs and results.
func shortened(e *jsonrpc.Error) *jsonrpc.Error {
	if n := len(e.Message) - maxErrorText; n > 0 {
		e.Message = clip.Text(e.Message[:maxErrorText+1], maxErrorText) + fmt.Sprintf(" (%d bytes left out)", n)
	}
	if len(e.Data) > maxErrorData {
		e.Message += fmt.Sprintf(" (with %d bytes of data, which are left out)", len(e.Data))
		e.Data = nil
	}
	return e
}

func (c *Client) notified(m *rpcmsg.Message) {
	var err error
	switch m.Method {
	case methodCancelled:
		c.cancelled(m)
	case mcpserver.MethodProgress:
		err = decodeTo(m.Params, c.progressed)
	case mcpserver.MethodMessage:
		err = decodeTo(m.Params, c.o.OnLog)
	case mcpserver.MethodToolListChanged, mcpserver.MethodResourceListChanged, mcpserver.MethodPromptListChanged:
		c.o.OnListChanged(m.Method)
	case mcpserver.MethodResourceUpdated:
		err = decodeTo(m.Params, func(p *mcp.ResourceUpdatedNotificationParams) { c.o.OnResourceUpdated(p.URI) })
	}
	if err != nil {
		c.o.Log.Debug("notification of the server cannot be read", "method", m.Method, "error", c.o.Mask.Head([]byte(err.Error()), textHead))
	}
}

func decodeTo[T any](params json.RawMessage, f func(*T)) error {
	if params == nil {
		return errors.New("no params")
	}
	v := new(T)
	if err := json.Unmarshal(params, v); err != nil {
		return err
	}
	f(v)
	return nil
}

// progressed passes progress on to the request that it is about.
func (c *Client) progressed(p *mcp.ProgressNotificationParams) {
	token, ok := p.ProgressToken.(float64)
	if !ok || token != math.Trunc(token) {
		return
	}
	c.mu.Lock()
	on := c.progress[int64(token)]
	c.mu.Unlock()
	if on != nil {
		on(p)
	}
}

// noiseLine takes a line that is no message.
func (c *Client) noiseLine(line []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noiseN++
	if len(c.noise) >= maxNoise {
		return
	}
	head := c.o.Mask.Head(line, textHead)
	c.noise = append(c.noise, head)
	if c.noiseN == 1 {
		c.o.Log.Warn("the server writes to stdout what is no message", "line", head)
	}
}

// oversized takes a message above the size limit. It fails the request that the message answers or,
// if that is unknown, all that are pending.
func (c *Client) oversized(l jsonl.Line) {
	err := tooLarge(fmt.Sprintf("%d bytes", l.Size), c.o.MaxMessageBytes)
	c.o.Limited.Warn("message of the server thrown away", "error", err)
	if id, ok := c.oversizedID(l.Head, l.Tail); ok {
		c.fail(id, err)
		return
	}
	switch {
	case !bytes.HasPrefix(l.Head, []byte("{")) && !bytes.HasPrefix(l.Head, []byte("[")):
		c.noiseLine(l.Head)
	case l.Head[0] == '[' || bytes.Contains(l.Head, []byte(`"method"`)): // no reply
	default:
		c.failAll(err)
	}
}

// oversizedID returns the id of a pending request in a reply of which only the ends are there.
func (c *Client) oversizedID(head, tail []byte) (int64, bool) {
	raw, ok := rpcmsg.OversizedID(head, tail)
	if !ok {
		return 0, false
	}
	id, ok := ownID(raw)
	return id, ok && c.waits(id)
}
