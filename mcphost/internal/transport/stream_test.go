package transport

import (
	"bytes"
	"io"
	"testing"
	"time"
)

// Whatever pause a server asks for, it is not asked more often than a few times a second.
func TestPauseOfAStreamIsBounded(t *testing.T) {
	for _, retry := range []string{"0", "1", "1000000000000000000", "-1", "x"} {
		c := &httpConn{c: newClient(t.Context(), discardOptions())}
		pos := new(streamPosition)
		_ = c.readEvents(io.NopCloser(bytes.NewBufferString("retry: "+retry+"\n\n")), pos, func() bool { return false })
		pos.attempts++
		if p := pos.pause(); p < minRetry || p > time.Minute {
			t.Errorf("retry: %s makes a pause of %v", retry, p)
		}
	}
}
