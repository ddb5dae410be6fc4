package mcphost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tenon-sdk/tenon/internal/secret"
)

// A sseCarrier speaks the HTTP+SSE transport of 2024-11-05: one stream of events
// brings all that the server says, and messages to it are posted to the
// address that the stream's first event names.
type sseCarrier struct {
	at    *endpoint // of the stream
	to    *endpoint // of the messages
	wire  *wire
	limit int

	ctx    context.Context // of the connection: ends with close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	inUse  atomic.Bool // the handshake is over
}

// initialized is told of the server's answer to initialize.
func (c *sseCarrier) initialized(json.RawMessage) { c.inUse.Store(true) }

// openSSE opens the stream and waits for the address of the messages. ctx
// bounds that; the stream lives until close.
func openSSE(ctx context.Context, at *endpoint, w *wire, limit int) (*sseCarrier, error) {
	streamCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	c := &sseCarrier{at: at, wire: w, limit: limit, ctx: streamCtx, cancel: cancel}
	body, events, err := c.open()
	if err != nil {
		cancel()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	if !stop() {
		cancel()
		_ = body.Close()
		return nil, ctx.Err()
	}
	c.wg.Go(func() { c.read(body, events) })
	return c, nil
}

func (c *sseCarrier) open() (io.ReadCloser, *eventReader, error) {
	resp, err := c.at.do(c.ctx, http.MethodGet, nil, http.Header{"Accept": {"text/event-stream"}})
	if err != nil {
		return nil, nil, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, nil, c.at.refusal(resp)
	}
	if t := baseType(resp.Header); t != "text/event-stream" {
		return nil, nil, fmt.Errorf("the response is %q, not a stream of events; perhaps the server speaks streamable HTTP (type http): %w", c.at.mask.Head([]byte(t), noiseLine), c.at.refusal(resp))
	}
	events := newEventReader(resp.Body, c.limit)
	e, err := events.next()
	if err == nil && e.name != "endpoint" {
		err = fmt.Errorf("the stream begins with event %q, not with endpoint", c.at.mask.Head([]byte(e.name), noiseLine))
	}
	if err == nil {
		err = c.address(strings.TrimSpace(string(e.data)))
	}
	if err != nil {
		_ = resp.Body.Close()
		return nil, nil, err
	}
	return resp.Body, events, nil
}

// maxAddress is how long the address of the messages may be, in bytes.
const maxAddress = 16 << 10

// address takes the address of the messages. It must be of the stream's origin:
// the credentials go there.
func (c *sseCarrier) address(raw string) error {
	to, err := c.at.url.Parse(raw)
	if err != nil || raw == "" || len(raw) > maxAddress {
		return errors.New("the server names no usable address for messages")
	}
	if !sameOrigin(c.at.url, to) {
		return fmt.Errorf("%w: messages are to go to another origin, %s", errRedirect, c.at.mask.Head([]byte(secret.SafeURL(to)), noiseLine))
	}
	to.User = c.at.url.User
	e := *c.at
	e.url = to
	e.mask.Learn(queryValues(to))
	c.to = &e
	return nil
}

// queryValues are the values in an address's query: the session's id, mostly.
func queryValues(u *url.URL) []string {
	var all []string
	for _, vs := range u.Query() {
		all = append(all, vs...)
	}
	return all
}

func (c *sseCarrier) read(body io.ReadCloser, events *eventReader) {
	defer body.Close()
	for {
		e, err := events.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the server closed the stream of events")
			}
			c.wire.broken(withoutURL(err))
			return
		}
		deliver(c.wire, e, c.limit)
	}
}

func (c *sseCarrier) send(ctx context.Context, m *outgoing) error {
	if err := m.checkHeaders(); err != nil {
		return err
	}
	caller := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)() //nolint:contextcheck // the end of the connection ends the request, too
	h := http.Header{"Content-Type": {"application/json"}}
	if m.call != nil {
		for k, v := range m.call.headers {
			h.Set(k, v)
		}
		m.call.sent.Store(true)
	}
	resp, err := c.to.do(ctx, http.MethodPost, m.data, h) //nolint:bodyclose // refusal and discard close it
	if err != nil {
		m.unsentIf(neverSent(err))
		if c.ctx.Err() != nil {
			return ErrClosed
		}
		if caller.Err() != nil {
			return caller.Err()
		}
		if errors.Is(err, errRedirect) || errors.Is(err, errPanicked) {
			return err
		}
		err = lostOnTheWay(err)
		c.wire.broken(err) // the stream is of the same server
		return err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return c.refused(m, c.to.refusal(resp))
	}
	discard(resp.Body)
	return nil
}

// refused is the error of a message that the server did not take. If it did not take a request
// for the sake of the session or the login, the stream is of no use any more,
// whether it is still open or not.
func (c *sseCarrier) refused(m *outgoing, e *HTTPError) error {
	gone := sessionGone(e, replyError([]byte(e.Body)))
	if m.id == 0 || !c.inUse.Load() || !gone && e.Status != http.StatusUnauthorized {
		return e
	}
	if gone || c.at.fresh {
		m.unsentIf(true)
		err := fmt.Errorf("%w: %w", errSessionLost, e)
		c.wire.leave(err)
		return err
	}
	c.wire.leave(e)
	return e
}

func (c *sseCarrier) close() error {
	c.wire.end(io.EOF)
	c.cancel()
	return awaitAll(&c.wg)
}
