package claudecode

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcphost"
)

// mcpMessage answers an mcp_message request by the server's bridge. A message without a reply is
// acknowledged, or the CLI treats the server as dead.
func (s *session) mcpMessage(ctx context.Context, q *mcpMessage) (any, error) {
	a := s.servers.find(q.Server)
	if a == nil {
		return nil, fmt.Errorf("no server in this process is called %.60q", q.Server)
	}
	a.greet()
	message, reply := s.checkCall(ctx, q.Server, s.withOwnInput(q.Message))
	if reply == nil {
		var err error
		if reply, err = a.bridge.Handle(ctx, message); err != nil {
			return nil, err
		}
	}
	if reply == nil {
		reply = json.RawMessage(`{"jsonrpc":"2.0","result":{},"id":0}`)
	}
	return map[string]json.RawMessage{"mcp_response": reply}, nil
}

// withOwnInput returns a message with the input of a call as it was written.
func (s *session) withOwnInput(raw json.RawMessage) json.RawMessage {
	c, ok := readToolsCall(raw)
	if !ok {
		return raw
	}
	if input := s.inputs.inCall(c.id, c.input); !slices.Equal(input, c.input) {
		return withInput(raw, input)
	}
	return raw
}

// mcpStatus is the answer to an mcp_status request.
type mcpStatus struct {
	Servers []struct {
		Name      string              `json:"name"`
		Status    mcphost.Status      `json:"status"`
		Error     string              `json:"error"`
		Transport string              `json:"transport"`
		Scope     string              `json:"scope"`
		Source    string              `json:"source"`
		Info      *mcp.Implementation `json:"serverInfo"`
		Tools     []statusTool        `json:"tools"`
	} `json:"mcpServers"`
}

// A statusTool is a tool in an mcpStatus.
type statusTool struct {
	Name        string `json:"name"`
	Annotations struct {
		ReadOnly    bool  `json:"readOnly"`
		Destructive *bool `json:"destructive"`
		OpenWorld   *bool `json:"openWorld"`
	} `json:"annotations"`
}

// annotations returns the tool's hints, or nil if the CLI has none.
func (t *statusTool) annotations() *mcp.ToolAnnotations {
	a := t.Annotations
	if !a.ReadOnly && a.Destructive == nil && a.OpenWorld == nil {
		return nil
	}
	return &mcp.ToolAnnotations{ReadOnlyHint: a.ReadOnly, DestructiveHint: a.Destructive, OpenWorldHint: a.OpenWorld}
}

// definition returns what is known of a server's tool by its full name. For a server that the CLI
// connects it asks the CLI each time, because servers change their lists.
func (s *session) definition(ctx context.Context, server, tool string) toolDefinition {
	if a := s.servers.find(server); a != nil {
		return a.adapter.find(tool)
	}
	if server == "" {
		return toolDefinition{}
	}
	var status mcpStatus
	if err := s.control(ctx, "mcp_status", nil, &status); err != nil {
		s.opts.Logger.DebugContext(ctx, "claude-code: nothing is known of a tool", "tool", tool, "error", err)
	}
	for _, row := range status.Servers {
		for _, t := range row.Tools {
			if row.Name == server && toolname.Full(server, t.Name) == tool {
				return toolDefinition{name: t.Name, annotations: t.annotations()}
			}
		}
	}
	return toolDefinition{}
}

// MCPStatus returns the CLI's status of the servers. A server in this process that the CLI has not
// connected yet is pending.
func (s *session) MCPStatus(ctx context.Context) ([]mcphost.ServerStatus, error) {
	var status mcpStatus
	if err := s.control(ctx, "mcp_status", nil, &status); err != nil {
		return nil, err
	}
	var out []mcphost.ServerStatus
	known := map[string]bool{}
	for _, row := range status.Servers {
		known[row.Name] = true
		if st, ok := s.servers.hostStatus(row.Name, string(row.Status)); ok {
			out = append(out, st)
			continue
		}
		st := mcphost.ServerStatus{
			Name: row.Name, Status: row.Status, Error: row.Error, Transport: row.Transport,
			Scope: row.Scope, Source: row.Source, ServerInfo: row.Info, ToolCount: len(row.Tools),
		}
		if c := commonOf(s.opts.MCPServers[row.Name]); c.Source != "" {
			st.Scope, st.Source = c.Scope, c.Source
		}
		if row.Error != "" {
			st.Err = errors.New(row.Error)
		}
		a := s.servers.find(row.Name)
		for _, t := range row.Tools {
			full := toolname.Full(row.Name, t.Name)
			if a != nil {
				t.Name = a.adapter.ownName(t.Name)
			}
			st.Tools = append(st.Tools, mcphost.Tool{FullName: full, LongName: full, Server: row.Name, Name: t.Name, ReadOnly: t.Annotations.ReadOnly})
		}
		slices.SortFunc(st.Tools, func(a, b mcphost.Tool) int { return cmp.Compare(a.FullName, b.FullName) })
		out = append(out, st)
	}
	for _, name := range s.servers.names() {
		st, ok := s.servers.hostStatus(name, string(mcphost.StatusConnected))
		if !ok {
			st = mcphost.ServerStatus{Name: name, Status: mcphost.StatusPending, Transport: "sdk"}
		}
		if !known[name] {
			out = append(out, st)
		}
	}
	slices.SortFunc(out, func(a, b mcphost.ServerStatus) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// ReconnectMCPServer has the CLI reconnect a server. The CLI refuses to reconnect a server in this
// process, which is disabled and enabled instead.
func (s *session) ReconnectMCPServer(ctx context.Context, name string) error {
	if h := s.servers.hostOf(name); h != nil {
		return h.Reconnect(ctx, name)
	}
	if s.servers.find(name) == nil {
		return s.control(ctx, "mcp_reconnect", map[string]string{"serverName": name}, nil)
	}
	if err := s.SetMCPServerEnabled(ctx, name, false); err != nil {
		return err
	}
	return s.SetMCPServerEnabled(ctx, name, true)
}

// SetMCPServerEnabled has the CLI disable or enable a server.
func (s *session) SetMCPServerEnabled(ctx context.Context, name string, on bool) error {
	if h := s.servers.hostOf(name); h != nil && h == s.servers.ownHost {
		if err := h.SetEnabled(ctx, name, on); err != nil {
			return err
		}
	}
	return s.control(ctx, "mcp_toggle", struct {
		Server  string `json:"serverName"`
		Enabled bool   `json:"enabled"`
	}{name, on}, nil)
}

// SetMCPServers replaces the servers that the session was opened with.
func (s *session) SetMCPServers(ctx context.Context, configs map[string]mcphost.ServerConfig) (mcphost.SetResult, error) {
	configs, err := s.servers.connect(ctx, configs)
	if err != nil {
		return mcphost.SetResult{}, err
	}
	all, err := s.servers.cliConfigs(configs)
	if err != nil {
		return mcphost.SetResult{}, err
	}
	_, ours := s.servers.attach(configs)
	for name, c := range ours {
		c.Type, c.Name = "sdk", name
		if all[name], err = json.Marshal(c); err != nil {
			return mcphost.SetResult{}, fmt.Errorf("claude-code: server %q: %w", name, err)
		}
	}
	var r struct {
		Added   []string          `json:"added"`
		Removed []string          `json:"removed"`
		Errors  map[string]string `json:"errors"`
	}
	if err := s.control(ctx, "mcp_set_servers", map[string]any{"servers": all}, &r); err != nil {
		return mcphost.SetResult{}, err
	}
	s.servers.drop(r.Removed, configs)
	out := mcphost.SetResult{Added: r.Added, Removed: r.Removed}
	if len(r.Errors) > 0 {
		out.Errors = map[string]error{}
	}
	for name, text := range r.Errors {
		out.Errors[name] = errors.New(text)
	}
	return out, nil
}
