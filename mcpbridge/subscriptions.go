package mcpbridge

import (
	"context"
	"sync"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// subscriptions tracks which resources the client subscribed to, by
// resources/subscribe or by listeners. The session has one subscription for each
// URI, whoever needs it.
type subscriptions struct {
	changing chan struct{} // holds one token: the right to change the session's subscriptions

	mu         sync.Mutex // guards the rest
	subscribed map[string]bool
	listeners  map[string]int
}

func newSubscriptions() *subscriptions {
	s := &subscriptions{changing: make(chan struct{}, 1), subscribed: make(map[string]bool), listeners: make(map[string]int)}
	s.changing <- struct{}{}
	return s
}

// has reports whether the client subscribed to uri by resources/subscribe.
func (s *subscriptions) has(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.subscribed[uri]
}

// change applies f and brings the session's subscription to uri in line. If that
// fails, change applies undo.
func (s *subscriptions) change(ctx context.Context, session mcpserver.ServerSession, uri string, f, undo func()) error {
	select {
	case <-s.changing:
		defer func() { s.changing <- struct{}{} }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	before, after := s.apply(uri, f)
	var err error
	switch {
	case !before && after:
		err = session.Subscribe(ctx, uri)
	case before && !after:
		err = session.Unsubscribe(ctx, uri)
	}
	if err != nil {
		s.apply(uri, undo)
	}
	return err
}

// apply calls f and reports whether uri was needed before and is needed after.
func (s *subscriptions) apply(uri string, f func()) (before, after bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	needed := func() bool { return s.subscribed[uri] || s.listeners[uri] > 0 }
	before = needed()
	f()
	return before, needed()
}

func (s *subscriptions) subscribe(ctx context.Context, session mcpserver.ServerSession, uri string) error {
	return s.change(ctx, session, uri, func() { s.subscribed[uri] = true }, func() { delete(s.subscribed, uri) })
}

func (s *subscriptions) unsubscribe(ctx context.Context, session mcpserver.ServerSession, uri string) error {
	return s.change(ctx, session, uri, func() { delete(s.subscribed, uri) }, func() {})
}

// addListener subscribes a listener to all uris, or to none if there is an error.
func (s *subscriptions) addListener(ctx context.Context, session mcpserver.ServerSession, uris []string) error {
	for i, uri := range uris {
		if err := s.change(ctx, session, uri, func() { s.listeners[uri]++ }, func() { s.drop(uri) }); err != nil {
			s.removeListener(context.WithoutCancel(ctx), session, uris[:i])
			return err
		}
	}
	return nil
}

// removeListener ends the subscriptions of a listener. Nobody could act on an
// error of the server.
func (s *subscriptions) removeListener(ctx context.Context, session mcpserver.ServerSession, uris []string) {
	for _, uri := range uris {
		_ = s.change(ctx, session, uri, func() { s.drop(uri) }, func() {})
	}
}

// drop is called with s.mu held.
func (s *subscriptions) drop(uri string) {
	if s.listeners[uri]--; s.listeners[uri] <= 0 {
		delete(s.listeners, uri)
	}
}
