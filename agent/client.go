package agent

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"

	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

// A Client is a conversation of many turns. The caller must close it. All methods are safe for
// concurrent use. [Client.Messages] and [Client.Response] read the same stream of messages, one loop at
// a time.
type Client struct {
	session Session
	reading sync.Mutex // held by a loop over the messages
}

// Open starts a conversation. ctx bounds the opening only. o may be nil.
func Open(ctx context.Context, e Engine, o *Options) (*Client, error) {
	s, err := openSession(ctx, e, o)
	if err != nil {
		return nil, err
	}
	return &Client{session: s}, nil
}

// Send queues a text as an input. It does not wait for the answer. An input that arrives during a turn
// joins that turn if it makes another model request, and otherwise starts the next turn. The error may
// be [ErrEmptyInput] or [ErrTooManyInputs].
func (c *Client) Send(ctx context.Context, text string) error {
	return send(ctx, c.session, Text(text))
}

// SendInput is [Client.Send] with an [Input].
func (c *Client) SendInput(ctx context.Context, in *Input) error {
	return send(ctx, c.session, in)
}

// EndInput announces that no input follows. The messages end when all inputs are answered.
func (c *Client) EndInput() error { return c.session.EndInput() }

var errReading = errors.New("agent: another loop is reading this client's messages: read from one place, or wait until that loop has ended")

// Messages yields the messages of all turns until the conversation ends by [Client.EndInput] or
// [Client.Close]. An error is the last value. Leaving the loop does not stop the work: a later loop
// continues with the next message. An error result is a message, not an error; see [Result.Err].
func (c *Client) Messages(ctx context.Context) iter.Seq2[Message, error] {
	return c.read(ctx, func(Message) bool { return false })
}

// Response is [Client.Messages] up to the next result.
func (c *Client) Response(ctx context.Context) iter.Seq2[Message, error] {
	return c.read(ctx, func(m Message) bool {
		_, ok := m.(*Result)
		return ok
	})
}

func (c *Client) read(ctx context.Context, last func(Message) bool) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		if !c.reading.TryLock() {
			yield(nil, errReading)
			return
		}
		defer c.reading.Unlock()
		for {
			m, err := c.session.Receive(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(m, nil) || last(m) {
				return
			}
		}
	}
}

// Interrupt stops the running turn, which ends with an error result that matches [ErrInterrupted].
// Without a running turn, Interrupt does nothing.
func (c *Client) Interrupt(ctx context.Context) error { return c.session.Interrupt(ctx) }

// SetModel changes the model for the following requests. Empty means the engine's default.
func (c *Client) SetModel(ctx context.Context, model string) error {
	return c.session.SetModel(ctx, model)
}

// SetPermissionMode changes the permission mode for the following decisions.
func (c *Client) SetPermissionMode(ctx context.Context, mode permission.Mode) error {
	mode, err := permission.ParseMode(string(mode))
	if err != nil {
		return err
	}
	return c.session.SetPermissionMode(ctx, mode)
}

// ContextUsage returns what fills the model's context window: the system prompt, the tools of each
// server, the conversation. It may be called during a turn.
func (c *Client) ContextUsage(ctx context.Context) (*ContextUsage, error) {
	return c.session.ContextUsage(ctx)
}

// MCPStatus returns the state of each server, in the order of their names.
func (c *Client) MCPStatus(ctx context.Context) ([]mcphost.ServerStatus, error) {
	return c.session.MCPStatus(ctx)
}

// ReconnectMCPServer tries once to connect a server, in any state, and returns the error.
func (c *Client) ReconnectMCPServer(ctx context.Context, name string) error {
	return c.session.ReconnectMCPServer(ctx, name)
}

// SetMCPServerEnabled connects a server, or disconnects it and removes its tools.
func (c *Client) SetMCPServerEnabled(ctx context.Context, name string, on bool) error {
	return c.session.SetMCPServerEnabled(ctx, name, on)
}

// SetMCPServers replaces the conversation's servers. Servers whose configuration does not change stay
// connected.
func (c *Client) SetMCPServers(ctx context.Context, servers map[string]mcphost.ServerConfig) (mcphost.SetResult, error) {
	return c.session.SetMCPServers(ctx, servers)
}

// Session returns the engine's session, for methods that only this engine has. A call of its Receive
// takes a message away from the client's loops.
func (c *Client) Session() Session { return c.session }

// Close stops the running work, waits for its end within a bound, and releases all resources. It may be
// called more than once. A running loop over the messages ends.
func (c *Client) Close() error { return c.session.Close() }
