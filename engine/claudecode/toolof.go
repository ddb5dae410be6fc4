package claudecode

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/toolname"
)

// statusTool is a tool in the answer to mcp_status.
type statusTool struct {
	Name        string `json:"name"`
	Annotations struct {
		ReadOnly    bool  `json:"readOnly"`
		Destructive *bool `json:"destructive"`
		OpenWorld   *bool `json:"openWorld"`
	} `json:"annotations"`
}

// annotations are the tool's hints, nil if the CLI knows of none.
func (t *statusTool) annotations() *mcp.ToolAnnotations {
	a := t.Annotations
	if !a.ReadOnly && a.Destructive == nil && a.OpenWorld == nil {
		return nil
	}
	return &mcp.ToolAnnotations{ReadOnlyHint: a.ReadOnly, DestructiveHint: a.Destructive, OpenWorldHint: a.OpenWorld}
}

// toolOf is the tool that a question is about, as far as it is known: the CLI's question names it,
// its status has the own names and the hints of the servers that the CLI connects. It is asked for
// them at each question, since they change when a server lists its tools anew.
func (s *session) toolOf(ctx context.Context, q *toolQuestion) offer {
	if o, ok := s.servers.tool(q.Server.Name, q.ToolName); ok || q.Server.Name == "" || s.servers.has(q.Server.Name) {
		return o
	}
	var r struct {
		Servers []struct {
			Name  string       `json:"name"`
			Tools []statusTool `json:"tools"`
		} `json:"mcpServers"`
	}
	if err := s.control(ctx, "mcp_status", nil, &r); err != nil {
		s.opts.Logger.DebugContext(ctx, "claude-code: nothing is known of a tool", "tool", q.ToolName, "error", err)
		return offer{}
	}
	for _, server := range r.Servers {
		if server.Name != q.Server.Name {
			continue
		}
		for _, t := range server.Tools {
			if toolname.Full(server.Name, t.Name) == q.ToolName {
				return offer{name: t.Name, annotations: t.annotations()}
			}
		}
	}
	return offer{}
}
