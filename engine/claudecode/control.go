package claudecode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/tenon-sdk/tenon/internal/jsonl"
	"github.com/tenon-sdk/tenon/internal/jsonscan"
)

// envelope is a line of the control protocol, either way.
type envelope struct {
	Type      string          `json:"type"`
	RequestID string          `json:"request_id,omitempty"`
	Request   json.RawMessage `json:"request,omitempty"`
	Response  *answer         `json:"response,omitempty"`
}

// read reads a line of the CLI.
func (e *envelope) read(line []byte) error {
	var wrong error
	err := jsonscan.Object(line, func(name []byte, value json.RawMessage) {
		switch string(name) {
		case "request_id":
			wrong = errors.Join(wrong, unmarshalText(value, &e.RequestID))
		case "request":
			e.Request = value
		case "response":
			wrong = errors.Join(wrong, json.Unmarshal(value, &e.Response))
		}
	})
	return errors.Join(err, wrong)
}

// answer is the body of a control_response.
type answer struct {
	Subtype   string          `json:"subtype"`
	RequestID string          `json:"request_id"`
	Response  json.RawMessage `json:"response,omitempty"`
	Error     string          `json:"error,omitempty"`
	ErrorCode string          `json:"error_code,omitempty"`
}

// A ControlError is the CLI's refusal of a control request.
type ControlError struct {
	// Request is the request's subtype, such as "set_permission_mode".
	Request string
	// Code is the CLI's name for the reason, such as "invalid_mode"; often empty.
	Code    string
	Message string
}

// Error says what was refused and why.
func (e *ControlError) Error() string {
	return fmt.Sprintf("claude-code: %s: %s", e.Request, e.Message)
}

// A channel is the control protocol over the CLI's pipes. What the pipe does not take at once is
// written by one goroutine, so that a CLI that does not read blocks nobody who holds a lock; each
// request of the CLI is handled on a goroutine of its own.
type channel struct {
	out    outgoing
	ctx    context.Context // ends when the CLI is gone
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // writer, and the requests of the CLI

	// handle answers a request of the CLI; message takes any other line. The
	// latter is called by the reading goroutine, in order.
	handle  func(ctx context.Context, subtype string, request json.RawMessage) (any, error)
	message func(kind string, line json.RawMessage)

	mu      sync.Mutex // guards the rest
	closed  bool       // no new goroutine may be added to wg
	next    int
	pending map[string]chan *answer
	inbound map[string]context.CancelFunc
}

// newChannel makes a channel with the values of ctx; the CLI outlives the call that starts it, so
// not with its end.
func newChannel(ctx context.Context) *channel {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	return &channel{
		out: newOutgoing(), ctx: ctx, cancel: cancel,
		pending: map[string]chan *answer{}, inbound: map[string]context.CancelFunc{},
	}
}

// post sends one value as a line.
func (c *channel) post(ctx context.Context, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("claude-code: %w", err)
	}
	return c.send(ctx, append(line, '\n'))
}

// send writes a line, or hands it to the writer.
func (c *channel) send(ctx context.Context, line []byte) error {
	if c.out.now(line) {
		return nil
	}
	select {
	case c.out.lines <- line:
		return nil
	case <-c.ctx.Done():
		c.out.settled()
		return context.Cause(c.ctx) //nolint:contextcheck // the CLI's life, which the caller's context does not know
	case <-ctx.Done():
		c.out.settled()
		return context.Cause(ctx)
	}
}

// request sends a control request and waits for its answer, which it decodes into result unless
// that is nil. It fails at once when the CLI dies.
func (c *channel) request(ctx context.Context, subtype string, fields, result any) error {
	body, err := withSubtype(subtype, fields)
	if err != nil {
		return err
	}
	reply := make(chan *answer, 1) // never blocks: the first answer wins
	c.mu.Lock()
	c.next++
	id := "tenon-" + strconv.Itoa(c.next)
	c.pending[id] = reply
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.pending, id)
	}()
	if err := c.post(ctx, &envelope{Type: "control_request", RequestID: id, Request: body}); err != nil {
		return err
	}
	select {
	case a := <-reply:
		if a.Subtype != "success" {
			return &ControlError{Request: subtype, Code: a.ErrorCode, Message: a.Error}
		}
		if result == nil || len(a.Response) == 0 {
			return nil
		}
		if err := json.Unmarshal(a.Response, result); err != nil {
			return fmt.Errorf("claude-code: the answer to %s: %w", subtype, err)
		}
		return nil
	case <-c.ctx.Done():
		return context.Cause(c.ctx) //nolint:contextcheck // the CLI's life, which the caller's context does not know
	case <-ctx.Done():
		// No reply is owed to this.
		c.tell(&envelope{Type: "control_cancel_request", RequestID: id})
		return context.Cause(ctx)
	}
}

// tell sends a value that nobody waits for: a CLI that does not read must not hold up who gives up on it.
func (c *channel) tell(v any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.wg.Go(func() { _ = c.post(c.ctx, v) }) // the CLI is gone: nobody to tell
	}
}

// withSubtype returns fields as a JSON object with the subtype in it.
func withSubtype(subtype string, fields any) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if fields != nil {
		data, err := json.Marshal(fields)
		if err == nil {
			err = json.Unmarshal(data, &members)
		}
		if err != nil {
			return nil, fmt.Errorf("claude-code: %s: %w", subtype, err)
		}
	}
	members["subtype"] = json.RawMessage(strconv.Quote(subtype))
	return json.Marshal(members)
}

// read takes the CLI's lines until they end. Lines that are no JSON objects are noise.
func (c *channel) read(stdout io.Reader, noise func(line []byte)) {
	r := jsonl.NewReader(stdout, 0)
	for {
		line, err := r.Next()
		if err != nil {
			return
		}
		kind, ok := lineType(line.Data)
		if !ok || !c.take(kind, line.Data) {
			noise(append(line.Head, line.Data...))
		}
	}
}

// take handles a line. It reports false for one that cannot be read.
func (c *channel) take(kind string, line []byte) bool {
	var e envelope
	switch kind {
	case "control_request", "control_response", "control_cancel_request":
		if e.read(line) != nil {
			return false
		}
	}
	switch kind {
	case "control_request":
		c.serve(&e)
	case "control_response":
		if e.Response == nil {
			return false
		}
		c.mu.Lock()
		reply := c.pending[e.Response.RequestID]
		delete(c.pending, e.Response.RequestID)
		c.mu.Unlock()
		if reply != nil {
			reply <- e.Response
		}
	case "control_cancel_request":
		c.mu.Lock()
		cancel := c.inbound[e.RequestID]
		c.mu.Unlock()
		if cancel != nil {
			cancel()
		}
	case "keep_alive":
	default:
		c.message(kind, line)
	}
	return true
}

// serve answers a request of the CLI on a goroutine of its own.
func (c *channel) serve(e *envelope) {
	subtype, err := textMember(e.Request, "subtype")
	ctx, cancel := context.WithCancel(c.ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		cancel()
		return
	}
	c.inbound[e.RequestID] = cancel
	c.wg.Go(func() {
		defer func() {
			cancel()
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.inbound, e.RequestID)
		}()
		a := &answer{Subtype: "success", RequestID: e.RequestID}
		var result any
		if err == nil {
			result, err = c.handle(ctx, subtype, e.Request)
		}
		if errors.Is(err, errUnanswered) {
			return
		}
		if err == nil && result != nil {
			a.Response, err = marshalResult(result)
		}
		if err != nil {
			a.Subtype, a.Error = "error", err.Error()
			if errors.Is(err, errUnknownRequest) {
				a.ErrorCode = "unsupported_request"
			}
		}
		_ = c.postAnswer(a) // the CLI is gone: nobody to tell
	})
}

// unmarshalText is json.Unmarshal for a string, which nearly always is one.
func unmarshalText(value json.RawMessage, v *string) error {
	text, ok := jsonscan.Text(value)
	if !ok {
		return json.Unmarshal(value, v)
	}
	*v = text
	return nil
}

// textMember returns the string that a member of an object is; empty if it is absent.
func textMember(object json.RawMessage, member string) (string, error) {
	var text string
	var wrong error
	err := jsonscan.Object(object, func(name []byte, value json.RawMessage) {
		if string(name) == member {
			wrong = unmarshalText(value, &text)
		}
	})
	return text, errors.Join(err, wrong)
}

// marshalResult encodes what a request is answered with. A tool's result was encoded before: it may
// be large, and encoding/json would read it all again.
func marshalResult(result any) (json.RawMessage, error) {
	if r, ok := result.(mcpResponse); ok {
		return r.MarshalJSON()
	}
	return json.Marshal(result)
}

// postAnswer sends an answer as a line. Its response is valid JSON without line endings.
func (c *channel) postAnswer(a *answer) error {
	if a.Subtype != "success" {
		return c.post(c.ctx, &envelope{Type: "control_response", Response: a})
	}
	id, err := json.Marshal(a.RequestID)
	if err != nil {
		return fmt.Errorf("claude-code: %w", err)
	}
	line := make([]byte, 0, len(a.Response)+len(id)+128)
	line = append(line, `{"type":"control_response","response":{"subtype":"success","request_id":`...)
	line = append(line, id...)
	if len(a.Response) > 0 {
		line = append(append(line, `,"response":`...), a.Response...)
	}
	return c.send(c.ctx, append(line, "}}\n"...))
}

var (
	// errUnknownRequest answers what this version does not know.
	errUnknownRequest = errors.New("unsupported control request")
	// errUnanswered leaves a request without an answer, as the protocol wants it for some.
	errUnanswered = errors.New("not to be answered")
)

// end fails everything that waits and waits for the goroutines.
func (c *channel) end(cause error) {
	c.cancel(cause)
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.wg.Wait()
}
