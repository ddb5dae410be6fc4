package mcphost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenon-sdk/tenon/internal/jsonl"
	"github.com/tenon-sdk/tenon/internal/subproc"
)

// exitWait is how long a child whose stdout ended has to end itself, so that
// its exit code and the last of its stderr can be told.
const exitWait = 250 * time.Millisecond

// lastWait is how long the rest of the stdout of a child that ended is read. It has
// an end sooner, see [subproc.Proc], if nothing holds up the reader.
const lastWait = 3 * time.Second

// A stdioCarrier is a child process and the two goroutines that move messages
// to and from it.
type stdioCarrier struct {
	proc    *subproc.Proc
	wire    *wire
	limit   int
	wg      sync.WaitGroup
	write   chan *writing
	closing func() error
}

// A writing is a message on its way to the goroutine that writes.
type writing struct {
	data   []byte
	unsent bool // nothing of data was written; valid once done has received
	done   chan error
}

// startStdio starts the child of a configuration.
func startStdio(ctx context.Context, c Stdio, o *Options, onStderr func(string)) (*subproc.Proc, error) {
	dir := c.Dir
	if dir == "" {
		dir = o.Dir
	}
	return subproc.Start(ctx, subproc.Options{
		Command:  c.Command,
		Args:     c.Args,
		Env:      childEnv(c, o.lookupEnv),
		Dir:      dir,
		Grace:    o.CloseGrace,
		OnStderr: onStderr,
	})
}

// childEnv is the parent's environment, without the credentials of the model, with
// the entry's on top, or the entry's alone. lookup says where the model is.
func childEnv(c Stdio, lookup func(string) (string, bool)) []string {
	env := []string{} // not nil: that would mean the parent's
	if !c.CleanEnv {
		env = slices.DeleteFunc(os.Environ(), func(kv string) bool {
			name, _, _ := strings.Cut(kv, "=")
			return IsModelCredential(name, lookup)
		})
	}
	for k, v := range c.Env {
		env = append(env, k+"="+v) // of two with one name the last counts
	}
	return env
}

func newStdioCarrier(proc *subproc.Proc, w *wire, limit int) *stdioCarrier {
	c := &stdioCarrier{proc: proc, wire: w, limit: limit, write: make(chan *writing)}
	c.closing = sync.OnceValue(c.shutdown)
	c.wg.Go(c.reader)
	c.wg.Go(c.writer)
	return c
}

// send hands a message to the writing goroutine, so that a child that does not
// read holds up nobody beyond ctx. From then on the child may receive the message,
// whether or not the caller waits for that.
func (c *stdioCarrier) send(ctx context.Context, m *outgoing) error {
	w := &writing{data: append(m.data, '\n'), done: make(chan error, 1)}
	select {
	case c.write <- w:
	case <-c.wire.done:
		return c.wire.err
	case <-ctx.Done():
		return ctx.Err()
	}
	if m.call != nil {
		m.call.sent.Store(true)
	}
	select {
	case err := <-w.done:
		m.unsentIf(w.unsent)
		return err
	case <-c.wire.done:
		return c.wire.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *stdioCarrier) writer() {
	for {
		select {
		case w := <-c.write:
			n, err := c.proc.Stdin.Write(w.data)
			if err != nil {
				err = fmt.Errorf("writing to the server: %w", plain(err))
				w.unsent = n == 0
				w.done <- fmt.Errorf("%w: %w", ErrConnectionLost, err)
				c.deaf(err)
				return
			}
			w.done <- nil
		case <-c.wire.done:
			return
		}
	}
}

func (c *stdioCarrier) reader() {
	r := jsonl.NewReader(c.proc.Reader(), c.limit)
	for {
		line, err := r.Next()
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) {
				err = errors.New("the server closed its stdout")
			}
			c.gone(err)
			return
		}
		switch {
		case line.Oversized():
			c.wire.oversized(line, c.limit)
		case !c.wire.receive(line.Data):
			c.wire.noise(line.Data)
		}
	}
}

// deaf ends the wire of a child that does not read any more. If the child ended,
// the reader does that when it has read what is left in the pipe, answers maybe.
// But a child may close its stdin and live on.
func (c *stdioCarrier) deaf(err error) {
	t := time.NewTimer(exitWait)
	defer t.Stop()
	select {
	case <-c.proc.Exited():
		t.Reset(lastWait)
		select {
		case <-t.C:
		case <-c.wire.done:
		}
	case <-t.C:
	case <-c.wire.done:
	}
	c.wire.broken(err) // unless it is already
}

// gone ends the wire with the reason that the process gives, if it ended.
func (c *stdioCarrier) gone(err error) {
	t := time.NewTimer(exitWait)
	defer t.Stop()
	select {
	case <-c.proc.Exited():
		err = fmt.Errorf("the server process %v", c.proc.Exit())
	case <-t.C:
	case <-c.wire.done:
	}
	c.wire.broken(err)
}

func (c *stdioCarrier) close() error { return c.closing() }

func (c *stdioCarrier) shutdown() error {
	c.wire.end(io.EOF)
	err := c.proc.Close()
	c.wg.Wait()
	return err
}

// plain drops the file's name from an error of reading or writing a pipe.
func plain(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
