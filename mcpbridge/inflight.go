package mcpbridge

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// errCancelled is the cause of a request's end by notifications/cancelled.
var errCancelled = errors.New("mcpbridge: cancelled by the client")

// maxRemembered is the number of ids kept in inFlight.finished and inFlight.early.
const maxRemembered = 128

// inFlight holds the requests that are being served, by id, and bounds them.
//
// Handle may be called from several goroutines, so a cancellation can arrive
// before its request. An id that is neither in flight nor finished lately is
// therefore kept for the request that is still to come. A handshake clears
// those ids, because a client then counts from 0 again.
type inFlight struct {
	max      int   // requests; negative: no bound
	maxBytes int64 // of requests and of the replies that a batch holds; 0: no bound

	mu       sync.Mutex // guards the rest
	closed   bool
	count    int
	bytes    int64
	calls    map[string]*call
	finished []string
	early    []string // cancelled before they came
}

// A call is one request in flight. A client that initializes again may reuse the
// id of a request that still runs: older is that request, and a cancellation
// applies to the newest.
type call struct {
	ctx     context.Context // ends with its parent, by a cancellation, and by inFlight.close
	message *rpcmsg.Message
	owner   *inFlight
	key     string
	cancel  context.CancelCauseFunc
	older   *call
}

func newInFlight(most int, maxBytes int64) *inFlight {
	return &inFlight{max: most, maxBytes: maxBytes, calls: make(map[string]*call)}
}

func requestSize(m *rpcmsg.Message) int64 { return int64(len(m.ID) + len(m.Params)) }

// begin registers a request. The caller calls call.end and, when the request no
// longer takes up room, leave. begin returns nil if there is no room.
func (f *inFlight) begin(ctx context.Context, m *rpcmsg.Message) *call {
	f.mu.Lock()
	defer f.mu.Unlock()
	size := requestSize(m)
	if f.max >= 0 && f.count >= f.max || f.maxBytes > 0 && f.count > 0 && f.bytes+size > f.maxBytes {
		return nil
	}
	f.count++
	f.bytes += size
	ctx, cancel := context.WithCancelCause(ctx)
	c := &call{ctx: ctx, message: m, owner: f, key: rpcmsg.IDKey(m.ID), cancel: cancel}
	if m.Method == methodInitialize {
		f.finished, f.early = nil, nil
	}
	if f.closed {
		cancel(mcpserver.ErrClosed)
	}
	if i := slices.Index(f.early, c.key); i >= 0 {
		f.early = slices.Delete(f.early, i, i+1)
		cancel(errCancelled)
	}
	c.older = f.calls[c.key]
	f.calls[c.key] = c
	return c
}

// hold adds a reply that waits for the rest of its batch.
func (f *inFlight) hold(bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bytes += bytes
}

// leave makes room for other requests.
func (f *inFlight) leave(count int, bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count -= count
	f.bytes -= bytes
}

// end removes a request, which takes up room until leave.
func (c *call) end() {
	c.cancel(nil)
	f := c.owner
	f.mu.Lock()
	defer f.mu.Unlock()
	if newest := f.calls[c.key]; newest != c {
		for ; newest.older != c; newest = newest.older {
		}
		newest.older = c.older
	} else if c.older != nil {
		f.calls[c.key] = c.older
	} else {
		delete(f.calls, c.key)
	}
	f.finished = remember(f.finished, c.key)
}

// cancel ends the request with the id key, which may be still to come.
func (f *inFlight) cancel(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.calls[key]; c != nil {
		c.cancel(errCancelled)
		return
	}
	if !slices.Contains(f.finished, key) {
		f.early = remember(f.early, key)
	}
}

func (f *inFlight) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, c := range f.calls {
		for ; c != nil; c = c.older {
			c.cancel(mcpserver.ErrClosed)
		}
	}
}

// remember appends key and drops the oldest beyond maxRemembered.
func remember(keys []string, key string) []string {
	if len(keys) == maxRemembered {
		copy(keys, keys[1:])
		keys = keys[:maxRemembered-1]
	}
	return append(keys, key)
}
