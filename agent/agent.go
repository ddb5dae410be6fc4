// Package agent is the interface between a Go program and an agent, independent of the engine that runs
// the agent.
//
// The program sends an input. A model answers it and calls the program's tools on the way. [Query] is
// the form for one input:
//
//	for msg, err := range agent.Query(ctx, native.New(nil), "How many of AB-00017 are left?", opts) {
//		if err != nil {
//			return err
//		}
//		switch m := msg.(type) {
//		case *agent.Assistant:
//			fmt.Println(m.Text())
//		case *agent.Result:
//			fmt.Println(m.Result, m.TotalCostUSD)
//		}
//	}
//
// Leaving the loop stops the work. [Open] returns a [Client] for conversations of many turns.
//
// The output is a stream of [Message] values. Their JSON form is the Claude Code CLI's stream-json
// output. The caller passes an engine: package engine/native runs the agent in this process, package
// engine/claudecode in the Claude Code CLI.
//
// A failed tool call is a result for the model, and a server that cannot connect is an entry of
// [SystemInit]. Neither is an error. Errors end the session or the turn: see [ResultError],
// [OptionError] and the Err variables.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

// An Engine runs agents. The packages below engine/ implement it. An Engine is safe for concurrent use
// and holds no conversation.
type Engine interface {
	// Name is the engine's name in errors, such as "native".
	Name() string
	// Open starts a session. ctx bounds the opening only. [Open] and [Query] pass a validated copy of the
	// options with the defaults filled in. Options that the engine cannot honour are an
	// *[UnsupportedError].
	Open(ctx context.Context, o *Options) (Session, error)
}

// A Session is a conversation on an engine. All methods are safe for concurrent use, except that
// one Receive runs at a time. After Close, the methods return [ErrClosed], and Close returns nil.
//
// A session pauses after a bounded number of messages that are not received. The other methods still
// work.
type Session interface {
	// Send queues an input. It does not wait for the turn. An input that arrives during a turn joins that
	// turn if it makes another model request, and otherwise starts the next turn.
	Send(ctx context.Context, in *Input) error
	// Receive returns the next message. It returns io.EOF after EndInput when all inputs are answered.
	// Any other error, except that of ctx, ends the session.
	Receive(ctx context.Context) (Message, error)
	// EndInput announces that no input follows. The session ends when all inputs are answered.
	EndInput() error
	// Interrupt stops the running turn, which then ends with an error result that matches
	// [ErrInterrupted]. The session continues with the next input. Without a running turn, Interrupt does
	// nothing.
	Interrupt(ctx context.Context) error
	// SetModel changes the model for the following requests. Empty means the engine's default.
	SetModel(ctx context.Context, model string) error
	// SetPermissionMode changes the mode for the following decisions.
	SetPermissionMode(ctx context.Context, mode permission.Mode) error
	// ContextUsage returns what fills the model's context window.
	ContextUsage(ctx context.Context) (*ContextUsage, error)
	// MCPStatus returns the state of each server, in the order of their names.
	MCPStatus(ctx context.Context) ([]mcphost.ServerStatus, error)
	// ReconnectMCPServer tries once to connect a server, in any state, and returns the error.
	ReconnectMCPServer(ctx context.Context, name string) error
	// SetMCPServerEnabled connects a server, or disconnects it and removes its tools.
	SetMCPServerEnabled(ctx context.Context, name string, on bool) error
	// SetMCPServers replaces the session's servers.
	SetMCPServers(ctx context.Context, servers map[string]mcphost.ServerConfig) (mcphost.SetResult, error)
	// Close stops the running work, waits for its end within a bound, and releases all resources.
	Close() error
}

// An Input is an input of the user.
type Input struct {
	// Content holds text, images, or any other blocks that the Messages API accepts from a user.
	Content Content
	// UUID identifies the input in [Result.UserMessageUUIDs]. It may be empty.
	UUID string
}

// Text returns an input of one text.
func Text(text string) *Input { return &Input{Content: TextContent(text)} }

// ErrEmptyInput is the error of an input that is nil, has a nil block, or has only blank texts.
var ErrEmptyInput = errors.New("agent: the input is empty: give it a text that is more than white space, or another block")

func (in *Input) check() error {
	if in == nil {
		return ErrEmptyInput
	}
	empty := true
	for i, b := range in.Content {
		if isNil(b) {
			return fmt.Errorf("%w (block %d of %d is nil)", ErrEmptyInput, i, len(in.Content))
		}
		t, ok := b.(*TextBlock)
		empty = empty && ok && strings.TrimSpace(t.Text) == ""
	}
	if empty {
		return ErrEmptyInput
	}
	return nil
}

func send(ctx context.Context, s Session, in *Input) error {
	if err := in.check(); err != nil {
		return err
	}
	return s.Send(ctx, in)
}

// Query sends a prompt and yields the messages of the session: first a *[SystemInit], last a *[Result].
//
// An error is the last value. After an error result, Query yields a *[ResultError]. If the engine cannot
// be started or reached, Query yields the error only. Leaving the loop, or the end of ctx, stops the
// work; Query waits for it. o may be nil.
func Query(ctx context.Context, e Engine, prompt string, o *Options) iter.Seq2[Message, error] {
	return QueryInput(ctx, e, Text(prompt), o)
}

// QueryInput is [Query] with an [Input].
func QueryInput(ctx context.Context, e Engine, in *Input, o *Options) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		s, err := openSession(ctx, e, o)
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = s.Close() }()
		if err = send(ctx, s, in); err == nil {
			err = s.EndInput()
		}
		if err != nil {
			yield(nil, err)
			return
		}
		relay(ctx, s, yield)
	}
}

// relay yields the messages of s until it ends. The last result decides whether the session failed.
func relay(ctx context.Context, s Session, yield func(Message, error) bool) {
	var last *Result
	for {
		m, err := s.Receive(ctx)
		switch {
		case errors.Is(err, io.EOF) && last == nil:
			yield(nil, ErrNoResult)
			return
		case errors.Is(err, io.EOF):
			if err := last.Err(); err != nil {
				yield(nil, err)
			}
			return
		case err != nil:
			yield(nil, err)
			return
		}
		if !yield(m, nil) {
			return
		}
		if r, ok := m.(*Result); ok {
			last = r
		}
	}
}

func openSession(ctx context.Context, e Engine, o *Options) (Session, error) {
	if e == nil {
		return nil, errors.New("agent: no engine: pass one, such as native.New(nil)")
	}
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if opts.Host != nil && opts.Host.Closed() {
		return nil, fmt.Errorf("agent: Options.Host: %w", mcphost.ErrClosed)
	}
	return e.Open(ctx, &opts)
}
