package claudecode

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/permission"
)

// resourceTools are the CLI's own tools for the resources of servers. To its rules they are tools like any
// other: it does not apply those about a server to them.
var resourceTools = []string{"ListMcpResourcesTool", "ReadMcpResourceTool"}

// registerResources has the CLI ask about calls of those tools, if the model has them, and there are rules
// that restrict.
func (s *session) registerResources(all map[string][]hookMatcher) {
	const id = "resources"
	builtin := s.engine.opts.BuiltinTools
	if !slices.ContainsFunc(append(slices.Clone(resourceTools), "default"), func(name string) bool { return slices.Contains(builtin, name) }) ||
		len(s.opts.AskTools)+len(s.opts.DisallowedTools) == 0 {
		return
	}
	matcher := "^(?:ListMcpResourcesTool|ReadMcpResourceTool)$"
	all["PreToolUse"] = append(all["PreToolUse"], hookMatcher{Matcher: &matcher, Callbacks: []string{id}, Timeout: agent.DefaultHookTimeout.Seconds(), OnFailure: "block"})
	s.rawHooks[id] = func(_ context.Context, input json.RawMessage) (json.RawMessage, error) {
		var call struct {
			Tool  string `json:"tool_name"`
			Input struct {
				Server string `json:"server"`
			} `json:"tool_input"`
		}
		if err := json.Unmarshal(input, &call); err != nil {
			return nil, err
		}
		d := s.resourceRule(call.Tool, call.Input.Server)
		if d.Behavior == permission.Allow {
			return json.RawMessage("{}"), nil
		}
		return json.Marshal(hookReply{Specific: &hookSpecifics{Event: "PreToolUse", PermissionDecision: d.Behavior, PermissionReason: d.Message}})
	}
}

// resourceRule is what the rules say of the resources of a server; of all servers if it is empty, which list
// what they have.
func (s *session) resourceRule(tool, server string) permission.Decision {
	servers := knownServers(s.opts)
	names := []string{server}
	if server == "" {
		names = serverNames(s.opts)
	}
	p, _ := permission.NewPolicy(&permission.Options{Allow: []string{tool}, Ask: s.opts.AskTools, Deny: s.opts.DisallowedTools})
	p = p.WithServers(servers)
	strictest := permission.Decision{Behavior: permission.Allow}
	for _, name := range names {
		d := p.Decide(permission.Request{Tool: tool, Server: name, Resource: true, ReadOnly: true})
		if kit.Stricter(strictest.Behavior, d.Behavior) != strictest.Behavior {
			strictest = d
		}
	}
	return strictest
}
