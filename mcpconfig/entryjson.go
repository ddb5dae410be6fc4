package mcpconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/tailscale/hujson"

	"github.com/tenon-sdk/tenon/permission"
)

// EntryJSON returns an entry in the form of a document, for [SetServer]. References in strings stay
// references.
func EntryJSON(e Entry) (json.RawMessage, error) {
	type policy struct {
		Name   string                `json:"name"`
		Policy permission.ToolPolicy `json:"permission_policy"`
	}
	var members []string
	for _, f := range entryFields {
		value := f.value(&e)
		switch v := value.(type) {
		case *time.Duration:
			value = v.Milliseconds()
		case *map[string]permission.ToolPolicy:
			var list []policy
			for _, name := range slices.Sorted(maps.Keys(*v)) {
				list = append(list, policy{name, (*v)[name]})
			}
			value = list
		}
		data, err := jsonv2.Marshal(value, jsonv2.Deterministic(true))
		if err != nil {
			return nil, fmt.Errorf("mcpconfig: %s of server %q: %w", f.key, e.Name, err)
		}
		if !slices.Contains([]string{`""`, "[]", "{}", "0", "false", "null"}, string(data)) {
			members = append(members, fmt.Sprintf("%q:%s", f.key, data))
		}
	}
	return json.RawMessage("{" + strings.Join(members, ",") + "}"), nil
}

// CheckEntry returns the problems that [Parse] reports for an entry, without lines.
func CheckEntry(name string, entry json.RawMessage, o *ParseOptions) []Problem {
	_, problems := Parse(fmt.Appendf(nil, "{%q:{%s:%s}}", serversKey, []byte(hujson.String(name)), entry), o)
	for i := range problems {
		problems[i].Line, problems[i].Column = 0, 0
	}
	return problems
}
