package kit

import (
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/mcpconfig"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

// Reviewed is what permission rules are reviewed with.
type Reviewed struct {
	Servers  []permission.Server
	Tools    []permission.Request // calls of the tools, those that are left out included
	Unlisted []string             // servers that are not connected
	Settled  bool                 // no server is connecting
}

// Review returns the servers and tools for a review of permission rules.
func Review(status []mcphost.ServerStatus) Reviewed {
	r := Reviewed{Settled: true}
	for _, st := range status {
		r.Servers = append(r.Servers, RuleServer(st))
		if st.Status != mcphost.StatusConnected {
			r.Unlisted = append(r.Unlisted, st.Name)
			r.Settled = r.Settled && st.Status != mcphost.StatusPending
		}
		for _, t := range st.Rejected {
			r.Tools = append(r.Tools, permission.Request{Tool: toolname.Full(st.Name, t.Name), Server: st.Name, ToolName: t.Name})
		}
		for _, t := range st.Tools {
			r.Tools = append(r.Tools, permission.Request{Tool: t.FullName, Server: st.Name, ToolName: t.Name, ReadOnly: t.ReadOnly})
		}
	}
	return r
}

// RuleServer returns a server for permission rules. Those of a project's files are foreign.
func RuleServer(st mcphost.ServerStatus) permission.Server {
	return permission.Server{Key: st.Name, Foreign: st.Scope == string(mcpconfig.ScopeProject)}
}
