package claudecode

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/permission"
)

// withFiles reads the configuration files that the CLI is not given, lays the options over them, and
// returns the engine with what the CLI has to be told of them.
func (e *Engine) withFiles(o *agent.Options) (*Engine, error) {
	files, sources, err := kit.ReadForCLI(o)
	if err != nil {
		return nil, err
	}
	files.Apply(o)
	addPolicies(o, files.Policies)
	switch {
	case len(sources) > 0:
		o.SettingSources = sources
	case len(o.SettingSources) > 0:
		o.SettingSources = nil // not empty, which would mean no servers but the program's
	}
	run := *e
	run.opts.Settings, err = filesSettings(files, e.opts.Settings)
	if err != nil {
		return nil, fmt.Errorf("claude-code: Settings: %w", err)
	}
	return &run, nil
}

// addPolicies makes rules of the policies that entries have for single tools: the CLI knows them of its own files only.
func addPolicies(o *agent.Options, policies map[string]map[string]permission.ToolPolicy) {
	for _, server := range slices.Sorted(maps.Keys(policies)) {
		for _, tool := range slices.Sorted(maps.Keys(policies[server])) {
			rule := toolname.Full(server, tool)
			switch policies[server][tool] {
			case permission.AlwaysAllow:
				o.AllowedTools = append(o.AllowedTools, rule)
			case permission.AlwaysAsk:
				o.AskTools = append(o.AskTools, rule)
			case permission.AlwaysDeny:
				o.DisallowedTools = append(o.DisallowedTools, rule)
			}
		}
	}
}

// filesSettings lays the program's settings over what the trusted files of a checkout say that no option
// carries, and adds the servers that the CLI must not use. Nil means none.
func filesSettings(f *kit.Files, own json.RawMessage) (json.RawMessage, error) {
	if len(f.Settings.Trusted) == 0 && len(f.Denied) == 0 {
		return own, nil
	}
	all := map[string]json.RawMessage{}
	for _, layer := range append(slices.Clone(f.Settings.Trusted), own) {
		if layer == nil {
			continue
		}
		fields := members(layer)
		if fields == nil {
			continue // refused before
		}
		if !sameBytes(layer, own) {
			delete(fields, "permissions") // the options have them
			delete(fields, "env")
		}
		for name, value := range fields {
			var err error
			if name == "hooks" {
				all[name], err = joinHooks(all[name], value)
			} else {
				all[name], err = mergeObjects(all[name], value)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if len(f.Denied) > 0 {
		var denied []json.RawMessage
		_ = json.Unmarshal(all[deniedServers], &denied) // what is no list is none
		for _, name := range f.Denied {
			entry, err := json.Marshal(map[string]string{"serverName": name})
			if err != nil {
				return nil, err
			}
			denied = append(denied, entry)
		}
		list, err := json.Marshal(denied)
		if err != nil {
			return nil, err
		}
		all[deniedServers] = list
	}
	if len(all) == 0 {
		return own, nil
	}
	return json.Marshal(all)
}

// deniedServers is the CLI's setting for servers that it does not use, whoever configured them.
const deniedServers = "deniedMcpServers"

func sameBytes(a, b json.RawMessage) bool { return len(a) > 0 && len(b) > 0 && &a[0] == &b[0] }

// joinHooks joins the hooks of two settings, event by event.
func joinHooks(first, second json.RawMessage) (json.RawMessage, error) {
	all := members(first)
	if all == nil {
		return second, nil
	}
	for event, more := range members(second) {
		var a, b []json.RawMessage
		if json.Unmarshal(all[event], &a) != nil || json.Unmarshal(more, &b) != nil {
			all[event] = more
			continue
		}
		joined, err := json.Marshal(append(a, b...))
		if err != nil {
			return nil, err
		}
		all[event] = joined
	}
	return json.Marshal(all)
}
