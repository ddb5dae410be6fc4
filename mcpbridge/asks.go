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

// errNoSend is why the server cannot ask the client anything.
var errNoSend = errors.New("mcpbridge: the client cannot be asked: no Options.Send")

// asks are the requests of the server's own that wait for the client's answer.
type asks struct {
	send func(ctx context.Context, raw json.RawMessage) error
	done chan struct{} // closed by close

	mu      sync.Mutex // guards the rest
	closed  bool
	last    int
	waiting map[string]chan<- *rpcmsg.Message
}

func newAsks(send func(context.Context, json.RawMessage) error) *asks {
	return &asks{send: send, done: make(chan struct{}), waiting: make(map[string]chan<- *rpcmsg.Message)}
}

// ask sends one request and waits for the answer, which it decodes into result.
func (a *asks) ask(ctx context.Context, method string, params, result any) error {
	if a.send == nil {
		return errNoSend
	}
	answer := make(chan *rpcmsg.Message, 1)
	id, err := a.register(answer)
	if err != nil {
		return err
	}
	defer a.forget(id)
	raw, err := encode(&struct {
		JSONRPC string `json:"jsonrpc"`
		ID      string `json:"id"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{"2.0", id, method, params})
	if err != nil {
		return err
	}
	if err := a.send(ctx, raw); err != nil {
		return fmt.Errorf("sending %s: %w", method, err)
	}
	select {
	case m := <-answer:
		return decodeAnswer(method, m, result)
	case <-ctx.Done():
		a.takeBack(ctx, id)
		return context.Cause(ctx)
	case <-a.done:
		return mcpserver.ErrClosed
	}
}

func decodeAnswer(method string, m *rpcmsg.Message, result any) error {
	if m.Error != nil && string(m.Error) != "null" {
		var refused jsonrpc.Error
		if err := json.Unmarshal(m.Error, &refused); err != nil {
			return fmt.Errorf("%s: the client answered with an error that makes no sense: %.200s", method, m.Error)
		}
		return fmt.Errorf("%s: %w", method, &refused)
	}
	if err := json.Unmarshal(m.Result, result); err != nil {
		return fmt.Errorf("%s: decoding the client's answer: %w", method, err)
	}
	return nil
}

// takeBack tells the client that nobody waits for its answer any more. It is a
// courtesy: whether it arrives changes nothing here.
func (a *asks) takeBack(ctx context.Context, id string) {
	raw, err := encodeNotification(notificationCancelled, &mcp.CancelledParams{
		RequestID: id, Reason: context.Cause(ctx).Error(),
	})
	if err == nil {
		_ = a.send(context.WithoutCancel(ctx), raw)
	}
}

func (a *asks) register(answer chan<- *rpcmsg.Message) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return "", mcpserver.ErrClosed
	}
	a.last++
	// A text: no client can take it for one of its own numbers.
	id := "tenon-" + strconv.Itoa(a.last)
	a.waiting[id] = answer
	return id, nil
}

func (a *asks) forget(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, id)
}

// answer hands an answer to the request that waits for it, if there is one. Of
// two answers the first counts.
func (a *asks) answer(m *rpcmsg.Message) bool {
	id, ok := jsonscan.Text(m.ID)
	if !ok {
		return false
	}
	a.mu.Lock()
	waiting := a.waiting[id]
	delete(a.waiting, id)
	a.mu.Unlock()
	if waiting == nil {
		return false
	}
	waiting <- m // never blocks: the channel holds the one answer
	return true
}

func (a *asks) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.closed = true
		close(a.done)
	}
}

// Ping asks the client for a sign of life and waits for it. Any answer counts,
// an error too: a client that does not know ping is there.
func (b *Bridge) Ping(ctx context.Context) error {
	var result json.RawMessage
	err := b.asks.ask(ctx, "ping", nil, &result)
	var refused *jsonrpc.Error
	if errors.As(err, &refused) {
		return nil
	}
	return err
}

// capsOf are the capabilities of the client that ctx's request came from, or of
// the last handshake.
func (b *Bridge) capsOf(ctx context.Context) *mcp.ClientCapabilities {
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
	caps := b.capsOf(ctx).Elicitation
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
	// A client that names no mode supports forms, as before modes existed.
	if params.Mode == "form" && caps.Form == nil && caps.URL != nil || params.Mode == "url" && caps.URL == nil {
		return nil, fmt.Errorf("the client does not support elicitation by %s", params.Mode)
	}
	result := new(mcp.ElicitResult)
	if err := b.asks.ask(ctx, "elicitation/create", &params, result); err != nil {
		return nil, err
	}
	return result, nil
}

func (b *Bridge) sample(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	if b.capsOf(ctx).Sampling == nil {
		return nil, errors.New("the client does not support sampling")
	}
	params := *p
	params.Messages = list(params.Messages)
	result := new(mcp.CreateMessageResult)
	if err := b.asks.ask(ctx, "sampling/createMessage", &params, result); err != nil {
		return nil, err
	}
	return result, nil
}

func (b *Bridge) listRoots(ctx context.Context) ([]*mcp.Root, error) {
	if b.capsOf(ctx).RootsV2 == nil {
		return nil, errors.New("the client does not support roots")
	}
	var result mcp.ListRootsResult
	if err := b.asks.ask(ctx, "roots/list", nil, &result); err != nil {
		return nil, err
	}
	return result.Roots, nil
}
