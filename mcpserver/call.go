package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/schemaguard"
)

// CallTool calls a tool. Nil, empty and null arguments mean {}. It checks the
// arguments against the tool's input schema and the result against its output
// schema.
//
// A failure, including an unknown tool, is a result with IsError set. The error is
// not nil only if ctx ended (its chain has [context.Canceled] or
// [context.DeadlineExceeded]) or the server was closed ([ErrClosed]).
func (s *Server) CallTool(ctx context.Context, name string, args json.RawMessage) (*Result, error) {
	return s.call(ctx, nil, Call{Name: name, Arguments: args})
}

// call calls a tool for a session. A nil ss means a direct call.
func (s *Server) call(ctx context.Context, ss *Session, c Call) (*Result, error) {
	if s.lifetime.isClosed() || ss != nil && ss.lifetime.isClosed() {
		return nil, fmt.Errorf("calling tool %q: %w", c.Name, ErrClosed)
	}
	t := s.registry().tool(c.Name)
	if t == nil {
		return toolNotFound(c.Name), nil
	}
	if err := ctx.Err(); err != nil {
		return nil, ctxError(ctx, "calling tool", c.Name)
	}
	for trip := 0; ; trip++ {
		r, err := s.callOnce(ctx, ss, t, c)
		if err != nil || r.InputRequests == nil || c.MultiRoundTrip || ss == nil {
			return r, err
		}
		if trip == maxRoundTrips {
			return Errorf("Tool '%s' asked for input more than %d times", c.Name, maxRoundTrips), nil
		}
		answers, err := ss.askAll(ctx, r.InputRequests)
		if ctx.Err() != nil {
			return nil, ctxError(ctx, "calling tool", c.Name)
		}
		if err != nil {
			return Errorf("Tool '%s' needs input from the client: %v", c.Name, err), nil
		}
		c.InputResponses, c.RequestState = answers, r.RequestState
	}
}

func toolNotFound(name string) *Result {
	r := Errorf("Tool '%s' not found", shown(name))
	r.notFound = true
	return r
}

// callOnce checks the arguments, runs the handler and checks its result.
func (s *Server) callOnce(ctx context.Context, ss *Session, t *tool, c Call) (*Result, error) {
	args, err := s.arguments(t, c.Arguments, ss == nil)
	if err != nil {
		return Errorf("%s", err), nil
	}
	trip, err := s.newRoundTrip(ctx, KindTool, &c)
	if err != nil {
		return nil, err
	}
	cc, counts := s.newCallContext(ctx, ss, KindTool, c)
	cc.roundTrip = trip
	j := job{callCtx: cc, dispatch: cc.dispatch.Load(), lifetime: counts, limit: s.limitFor(t, ss), run: t.run}
	j.inv = Invocation{Kind: KindTool, Name: t.listed.Name, Arguments: args}
	if t.concurrency == Serial && !cc.serial {
		cc.serial = true
		j.serial = &s.serial
	}
	switch how, err := j.do(ctx); how {
	case cancelled, closed:
		wasClosed := how == closed || errors.Is(context.Cause(ctx), ErrClosed)
		switch {
		case !wasClosed:
			return nil, ctxError(ctx, "calling tool", c.Name)
		case j.started:
			return nil, fmt.Errorf("calling tool %q: %w", c.Name, errClosedInCall)
		}
		return nil, fmt.Errorf("calling tool %q: %w", c.Name, ErrClosed)
	case timedOut:
		j.failed(ctx, Failure{Timeout: j.limit})
		return Errorf("Tool '%s' timed out after %s; the tool may have run", c.Name, showLimit(j.limit)), nil
	case tooMany:
		return Errorf("Tool '%s' did not run: %d calls of this session run already, as many as may; call it again when some have ended", c.Name, s.opts.MaxCalls), nil
	case stuck:
		return Errorf("Tool '%s' did not run: a call before it has run over its time limit and does not end", c.Name), nil
	default:
		return trip.toolResult(s.result(t, j.inv.Result, err))
	}
}

// arguments checks the arguments and sets defaults. The model reads the error.
func (s *Server) arguments(t *tool, args json.RawMessage, direct bool) (json.RawMessage, error) {
	if s.opts.SkipValidation || direct && s.opts.SkipDirectValidation {
		return args, nil
	}
	if trimmed := bytes.TrimSpace(args); len(trimmed) == 0 || string(trimmed) == "null" {
		args = emptyObject
	}
	filled, err := t.input.validate(args, t.typed)
	if err == nil {
		return filled, nil
	}
	return nil, errors.New(explain(err, t.listed.Name, "arguments", "input schema"))
}

// explain returns the text of a validation error for the model.
func explain(err error, name, what, schema string) string {
	var invalid *schemaguard.ValidationError
	var limit *schemaguard.LimitError
	var syntax *schemaguard.SyntaxError
	switch {
	case errors.As(err, &invalid):
		return fmt.Sprintf("Tool '%s': the %s do not match the %s:\n%v", name, what, schema, invalid)
	case errors.As(err, &syntax):
		return fmt.Sprintf("Tool '%s': the %s are %v", name, what, syntax)
	case errors.As(err, &limit) && limit.Depth > 0:
		return fmt.Sprintf("Tool '%s': the %s are nested too deeply: %v", name, what, limit)
	}
	return fmt.Sprintf("Tool '%s': the %s cannot be checked against the %s: %v", name, what, schema, err)
}

// result returns the result of a call whose handler returned r and err.
func (s *Server) result(t *tool, r *Result, err error) *Result {
	name := t.listed.Name
	if err != nil {
		var panicked *panicError
		if errors.As(err, &panicked) {
			return Errorf("Tool '%s' failed: internal error", name)
		}
		return Errorf("%s", errorText(err))
	}
	if r == nil {
		return Errorf("Tool '%s' must return a *mcpserver.Result with content, and its handler returned nil", name)
	}
	for i, block := range r.Content {
		if isNil(block) {
			return Errorf("Tool '%s' returned a malformed result: content block %d has no type", name, i)
		}
	}
	if r.IsError || r.InputRequests != nil {
		return r
	}
	return s.checkOutput(t, r)
}

// errorText returns err.Error(), which may panic: it is code of the program.
func errorText(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = "the error has no text: its Error method panics"
		}
	}()
	return err.Error()
}

// checkOutput validates structured content.
func (s *Server) checkOutput(t *tool, r *Result) *Result {
	if t.output == nil {
		if r.StructuredContent != nil && !json.Valid(r.StructuredContent) {
			return Errorf("Tool '%s' returned structured content that is not valid JSON", t.listed.Name)
		}
		return r
	}
	if r.StructuredContent == nil {
		return Errorf("Tool '%s' has an output schema but returned no structured content", t.listed.Name)
	}
	if _, err := t.output.validate(r.StructuredContent, false); err != nil {
		return Errorf("%s", explain(err, t.listed.Name, "results", "output schema"))
	}
	if len(r.Content) > 0 {
		return r
	}
	c := *r // for clients that read only content
	c.Content = []mcp.Content{&mcp.TextContent{Text: string(r.StructuredContent)}}
	return &c
}

// CallTool calls a tool for this session, as [Server.CallTool] does directly.
func (ss *Session) CallTool(ctx context.Context, c Call) (*Result, error) {
	return ss.server.call(ctx, ss, c)
}

// limitFor returns the time limit of a tool's calls (see [Options.Timeout]).
func (s *Server) limitFor(t *tool, ss *Session) time.Duration {
	if ss != nil {
		return effectiveTimeout(t.timeout, ss.timeout)
	}
	return effectiveTimeout(t.timeout, s.timeout)
}
