package transport

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func events(r io.Reader, limit int) (got []string, err error) {
	er := newEventReader(r, limit)
	for {
		e, err := er.next()
		if err != nil {
			return got, err
		}
		data := string(e.data)
		if e.oversized != nil {
			data = fmt.Sprintf("<%d bytes>", e.oversized.Size)
		}
		got = append(got, fmt.Sprintf("%s|%s|%s|%s", e.name, e.id, e.retry, data))
	}
}

// Pain 34 and F12.
func TestEventReader(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string
	}{
		{"plain", "event: message\ndata: {}\n\n", []string{"message|||{}"}},
		{"without blanks after the colon", "event:m\nid:7\ndata:{}\n\n", []string{"m|7||{}"}},
		{"carriage returns", "event: m\r\ndata: {}\r\n\r\n", []string{"m|||{}"}},
		{"an id that cannot be sent back", "id: 7\x01\ndata: {}\n\nid: 8\x7f\ndata: {}\n\nid: \x009\ndata: {}\n\n", []string{"|||{}", "|||{}", "|||{}"}},
		{"several data lines", "data: {\ndata: \"a\":1}\n\n", []string{"|||{\n\"a\":1}"}},
		{"comments and unknown fields", ": ping\n\nfoo: bar\n: x\ndata: {}\n\n", []string{"|||{}"}},
		{"last event without blank line", "data: 1\n\ndata: 2", []string{"|||1", "|||2"}},
		{"priming event", "id: 1\nretry: 100\ndata:\n\n", []string{"|1|100|"}},
		{"field without colon", "data\n\n", []string{"|||"}},
		{"byte order mark", "\xef\xbb\xbfdata: 1\n\n", []string{"|||1"}},
		{"at the limit", "data: " + strings.Repeat("x", 100) + "\r\n\r\n", []string{"|||" + strings.Repeat("x", 100)}},
		{"above the limit", "data: " + strings.Repeat("x", 101) + "\n\ndata: 1\n\n", []string{"|||<101 bytes>", "|||1"}},
		{"far above the limit", "id: 3\ndata: " + strings.Repeat("x", 100_000) + "\n\ndata: 1\n\n", []string{"|3||<100000 bytes>", "|||1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in))} {
				got, err := events(r, 100)
				if !errors.Is(err, io.EOF) {
					t.Errorf("ended with %v", err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestEventReaderKeepsTheEndsOfOversizedData(t *testing.T) {
	in := "data: {\"id\":1,\"result\":\"" + strings.Repeat("x", 200_000) + "\",\"end\":true}\r\n\r\n"
	e, err := newEventReader(strings.NewReader(in), 1000).next()
	if err != nil || e.oversized == nil {
		t.Fatalf("got %v, %v", e, err)
	}
	if !strings.HasPrefix(string(e.oversized.Head), `{"id":1,`) || !strings.HasSuffix(string(e.oversized.Tail), `,"end":true}`) {
		t.Errorf("head %.20q, tail ends %q", e.oversized.Head, e.oversized.Tail[len(e.oversized.Tail)-20:])
	}
}

// A large event is read whole whatever the size of the reader's buffer.
func TestEventReaderLargeData(t *testing.T) {
	want := `{"x":"` + strings.Repeat("y", 2<<20) + `"}`
	e, err := newEventReader(strings.NewReader("data: "+want+"\n\n"), -1).next()
	if err != nil || string(e.data) != want {
		t.Errorf("got %d bytes, %v, want %d", len(e.data), err, len(want))
	}
}

func FuzzEventReader(f *testing.F) {
	f.Add([]byte("event: a\r\ndata: {}\r\n\r\n: c\n\ndata: 1\ndata: 2"), 10)
	f.Fuzz(func(t *testing.T, in []byte, limit int) {
		limit = max(-1, limit%1000)
		whole, err := events(strings.NewReader(string(in)), limit)
		if !errors.Is(err, io.EOF) {
			t.Fatalf("ended with %v", err)
		}
		bits, _ := events(iotest.HalfReader(strings.NewReader(string(in))), limit)
		if diff := cmp.Diff(whole, bits); diff != "" {
			t.Errorf("depends on how it is read (-whole +halves):\n%s", diff)
		}
	})
}
