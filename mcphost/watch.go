package mcphost

import (
	"context"
	"sync"
)

// A watcher holds the events that one receiver has not taken yet: the latest of
// each server, in the order in which they became pending.
type watcher struct {
	mu      sync.Mutex
	pending map[string]Event
	order   []string
	wake    chan struct{} // holds one
}

// put takes an event; it does not block.
func (w *watcher) put(ev Event) {
	w.mu.Lock()
	if old, ok := w.pending[ev.Server]; ok {
		// What it said still holds.
		ev.Tools, ev.Resources, ev.Prompts = ev.Tools || old.Tools, ev.Resources || old.Resources, ev.Prompts || old.Prompts
		ev.Replaced = !ev.Removed && (ev.Replaced || old.Replaced || old.Removed)
	} else {
		w.order = append(w.order, ev.Server)
	}
	w.pending[ev.Server] = ev
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *watcher) take() (Event, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.order) == 0 {
		return Event{}, false
	}
	name := w.order[0]
	w.order = w.order[1:]
	ev := w.pending[name]
	delete(w.pending, name)
	return ev, true
}

// Watch returns a channel of events, beginning with those after the call. It is
// closed when ctx ends or the host is closed. A slow receiver gets the latest
// event of each server rather than all. The receiver need not empty the channel.
func (h *Host) Watch(ctx context.Context) <-chan Event {
	out := make(chan Event)
	w := &watcher{pending: map[string]Event{}, wake: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		close(out)
		return out
	}
	h.watchers[w] = struct{}{}
	h.wg.Go(func() {
		defer close(out)
		defer h.unwatch(w)
		w.forward(ctx, h.done, out)
	})
	return out
}

// forward passes events on until ctx ends or the host is closed.
func (w *watcher) forward(ctx context.Context, closed <-chan struct{}, out chan<- Event) {
	for {
		ev, ok := w.take()
		if !ok {
			select {
			case <-w.wake:
				continue
			case <-ctx.Done():
			case <-closed:
			}
			return
		}
		select {
		case out <- ev:
		case <-ctx.Done():
			return
		case <-closed:
			return
		}
	}
}

func (h *Host) unwatch(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watchers, w)
}

// publish tells watchers of a change.
func (h *Host) publish(ev Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers {
		w.put(ev)
	}
}
