package claudecode

import (
	"context"
	"io"
	"sync"
)

// outgoing is the way of lines to the CLI. As a rule the pipe has room and nobody is before a line:
// then whoever has it writes it, and no goroutine has to wake up for it. The rest is the writer's.
type outgoing struct {
	lines chan []byte   // to the writer
	begun chan struct{} // holds a token when there is a rest

	// try writes what can be written without waiting. Nil means nothing.
	try func([]byte) int

	mu   sync.Mutex // guards the rest
	owed int        // lines that are on their way to the writer, or with it
	rest []byte     // of a line of which the beginning is written
}

func newOutgoing() outgoing {
	return outgoing{lines: make(chan []byte), begun: make(chan struct{}, 1)}
}

// now writes a line at once, its rest by the writer. It reports false if that cannot be: then the line
// is owed, and the caller hands it to the writer or takes it back by [outgoing.settled].
func (o *outgoing) now(line []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.owed++
	if o.owed > 1 || o.try == nil {
		return false
	}
	n := o.try(line)
	switch n {
	case 0:
		return false
	case len(line):
		o.owed--
	default:
		o.rest = line[n:]
		select {
		case o.begun <- struct{}{}:
		default: // one that the writer has not taken yet does as well
		}
	}
	return true
}

// settled notes that a line is no longer owed: it is written, or was taken back.
func (o *outgoing) settled() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.owed--
}

// takeRest returns the rest of a line that must be written before any other.
func (o *outgoing) takeRest() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	rest := o.rest
	o.rest = nil
	return rest
}

// write writes until the CLI is gone, or closing is closed: then what was begun is still written. Its
// error is that of the pipe.
func (o *outgoing) write(ctx context.Context, stdin io.Writer, closing <-chan struct{}) error {
	for {
		var line []byte
		last := false
		select {
		case line = <-o.lines:
		case <-o.begun:
		case <-closing:
			last = true
		case <-ctx.Done():
			return nil
		}
		for _, part := range [][]byte{o.takeRest(), line} {
			if part == nil {
				continue
			}
			if _, err := stdin.Write(part); err != nil {
				return err
			}
			o.settled()
		}
		if last {
			return nil
		}
	}
}
