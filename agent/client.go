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

// A Client is a conversation of many turns. Close it when done with it.
//
// All methods are safe for concurrent use. [Client.Messages] and [Client.Response] share one
// stream of messages, which one loop at a time reads.
type Client struct {
	session Session
	reading sync.Mutex // held by the loop that reads
}

// Open starts a conversation. ctx bounds the opening only. o may be nil.
func Open(ctx context.Context, e Engine, o *Options) (*Client, error) {
	s, err := openSession(ctx, e, o)
	if err != nil {
		return nil, err
	}
	return &Client{session: s}, nil
}

// Send says something. It does not wait for the answer. What is said while a turn runs becomes
// part of that turn if the model will still be asked again in it, and else starts the next one.
// An input with nothing in it is refused with [ErrEmptyInput], one too many with [ErrTooManyInputs].
func (c *Client) Send(ctx context.Context, text string) error {
	return send(ctx, c.session, Text(text))
}

// SendInput is [Client.Send] with an input that need not be plain text.
func (c *Client) SendInput(ctx context.Context, in *Input) error {
	return send(ctx, c.session, in)
}

// EndInput says that nothing will follow: the stream of messages ends when all is answered.
func (c *Client) EndInput() error { return c.session.EndInput() }

// errReading reports a second loop over the same stream.
var errReading = errors.New("agent: another loop is reading this client's messages: read from one place, or wait until that loop has ended")

// Messages yields every message of all turns until the conversation ends, by [Client.EndInput] or
// [Client.Close]. An error is the last value. Leaving the loop stops nothing: a later loop goes on
// where it stopped. An error result is a message like any other: see [Result.Err].
func (c *Client) Messages(ctx context.Context) iter.Seq2[Message, error] {
	return c.read(ctx, func(Message) bool { return false })
}

// Response yields the messages up to and including the next result. It is [Client.Messages] for one answer.
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

// Interrupt stops the running turn. It ends with an error result that matches [ErrInterrupted],
// and the conversation can go on. Without a running turn it does nothing.
func (c *Client) Interrupt(ctx context.Context) error { return c.session.Interrupt(ctx) }

// SetModel changes the model from the next request on. Empty means the engine's default.
func (c *Client) SetModel(ctx context.Context, model string) error {
	return c.session.SetModel(ctx, model)
}

// SetPermissionMode changes the permission mode from the next decision on.
func (c *Client) SetPermissionMode(ctx context.Context, mode permission.Mode) error {
	mode, err := permission.ParseMode(string(mode))
	if err != nil {
		return err
	}
	return c.session.SetPermissionMode(ctx, mode)
}

// ContextUsage says what fills the model's context window: the system prompt, the tools of each
// server, the conversation. It can be asked for at any time, while a turn runs too.
func (c *Client) ContextUsage(ctx context.Context) (*ContextUsage, error) {
	return c.session.ContextUsage(ctx)
}

// MCPStatus returns the state of every server, in the order of their names.
func (c *Client) MCPStatus(ctx context.Context) ([]mcphost.ServerStatus, error) {
	return c.session.MCPStatus(ctx)
}

// ReconnectMCPServer makes one attempt to connect a server now, in any state, and returns its error.
func (c *Client) ReconnectMCPServer(ctx context.Context, name string) error {
	return c.session.ReconnectMCPServer(ctx, name)
}

// SetMCPServerEnabled disconnects a server and takes its tools away, or connects it again.
func (c *Client) SetMCPServerEnabled(ctx context.Context, name string, on bool) error {
	return c.session.SetMCPServerEnabled(ctx, name, on)
}

// SetMCPServers replaces the conversation's servers. Servers whose configuration did not change stay connected.
func (c *Client) SetMCPServers(ctx context.Context, servers map[string]mcphost.ServerConfig) (mcphost.SetResult, error) {
	return c.session.SetMCPServers(ctx, servers)
}

// Session returns the session beneath, for what one engine offers beyond the contract. Whoever
// receives from it takes the messages of this client's loops.
func (c *Client) Session() Session { return c.session }

// Close stops whatever runs and frees everything. It may be called more than once and from any
// goroutine; its wait is bounded. A loop that is reading ends.
func (c *Client) Close() error { return c.session.Close() }
