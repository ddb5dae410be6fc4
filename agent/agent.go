// Package agent is what a Go program says to an agent and hears from it, whichever engine runs it.
//
// A program asks a question, a model answers it, and on the way it calls the tools that the
// program gives it. [Query] is the one-shot form:
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
// Leaving the loop stops the work. [Open] gives a [Client] for conversations of many turns.
//
// What is said is a stream of [Message] values whose JSON form is that of the Claude Code CLI's
// stream-json output. The engine is a value that the caller passes in: package engine/native runs
// the loop in this process, and this package imports no engine.
//
// A tool's failure is a result that the model reads; a server that cannot connect is a row in
// [SystemInit]; neither ends a run. Errors are for what does: see [ResultError], [OptionError] and
// the Err variables.
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

// An Engine runs agents. It is implemented by the packages under engine/; the tests in
// engine/enginetest hold for each. An Engine is safe for concurrent use and holds no conversation.
type Engine interface {
	// Name is the engine's name in errors, such as "native".
	Name() string
	// Open starts a session. ctx bounds the opening only; the session lives until its Close.
	// The options come from [Open] or [Query]: checked, completed, and the engine's own. Options
	// that the engine cannot honour are an *UnsupportedError, never ignored.
	Open(ctx context.Context, o *Options) (Session, error)
}

// A Session is a conversation on an engine. All methods are safe for concurrent use, except that
// one Receive runs at a time. After Close each returns [ErrClosed] (Close itself returns nil).
//
// A session whose messages nobody receives pauses after a bounded number of them; the control
// methods work all the same.
type Session interface {
	// Send gives the session an input. It does not wait for the turn. An input that arrives while
	// a turn runs becomes part of that turn if the model will still be asked again in it, and else
	// starts the next turn.
	Send(ctx context.Context, in *Input) error
	// Receive returns the next message. It returns io.EOF after EndInput when all inputs are
	// answered. Any other error but that of ctx ends the session.
	Receive(ctx context.Context) (Message, error)
	// EndInput says that no input will follow. The session then ends by itself.
	EndInput() error
	// Interrupt stops the running turn, which then ends with an error result that matches
	// [ErrInterrupted]; the session goes on with the next input. Without a running turn it does nothing.
	Interrupt(ctx context.Context) error
	// SetModel changes the model from the next request on. Empty means the engine's default.
	SetModel(ctx context.Context, model string) error
	// SetPermissionMode changes the mode from the next decision on.
	SetPermissionMode(ctx context.Context, mode permission.Mode) error
	// ContextUsage says what fills the model's context window.
	ContextUsage(ctx context.Context) (*ContextUsage, error)
	// MCPStatus returns the state of every server, in the order of their names.
	MCPStatus(ctx context.Context) ([]mcphost.ServerStatus, error)
	// ReconnectMCPServer makes one attempt to connect a server, in any state, and returns its error.
	ReconnectMCPServer(ctx context.Context, name string) error
	// SetMCPServerEnabled disconnects a server and takes its tools away, or connects it again.
	SetMCPServerEnabled(ctx context.Context, name string, on bool) error
	// SetMCPServers replaces the session's servers.
	SetMCPServers(ctx context.Context, servers map[string]mcphost.ServerConfig) (mcphost.SetResult, error)
	// Close stops whatever runs and frees everything. It is idempotent, waits until the work has
	// stopped, and its wait is bounded.
	Close() error
}

// An Input is what a user says.
type Input struct {
	// Content is the input's blocks: text, images, or anything else that the Messages API takes
	// from a user. See [Text].
	Content Content
	// UUID identifies the input in [Result.UserMessageUUIDs]. Empty means that it is not listed there.
	UUID string
}

// Text returns an input that is one text.
func Text(text string) *Input { return &Input{Content: TextContent(text)} }

// ErrEmptyInput is matched by the error of an input without anything in it: nil, without blocks, or with
// nothing but nil blocks and blank texts. The Messages API takes no message without content.
var ErrEmptyInput = errors.New("agent: the input is empty: give it a text that is more than white space, or another block")

// check refuses what no engine can send to a model.
func (in *Input) check() error {
	if in == nil {
		return ErrEmptyInput
	}
	empty := true
	for i, b := range in.Content {
		if isNilBlock(b) {
			return fmt.Errorf("%w (block %d of %d is nil)", ErrEmptyInput, i, len(in.Content))
		}
		if t, ok := b.(*TextBlock); !ok || strings.TrimSpace(t.Text) != "" {
			empty = false
		}
	}
	if empty {
		return ErrEmptyInput
	}
	return nil
}

// isNilBlock reports whether a block is nil, or a nil pointer of one of the kinds.
func isNilBlock(b Block) bool {
	switch b := b.(type) {
	case nil:
		return true
	case *TextBlock:
		return b == nil
	case *ThinkingBlock:
		return b == nil
	case *ToolUseBlock:
		return b == nil
	case *ToolResultBlock:
		return b == nil
	case *ImageBlock:
		return b == nil
	case *UnknownBlock:
		return b == nil
	}
	return false
}

// send hands an input to a session once it is known to have something in it.
func send(ctx context.Context, s Session, in *Input) error {
	if err := in.check(); err != nil {
		return err
	}
	return s.Send(ctx, in)
}

// Query asks one question and yields everything that happens until it is answered: first a
// *SystemInit, last a *Result.
//
// The first error is the last value. If the run ended with an error result, the result is
// yielded and then a *ResultError. If the engine could not be started or reached there is only
// the error. A server that cannot connect is not an error. Leaving the loop, or ending ctx, stops
// the work, and Query waits for that. o may be nil.
func Query(ctx context.Context, e Engine, prompt string, o *Options) iter.Seq2[Message, error] {
	return QueryInput(ctx, e, Text(prompt), o)
}

// QueryInput is [Query] with an input that need not be plain text.
func QueryInput(ctx context.Context, e Engine, in *Input, o *Options) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		s, err := openSession(ctx, e, o)
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = s.Close() }()
		if err := ask(ctx, s, in); err != nil {
			yield(nil, err)
			return
		}
		relay(ctx, s, yield)
	}
}

func ask(ctx context.Context, s Session, in *Input) error {
	if err := send(ctx, s, in); err != nil {
		return err
	}
	return s.EndInput()
}

// relay yields the messages of s until it ends. The last result decides how the run went.
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
