package mcpbridge

import (
	"context"
	"sync"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// watches counts who wants to hear of which resource: the session has one
// subscription for each URI, the bridge may have many takers of it.
type watches struct {
	turn chan struct{} // holds one token: the right to change the session's subscriptions

	mu    sync.Mutex // guards the rest
	plain map[string]bool
	count map[string]int // listeners, without plain
}

func newWatches() *watches {
	w := &watches{turn: make(chan struct{}, 1), plain: make(map[string]bool), count: make(map[string]int)}
	w.turn <- struct{}{}
	return w
}

// subscribed reports whether the client asked for uri by resources/subscribe.
func (w *watches) subscribed(uri string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.plain[uri]
}

// change applies f to the takers of uri and brings the session's subscription in
// line. When that fails f is undone by undo.
func (w *watches) change(ctx context.Context, s mcpserver.ServerSession, uri string, f, undo func()) error {
	select {
	case <-w.turn:
		defer func() { w.turn <- struct{}{} }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	before, after := w.apply(uri, f)
	var err error
	switch {
	case !before && after:
		err = s.Subscribe(ctx, uri)
	case before && !after:
		err = s.Unsubscribe(ctx, uri)
	}
	if err != nil {
		w.apply(uri, undo)
	}
	return err
}

func (w *watches) apply(uri string, f func()) (before, after bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wanted := func() bool { return w.plain[uri] || w.count[uri] > 0 }
	before = wanted()
	f()
	return before, wanted()
}

// subscribe and unsubscribe are the two methods up to 2025-11-25.
func (w *watches) subscribe(ctx context.Context, s mcpserver.ServerSession, uri string) error {
	return w.change(ctx, s, uri, func() { w.plain[uri] = true }, func() { delete(w.plain, uri) })
}

func (w *watches) unsubscribe(ctx context.Context, s mcpserver.ServerSession, uri string) error {
	return w.change(ctx, s, uri, func() { delete(w.plain, uri) }, func() {})
}

// add counts one listener more for each URI; when one fails none is counted.
func (w *watches) add(ctx context.Context, s mcpserver.ServerSession, uris []string) error {
	for i, uri := range uris {
		if err := w.change(ctx, s, uri, func() { w.count[uri]++ }, func() { w.drop(uri) }); err != nil {
			w.remove(context.WithoutCancel(ctx), s, uris[:i])
			return err
		}
	}
	return nil
}

// remove counts one listener less for each URI. What the server says to that is
// of no use to anyone.
func (w *watches) remove(ctx context.Context, s mcpserver.ServerSession, uris []string) {
	for _, uri := range uris {
		_ = w.change(ctx, s, uri, func() { w.drop(uri) }, func() {})
	}
}

// drop needs w.mu.
func (w *watches) drop(uri string) {
	if w.count[uri]--; w.count[uri] <= 0 {
		delete(w.count, uri)
	}
}
