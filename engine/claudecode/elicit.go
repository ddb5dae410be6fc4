package claudecode

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/engine/internal/kit"
)

// elicit asks the program what a server that the CLI connects wants to know of the user. The CLI
// tells its servers that there is someone to ask; where there is nobody, the user declines.
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
	ask := kit.Elicit(s.opts)
	if ask == nil {
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	p := &mcp.ElicitParams{Message: q.Message, Mode: q.Mode, URL: q.URL, ElicitationID: q.ID}
	if len(q.Schema) > 0 {
		p.RequestedSchema = q.Schema
	}
	return ask(ctx, q.Server, p)
}
