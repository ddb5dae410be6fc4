package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// notify sends a notification of a call to the client.
func (ss *Session) notify(ctx context.Context, n Notification) error {
	if err := ss.check(ctx); err != nil {
		return err
	}
	return ss.deliver(ctx, n)
}

// deliver calls SessionOptions.Notify.
func (ss *Session) deliver(ctx context.Context, n Notification) error {
	if ss.onNotify == nil {
		return nil
	}
	return contain(ctx, ss.logger(), "SessionOptions.Notify", func() error {
		ss.onNotify(ctx, n)
		return nil
	})
}

// notifyListChanged queues the notification that a list has changed.
func (ss *Session) notifyListChanged(method string) {
	n := Notification{Method: method}
	switch method {
	case MethodToolListChanged:
		n.Params = &mcp.ToolListChangedParams{}
	case MethodPromptListChanged:
		n.Params = &mcp.PromptListChangedParams{}
	case MethodResourceListChanged:
		n.Params = &mcp.ResourceListChangedParams{}
	}
	ss.enqueue(n)
}

// enqueue queues a notification for sendPending, unless an equal one is queued: a
// burst of changes costs a slow client one message.
func (ss *Session) enqueue(n Notification) {
	if ss.onNotify == nil {
		return
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if slices.ContainsFunc(ss.pending, n.same) {
		return
	}
	ss.pending = append(ss.pending, n)
	if ss.sending || !ss.lifetime.enter() {
		return
	}
	ss.sending = true
	go ss.sendPending() // ends when nothing is pending; lifetime.wait waits for it
}

// same reports whether two queued notifications are equal.
func (n Notification) same(m Notification) bool {
	if n.Method != m.Method {
		return false
	}
	a, ok := n.Params.(*mcp.ResourceUpdatedNotificationParams)
	b, ok2 := m.Params.(*mcp.ResourceUpdatedNotificationParams)
	return !ok || !ok2 || a.URI == b.URI
}

// sendPending sends the queued notifications.
func (ss *Session) sendPending() {
	defer ss.lifetime.leave()
	for {
		ss.mu.Lock()
		if len(ss.pending) == 0 || ss.lifetime.isClosed() {
			ss.sending, ss.pending = false, nil
			ss.mu.Unlock()
			return
		}
		n := ss.pending[0]
		ss.pending = slices.Delete(ss.pending, 0, 1)
		ss.mu.Unlock()
		_ = ss.deliver(ss.lifetime.ctx, n) // a panic has been logged
	}
}

// Subscribe requests a notification for each change of the resource (see
// [Server.NotifyResourceUpdated]). The resource must exist or match a template. A
// session has at most 1,000 subscriptions.
func (ss *Session) Subscribe(ctx context.Context, uri string) error {
	if err := ss.check(ctx); err != nil {
		return err
	}
	if !ss.server.registry().knows(uri) {
		return &NotFoundError{KindResource, uri}
	}
	if !ss.mayAdd(uri) {
		return fmt.Errorf("subscribing to %q: the session has %d subscriptions, as many as it may", uri, maxSubscriptions)
	}
	if f := ss.server.opts.Subscribe; f != nil {
		if err := contain(ctx, ss.logger(), "Options.Subscribe", func() error { return f(ctx, uri) }); err != nil {
			return fmt.Errorf("subscribing to %q: %w", uri, err)
		}
	}
	ss.mu.Lock()
	ss.subscribed[uri] = struct{}{}
	ss.mu.Unlock()
	return nil
}

// maxSubscriptions is the number of resources that one session may subscribe to.
const maxSubscriptions = 1000

func (ss *Session) mayAdd(uri string) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	_, has := ss.subscribed[uri]
	return has || len(ss.subscribed) < maxSubscriptions
}

func (ss *Session) subscriptions() []string {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return slices.Collect(maps.Keys(ss.subscribed))
}

// Unsubscribe ends a subscription. It is no error if there is none.
func (ss *Session) Unsubscribe(ctx context.Context, uri string) error {
	if err := ss.check(ctx); err != nil {
		return err
	}
	ss.mu.Lock()
	_, was := ss.subscribed[uri]
	delete(ss.subscribed, uri)
	ss.mu.Unlock()
	if f := ss.server.opts.Unsubscribe; f != nil && was {
		if err := contain(ctx, ss.logger(), "Options.Unsubscribe", func() error { return f(ctx, uri) }); err != nil {
			return fmt.Errorf("unsubscribing from %q: %w", uri, err)
		}
	}
	return nil
}

// NotifyResourceUpdated notifies the sessions that subscribed to the resource.
func (s *Server) NotifyResourceUpdated(uri string) {
	s.mu.Lock()
	var open []*Session
	for ss := range s.sessions {
		open = append(open, ss)
	}
	s.mu.Unlock()
	for _, ss := range open {
		ss.mu.Lock()
		_, subscribed := ss.subscribed[uri]
		ss.mu.Unlock()
		if subscribed || ss.allUpdates {
			ss.enqueue(Notification{MethodResourceUpdated, &mcp.ResourceUpdatedNotificationParams{URI: uri}})
		}
	}
}

// slogLevel returns the level of slog for a level of the protocol.
func slogLevel(level mcp.LoggingLevel) slog.Level {
	switch level {
	case "debug":
		return slog.LevelDebug
	case "info", "notice":
		return slog.LevelInfo
	case "warning":
		return slog.LevelWarn
	}
	return slog.LevelError
}

// change calls f, which reports whether it changed the features, and notifies all
// sessions.
func (s *Server) change(method string, f func(*features) bool) bool {
	s.mu.Lock()
	changed := f(&s.features)
	var open []*Session
	if changed {
		s.snapshot.Store(nil)
		for ss := range s.sessions {
			open = append(open, ss)
		}
	}
	s.mu.Unlock()
	for _, ss := range open {
		ss.notifyListChanged(method)
	}
	return changed
}

// Progress notifies the client that done of total units are done. Total is 0 if
// unknown. If the client did not ask for progress, Progress does nothing. After the
// call it returns [ErrCallEnded].
func (r *Request) Progress(ctx context.Context, done, total float64, msg string) error {
	ss, err := r.session()
	if err != nil || ss == nil || r.ProgressToken == nil {
		return err
	}
	return ss.notify(ctx, Notification{MethodProgress, &mcp.ProgressNotificationParams{
		ProgressToken: r.ProgressToken, Progress: done, Total: total, Message: msg,
	}})
}

// Log sends a log message to the client, unless it is below the level that the
// client set. A direct call logs to the server's logger instead. Data is any value
// that encoding/json can encode.
func (r *Request) Log(ctx context.Context, level mcp.LoggingLevel, logger string, data any) error {
	ss, err := r.session()
	if err != nil || r.callCtx == nil {
		return err
	}
	if ss == nil {
		text, err := json.Marshal(data)
		if err != nil {
			return fmt.Errorf("mcpserver: encoding a log message: %w", err)
		}
		r.callCtx.server.logger.Log(ctx, slogLevel(level), string(text), "logger", logger)
		return nil
	}
	if !ss.wants(level, r.Meta) {
		return nil
	}
	return ss.notify(ctx, Notification{MethodMessage, &mcp.LoggingMessageParams{Level: level, Logger: logger, Data: data}})
}
