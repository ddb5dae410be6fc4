package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tenon-sdk/tenon/internal/jsonl"
	"github.com/tenon-sdk/tenon/internal/subproc"
)

const (
	// ExitWait is how long a process whose stdout ended has to exit, so that its exit code and the
	// end of its stderr are known.
	ExitWait = 250 * time.Millisecond
	// lastWait is how long the rest of the stdout of a process that exited is read. It ends sooner
	// unless something holds up the reader: see [subproc.Proc].
	lastWait = 3 * time.Second
)

// A stdioConn is a connection to a child process, with a goroutine for each direction.
type stdioConn struct {
	c     *Client
	proc  *subproc.Proc
	write chan *writing
}

// A writing is a message for the goroutine that writes.
type writing struct {
	data   []byte
	unsent bool // no byte of data was written; valid once done has received
	done   chan error
}

// Stdio returns a client of a process that speaks MCP on its stdin and stdout. The client closes
// the process.
func Stdio(ctx context.Context, proc *subproc.Proc, o *Options) *Client {
	c := newClient(ctx, o)
	s := &stdioConn{c: c, proc: proc, write: make(chan *writing)}
	c.conn = s
	c.spawn(s.reader)
	c.spawn(s.writer)
	return c
}

// send implements connection. The message is written by another goroutine, so that a process that
// does not read holds up no caller beyond ctx. From then on the process may receive the message,
// whether or not the caller waits.
func (s *stdioConn) send(ctx context.Context, m *message) error {
	w := &writing{data: append(m.data, '\n'), done: make(chan error, 1)}
	select {
	case s.write <- w:
	case <-s.c.done:
		return s.c.err
	case <-ctx.Done():
		return ctx.Err()
	}
	m.sent.Store(true)
	select {
	case err := <-w.done:
		m.notSentIf(w.unsent)
		return err
	case <-s.c.done:
		return s.c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *stdioConn) writer() {
	for {
		select {
		case w := <-s.write:
			n, err := s.proc.Stdin.Write(w.data)
			if err != nil {
				err = s.exitOr(fmt.Errorf("writing to the server: %w", withoutPath(err)))
				w.unsent = n == 0
				w.done <- fmt.Errorf("%w: %w", ErrConnectionLost, err)
				s.notRead(err)
				return
			}
			w.done <- nil
		case <-s.c.done:
			return
		}
	}
}

func (s *stdioConn) reader() {
	r := jsonl.NewReader(s.proc.Stdout, s.c.o.MaxMessageBytes)
	for {
		line, err := r.Next()
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) {
				err = errors.New("the server closed its stdout")
			}
			s.ended(err)
			return
		}
		switch {
		case line.Oversized():
			s.c.oversized(line)
		case !s.c.receive(line.Data):
			s.c.noiseLine(line.Data)
		}
	}
}

// notRead ends the connection to a process that does not read any more. If the process exited, the
// reader ends it after the rest of stdout, which may hold replies. But a process may also close its
// stdin and live on.
func (s *stdioConn) notRead(err error) {
	select {
	case <-s.proc.Exited():
		t := time.NewTimer(lastWait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-s.c.done:
		}
	default:
	}
	s.c.broken(err) // unless the reader has
}

// ended ends the connection after the end of stdout, with how the process exited if it did.
func (s *stdioConn) ended(err error) { s.c.broken(s.exitOr(err)) }

// exitOr gives the process time to exit and returns how it did. It returns err for a process that
// lives on.
func (s *stdioConn) exitOr(err error) error {
	t := time.NewTimer(ExitWait)
	defer t.Stop()
	select {
	case <-s.proc.Exited():
		return fmt.Errorf("the server process %v", s.proc.Exit())
	case <-t.C:
	case <-s.c.done:
	}
	return err
}

// close implements connection.
func (s *stdioConn) close() error { return s.proc.Close() }

// withoutPath drops the file's name from an error of reading or writing a pipe.
func withoutPath(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
