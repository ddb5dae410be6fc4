package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A readerFunc runs a reader or prompt handler and returns the input requests of
// its result.
type readerFunc func(ctx context.Context) (requests mcp.InputRequestMap, state string, err error)

// runReader runs a reader or prompt handler, again after each time that it input the
// client for input. If runReader fails, run may still be running. A result means
// that the client must be asked.
func (s *Server) runReader(ctx context.Context, ss *Session, kind Kind, name string, args json.RawMessage, run readerFunc) (*Result, error) {
	c := callFrom(ctx)
	c.Name, c.Arguments = name, args
	for trip := 0; ; trip++ {
		requests, state, err := s.readOnce(ctx, ss, kind, c, run)
		switch {
		case err != nil || requests == nil:
			return nil, err
		case c.MultiRoundTrip || ss == nil:
			return &Result{InputRequests: requests, RequestState: state}, nil
		case trip == maxRoundTrips:
			return nil, fmt.Errorf("%s %q: asked for input more than %d times", doing(kind), name, maxRoundTrips)
		}
		if c.InputResponses, err = ss.askAll(ctx, requests); err != nil {
			return nil, fmt.Errorf("%s %q: %w", doing(kind), name, err)
		}
		c.RequestState = state
	}
}

func doing(kind Kind) string {
	switch kind {
	case KindPrompt:
		return "making prompt"
	case KindCompletion:
		return "completing for"
	}
	return "reading resource"
}

// readOnce runs the reader once.
func (s *Server) readOnce(ctx context.Context, ss *Session, kind Kind, c Call, run readerFunc) (requests mcp.InputRequestMap, state string, err error) {
	if ctx.Err() != nil {
		return nil, "", ctxError(ctx, doing(kind), c.Name)
	}
	trip, err := s.newRoundTrip(ctx, kind, &c)
	if err != nil {
		return nil, "", err
	}
	cc, counts := s.newCallContext(ctx, ss, kind, c)
	cc.roundTrip = trip
	limit := s.timeout
	if ss != nil {
		limit = ss.timeout
	}
	var got Result // only its input requests
	j := job{
		callCtx: cc, dispatch: cc.dispatch.Load(), lifetime: counts, limit: limit, inv: Invocation{Kind: kind, Name: c.Name},
		run: func(ctx context.Context, _ *Invocation) (err error) {
			got.InputRequests, got.RequestState, err = run(ctx)
			return err
		},
	}
	how, err := j.do(ctx)
	switch how {
	case cancelled:
		return nil, "", ctxError(ctx, doing(kind), c.Name)
	case closed:
		return nil, "", fmt.Errorf("%s %q: %w", doing(kind), c.Name, ErrClosed)
	case tooMany:
		return nil, "", fmt.Errorf("%s %q: %w", doing(kind), c.Name, ErrTooManyCalls)
	case timedOut:
		j.failed(ctx, Failure{Timeout: j.limit})
		return nil, "", fmt.Errorf("%s %q: timed out after %s", doing(kind), c.Name, showLimit(limit))
	}
	if panicked := new(panicError); errors.As(err, &panicked) {
		return nil, "", fmt.Errorf("%s %q: internal error", doing(kind), c.Name)
	}
	return trip.readResult(got.InputRequests, got.RequestState, err)
}
