// Package jsonl reads streams of lines, each with a JSON value, as stdio servers and
// command-line engines write them.
//
// A line above the limit is skipped and reported with its head and tail; the next line
// is read as usual. The package does not parse lines.
package jsonl

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
)

const (
	// DefaultLimit is the default limit of a line: 64 MiB.
	DefaultLimit = 64 << 20

	// edge is the length of the kept beginning and end of an oversized line.
	edge = 1024

	bufSize = 64 << 10
)

// A Line is one line of a stream, without its line ending.
type Line struct {
	// Data is the content of the line, which the caller owns; nil for a line above
	// the limit.
	Data []byte
	// Size is the length of the line in bytes, without its line ending.
	Size int64
	// Head and Tail are the first and the last kilobyte of a line above the
	// limit; nil otherwise. They may overlap.
	Head, Tail []byte
}

// Oversized reports whether the line was above the limit and skipped.
func (l Line) Oversized() bool { return l.Head != nil }

// A Reader reads lines. It is for one goroutine at a time.
type Reader struct {
	br    *bufio.Reader
	limit int
}

// NewReader returns a reader of the lines of r. A line may be limit bytes long;
// zero means [DefaultLimit], a negative limit none.
func NewReader(r io.Reader, limit int) *Reader {
	switch {
	case limit == 0:
		limit = DefaultLimit
	case limit < 0:
		limit = math.MaxInt - len("\r\n")
	}
	return &Reader{br: bufio.NewReaderSize(r, bufSize), limit: limit}
}

// Next returns the next line without a byte order mark and without surrounding white
// space and NUL bytes. It skips empty lines. The last line needs no line ending. After
// the last line, Next returns the error of the underlying reader, io.EOF at the end.
func (r *Reader) Next() (Line, error) {
	for {
		line, err := r.read()
		if line.Oversized() {
			return line, nil
		}
		line.Data = trim(line.Data)
		if len(line.Data) > 0 {
			line.Size = int64(len(line.Data))
			return line, nil
		}
		if err != nil {
			return Line{}, err
		}
	}
}

// read returns the next line unchanged. The line and the error may both be set.
func (r *Reader) read() (Line, error) {
	chunk, err := r.br.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) && len(chunk) <= r.limit {
		return Line{Data: bytes.Clone(chunk)}, err // most lines
	}
	var (
		data = append(make([]byte, 0, 4*len(chunk)), chunk...)
		size = int64(len(chunk))
		over *oversized
	)
	for {
		if over == nil && len(data) > r.limit+len("\r\n") {
			over, data = newOversized(data), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			break
		}
		chunk, err = r.br.ReadSlice('\n')
		size += int64(len(chunk))
		if over != nil {
			over.add(chunk)
		} else {
			data = append(grow(data, len(chunk)), chunk...)
		}
	}
	if over == nil {
		trimmed := trimEnd(data)
		if len(trimmed) <= r.limit {
			return Line{Data: trimmed}, err
		}
		over = newOversized(data)
	}
	return over.line(size), err
}

// grow makes room for n more bytes by doubling. append grows by a quarter and would
// copy a long line a dozen times.
func grow(b []byte, n int) []byte {
	if cap(b)-len(b) < n {
		b = slices.Grow(b, max(len(b), n))
	}
	return b
}

func trim(b []byte) []byte {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	return bytes.Trim(b, "\x00 \t\r\n")
}

func trimEnd(b []byte) []byte { return bytes.TrimRight(b, "\r\n") }

// An oversized holds the two ends of a line that is being skipped.
type oversized struct{ head, tail []byte }

func newOversized(b []byte) *oversized {
	return &oversized{
		head: bytes.Clone(b[:min(len(b), edge)]),
		tail: bytes.Clone(b[max(0, len(b)-edge):]),
	}
}

func (o *oversized) add(chunk []byte) {
	chunk = chunk[max(0, len(chunk)-edge):]
	o.tail = append(o.tail, chunk...)
	if extra := len(o.tail) - edge; extra > 0 {
		o.tail = append(o.tail[:0], o.tail[extra:]...)
	}
}

func (o *oversized) line(size int64) Line {
	tail := trimEnd(o.tail)
	return Line{Size: size - int64(len(o.tail)-len(tail)), Head: o.head, Tail: tail}
}
