package mcphost

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
	// askTime bounds the question whether a server refuses all that it is asked.
	askTime = 5 * time.Second
	// askPause is how long the answer that it does not is good for.
	askPause = time.Second
	// codeNoResource is the code for a resource that there is not.
	codeNoResource = -32002
)

// doubts are what is known of whether the server still knows the session. Its channel holds one while nobody asks.
type doubts struct {
	turn chan struct{}
	fine time.Time // when it was last found to know it; guarded by turn
}

// doubt returns the error of a refused request: as it is or, if the server refuses all requests since it does not know the
// session any more, as one of a lost session. Servers have many words for that, and the same codes for other things;
// so it is not the words that count but whether a list is refused, too, that was answered before.
func (l *remoteLink) doubt(ctx context.Context, scope *callScope, err error) error {
	if !refusal(err) || l.inner == nil {
		return err
	}
	again := l.refusesAll(ctx)
	if again == nil {
		return err
	}
	lost := fmt.Errorf("%w: %w", errSessionLost, err)
	if neverRan(err, again) {
		scope.sent.Store(false)
	}
	l.wire.leave(lost)
	if c, ok := l.car.(*httpCarrier); ok {
		c.forgotten()
	}
	return lost
}

// refusal reports whether an error may mean that the server does not know the session: an HTTP status that refuses the
// request as such, or one of the codes that JSON-RPC leaves to servers.
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

// refusesAll asks for a list that was answered before, once for all whose requests were refused at about the same time.
// It returns the refusal, or nil if the server answers or that cannot be told.
func (l *remoteLink) refusesAll(ctx context.Context) error {
	came := time.Now()
	select {
	case l.doubts.turn <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	defer func() { <-l.doubts.turn }()
	if isClosed(l.wire.lost) {
		if errors.Is(l.wire.left, errSessionLost) {
			return l.wire.left
		}
		return nil
	}
	if l.doubts.fine.After(came.Add(-askPause)) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	scope := new(callScope)
	err := l.askAnything(withCallScope(ctx, scope))
	switch {
	case scope.refusal != nil:
		err = scope.refusal
	case err != nil:
		err = unwrapCalling(err)
	}
	if refusal(err) {
		return err
	}
	if err == nil || scope.refusal != nil {
		l.doubts.fine = time.Now()
	}
	return nil
}

// askAnything asks for a list that the server answered before or, if it has no tools, one that it declared. Of one that
// answered no list of tools yet a ping says as much.
func (l *remoteLink) askAnything(ctx context.Context) error {
	var err error
	switch c := l.told.capabilities; {
	case l.wire.served("tools/list"):
		_, err = l.inner.ListTools(ctx, nil)
	case l.wire.served("resources/list") || c.Tools == nil && c.Resources != nil:
		_, err = l.inner.ListResources(ctx, nil)
	case l.wire.served("prompts/list") || c.Tools == nil && c.Prompts != nil:
		_, err = l.inner.ListPrompts(ctx, nil)
	case l.told.version < statelessSince:
		err = l.inner.Ping(ctx, nil)
	}
	return err
}

// mayHaveRun finds texts that tell of an end in the middle of a request rather than of a session.
var mayHaveRun = regexp.MustCompile(`(?i)clos|time[d ]*[ -]?out|abort|cancel`)

// neverRan reports whether a request was refused before it was processed: by its HTTP status, or with the very words that
// another is refused with.
func neverRan(err, again error) bool {
	var first, second *jsonrpc.Error
	if !errors.As(err, &first) {
		return true
	}
	return errors.As(again, &second) && first.Code == second.Code && first.Message == second.Message && !mayHaveRun.MatchString(first.Message)
}

// tellsChanges reports whether the server said that it tells of changes.
func (l *remoteLink) tellsChanges() bool {
	c := l.told.capabilities
	return c != nil && (c.Tools != nil && c.Tools.ListChanged || c.Prompts != nil && c.Prompts.ListChanged ||
		c.Resources != nil && (c.Resources.ListChanged || c.Resources.Subscribe))
}
