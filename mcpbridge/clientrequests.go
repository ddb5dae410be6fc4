package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/jsonscan"
	"github.com/tenon-sdk/tenon/internal/rpcmsg"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// errNoSend reports that the bridge has no way to send requests to the client.
var errNoSend = errors.New("mcpbridge: the client cannot receive requests: Options.Send is nil")

// clientRequests holds the server's requests that wait for the client's answer.
type clientRequests struct {
	send func(ctx context.Context, raw json.RawMessage) error
	done chan struct{} // closed by close

	mu      sync.Mutex // guards the rest
	closed  bool
	last    int
	waiting map[string]chan<- *rpcmsg.Message
}

func newClientRequests(send func(context.Context, json.RawMessage) error) *clientRequests {
	return &clientRequests{send: send, done: make(chan struct{}), waiting: make(map[string]chan<- *rpcmsg.Message)}
}

// call sends one request and decodes the answer into result.
func (q *clientRequests) call(ctx context.Context, method string, params, result any) error {
	if q.send == nil {
		return errNoSend
	}
	answer := make(chan *rpcmsg.Message, 1)
	id, err := q.register(answer)
	if err != nil {
		return err
	}
	defer q.remove(id)
	raw, err := encode(&struct {
		JSONRPC string `json:"jsonrpc"`
		ID      string `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{"2.0", id, method, params})
	if err != nil {
		return err
	}
	if err := q.send(ctx, raw); err != nil {
		return fmt.Errorf("sending %s: %w", method, err)
	}
	select {
	case m := <-answer:
		return decodeAnswer(method, m, result)
	case <-ctx.Done():
		q.cancel(ctx, id)
		return context.Cause(ctx)
	case <-q.done:
		return mcpserver.ErrClosed
	}
}

func decodeAnswer(method string, m *rpcmsg.Message, result any) error {
	if m.Error != nil && string(m.Error) != "null" {
		var refused jsonrpc.Error
		if err := json.Unmarshal(m.Error, &refused); err != nil {
			return fmt.Errorf("%s: the client answered with an error that cannot be decoded: %.200s", method, m.Error)
		}
		return fmt.Errorf("%s: %w", method, &refused)
	}
	if err := json.Unmarshal(m.Result, result); err != nil {
		return fmt.Errorf("%s: decoding the client's answer: %w", method, err)
	}
	return nil
}

// cancel tells the client that its answer is no longer needed. A failure to send
// that changes nothing here.
func (q *clientRequests) cancel(ctx context.Context, id string) {
	raw, err := encodeNotification(notificationCancelled, &mcp.CancelledParams{
		RequestID: id, Reason: context.Cause(ctx).Error(),
	})
	if err == nil {
		_ = q.send(context.WithoutCancel(ctx), raw)
	}
}

func (q *clientRequests) register(answer chan<- *rpcmsg.Message) (string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return "", mcpserver.ErrClosed
	}
	q.last++
	id := "tenon-" + strconv.Itoa(q.last) // a string: clients count in numbers
	q.waiting[id] = answer
	return id, nil
}

func (q *clientRequests) remove(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.waiting, id)
}

// answer delivers an answer and reports whether a request waits for it. Only the
// first of several answers is delivered.
func (q *clientRequests) answer(m *rpcmsg.Message) bool {
	id, ok := jsonscan.Text(m.ID)
	if !ok {
		return false
	}
	q.mu.Lock()
	waiting := q.waiting[id]
	delete(q.waiting, id)
	q.mu.Unlock()
	if waiting == nil {
		return false
	}
	waiting <- m // never blocks: the channel holds the one answer
	return true
}

func (q *clientRequests) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.done)
	}
}

// Ping sends a ping to the client and waits for the answer. An error is an answer
// too: it comes from a client that does not know ping.
func (b *Bridge) Ping(ctx context.Context) error {
	var result json.RawMessage
	err := b.clientRequests.call(ctx, "ping", nil, &result)
	var refused *jsonrpc.Error
	if errors.As(err, &refused) {
		return nil
	}
	return err
}

// clientCapabilities returns the capabilities that the request of ctx names, else
// those of the last handshake.
func (b *Bridge) clientCapabilities(ctx context.Context) *mcp.ClientCapabilities {
	if r := requestFrom(ctx); r != nil && r.client.caps != nil {
		return r.client.caps
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.client.caps == nil {
		return &mcp.ClientCapabilities{}
	}
	return b.client.caps
}

func (b *Bridge) elicit(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	caps := b.clientCapabilities(ctx).Elicitation
	if caps == nil {
		return nil, errors.New("the client does not support elicitation")
	}
	params := *p
	if params.Mode == "" {
		params.Mode = "form"
		if p.URL != "" || p.ElicitationID != "" {
			params.Mode = "url"
		}
	}
	// A client that names no mode supports forms: it is older than the modes.
	if params.Mode == "form" && caps.Form == nil && caps.URL != nil || params.Mode == "url" && caps.URL == nil {
		return nil, fmt.Errorf("the client does not support elicitation by %s", params.Mode)
	}
	result := new(mcp.ElicitResult)
	return result, b.clientRequests.call(ctx, "elicitation/create", &params, result)
}

func (b *Bridge) sample(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	if b.clientCapabilities(ctx).Sampling == nil {
		return nil, errors.New("the client does not support sampling")
	}
	params := *p
	params.Messages = array(params.Messages)
	result := new(mcp.CreateMessageResult)
	return result, b.clientRequests.call(ctx, "sampling/createMessage", &params, result)
}

func (b *Bridge) listRoots(ctx context.Context) ([]*mcp.Root, error) {
	if b.clientCapabilities(ctx).RootsV2 == nil {
		return nil, errors.New("the client does not support roots")
	}
	var result mcp.ListRootsResult
	err := b.clientRequests.call(ctx, "roots/list", nil, &result)
	return result.Roots, err
}
