package mcpbridge

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/tenon-sdk/tenon/internal/rpcmsg"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// errCancelled is why a request ended that notifications/cancelled named.
var errCancelled = errors.New("mcpbridge: cancelled by the client")

// remembered is how many finished and how many early cancelled ids are kept.
const remembered = 128

// calls knows the requests in flight by their ids, so that they can be
// cancelled.
//
// Handle may be called from many goroutines, so a cancellation can overtake its
// request. An id that is neither in flight nor lately finished is therefore kept
// for the request that is still to come; a handshake forgets them all, since
// clients count from 0 again.
type calls struct {
	most int // requests in flight; negative: any number

	mu       sync.Mutex // guards the rest
	closed   bool
	inFlight int
	live     map[string]*call
	finished []string
	early    []string
}

// A call is one request in flight. Clients that shake hands again reuse ids while
// older requests still run: those are older, and a cancellation means the newest.
type call struct {
	owner  *calls
	key    string
	cancel context.CancelCauseFunc
	older  *call
}

func newCalls(most int) *calls {
	return &calls{most: most, live: make(map[string]*call)}
}

// begin registers a request. The context ends with ctx, by a cancellation
// or by close. The caller calls end, and leave. If too many requests are in flight there is
// no call.
func (c *calls) begin(ctx context.Context, m *rpcmsg.Message) (context.Context, *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.most >= 0 && c.inFlight >= c.most {
		return ctx, nil
	}
	c.inFlight++
	ctx, cancel := context.WithCancelCause(ctx)
	entry := &call{owner: c, key: rpcmsg.IDKey(m.ID), cancel: cancel}
	if m.Method == methodInitialize {
		c.finished, c.early = nil, nil
	}
	if c.closed {
		cancel(mcpserver.ErrClosed)
	}
	if i := slices.Index(c.early, entry.key); i >= 0 {
		c.early = slices.Delete(c.early, i, i+1)
		cancel(errCancelled)
	}
	entry.older = c.live[entry.key]
	c.live[entry.key] = entry
	return ctx, entry
}

// leave counts n requests less. A request leaves when it has ended, or with its batch.
func (c *calls) leave(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight -= n
}

// end forgets a request, which still counts until it leaves.
func (e *call) end() {
	e.cancel(nil)
	c := e.owner
	c.mu.Lock()
	defer c.mu.Unlock()
	if newest := c.live[e.key]; newest != e {
		for ; newest.older != e; newest = newest.older {
		}
		newest.older = e.older
	} else if e.older != nil {
		c.live[e.key] = e.older
	} else {
		delete(c.live, e.key)
	}
	c.finished = remember(c.finished, e.key)
}

// cancelled ends the request that has the id key, if it is in flight or comes yet.
func (c *calls) cancelled(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if entry := c.live[key]; entry != nil {
		entry.cancel(errCancelled)
		return
	}
	if !slices.Contains(c.finished, key) {
		c.early = remember(c.early, key)
	}
}

func (c *calls) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, entry := range c.live {
		for ; entry != nil; entry = entry.older {
			entry.cancel(mcpserver.ErrClosed)
		}
	}
}

// remember appends key and drops the oldest beyond the bound.
func remember(keys []string, key string) []string {
	if len(keys) == remembered {
		copy(keys, keys[1:])
		keys = keys[:remembered-1]
	}
	return append(keys, key)
}
