package transport

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/growth"
)

// What a stream may become by decoding is bounded once it is more than a message may be.
//
// fault B5
func TestDecodedStreamIsBounded(t *testing.T) {
	growth.AtMost(t, maxCoded+1<<20, []int{1, 2, 4}, func(n int) int {
		endless := new(bytes.Buffer)
		zw := gzip.NewWriter(endless)
		comment := []byte(strings.Repeat(":\n", 512<<10))
		for range n * 80 {
			_, _ = zw.Write(comment) // in memory
		}
		_ = zw.Close()
		resp := &http.Response{Header: http.Header{"Content-Encoding": {"gzip"}}, Body: io.NopCloser(endless)}
		decode(resp)
		read, err := io.Copy(io.Discard, resp.Body)
		if ce := new(codingError); !errors.As(err, &ce) {
			t.Errorf("%d MiB: %v", n*80, err)
		}
		return int(read)
	})
}
