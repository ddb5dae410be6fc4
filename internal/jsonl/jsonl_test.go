package jsonl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// lines reads all of r and renders each line as its text, or as its size when
// it was above the limit.
func lines(r *Reader) (got []string, err error) {
	for {
		l, err := r.Next()
		if err != nil {
			return got, err
		}
		if l.Oversized() {
			got = append(got, fmt.Sprintf("<%d bytes>", l.Size))
			continue
		}
		got = append(got, string(l.Data))
	}
}

func TestNext(t *testing.T) {
	tests := []struct {
		name, in string
		limit    int
		want     []string
	}{
		{"lines", "{\"a\":1}\n{\"b\":2}\n", 0, []string{`{"a":1}`, `{"b":2}`}},
		{"carriage returns", "{}\r\n[]\r\n", 0, []string{"{}", "[]"}},
		{"blank lines", "\n\r\n  \n{}\n\n\t\n", 0, []string{"{}"}},
		{"byte order mark", "\xef\xbb\xbf{}\n", 0, []string{"{}"}},
		{"byte order mark after a blank line", "\n\xef\xbb\xbf{}\n", 0, []string{"{}"}},
		{"NULs around a line", "\x00\x00{}\x00\n\x00\n[]\n", 0, []string{"{}", "[]"}},
		{"NUL inside stays", "a\x00b\n", 0, []string{"a\x00b"}},
		{"last line without ending", "{}\n[1]", 0, []string{"{}", "[1]"}},
		{"empty stream", "", 0, nil},
		{"at the limit", "12345\r\n12345\n", 5, []string{"12345", "12345"}},
		{"above the limit, next works", "123456\n12345\n", 5, []string{"<6 bytes>", "12345"}},
		{"above the limit at the end", "1\n1234567", 5, []string{"1", "<7 bytes>"}},
		{"no limit", strings.Repeat("x", 200_000) + "\n", -1, []string{strings.Repeat("x", 200_000)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			readers := map[string]io.Reader{
				"whole":        strings.NewReader(tt.in),
				"byte a read":  iotest.OneByteReader(strings.NewReader(tt.in)),
				"data and EOF": iotest.DataErrReader(strings.NewReader(tt.in)),
			}
			for how, r := range readers {
				got, err := lines(NewReader(r, tt.limit))
				if !errors.Is(err, io.EOF) {
					t.Errorf("%s: ended with %v, want EOF", how, err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", how, diff)
				}
			}
		})
	}
}

func TestOversizedKeepsBothEnds(t *testing.T) {
	long := `{"jsonrpc":"2.0","result":"` + strings.Repeat("x", 300_000) + `","id":7}`
	r := NewReader(strings.NewReader(long+"\r\n{}\n"), 100_000)
	l, err := r.Next()
	if err != nil || !l.Oversized() {
		t.Fatalf("got %+v, %v, want an oversized line", l, err)
	}
	if l.Size != int64(len(long)) {
		t.Errorf("size %d, want %d", l.Size, len(long))
	}
	if !bytes.HasPrefix(l.Head, []byte(`{"jsonrpc":"2.0",`)) || !bytes.HasSuffix(l.Tail, []byte(`","id":7}`)) {
		t.Errorf("head %.30q, tail %q", l.Head, l.Tail[len(l.Tail)-20:])
	}
	if got, _ := lines(r); !cmp.Equal(got, []string{"{}"}) {
		t.Errorf("after it: %q", got)
	}
}

// A line far above the limit is not held in memory.
func TestOversizedMemoryIsBounded(t *testing.T) {
	const size = 64 << 20
	in := io.MultiReader(io.LimitReader(zeros{}, size), strings.NewReader("\n{}\n"))
	r := NewReader(in, 1<<20)
	allocs := testing.Benchmark(func(b *testing.B) {
		for range b.N {
			if l, err := r.Next(); err != nil && !errors.Is(err, io.EOF) || l.Oversized() && l.Size != size {
				b.Fatalf("got %d bytes, %v", l.Size, err)
			}
		}
	})
	if got := allocs.MemBytes; got > 16<<20 {
		t.Errorf("reading a line of %d bytes with a limit of 1 MiB allocated %d bytes", size, got)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func TestReadErrorComesAfterTheLines(t *testing.T) {
	boom := errors.New("boom")
	r := NewReader(io.MultiReader(strings.NewReader("{}\n[1"), iotest.ErrReader(boom)), 0)
	got, err := lines(r)
	if !errors.Is(err, boom) || !cmp.Equal(got, []string{"{}", "[1"}) {
		t.Errorf("got %q, %v", got, err)
	}
}

// The reader hands out what bytes.Lines would, trimmed, whatever the limit.
func FuzzReader(f *testing.F) {
	f.Add([]byte("{}\n\r\n\xef\xbb\xbf[]"), uint16(3))
	f.Add([]byte("\x00\n12345678\r\n1"), uint16(5))
	f.Add([]byte(strings.Repeat("a", 5000)+"\nb"), uint16(2000))
	f.Fuzz(func(t *testing.T, in []byte, limit uint16) {
		got, err := lines(NewReader(bytes.NewReader(in), int(limit)+1))
		if !errors.Is(err, io.EOF) {
			t.Fatalf("ended with %v", err)
		}
		var want []string
		for l := range bytes.Lines(in) {
			l = trimEnd(l)
			if len(l) > int(limit)+1 {
				want = append(want, fmt.Sprintf("<%d bytes>", len(l)))
				continue
			}
			if l = trim(l); len(l) > 0 {
				want = append(want, string(l))
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func BenchmarkSmallLines(b *testing.B) {
	in := strings.Repeat(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}]}}`+"\n", 1000)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(strings.NewReader(in), 0)
		for {
			if _, err := r.Next(); err != nil {
				break
			}
		}
	}
}

func BenchmarkLargeLine(b *testing.B) {
	in := strings.Repeat("x", 20<<20) + "\n"
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := NewReader(strings.NewReader(in), 0).Next(); err != nil {
			b.Fatal(err)
		}
	}
}
