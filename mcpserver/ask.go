package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/schemaguard"
)

// askUser asks the user through the session's client and checks the answer.
func (ss *Session) askUser(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	if ss.elicit == nil {
		return nil, fmt.Errorf("asking the user: %w", ErrNotSupported)
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
}

// askModel asks the client's model.
func (ss *Session) askModel(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	if ss.sample == nil {
		return nil, fmt.Errorf("asking the client's model: %w", ErrNotSupported)
	}
	result, err := containResult(ctx, ss.logger(), "SessionOptions.Sample", func() (*mcp.CreateMessageResult, error) { return ss.sample(ctx, p) })
	if err == nil && result == nil {
		err = errNoAnswer
	}
	return result, err
}

// errNoAnswer says that the function that asks the client's model returned nil.
var errNoAnswer = errors.New("mcpserver: the client's model answered with nothing")

// askRoots asks for the client's roots.
func (ss *Session) askRoots(ctx context.Context) ([]*mcp.Root, error) {
	if ss.listRoots == nil {
		return nil, fmt.Errorf("asking for roots: %w", ErrNotSupported)
	}
	roots, err := containResult(ctx, ss.logger(), "SessionOptions.ListRoots", func() ([]*mcp.Root, error) { return ss.listRoots(ctx) })
	if err != nil {
		return nil, err
	}
	return roots, checkRoots(roots)
}

func checkRoots(roots []*mcp.Root) error {
	for i, root := range roots {
		if root == nil {
			return fmt.Errorf("mcpserver: the client's root %d is null", i)
		}
	}
	return nil
}

// An elicitCheck checks what a client answers to an elicitation.
type elicitCheck struct {
	schema *schemaguard.Schema // nil: any content
}

// newElicitCheck prepares the check of the answer to p. A requested schema that
// cannot be used is an error before anybody is asked.
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
	return elicitCheckOf(raw)
}

func elicitCheckOf(raw json.RawMessage) (*elicitCheck, error) {
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

// take returns the answer as the handler gets it: its action is one of the
// protocol's, and its content matches the schema, with the defaults set. An
// answer that is not accepted has no content.
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

// Elicit asks the user through the client and waits for the answer. The call's
// time limit goes on meanwhile: a tool that waits for people sets its own, or
// [NoTimeout]. If the client cannot be asked it returns [ErrNotSupported].
//
// The answer's Action is accept, decline or cancel. The content of one that is
// accepted matches p.RequestedSchema, with defaults set; others have none. An
// answer that breaks this is an error, and so is a schema that cannot be used.
//
// Where the client cannot be asked during a call (protocol 2026-07-28), Elicit
// returns an error that the handler has to return; the handler is then called
// again from its beginning and gets the answer from the same call of Elicit.
func (r *Request) Elicit(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	if r.callCtx != nil && r.callCtx.roundTrip != nil {
		check, err := newElicitCheck(p)
		if err != nil {
			return nil, err
		}
		answer, err := r.callCtx.roundTrip.ask(p)
		if err != nil {
			return nil, err
		}
		if result, ok := answer.(*mcp.ElicitResult); ok {
			return check.take(result)
		}
		return nil, fmt.Errorf("mcpserver: the client answered an elicitation with a %T", answer)
	}
	ss, err := r.session()
	if err != nil {
		return nil, err
	}
	if ss == nil {
		return nil, fmt.Errorf("asking the user: %w", ErrNotSupported)
	}
	return ss.askUser(ctx, p)
}

// Sample asks the client's model. See [Request.Elicit] for when that is possible.
func (r *Request) Sample(ctx context.Context, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	if r.callCtx != nil && r.callCtx.roundTrip != nil {
		answer, err := r.callCtx.roundTrip.ask(p)
		if err != nil {
			return nil, err
		}
		switch result := answer.(type) {
		case *mcp.CreateMessageResult:
			return result, nil
		case *mcp.CreateMessageWithToolsResult:
			return oneMessage(result)
		}
		return nil, fmt.Errorf("mcpserver: the client answered a sampling request with a %T", answer)
	}
	ss, err := r.session()
	if err != nil {
		return nil, err
	}
	if ss == nil {
		return nil, fmt.Errorf("asking the client's model: %w", ErrNotSupported)
	}
	return ss.askModel(ctx, p)
}

// ListRoots asks for the client's roots. See [Request.Elicit] for when that is possible.
func (r *Request) ListRoots(ctx context.Context) ([]*mcp.Root, error) {
	if r.callCtx != nil && r.callCtx.roundTrip != nil {
		answer, err := r.callCtx.roundTrip.ask(&mcp.ListRootsParams{})
		if err != nil {
			return nil, err
		}
		if result, ok := answer.(*mcp.ListRootsResult); ok {
			return result.Roots, nil
		}
		return nil, fmt.Errorf("mcpserver: the client answered a roots request with a %T", answer)
	}
	ss, err := r.session()
	if err != nil {
		return nil, err
	}
	if ss == nil {
		return nil, fmt.Errorf("asking for roots: %w", ErrNotSupported)
	}
	return ss.askRoots(ctx)
}

// oneMessage converts an answer that may have several blocks.
func oneMessage(r *mcp.CreateMessageWithToolsResult) (*mcp.CreateMessageResult, error) {
	if len(r.Content) != 1 {
		return nil, fmt.Errorf("mcpserver: the client's model answered with %d blocks, want 1", len(r.Content))
	}
	return &mcp.CreateMessageResult{Meta: r.Meta, Content: r.Content[0], Model: r.Model, Role: r.Role, StopReason: r.StopReason}, nil
}
