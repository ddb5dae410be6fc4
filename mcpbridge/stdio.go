package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/tenon-sdk/tenon/internal/jsonl"
	"github.com/tenon-sdk/tenon/internal/rpcmsg"
	"github.com/tenon-sdk/tenon/mcpserver"
)

const (
	// defaultGrace is the default of StdioOptions.Grace.
	defaultGrace = time.Second
	// closeGrace bounds the wait for calls that are being cancelled.
	closeGrace = time.Second
	// maxStdioBytes bounds the requests of one client that have no reply yet.
	maxStdioBytes = 256 << 20
)

// StdioOptions configures [ServeStdio]. The zero value and a nil pointer mean the defaults.
type StdioOptions struct {
	// In and Out are the streams. Nil means the standard input and output of the
	// process. ServeStdio closes neither.
	In  io.Reader
	Out io.Writer
	// MaxLine is the length of the longest message in bytes. The reply to a longer
	// message is an error, and later messages are not affected. Zero means 64 MiB,
	// a negative value no bound.
	MaxLine int
	// MaxRequests bounds the requests without a reply, as [Options.MaxRequests] does.
	MaxRequests int
	// Grace is how long calls may go on after the end of the input, so that
	// requests piped into the program get their replies. Zero means one second, a
	// negative value not at all.
	Grace time.Duration
	// Logger records malformed lines and errors. It must not write to Out. Nil
	// means the logger of the server.
	Logger *slog.Logger
}

// ServeStdio serves s to one client over two streams, one message a line. It blocks
// until the input ends, which is not an error, or ctx ends, whose error it returns.
// Calls that still run then are cancelled.
//
// Lines that are not messages are skipped and logged. The reply to a malformed
// message is an error. ServeStdio writes only messages to the output, and handlers
// must not write to it either.
//
// A client that does not read is not served without bound: beyond
// [StdioOptions.MaxRequests] requests without a reply, or 256 MiB of them, the
// reply to a request is the error -32005, and nothing is read before that reply
// has been written. The bounds of [Bridge.Handle] apply as well.
//
// If ctx ends while ServeStdio reads from In, the goroutine that reads is left
// behind until the read returns.
func ServeStdio(ctx context.Context, s mcpserver.Provider, o *StdioOptions) error {
	if s == nil {
		panic("mcpbridge: ServeStdio without a server")
	}
	opts := o.withDefaults(s)
	serving, cancel := context.WithCancelCause(ctx)
	c := &stdioConn{
		opts: opts, lines: jsonl.NewReader(opts.In, opts.MaxLine),
		writing: make(chan struct{}, 1), done: serving.Done(), fail: cancel,
	}
	c.bridge = New(s, &Options{Send: c.write, MaxRequests: opts.MaxRequests, Logger: opts.Logger, maxBytes: maxStdioBytes})
	ended := make(chan error, 1)
	go func() { ended <- c.serve(serving) }() // ends with the input, or after serving with the next line
	var err error
	select {
	case err = <-ended:
	case <-serving.Done():
		if err = ctx.Err(); err == nil {
			err = context.Cause(serving)
		}
	}
	cancel(nil)
	c.close(ctx)
	return err
}

func (o *StdioOptions) withDefaults(s mcpserver.Provider) StdioOptions {
	var opts StdioOptions
	if o != nil {
		opts = *o
	}
	if opts.In == nil {
		opts.In = os.Stdin
	}
	if opts.Out == nil {
		opts.Out = os.Stdout
	}
	if opts.Grace == 0 {
		opts.Grace = defaultGrace
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
		if logs, ok := s.(interface{ Logger() *slog.Logger }); ok {
			opts.Logger = logs.Logger()
		}
	}
	return opts
}

// A stdioConn serves one client over two streams.
type stdioConn struct {
	opts    StdioOptions
	lines   *jsonl.Reader
	bridge  *Bridge
	writing chan struct{}           // holds a token while a line is written
	done    <-chan struct{}         // closed when the serving ends
	fail    context.CancelCauseFunc // ends the serving

	requests  sync.WaitGroup // exchanges that end by themselves
	listeners sync.WaitGroup // subscriptions/listen requests

	mu     sync.Mutex // guards closed, and requests and listeners against a late start
	closed bool
}

// serve reads lines until the input or ctx ends.
func (c *stdioConn) serve(ctx context.Context) error {
	for {
		line, err := c.lines.Next()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, io.EOF):
			c.drain(ctx)
			return nil
		case err != nil:
			return fmt.Errorf("reading a message: %w", err)
		}
		c.accept(ctx, line)
	}
}

// accept serves one line. It returns when the requests in it have begun, and when
// a reply that needs no waiting has been written: a client that reads no replies
// is not read from.
func (c *stdioConn) accept(ctx context.Context, line jsonl.Line) {
	if line.Oversized() {
		c.opts.Logger.Warn("mcpbridge: message too long", "bytes", line.Size, "limit", c.opts.MaxLine)
		id, _ := rpcmsg.OversizedID(line.Head, line.Tail)
		why := fmt.Sprintf("the message has %d bytes, more than the limit of %d", line.Size, c.opts.MaxLine)
		_ = c.write(ctx, rpcmsg.ErrorReply(id, rpcmsg.InvalidRequest(why)))
		return
	}
	if first := line.Data[0]; first != '{' && first != '[' {
		c.opts.Logger.Warn("mcpbridge: skipping a line that is not a message", "line", fmt.Sprintf("%.120s", line.Data))
		return
	}
	x := c.bridge.accept(ctx, line.Data)
	run := sync.OnceValues(x.run)
	finish := func() {
		defer x.release()
		if reply, err := run(); err == nil && reply != nil {
			_ = c.write(ctx, reply)
		}
	}
	switch method := x.method(); {
	case !x.waits():
		finish()
	case method == methodListen:
		c.start(&c.listeners, finish)
	case method == methodInitialize:
		_, _ = run() // before the next request, which depends on it
		fallthrough
	default:
		c.start(&c.requests, finish)
	}
}

// start calls f on a goroutine of group, unless c is closed.
func (c *stdioConn) start(group *sync.WaitGroup, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		group.Go(f)
	}
}

// drain waits for the requests in flight, for the grace period at most.
func (c *stdioConn) drain(ctx context.Context) {
	if c.opts.Grace < 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.Grace)
	defer cancel()
	if !waitFor(ctx, c.requests.Wait) {
		c.opts.Logger.Warn("mcpbridge: calls still run after the end of the input", "grace", c.opts.Grace)
	}
}

// write writes one message as a line, in one call of Write. It fails once the
// serving has ended. A failure to write ends the serving.
func (c *stdioConn) write(ctx context.Context, raw json.RawMessage) error {
	select {
	case c.writing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.done:
		return mcpserver.ErrClosed
	}
	defer func() { <-c.writing }()
	select {
	case <-c.done:
		return mcpserver.ErrClosed
	default:
	}
	_, err := c.opts.Out.Write(append(raw, '\n'))
	if err != nil {
		err = fmt.Errorf("writing a message: %w", err)
		c.fail(err)
	}
	return err
}

// close cancels the calls that still run and waits for them, for closeGrace at most.
func (c *stdioConn) close(ctx context.Context) {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	if err := c.bridge.Close(); err != nil {
		c.opts.Logger.Warn("mcpbridge: closing the session", "error", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
	defer cancel()
	waitFor(ctx, func() {
		c.requests.Wait()
		c.listeners.Wait()
	})
}

// waitFor calls wait and reports whether it returned before ctx ended.
func waitFor(ctx context.Context, wait func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait()
	}()
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
