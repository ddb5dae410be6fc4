package mcphost

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A failed attempt is told of when it has failed, not when what it left behind is closed, and its time is that of
// the attempt. The next attempt waits for the closing.
func TestFailureDoesNotWaitForClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, closing = 3 * time.Second, 20 * time.Second
		p := opensAfter(0)
		p.list = func(ctx context.Context) ([]*mcp.Tool, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		p.end = func() { time.Sleep(closing) }
		h := newHost(t, map[string]ServerConfig{"s": InProcess(p)}, func(o *Options) { o.ConnectTimeout = limit })
		began := time.Now()
		ready(t, h)
		if took := time.Since(began); took != limit {
			t.Errorf("known after %v", took)
		}
		s := status(t, h, "s")
		var ce *ConnectError
		if !errors.As(s.Err, &ce) || ce.Elapsed != limit || s.Since.Sub(began) != limit {
			t.Fatalf("since %v, %+v", s.Since.Sub(began), s.Err)
		}
		if text := s.Error; !strings.Contains(text, "timed out after 3s") || strings.Count(text, "after") != 1 {
			t.Errorf("the time is told twice: %s", text)
		}
		p.list = nil
		if err := h.Reconnect(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != limit+closing {
			t.Errorf("connected anew after %v, while the first was still being closed", took)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
}
