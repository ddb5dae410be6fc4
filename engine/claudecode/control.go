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
	// mayRead waits until the next line may be read. Nil means at once.
	mayRead func()
	asked   chan struct{} // holds a token when a request of ours has begun to wait

	mu      sync.Mutex // guards the rest
	closed  bool       // no new goroutine may be added to wg
	next    int
	pending map[string]pendingRequest
	inbound map[string]context.CancelFunc
}

// A pendingRequest waits for the CLI's answer.
type pendingRequest struct {
	reply    chan *answer
	answered func() // is called by the reading goroutine, between the messages; may be nil
}

// newChannel makes a channel with the values of ctx; the CLI outlives the call that starts it, so
// not with its end.
func newChannel(ctx context.Context) *channel {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	return &channel{
		out: newOutgoing(), ctx: ctx, cancel: cancel, asked: make(chan struct{}, 1),
		pending: map[string]pendingRequest{}, inbound: map[string]context.CancelFunc{},
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
	return c.requestThen(ctx, subtype, fields, result, nil)
}

// requestThen is request, and calls answered once the answer is there: after the messages before it were
// taken, and before those that follow.
func (c *channel) requestThen(ctx context.Context, subtype string, fields, result any, answered func()) error {
	reply := make(chan *answer, 1) // never blocks: the first answer wins
	c.mu.Lock()
	c.next++
	id := "tenon-" + strconv.Itoa(c.next)
	c.pending[id] = pendingRequest{reply, answered}
	c.mu.Unlock()
	select {
	case c.asked <- struct{}{}:
	default: // one that was not taken yet does as well
	}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.pending, id)
	}()
	line, err := requestLine(id, subtype, fields)
	if err != nil {
		return err
	}
	if err := c.send(ctx, line); err != nil {
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
	c.spawn(func() { _ = c.post(c.ctx, v) }) // the CLI is gone: nobody to tell
}

// spawn calls f on a goroutine that the channel's end waits for; not at all after that.
func (c *channel) spawn(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.wg.Go(f)
	}
}

// waits reports whether a request of ours waits for its answer.
func (c *channel) waits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending) > 0
}

// requestLine is a control request as a line. fields is an object, or nil; it is encoded once, since it may be large.
func requestLine(id, subtype string, fields any) ([]byte, error) {
	body := []byte("{}")
	if fields != nil {
		var err error
		if body, err = json.Marshal(fields); err != nil {
			return nil, fmt.Errorf("claude-code: %s: %w", subtype, err)
		}
		if len(body) == 0 || body[0] != '{' {
			return nil, fmt.Errorf("claude-code: %s: the fields are no JSON object: %.40s", subtype, body)
		}
	}
	kind, err := json.Marshal(subtype)
	if err != nil {
		return nil, fmt.Errorf("claude-code: %w", err)
	}
	line := make([]byte, 0, len(body)+len(kind)+len(id)+96)
	line = append(line, `{"type":"control_request","request_id":"`...)
	line = append(append(line, id...), `","request":`...)
	line = append(line, body[:len(body)-1]...)
	if len(body) > len("{}") {
		line = append(line, ',')
	}
	line = append(append(line, `"subtype":`...), kind...) // last, where it wins over a field of that name
	return append(line, "}}\n"...), nil
}

// read takes the CLI's lines until they end. Lines that are no JSON objects are noise.
func (c *channel) read(stdout io.Reader, noise func(line []byte)) {
	r := jsonl.NewReader(stdout, 0)
	for {
		if c.mayRead != nil {
			c.mayRead()
		}
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
		p, ok := c.pending[e.Response.RequestID]
		delete(c.pending, e.Response.RequestID)
		c.mu.Unlock()
		if !ok {
			break
		}
		if p.answered != nil {
			p.answered()
		}
		p.reply <- e.Response
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
