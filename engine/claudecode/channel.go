package claudecode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/tenon-sdk/tenon/engine/claudecode/event"
	"github.com/tenon-sdk/tenon/internal/jsonl"
)

// A ControlError is the CLI's refusal of a control request.
type ControlError struct {
	// Request is the request's subtype, such as "set_permission_mode".
	Request string
	// Code is the CLI's name for the reason, such as "invalid_mode". It is often empty.
	Code    string
	Message string
}

// Error returns the request and the CLI's reason.
func (e *ControlError) Error() string {
	return fmt.Sprintf("claude-code: %s: %s", e.Request, e.Message)
}

// A controlLine is a line of the control protocol to the CLI.
type controlLine struct {
	Type      string          `json:"type"`
	RequestID string          `json:"request_id,omitempty"`
	Request   json.RawMessage `json:"request,omitempty"`
	Response  *event.Response `json:"response,omitempty"`
}

// A channel is the control protocol over the CLI's standard input and output. One goroutine writes,
// so that a CLI that does not read blocks nobody who holds a lock. Each request of the CLI is handled
// on a goroutine of its own.
type channel struct {
	lines  chan []byte     // to the writer
	ctx    context.Context // ends with the CLI
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // the writer, and the requests of the CLI

	// handle answers a request of the CLI.
	handle func(ctx context.Context, subtype string, request json.RawMessage) (any, error)
	// message receives all other lines, in order, on the goroutine that reads.
	message func(l *event.Line, size int)
	// invalid receives lines that cannot be decoded.
	invalid func(line []byte)
	// mayRead waits until the next line may be read. Nil means at once.
	mayRead func()
	// streamed reports whether stream events are decoded.
	streamed bool
	asked    chan struct{} // holds a token when a request to the CLI has begun to wait

	mu      sync.Mutex // guards the rest
	closed  bool       // no new goroutine may be added to wg
	next    int
	pending map[string]pendingRequest
	inbound map[string]context.CancelFunc
}

// A pendingRequest waits for the CLI's answer.
type pendingRequest struct {
	reply    chan *event.Response
	answered func() // runs on the goroutine that reads, between the lines around the answer; may be nil
}

// newChannel returns a channel with the values of ctx. The CLI outlives the call that starts it, so
// the end of ctx has no effect.
func newChannel(ctx context.Context) *channel {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	return &channel{
		lines: make(chan []byte), ctx: ctx, cancel: cancel, asked: make(chan struct{}, 1),
		pending: map[string]pendingRequest{}, inbound: map[string]context.CancelFunc{},
	}
}

// write writes lines until closing is closed or the CLI has ended. Its error is that of stdin.
func (c *channel) write(stdin io.Writer, closing <-chan struct{}) error {
	for {
		select {
		case line := <-c.lines:
			if _, err := stdin.Write(line); err != nil {
				return err
			}
		case <-closing:
			return nil
		case <-c.ctx.Done():
			return nil
		}
	}
}

// send hands a value to the writer.
func (c *channel) send(ctx context.Context, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("claude-code: %w", err)
	}
	select {
	case c.lines <- append(line, '\n'):
		return nil
	case <-c.ctx.Done():
		return context.Cause(c.ctx) // the CLI's end, which ends no context of the caller
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// request sends a control request and decodes the answer into result unless that is nil. It fails at
// once when the CLI ends.
func (c *channel) request(ctx context.Context, subtype string, fields, result any) error {
	return c.requestThen(ctx, subtype, fields, result, nil)
}

// requestThen is request, and calls answered when the answer arrives, after the lines before it and
// before the lines after it.
func (c *channel) requestThen(ctx context.Context, subtype string, fields, result any, answered func()) error {
	body, err := requestBody(subtype, fields)
	if err != nil {
		return err
	}
	reply := make(chan *event.Response, 1) // never blocks: there is one answer
	c.mu.Lock()
	c.next++
	id := "tenon-" + strconv.Itoa(c.next)
	c.pending[id] = pendingRequest{reply, answered}
	c.mu.Unlock()
	select {
	case c.asked <- struct{}{}:
	default: // a token is there
	}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.pending, id)
	}()
	if err := c.send(ctx, &controlLine{Type: "control_request", RequestID: id, Request: body}); err != nil {
		return err
	}
	select {
	case a := <-reply:
		if a.Subtype != "success" {
			return &ControlError{Request: subtype, Code: a.ErrorCode, Message: a.Error}
		}
		if result != nil && len(a.Response) > 0 {
			err = json.Unmarshal(a.Response, result)
		}
		if err != nil {
			err = fmt.Errorf("claude-code: the answer to %s: %w", subtype, err)
		}
		return err
	case <-c.ctx.Done():
		return context.Cause(c.ctx) // the CLI's end, which ends no context of the caller
	case <-ctx.Done():
		// On a goroutine of its own: a CLI that does not read must not hold up the caller.
		c.spawn(func() { _ = c.send(c.ctx, &controlLine{Type: "control_cancel_request", RequestID: id}) })
		return context.Cause(ctx)
	}
}

// requestBody returns the body of a request. fields is an object, or nil.
func requestBody(subtype string, fields any) (json.RawMessage, error) {
	body := map[string]json.RawMessage{}
	if fields != nil {
		data, err := json.Marshal(fields)
		if err == nil {
			err = json.Unmarshal(data, &body)
		}
		if err != nil || body == nil {
			return nil, fmt.Errorf("claude-code: %s: the fields are not a JSON object: %w", subtype, err)
		}
	}
	body["subtype"] = encode(subtype, nil)
	return json.Marshal(body)
}

// spawn calls f on a goroutine that end waits for. After end it does nothing.
func (c *channel) spawn(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.wg.Go(f)
	}
}

// waits reports whether a request waits for its answer.
func (c *channel) waits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending) > 0
}

// read handles the CLI's lines until its output ends.
func (c *channel) read(stdout io.Reader) {
	r := jsonl.NewReader(stdout, 0)
	for {
		if c.mayRead != nil {
			c.mayRead()
		}
		line, err := r.Next()
		if err != nil {
			return
		}
		l, err := event.Decode(line.Data, c.streamed)
		if err != nil {
			c.invalid(append(line.Head, line.Data...))
			continue
		}
		c.take(l, len(line.Data))
	}
}

// take handles a line.
func (c *channel) take(l *event.Line, size int) {
	switch {
	case l.Request != nil:
		c.serve(l.Request)
	case l.Response != nil:
		c.mu.Lock()
		p, ok := c.pending[l.Response.RequestID]
		delete(c.pending, l.Response.RequestID)
		c.mu.Unlock()
		if !ok {
			return
		}
		if p.answered != nil {
			p.answered()
		}
		p.reply <- l.Response
	case l.Type == "control_cancel_request":
		c.mu.Lock()
		cancel := c.inbound[l.Cancelled]
		c.mu.Unlock()
		if cancel != nil {
			cancel()
		}
	case l.Type != "keep_alive":
		c.message(l, size)
	}
}

var (
	// errUnknownRequest answers requests that this version does not know.
	errUnknownRequest = errors.New("unsupported control request")
	// errUnanswered leaves a request without an answer.
	errUnanswered = errors.New("not answered")
)

// serve answers a request of the CLI on a goroutine of its own.
func (c *channel) serve(r *event.Request) {
	ctx, cancel := context.WithCancel(c.ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		cancel()
		return
	}
	c.inbound[r.ID] = cancel
	c.wg.Go(func() {
		defer func() {
			cancel()
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.inbound, r.ID)
		}()
		a := &event.Response{Subtype: "success", RequestID: r.ID}
		result, err := c.handle(ctx, r.Subtype, r.Body)
		if errors.Is(err, errUnanswered) {
			return
		}
		if err == nil && result != nil {
			a.Response, err = json.Marshal(result)
		}
		if err != nil {
			a.Subtype, a.Error = "error", err.Error()
			if errors.Is(err, errUnknownRequest) {
				a.ErrorCode = "unsupported_request"
			}
		}
		_ = c.send(c.ctx, &controlLine{Type: "control_response", Response: a}) // it fails if the CLI has ended
	})
}

// end fails all requests and waits for the goroutines.
func (c *channel) end(cause error) {
	c.cancel(cause)
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.wg.Wait()
}
