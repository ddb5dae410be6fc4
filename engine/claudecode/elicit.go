package claudecode

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// elicit asks the program what a server that the CLI connects wants to know of the user. Without
// anyone to ask, and after an error, the answer is that the user declines.
func (s *session) elicit(ctx context.Context, request json.RawMessage) (any, error) {
	var q struct {
		Server  string          `json:"mcp_server_name"`
		Message string          `json:"message"`
		Mode    string          `json:"mode"`
		URL     string          `json:"url"`
		ID      string          `json:"elicitation_id"`
		Schema  json.RawMessage `json:"requested_schema"`
	}
	if err := json.Unmarshal(request, &q); err != nil {
		return nil, fmt.Errorf("reading elicitation: %w", err)
	}
	declined := &mcp.ElicitResult{Action: "decline"}
	if s.opts.OnElicitation == nil {
		return declined, nil
	}
	p := &mcp.ElicitParams{Message: q.Message, Mode: q.Mode, URL: q.URL, ElicitationID: q.ID}
	if len(q.Schema) > 0 {
		p.RequestedSchema = q.Schema
	}
	res, err := contained(s, "OnElicitation", func() (*mcp.ElicitResult, error) { return s.opts.OnElicitation(ctx, q.Server, p) })
	if err == nil && res != nil {
		return res, nil
	}
	s.opts.Logger.WarnContext(ctx, "claude-code: elicitation was not answered", "server", q.Server, "error", err)
	return declined, nil
}
