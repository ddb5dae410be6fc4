package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/tenon-sdk/tenon/internal/callback"
	"github.com/tenon-sdk/tenon/internal/secret"
)

// maxAddress bounds the address for messages, in bytes.
const maxAddress = 16 << 10

// An sseConn is a connection over the HTTP+SSE transport of version 2024-11-05: one stream of events
// brings all messages of the server, and messages to it are posted to the address that the first
// event of the stream names.
type sseConn struct {
	c        *Client
	stream   *Endpoint
	messages *Endpoint
}

// SSE returns a client over the HTTP+SSE transport. ctx bounds the wait for the address of messages.
func SSE(ctx context.Context, e *Endpoint) (*Client, error) {
	c := newClient(ctx, e.o)
	s := &sseConn{c: c, stream: e}
	c.conn = s
	stop := context.AfterFunc(ctx, c.stop)
	body, events, err := s.open()
	if !stop() && err == nil {
		_ = body.Close()
		err = ctx.Err()
	}
	if err != nil {
		c.stop()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	c.spawn(func() { s.read(body, events) })
	return c, nil
}

func (s *sseConn) open() (io.ReadCloser, *eventReader, error) {
	resp, err := s.stream.do(s.c.ctx, http.MethodGet, nil, http.Header{"Accept": {"text/event-stream"}})
	if err != nil {
		return nil, nil, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, nil, s.stream.refusal(resp)
	}
	if t := mediaType(resp.Header); t != "text/event-stream" {
		return nil, nil, fmt.Errorf("the response is %q, not a stream of events; perhaps the server speaks streamable HTTP (type http): %w", s.c.o.Mask.Head([]byte(t), textHead), s.stream.refusal(resp))
	}
	events := newEventReader(resp.Body, s.c.o.MaxMessageBytes)
	e, err := events.next()
	if err == nil && e.name != "endpoint" {
		err = fmt.Errorf("the stream begins with event %q, not with endpoint", s.c.o.Mask.Head([]byte(e.name), textHead))
	}
	if err == nil {
		err = s.address(strings.TrimSpace(string(e.data)))
	}
	if err != nil {
		_ = resp.Body.Close()
		return nil, nil, err
	}
	return resp.Body, events, nil
}

// address takes the address for messages. It must be of the stream's origin, since the credentials
// go there.
func (s *sseConn) address(raw string) error {
	to, err := s.stream.url.Parse(raw)
	if err != nil || raw == "" || len(raw) > maxAddress {
		return errors.New("the server names no usable address for messages")
	}
	if !sameOrigin(s.stream.url, to) {
		return fmt.Errorf("%w: messages are to go to another origin, %s", ErrRedirect, s.c.o.Mask.Head([]byte(secret.SafeURL(to)), textHead))
	}
	to.User = s.stream.url.User
	e := *s.stream
	e.url = to
	for _, vs := range to.Query() { // the session's id, mostly
		s.c.o.Mask.Learn(vs)
	}
	s.messages = &e
	return nil
}

// MessagesURL returns where messages go, for tests; nil for other transports than SSE.
func (c *Client) MessagesURL() *url.URL {
	if s, ok := c.conn.(*sseConn); ok {
		return s.messages.url
	}
	return nil
}

func (s *sseConn) read(body io.ReadCloser, events *eventReader) {
	defer body.Close()
	for {
		e, err := events.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the server closed the stream of events")
			}
			s.c.broken(withoutURL(err))
			return
		}
		s.c.receiveEvent(e)
	}
}

// send implements connection.
func (s *sseConn) send(ctx context.Context, m *message) error {
	if err := checkHeaders(m); err != nil {
		return err
	}
	caller := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.c.ctx, cancel)() // the end of the connection ends the request, too
	header := http.Header{"Content-Type": {"application/json"}}
	addHeaders(header, m)
	m.sent.Store(true)
	resp, err := s.messages.do(ctx, http.MethodPost, m.data, header) //nolint:bodyclose // refusal and discard close it
	switch {
	case err == nil && resp.StatusCode >= 200 && resp.StatusCode <= 299:
		discard(resp.Body)
		return nil
	case err == nil:
		return s.refused(m, s.messages.refusal(resp))
	}
	m.notSentIf(NeverSent(err))
	switch {
	case s.c.ctx.Err() != nil:
		return s.c.ended()
	case caller.Err() != nil:
		return caller.Err()
	case errors.Is(err, ErrRedirect), errors.Is(err, callback.ErrPanicked):
		return err
	}
	err = lostOnTheWay(err)
	s.c.broken(err) // the stream is of the same server
	return err
}

// refused returns the error of a message that the server does not take. If it refuses a request
// because of the session or the login, the stream is of no use any more.
func (s *sseConn) refused(m *message, e *HTTPError) error {
	gone := sessionGone(e, replyError([]byte(e.Body)))
	if m.id == 0 || !s.c.established() || !gone && e.Status != http.StatusUnauthorized {
		return e
	}
	var err error = e
	if gone || s.stream.recomputed {
		m.sent.Store(false)
		err = fmt.Errorf("%w: %w", ErrSessionLost, e)
	}
	s.c.needsNew(err)
	return err
}

// close implements connection.
func (s *sseConn) close() error {
	s.c.stop()
	return nil
}
