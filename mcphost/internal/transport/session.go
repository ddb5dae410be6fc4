package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// checkTime bounds the check whether the server refuses all requests.
	checkTime = 5 * time.Second
	// checkPause is how long it is taken for granted that the server does not.
	checkPause = time.Second
	// codeNoResource is the code of the error for an unknown resource.
	codeNoResource = -32002
)

// A sessionCheck finds out whether the server still knows the session.
type sessionCheck struct {
	turn chan struct{} // holds one during a check
	good time.Time     // when the server was last found to know it; guarded by turn
}

// checkSession returns the error of a request. If the server refuses all requests since it does not
// know the session, that is [ErrSessionLost]. Servers have many words and codes for a lost session,
// and the same ones for other faults. So the words do not decide, but whether the server also
// refuses a list that it answered before.
func (c *Client) checkSession(ctx context.Context, m *message, err error) error {
	if !refusal(err) {
		return err
	}
	again := c.refusesAll(ctx)
	if again == nil {
		return err
	}
	lost := fmt.Errorf("%w: %w", ErrSessionLost, err)
	m.notSentIf(neverRan(err, again))
	c.needsNew(lost)
	if h, ok := c.conn.(*httpConn); ok {
		h.forgotten()
	}
	return lost
}

// refusal reports whether an error may mean that the server does not know the session: an HTTP
// status that refuses the request, or one of the codes that JSON-RPC leaves to servers.
func refusal(err error) bool {
	var re *jsonrpc.Error
	if errors.As(err, &re) {
		switch re.Code {
		case codeNoResource, mcp.CodeURLElicitationRequired:
			return false
		}
		return re.Code == jsonrpc.CodeInvalidRequest || re.Code >= -32099 && re.Code <= -32000
	}
	var he *HTTPError
	if !errors.As(err, &he) {
		return false
	}
	switch he.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusGone, http.StatusPreconditionFailed, http.StatusPreconditionRequired:
		return true
	}
	return false
}

// refusesAll requests a list that the server answered before, once for all requests that are
// refused at about the same time. It returns the refusal, or nil if the server answers or the
// outcome is unclear.
func (c *Client) refusesAll(ctx context.Context) error {
	came := time.Now()
	select {
	case c.session.turn <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	defer func() { <-c.session.turn }()
	select {
	case <-c.lost:
		if errors.Is(c.lostErr, ErrSessionLost) {
			return c.lostErr
		}
		return nil
	default:
	}
	if c.session.good.After(came.Add(-checkPause)) {
		return nil
	}
	r := c.harmlessRequest()
	if r == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	m, forget, err := c.encode(r)
	if err != nil {
		return nil // it cannot be sent: unclear
	}
	defer forget()
	_, err = c.roundTrip(ctx, m)
	if refusal(err) {
		return err
	}
	if err == nil || errors.As(err, new(*jsonrpc.Error)) {
		c.session.good = time.Now()
	}
	return nil
}

// harmlessRequest returns a request for a list that the server answered before or, if it has no
// tools, one that it declares. Without any a ping serves as well, where there is one.
func (c *Client) harmlessRequest() *Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch caps := c.info.Capabilities; {
	case c.listed["tools/list"]:
		return &Request{Method: "tools/list", Params: &mcp.ListToolsParams{}}
	case c.listed["resources/list"] || caps.Tools == nil && caps.Resources != nil:
		return &Request{Method: "resources/list", Params: &mcp.ListResourcesParams{}}
	case c.listed["prompts/list"] || caps.Tools == nil && caps.Prompts != nil:
		return &Request{Method: "prompts/list", Params: &mcp.ListPromptsParams{}}
	case c.info.Version < V20260728:
		return &Request{Method: "ping", Params: &mcp.PingParams{}}
	}
	return nil
}

// mayHaveRun finds texts about an end in the middle of a request rather than about a session.
var mayHaveRun = regexp.MustCompile(`(?i)clos|time[d ]*[ -]?out|abort|cancel`)

// neverRan reports whether a request was refused before it was processed: by its HTTP status, or
// with the very words with which another is refused.
func neverRan(err, again error) bool {
	var first, second *jsonrpc.Error
	if !errors.As(err, &first) {
		return true
	}
	return errors.As(again, &second) && first.Code == second.Code && first.Message == second.Message && !mayHaveRun.MatchString(first.Message)
}
