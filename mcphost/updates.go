package mcphost

import (
	"log/slog"
	"sync"

	"github.com/tenon-sdk/tenon/internal/callback"
	"github.com/tenon-sdk/tenon/internal/lograte"
)

// maxUpdates is how many resources of one server may have changed without the
// program having heard of it yet.
const maxUpdates = 1024

// maxURI is how long the address of a changed resource may be, in bytes.
const maxURI = 64 << 10

// updates tell the program of changed resources, one at a time, without holding up
// the connection that brings them: the callback may use the host. Several changes
// of a resource that wait become one. Of more than maxUpdates resources the oldest
// are dropped.
type updates struct {
	tell   func(uri string)
	log    *slog.Logger
	panics *lograte.Logger

	mu      sync.Mutex // guards the rest
	pending []string
	waiting map[string]bool // what is pending
	running bool
	dropped bool // and the log says so
	closed  bool
}

func newUpdates(log *slog.Logger, tell func(uri string)) *updates {
	return &updates{tell: tell, log: log, panics: lograte.New(log), waiting: map[string]bool{}}
}

// put takes a change; it does not block.
func (u *updates) put(uri string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed || u.waiting[uri] {
		return
	}
	if len(uri) > maxURI {
		u.panics.Warn("change of a resource dropped: its address is too long", "bytes", len(uri), "limit", maxURI)
		return
	}
	if len(u.pending) == maxUpdates {
		delete(u.waiting, u.pending[0])
		u.pending = u.pending[1:]
		if !u.dropped {
			u.log.Warn("changes of resources are dropped: OnResourceUpdated falls behind", "waiting", maxUpdates)
		}
		u.dropped = true
	}
	u.pending, u.waiting[uri] = append(u.pending, uri), true
	if !u.running {
		u.running = true
		go u.run() // ends when nothing is pending; not waited for, since the callback may close the host
	}
}

func (u *updates) run() {
	for {
		u.mu.Lock()
		if len(u.pending) == 0 {
			u.running, u.dropped = false, false
			u.mu.Unlock()
			return
		}
		uri := u.pending[0]
		u.pending = u.pending[1:]
		delete(u.waiting, uri)
		u.mu.Unlock()
		_ = callback.Run(u.panics, "OnResourceUpdated", func() error { u.tell(uri); return nil }) // the log has it
	}
}

// close drops what is pending.
func (u *updates) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed, u.pending = true, nil
	clear(u.waiting)
}
