package transport

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/internal/clip"
)

const (
	// maxCodings is how many codings of one body are undone.
	maxCodings = 3
	// maxRatio is how many bytes a coded one may become on average, once there are more than maxCoded of them: what is
	// more is made to cost work, and a stream of events has no end.
	maxRatio = 200
	maxCoded = 64 << 20
)

// A codingError reports a body that cannot be decoded.
type codingError struct{ what string }

func (e *codingError) Error() string { return e.what }

// A decodedTransport decodes the bodies of responses. Requests ask for none that is coded, but some servers, and what
// stands before them, do not heed that.
type decodedTransport struct {
	base http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (d decodedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	decode(resp)
	return resp, nil
}

// decode lets a response's body be read without its codings.
func decode(resp *http.Response) {
	codings := strings.FieldsFunc(strings.ToLower(strings.Join(resp.Header.Values("Content-Encoding"), ",")), func(r rune) bool { return r == ',' || r == ' ' })
	codings = slices.DeleteFunc(codings, func(c string) bool { return c == "identity" })
	if len(codings) == 0 {
		return
	}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength = -1
	b := &decodingBody{body: resp.Body}
	b.r = &b.coded
	b.coded.r = resp.Body
	for i, c := range slices.Backward(codings) { // the last was applied last
		switch {
		case len(codings)-i > maxCodings:
			b.err = &codingError{fmt.Sprintf("the response has more than %d content codings", maxCodings)}
		case c == "gzip", c == "x-gzip":
			b.r = &lazyReader{from: b.r, open: func(r *bufio.Reader) (io.Reader, error) { return gzip.NewReader(r) }}
		case c == "deflate":
			b.r = &lazyReader{from: b.r, open: inflate}
		default:
			b.err = &codingError{fmt.Sprintf("the response has the content coding %q, which is not decoded here; let the server heed Accept-Encoding: identity", clip.Text(c, 50))}
		}
	}
	resp.Body = b
}

// inflate reads deflate: in the format of zlib, as it should be, or without, as some send it.
func inflate(r *bufio.Reader) (io.Reader, error) {
	head, err := r.Peek(2)
	if err != nil {
		return nil, err
	}
	if head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(r)
	}
	return flate.NewReader(r), nil
}

// A lazyReader opens its reader at the first Read, so that a response can be had before its body comes.
type lazyReader struct {
	from io.Reader
	open func(*bufio.Reader) (io.Reader, error)
	r    io.Reader
}

// Read implements [io.Reader].
func (l *lazyReader) Read(p []byte) (int, error) {
	if l.r == nil {
		r, err := l.open(bufio.NewReader(l.from))
		if err != nil {
			return 0, err
		}
		l.r = r
	}
	return l.r.Read(p)
}

// A countingReader counts what is read.
type countingReader struct {
	r io.Reader
	n int64
}

// Read implements [io.Reader].
func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// A decodingBody is a body without its codings.
type decodingBody struct {
	body  io.Closer
	coded countingReader
	r     io.Reader
	out   int64
	err   error
}

// Read implements [io.Reader].
func (b *decodingBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.r.Read(p)
	b.out += int64(n)
	switch {
	case b.out > maxCoded && b.out > maxRatio*b.coded.n:
		b.err = &codingError{fmt.Sprintf("the response has become more than %d times as long by decoding", maxRatio)}
		return 0, b.err
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.Is(err, zlib.ErrHeader), errors.Is(err, zlib.ErrChecksum),
		errors.As(err, new(flate.CorruptInputError)):
		b.err = &codingError{fmt.Sprintf("the response cannot be decoded as its Content-Encoding says: %v", err)}
		return n, b.err
	}
	return n, err
}

// Close implements [io.Closer].
func (b *decodingBody) Close() error { return b.body.Close() }
