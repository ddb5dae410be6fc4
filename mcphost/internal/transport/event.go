package transport

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/internal/jsonl"
)

// An event is one server-sent event.
type event struct {
	name, id, retry string
	data            []byte
	// oversized holds the ends of data above the limit; data is nil then.
	oversized *jsonl.Line
}

// eventEdge is how much of both ends of oversized data is kept.
const eventEdge = 1024

// An eventReader reads server-sent events. Like a jsonl.Reader it survives
// what is above its limit.
type eventReader struct {
	br    *bufio.Reader
	limit int // in bytes of data an event; negative means none
	begun bool
}

func newEventReader(r io.Reader, limit int) *eventReader {
	return &eventReader{br: bufio.NewReaderSize(r, 4<<10), limit: limit}
}

// next returns the next event that says anything. An event that the stream's
// end cuts off before its blank line counts, if it has data.
func (r *eventReader) next() (event, error) {
	e := eventBuilder{limit: r.limit}
	for {
		blank, err := r.line(&e)
		if (blank || err != nil) && e.complete() {
			return e.build(), nil
		}
		if blank {
			e = eventBuilder{limit: r.limit}
		}
		if err != nil {
			return event{}, err
		}
	}
}

// line reads one line into e. It reports whether the line was blank.
func (r *eventReader) line(e *eventBuilder) (blank bool, err error) {
	chunk, err := r.br.ReadSlice('\n')
	if !r.begun {
		chunk = bytes.TrimPrefix(chunk, []byte("\xef\xbb\xbf"))
		r.begun = true
	}
	full := errors.Is(err, bufio.ErrBufferFull)
	if err != nil && !full && len(chunk) == 0 {
		return false, err
	}
	field, value, _ := bytes.Cut(chunk, []byte(":"))
	if !full {
		field, value = bytes.TrimRight(field, "\r\n"), bytes.TrimRight(value, "\r\n")
	}
	if len(field) == 0 && len(value) == 0 && !full {
		return !bytes.HasPrefix(chunk, []byte(":")), err
	}
	value = bytes.TrimPrefix(value, []byte(" "))
	isData := e.field(string(field), value)
	for full {
		chunk, err = r.br.ReadSlice('\n')
		full = errors.Is(err, bufio.ErrBufferFull)
		if isData {
			e.add(chunk)
		}
	}
	if isData {
		e.trim()
	}
	return false, err
}

// An eventBuilder gathers the fields of one event.
type eventBuilder struct {
	event
	limit   int
	hasData bool
	size    int64
}

func (e *eventBuilder) complete() bool {
	return e.hasData || e.id != "" || e.retry != ""
}

// field takes one field, or the beginning of it; it reports whether it is data,
// of which more may follow.
func (e *eventBuilder) field(name string, value []byte) bool {
	switch name {
	case "event":
		e.name = clip.Text(string(value), eventEdge)
	case "id":
		if !bytes.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) { // it could not be sent back
			e.id = string(value)
		}
	case "retry":
		e.retry = string(value)
	case "data":
		if e.hasData {
			e.add([]byte("\n"))
		}
		e.hasData = true
		e.add(value)
		return true
	}
	return false
}

func (e *eventBuilder) add(b []byte) {
	e.size += int64(len(b))
	if e.oversized == nil {
		e.data = append(e.data, b...)
		if e.limit < 0 || len(e.data) <= e.limit+len("\r\n") {
			return
		}
		e.oversized = &jsonl.Line{Head: bytes.Clone(e.data[:min(len(e.data), eventEdge)])}
		b, e.data = e.data, nil
	}
	e.oversized.Tail = append(e.oversized.Tail, b[max(0, len(b)-eventEdge):]...)
	if extra := len(e.oversized.Tail) - eventEdge; extra > 0 {
		e.oversized.Tail = append(e.oversized.Tail[:0], e.oversized.Tail[extra:]...)
	}
}

// trim drops the line ending of a line that was read in pieces.
func (e *eventBuilder) trim() {
	b := &e.data
	if e.oversized != nil {
		b = &e.oversized.Tail
	}
	trimmed := bytes.TrimRight(*b, "\r\n")
	e.size -= int64(len(*b) - len(trimmed))
	*b = trimmed
}

func (e *eventBuilder) build() event {
	if e.oversized == nil && e.limit >= 0 && len(e.data) > e.limit {
		data := e.data
		e.oversized = &jsonl.Line{Head: data[:min(len(data), eventEdge)], Tail: data[max(0, len(data)-eventEdge):]}
		e.data = nil
	}
	if e.oversized != nil {
		e.oversized.Size = e.size
	}
	return e.event
}
