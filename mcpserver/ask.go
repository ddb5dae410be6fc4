package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/schemaguard"
)

// Elicit asks the user through the client and waits for the answer. The time limit
// of the call goes on meanwhile: a tool that waits for people sets its own limit, or
// [NoTimeout]. If the client does not support it, Elicit returns [ErrNotSupported].
//
// The answer's Action is accept, decline or cancel. The content of an accepted
// answer matches p.RequestedSchema, with defaults set; others have none. Any other
// answer is an error, and so is a schema that cannot be used.
//
// Where the client cannot be asked during a call (protocol 2026-07-28), Elicit
// returns [ErrInputRequired], which the handler must return.
func (r *Request) Elicit(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	check, err := newElicitCheck(p)
	if err != nil {
		return nil, err
	}
	answer, err := r.ask(ctx, p)
	if err != nil {
		return nil, err
	}
	result, ok := answer.(*mcp.ElicitResult)
	if !ok {
		return nil, fmt.Errorf("mcpserver: the client answered an elicitation with a %T", answer)
	}
	return check.take(result)
}

// Sample asks the client's model. See [Request.Elicit] for when that is possible.
func (r *Request) Sample(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	answer, err := r.ask(ctx, p)
	if err != nil {
		return nil, err
	}
	result, ok := answer.(*mcp.CreateMessageWithToolsResult)
	switch {
	case !ok:
		return nil, fmt.Errorf("mcpserver: the client answered a sampling request with a %T", answer)
	case len(result.Content) != 1:
		return nil, fmt.Errorf("mcpserver: the client's model answered with %d blocks, want 1", len(result.Content))
	}
	return &mcp.CreateMessageResult{
		Meta: result.Meta, Content: result.Content[0], Model: result.Model, Role: result.Role, StopReason: result.StopReason,
	}, nil
}

// ListRoots asks for the client's roots. See [Request.Elicit] for when that is possible.
func (r *Request) ListRoots(ctx context.Context) ([]*mcp.Root, error) {
	answer, err := r.ask(ctx, &mcp.ListRootsParams{})
	if err != nil {
		return nil, err
	}
	if result, ok := answer.(*mcp.ListRootsResult); ok {
		return result.Roots, nil
	}
	return nil, fmt.Errorf("mcpserver: the client answered a roots request with a %T", answer)
}

// ask sends a request to the client, or takes its answer from the round trip.
func (r *Request) ask(ctx context.Context, request mcp.InputRequest) (mcp.InputResponse, error) {
	if r.callCtx != nil && r.callCtx.roundTrip != nil {
		return r.callCtx.roundTrip.ask(request)
	}
	ss, err := r.session()
	if err != nil {
		return nil, err
	}
	if ss == nil {
		return nil, fmt.Errorf("%s: %w", capability(request), ErrNotSupported)
	}
	return ss.ask(ctx, request)
}

// ask sends a request to the session's client and checks the answer.
func (ss *Session) ask(ctx context.Context, request mcp.InputRequest) (mcp.InputResponse, error) {
	unsupported := fmt.Errorf("%s: %w", capability(request), ErrNotSupported)
	switch p := request.(type) {
	case *mcp.ElicitParams:
		if ss.elicit == nil {
			return nil, unsupported
		}
		check, err := newElicitCheck(p)
		if err != nil {
			return nil, err
		}
		result, err := containResult(ctx, ss.logger(), "SessionOptions.Elicit", func() (*mcp.ElicitResult, error) { return ss.elicit(ctx, p) })
		if err != nil {
			return nil, err
		}
		return check.take(result)
	case *mcp.CreateMessageParams:
		if ss.sample == nil {
			return nil, unsupported
		}
		result, err := containResult(ctx, ss.logger(), "SessionOptions.Sample", func() (*mcp.CreateMessageResult, error) { return ss.sample(ctx, p) })
		if err == nil && result == nil {
			err = errors.New("mcpserver: the client's model answered with nothing")
		}
		if err != nil {
			return nil, err
		}
		return &mcp.CreateMessageWithToolsResult{ // the type of answers in 2026-07-28
			Meta: result.Meta, Content: []mcp.Content{result.Content}, Model: result.Model,
			Role: result.Role, StopReason: result.StopReason,
		}, nil
	case *mcp.ListRootsParams:
		if ss.listRoots == nil {
			return nil, unsupported
		}
		roots, err := containResult(ctx, ss.logger(), "SessionOptions.ListRoots", func() ([]*mcp.Root, error) { return ss.listRoots(ctx) })
		if err == nil {
			err = checkRoots(roots)
		}
		if err != nil {
			return nil, err
		}
		return &mcp.ListRootsResult{Roots: roots}, nil
	}
	return nil, unsupported
}

// askAll sends the input requests of a result to the session's client.
func (ss *Session) askAll(ctx context.Context, requests mcp.InputRequestMap) (mcp.InputResponseMap, error) {
	if len(requests) == 0 {
		return nil, errors.New("the server is busy, try again later") // the meaning of an empty map
	}
	answers := make(mcp.InputResponseMap, len(requests))
	for _, key := range slices.Sorted(maps.Keys(requests)) {
		answer, err := ss.ask(ctx, requests[key])
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", key, err)
		}
		answers[key] = answer
	}
	return answers, nil
}

// capability returns the client's capability that a request needs.
func capability(request mcp.InputRequest) string {
	switch request.(type) {
	case *mcp.ElicitParams:
		return "elicitation"
	case *mcp.ListRootsParams:
		return "roots"
	}
	return "sampling"
}

func checkRoots(roots []*mcp.Root) error {
	for i, root := range roots {
		if root == nil {
			return fmt.Errorf("mcpserver: the client's root %d is null", i)
		}
	}
	return nil
}

// An elicitCheck checks answers to an elicitation.
type elicitCheck struct {
	schema *schemaguard.Schema // nil: any content
}

// newElicitCheck returns the check of answers to p. It fails if the requested
// schema cannot be used.
func newElicitCheck(p *mcp.ElicitParams) (*elicitCheck, error) {
	if p == nil {
		return nil, errors.New("mcpserver: an elicitation without params")
	}
	if p.RequestedSchema == nil {
		return &elicitCheck{}, nil
	}
	raw, err := json.Marshal(p.RequestedSchema)
	if err != nil {
		return nil, fmt.Errorf("mcpserver: the requested schema of an elicitation: %w", err)
	}
	return parseElicitCheck(raw)
}

func parseElicitCheck(raw json.RawMessage) (*elicitCheck, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return &elicitCheck{}, nil
	}
	schema, err := schemaguard.New(raw)
	if err == nil {
		err = schema.Compile()
	}
	if err != nil {
		return nil, fmt.Errorf("mcpserver: the requested schema of an elicitation: %w", err)
	}
	return &elicitCheck{schema}, nil
}

// take returns the answer for the handler: its action is one of the protocol's, and
// its content matches the schema, with defaults set. An answer that is not accepted
// has no content.
func (c *elicitCheck) take(result *mcp.ElicitResult) (*mcp.ElicitResult, error) {
	if result == nil {
		return nil, errors.New("mcpserver: the client answered an elicitation with nothing")
	}
	switch result.Action {
	case "accept":
	case "decline", "cancel":
		out := *result
		out.Content = nil
		return &out, nil
	default:
		return nil, fmt.Errorf("mcpserver: the client answered an elicitation with the action %.40q, want accept, decline or cancel", result.Action)
	}
	if c.schema == nil {
		return result, nil
	}
	content := emptyObject
	if result.Content != nil {
		var err error
		if content, err = json.Marshal(result.Content); err != nil {
			return nil, fmt.Errorf("mcpserver: the client's answer to an elicitation: %w", err)
		}
	}
	filled, err := c.schema.Fill(content, schemaguard.Limits{})
	if err != nil {
		return nil, fmt.Errorf("mcpserver: the client's answer to an elicitation does not match the requested schema: %w", err)
	}
	out := *result
	if err := json.Unmarshal(filled, &out.Content); err != nil {
		return nil, fmt.Errorf("mcpserver: the client's answer to an elicitation: %w", err)
	}
	return &out, nil
}
