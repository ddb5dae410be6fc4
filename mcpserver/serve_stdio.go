package mcpserver

import (
	"context"
	"io"
	"log/slog"
	"os"
	"time"
)

// defaultStdioGrace is how long calls may go on after the end of the input.
const defaultStdioGrace = time.Second

// StdioOptions configures [ServeStdio]. The zero value, like a nil pointer, means
// the defaults.
type StdioOptions struct {
	// In and Out are the streams; nil means the process's standard input and
	// output. ServeStdio closes neither.
	In  io.Reader
	Out io.Writer
	// MaxLine is the longest message in bytes. A longer one is answered with an
	// error and costs nothing else. Zero means 64 MiB, a negative value no bound.
	MaxLine int
	// Grace is how long calls may go on after the input has ended, so that
	// requests piped into the program are answered. Zero means one second, a
	// negative value not at all.
	Grace time.Duration
	// Logger hears of lines that are no messages and of errors. If nil, the
	// server's logger does. It must not write to Out.
	Logger *slog.Logger
}

// ServeStdio serves s to one client over two streams, a message a line. It blocks
// until the input ends, which is no error, or ctx does, whose error it returns.
// Calls that still run then are cancelled.
//
// Lines that are no messages are passed over, so noise on the input harms
// nobody; a message that makes no sense is answered with an error. Nothing but
// messages is written to the output, and handlers must not print to it either.
//
// A client that does not read its answers is not read from for ever: beyond
// [Options.MaxCalls] requests without an answer, or 256 MiB of them, a request is
// answered with the error -32005, and nothing is read before that has been written.
// An id has at most 4,096 bytes, params and a batch have at most 1,000 entries.
//
// When ctx ends while a read from In is waiting, the goroutine that waits is left
// behind until that read returns: a process that reads its standard input ends
// it by exiting.
func ServeStdio(ctx context.Context, s *Server, o *StdioOptions) error {
	opts := stdioDefaults(s, o)
	f := newFace(s)
	defer f.close()
	conn := newStdioConn(&opts, s.opts.MaxCalls)
	session, err := f.lib.Connect(ctx, conn, nil)
	if err != nil {
		return err
	}
	go conn.readLines() // ends with the input, or with conn
	ended := make(chan struct{})
	go func() { // ends with the session
		defer close(ended)
		err = session.Wait()
	}()
	select {
	case <-ended:
		_ = conn.Close()
		f.close()
		waitFor(closeGrace, f.wg.Wait)
		return err
	case <-ctx.Done():
		_ = conn.Close() // ends the session: its reader sees the end
		f.close()        // ends its calls
		waitFor(closeGrace, func() {
			<-ended
			f.wg.Wait()
		})
		return ctx.Err()
	}
}

func stdioDefaults(s *Server, o *StdioOptions) StdioOptions {
	if s == nil {
		panic("mcpserver: ServeStdio without a server")
	}
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
		opts.Grace = defaultStdioGrace
	}
	if opts.Logger == nil {
		opts.Logger = s.logger
	}
	return opts
}

// waitFor runs wait and returns when it does, or after the limit: then something
// hangs that is not ours, and is left behind.
func waitFor(limit time.Duration, wait func()) {
	done := make(chan struct{})
	go func() {
		wait()
		close(done)
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}
