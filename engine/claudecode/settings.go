package claudecode

import (
	"bytes"
	"encoding/json"
	"errors"
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

// A settingsObject is decoded settings, or an object in them. Its numbers are json.Number.
type settingsObject = map[string]any

// decodeSettings decodes an object. Absent settings are an empty object.
func decodeSettings(data []byte) (settingsObject, error) {
	all := settingsObject{}
	if data == nil {
		return all, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err := d.Decode(&all)
	if err == nil && (all == nil || d.More()) {
		err = errors.New("not a JSON object")
	}
	return all, err
}

// mergeSettings merges two values: the members of objects, and of the objects in them. In all other
// cases the value is over.
func mergeSettings(under, over any) any { return mergeObjects(under, over, mergeSettings) }

// mergeObjects merges the members of two objects by merge. If the values are not objects, it returns over.
func mergeObjects(under, over any, merge func(under, over any) any) any {
	a, isObject := under.(settingsObject)
	b, both := over.(settingsObject)
	if !isObject || !both {
		return over
	}
	out := maps.Clone(a)
	for name, value := range b {
		out[name] = merge(a[name], value)
	}
	return out
}

// deniedServers is the CLI's setting for servers that it does not use, wherever they are configured.
const deniedServers = "deniedMcpServers"

// fileSettings merges the settings of trusted files that no option has with the program's settings,
// which take precedence, and adds the servers that the CLI must not use. Nil means no settings.
func fileSettings(f *kit.Files, own json.RawMessage) (json.RawMessage, error) {
	if len(f.Settings.Trusted) == 0 && len(f.Denied) == 0 {
		return own, nil
	}
	all := settingsObject{}
	add := func(layer json.RawMessage, except ...string) {
		fields, err := decodeSettings(layer)
		if err != nil {
			return // reported as a problem of the file, or by check
		}
		for name, value := range fields {
			switch {
			case slices.Contains(except, name):
			case name == "hooks":
				all[name] = joinHooks(all[name], value)
			default:
				all[name] = mergeSettings(all[name], value)
			}
		}
	}
	for _, layer := range f.Settings.Trusted {
		add(layer, "permissions", "env") // the options have them
	}
	add(own)
	denied, _ := all[deniedServers].([]any) // any other value has none
	for _, name := range f.Denied {
		denied = append(denied, settingsObject{"serverName": name})
	}
	if len(f.Denied) > 0 {
		all[deniedServers] = denied
	}
	if len(all) == 0 {
		return own, nil
	}
	return json.Marshal(all)
}

// joinHooks joins the hooks of two settings, event by event.
func joinHooks(first, second any) any {
	return mergeObjects(first, second, func(first, second any) any {
		a, isList := first.([]any)
		b, both := second.([]any)
		if !isList || !both {
			return second
		}
		return slices.Concat(a, b)
	})
}

// sessionSettings merges the settings of the program, its sandbox, and the rules that no flag has. Nil
// means no settings.
func sessionSettings(e *Options, o *agent.Options) (settingsObject, error) {
	if !hasSettings(e, o) {
		return nil, nil //nolint:nilnil // as documented
	}
	all, err := decodeSettings(e.Settings)
	if err != nil {
		return nil, fmt.Errorf("claude-code: Settings: %w", err)
	}
	if o.Settings != "" {
		own, err := ownSettings(o)
		if err != nil {
			return nil, err
		}
		for name, value := range own {
			all[name] = mergeSettings(all[name], value)
		}
	}
	if e.Sandbox != nil {
		sandbox, err := decodeSettings(e.Sandbox)
		if err != nil {
			return nil, fmt.Errorf("claude-code: Sandbox: %w", err)
		}
		all["sandbox"] = mergeSettings(all["sandbox"], sandbox)
	}
	return all, addLists(all, permissionLists(e, o))
}

// addLists adds values to lists in the permissions of settings.
func addLists(all settingsObject, lists map[string][]string) error {
	for name, values := range lists {
		permissions, ok := all["permissions"].(settingsObject)
		if !ok && all["permissions"] != nil {
			return errors.New("claude-code: Settings: permissions is not a JSON object")
		}
		list, ok := permissions[name].([]any)
		if !ok && permissions[name] != nil {
			return fmt.Errorf("claude-code: Settings: permissions.%s is not a list", name)
		}
		known := map[any]bool{}
		for _, v := range list {
			if text, ok := v.(string); ok {
				known[text] = true
			}
		}
		for _, v := range values {
			if !known[v] {
				known[v] = true
				list = append(list, v)
			}
		}
		all["permissions"] = mergeSettings(all["permissions"], settingsObject{name: list})
	}
	return nil
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

// ownSettings returns the settings of agent.Options.Settings, which is a path or JSON.
func ownSettings(o *agent.Options) (settingsObject, error) {
	text := []byte(strings.TrimSpace(o.Settings))
	if !bytes.HasPrefix(text, []byte("{")) {
		path := o.Settings
		if !filepath.IsAbs(path) {
			path = filepath.Join(o.Dir, path)
		}
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return nil, &agent.OptionError{Field: "Settings", Problem: fmt.Sprintf("cannot be read: %v", err), Remedy: "set the path of a file, or JSON"}
		}
	}
	fields, err := decodeSettings(text)
	if err != nil {
		return nil, &agent.OptionError{Field: "Settings", Problem: "is no JSON object", Remedy: "set the path of a file, or JSON"}
	}
	return fields, nil
}
