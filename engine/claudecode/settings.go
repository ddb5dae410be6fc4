package claudecode

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/internal/kit"
	"github.com/tenon-sdk/tenon/internal/toolname"
	"github.com/tenon-sdk/tenon/permission"
)

// withFiles reads the configuration files that the CLI does not read, adds what they say to the
// options, and returns the engine with the settings that the CLI gets of them.
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
		o.SettingSources = nil // an empty list would exclude all servers but the program's
	}
	run := *e
	run.opts.Settings, err = fileSettings(files, e.opts.Settings)
	if err != nil {
		return nil, fmt.Errorf("claude-code: Settings: %w", err)
	}
	return &run, nil
}

// addPolicies adds rules for the policies that server configurations have for single tools. The CLI
// applies such policies only from files that it reads itself.
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

// deniedServers is the CLI's setting for servers that it does not use, wherever they are configured.
const deniedServers = "deniedMcpServers"

// fileSettings merges the settings of trusted files that no option has with the program's settings,
// which take precedence, and adds the servers that the CLI must not use. Nil means no settings.
func fileSettings(f *kit.Files, own json.RawMessage) (json.RawMessage, error) {
	if len(f.Settings.Trusted) == 0 && len(f.Denied) == 0 {
		return own, nil
	}
	all := map[string]json.RawMessage{}
	add := func(fields map[string]json.RawMessage) (err error) {
		for name, value := range fields {
			if name == "hooks" {
				all[name], err = joinHooks(all[name], value)
			} else {
				all[name], err = mergeObjects(all[name], value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for _, layer := range f.Settings.Trusted {
		fields := members(layer)
		delete(fields, "permissions") // the options have them
		delete(fields, "env")
		if err := add(fields); err != nil {
			return nil, err
		}
	}
	if err := add(members(own)); err != nil {
		return nil, err
	}
	var denied []json.RawMessage
	_ = json.Unmarshal(all[deniedServers], &denied) // any other value has none
	for _, name := range f.Denied {
		entry, err := json.Marshal(map[string]string{"serverName": name})
		if err != nil {
			return nil, err
		}
		denied = append(denied, entry)
	}
	if len(f.Denied) > 0 {
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

// sessionSettings merges the settings of the program, its sandbox, and the rules that no flag has. Nil
// means no settings.
func sessionSettings(e *Options, o *agent.Options) (map[string]json.RawMessage, error) {
	if !hasSettings(e, o) {
		return nil, nil //nolint:nilnil // as documented
	}
	all := map[string]json.RawMessage{}
	maps.Copy(all, members(e.Settings))
	merge := func(name string, value json.RawMessage) (err error) {
		if all[name], err = mergeObjects(all[name], value); err != nil {
			return fmt.Errorf("claude-code: Settings: %w", err)
		}
		return nil
	}
	if o.Settings != "" {
		own, err := ownSettings(o)
		if err != nil {
			return nil, err
		}
		for name, value := range own {
			if err := merge(name, value); err != nil {
				return nil, err
			}
		}
	}
	if e.Sandbox != nil {
		if err := merge("sandbox", e.Sandbox); err != nil {
			return nil, err
		}
	}
	for name, values := range permissionLists(e, o) {
		permissions, err := withList(all["permissions"], name, values)
		if err != nil {
			return nil, fmt.Errorf("claude-code: Settings: %w", err)
		}
		all["permissions"] = permissions
	}
	return all, nil
}

func hasSettings(e *Options, o *agent.Options) bool {
	return e.Settings != nil || o.Settings != "" || e.Sandbox != nil || len(permissionLists(e, o)) > 0
}

// permissionLists returns the lists, by their member in the settings' permissions, that no flag has or
// that are too long for one.
func permissionLists(e *Options, o *agent.Options) map[string][]string {
	all := map[string][]string{}
	if len(o.AskTools) > 0 {
		all["ask"] = o.AskTools
	}
	if rules := allowed(e, o); tooLong(rules) {
		all["allow"] = rules
	}
	if dirs := directories(e, o); tooLong(dirs) {
		all["additionalDirectories"] = dirs
	}
	return all
}

// ownSettings returns the settings of agent.Options.Settings.
func ownSettings(o *agent.Options) (map[string]json.RawMessage, error) {
	text := []byte(strings.TrimSpace(o.Settings))
	if !strings.HasPrefix(string(text), "{") {
		path := o.Settings
		if !filepath.IsAbs(path) {
			path = filepath.Join(o.Dir, path)
		}
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return nil, &agent.OptionError{Field: "Settings", Problem: fmt.Sprintf("cannot be read: %v", err), Remedy: "set the path of a file, or JSON"}
		}
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, &agent.OptionError{Field: "Settings", Problem: "is no JSON object", Remedy: "set the path of a file, or JSON"}
	}
	return fields, nil
}

// mergeObjects merges two JSON objects, and the objects in them. Members of over take precedence.
func mergeObjects(under, over json.RawMessage) (json.RawMessage, error) {
	a, b := members(under), members(over)
	if a == nil || b == nil {
		return over, nil
	}
	for name, value := range b {
		merged, err := mergeObjects(a[name], value)
		if err != nil {
			return nil, err
		}
		a[name] = merged
	}
	return json.Marshal(a)
}

// members returns the members of a JSON object, or nil for any other value.
func members(data json.RawMessage) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(data, &all) != nil {
		return nil
	}
	return all
}

// withList adds values to a list in the permissions of settings.
func withList(permissions json.RawMessage, name string, values []string) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if permissions != nil {
		if err := json.Unmarshal(permissions, &all); err != nil {
			return nil, fmt.Errorf("permissions: %w", err)
		}
	}
	var list []string
	if all[name] != nil {
		if err := json.Unmarshal(all[name], &list); err != nil {
			return nil, fmt.Errorf("permissions.%s: %w", name, err)
		}
	}
	known := map[string]bool{}
	for _, v := range list {
		known[v] = true
	}
	for _, v := range values {
		if !known[v] {
			known[v] = true
			list = append(list, v)
		}
	}
	data, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	all[name] = data
	return json.Marshal(all)
}
