package transport

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/lograte"
	"github.com/tenon-sdk/tenon/internal/rpcmsg"
	"github.com/tenon-sdk/tenon/internal/secret"
)

// A stuckConn sends nothing, as over a connection to a server that does not read.
type stuckConn struct {
	c       *Client
	sending atomic.Int64
}

func (s *stuckConn) send(ctx context.Context, _ *message) error {
	s.sending.Add(1)
	defer s.sending.Add(-1)
	select {
	case <-s.c.done:
		return s.c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *stuckConn) close() error { return nil }

func discardOptions() *Options {
	log := slog.New(slog.DiscardHandler)
	return &Options{
		Log: log, Limited: lograte.New(log), Mask: secret.NewMasker(nil), MaxMessageBytes: 1 << 20,
		OnLog: func(*mcp.LoggingMessageParams) {}, OnListChanged: func(string) {}, OnResourceUpdated: func(string) {},
	}
}

// A server that asks and does not read the answers has no more than 64 requests under way, and as many being refused; what
// comes beyond that is dropped, and if it never reads, the connection ends. One with a long id is not answered at all.
//
// fault H4
func TestUnreadAnswersEndTheConnection(t *testing.T) {
	c := newClient(t.Context(), discardOptions())
	conn := &stuckConn{c: c}
	c.conn = conn
	sent := 0
	for ; sent < 100_000 && !c.Failed(); sent++ {
		c.receive(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"%s%d","method":"no/such"}`, strings.Repeat("x", rpcmsg.MaxID), sent))
		c.receive(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"no/such"}`, sent))
		if n := conn.sending.Load(); n > 2*maxServerRequests {
			t.Fatalf("%d answers and refusals at once", n)
		}
	}
	<-c.Done()
	if sent != 2*maxServerRequests+maxUnread+1 || !strings.Contains(c.Err().Error(), "does not read the answers") {
		t.Errorf("ended after %d requests with %v", sent, c.Err())
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
