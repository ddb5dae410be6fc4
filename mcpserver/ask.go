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

// An pendingInput is what the sealed state of a call keeps of a question, so that only
// an answer to it counts in the next round.
type pendingInput struct {
	Kind   string          `json:"k"` // as questionKind has it
	Schema json.RawMessage `json:"s,omitempty"`
}

func newPendingInput(question mcp.InputRequest) (pendingInput, error) {
	a := pendingInput{Kind: questionKind(question)}
	p, ok := question.(*mcp.ElicitParams)
	if !ok {
		return a, nil
	}
	if _, err := newElicitCheck(p); err != nil || p.RequestedSchema == nil {
		return a, err
	}
	var err error
	a.Schema, err = json.Marshal(p.RequestedSchema)
	return a, err
}

// check checks the client's answer to the question.
func (a pendingInput) check(response mcp.InputResponse) error {
	kind := ""
	switch r := response.(type) {
	case *mcp.ElicitResult:
		kind = "elicitation"
		if a.Kind != kind {
			break
		}
		check, err := elicitCheckOf(a.Schema)
		if err != nil {
			return err
		}
		_, err = check.take(r)
		return err
	case *mcp.ListRootsResult:
		kind = "roots"
		if a.Kind == kind {
			return checkRoots(r.Roots)
		}
	case *mcp.CreateMessageResult, *mcp.CreateMessageWithToolsResult:
		kind = "sampling"
	}
	if a.Kind != kind {
		return fmt.Errorf("the answer is none to the %s request that was sent", a.Kind)
	}
	return nil
}
