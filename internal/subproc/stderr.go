package subproc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

const (
	// maxLine is the length at which a line is cut for the callback.
	maxLine = 8 << 10
	// backlog is the number of lines that wait for a slow callback.
	backlog = 256
)

// A tail keeps the end of a stream.
type tail struct {
	limit int

	mu  sync.Mutex
	buf []byte // at most twice the limit
	cut bool   // something was dropped
}

func newTail(limit int) *tail {
	if limit <= 0 {
		limit = DefaultStderrLimit
	}
	return &tail{limit: limit}
}

func (t *tail) add(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if over := len(b) - t.limit; over > 0 {
		b, t.cut = b[over:], true
	}
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - t.limit; over > t.limit {
		t.buf, t.cut = append(t.buf[:0], t.buf[over:]...), true
	}
}

// String returns the end of the stream in valid UTF-8, without a line whose beginning
// is cut.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b, cut := t.buf, t.cut
	if over := len(b) - t.limit; over > 0 {
		b, cut = b[over:], true
	}
	if _, rest, ok := bytes.Cut(b, []byte("\n")); cut && ok {
		b = rest
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(b), "\uFFFD"))
}

// drain reads r to its end and then closes the channel it returns. It calls on from a
// goroutine of its own, so that a slow one does not stop the reading.
func (t *tail) drain(r io.Reader, on func(line string)) <-chan struct{} {
	done := make(chan struct{})
	if on == nil {
		go func() {
			defer close(done)
			t.read(r, nil)
		}()
		return done
	}
	lines := make(chan string, backlog+1) // one more, for the note at the end
	go func() {
		defer close(done)
		for l := range lines {
			on(l)
		}
	}()
	go func() {
		defer close(lines)
		t.read(r, lines)
	}()
	return done
}

// read sends lines while the channel has room, and a line with the number of those it
// dropped. It never blocks. It sends nothing to a nil channel.
func (t *tail) read(r io.Reader, lines chan<- string) {
	br := bufio.NewReaderSize(r, maxLine)
	dropped := 0
	for {
		b, err := br.ReadSlice('\n')
		t.add(b)
		if len(b) > 0 && lines != nil {
			if dropped > 0 && len(lines) < backlog-1 {
				lines <- droppedNote(dropped)
				dropped = 0
			}
			if dropped == 0 && len(lines) < backlog {
				lines <- strings.ToValidUTF8(strings.TrimRight(string(b), "\r\n"), "\uFFFD")
			} else {
				dropped++
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
	}
	if dropped > 0 {
		lines <- droppedNote(dropped)
	}
}

func droppedNote(n int) string {
	return fmt.Sprintf("(%d lines are left out here: they came faster than they were taken)", n)
}
