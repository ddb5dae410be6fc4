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
	// maxLine is where a line without an end is cut for the callback.
	maxLine = 8 << 10
	// backlog is how many lines may wait for a slow callback.
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

// String returns the end of the stream as valid UTF-8, without a line that is
// cut at its beginning.
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

// drain reads r to its end, come what may, and then closes the channel. on runs
// on a goroutine of its own, so a slow one does not stop the reading; what was
// read is passed to it before drain is done, unless it blocks.
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

// read passes lines on as long as the channel has room, and tells in a line of its own how many it has dropped. It is
// the only one that sends, and never blocks. A nil channel is for nobody.
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
