package mcpconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/tailscale/hujson"

	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

// text decodes and expands a string.
func (d *entryDecoder) text(n node, want string) string {
	if s, ok := n.text(); ok {
		return d.expand(n, s)
	}
	instead := ""
	switch n.v.Value.Kind() {
	case '0', 't', 'f':
		instead = "it in quotation marks"
	case 'n':
		instead = `"" for an empty string, or leave it out`
	}
	d.fault(n, want, instead, "is %s", n.kind())
	return ""
}

// expand expands the references in a string of the entry.
func (d *entryDecoder) expand(n node, s string) string {
	refers := strings.Contains(s, "${")
	if refers && *d.expanded > maxExpandedAll {
		d.fault(n, "", "", "the references in the file come to more than %d bytes", maxExpandedAll)
		return ""
	}
	secret := ""
	out, err := expand(s, func(name string) (string, bool) {
		if d.opts.Untrusted && mcphost.IsModelCredential(name, d.opts.LookupEnv) {
			secret = name
		}
		return d.opts.LookupEnv(name)
	})
	if refers {
		*d.expanded += len(out)
	}
	switch {
	case secret != "":
		d.fault(n, "", "", "refers to %s, a credential of the model, which it gets with trust only: this server is left out", secret).Level = LevelUntrusted
		return ""
	case err != nil:
		d.fault(n, "", err.instead, "%s", err.message)
		return ""
	case strings.ContainsRune(out, 0):
		d.fault(n, "text without it", "", "holds a NUL character")
	}
	return out
}

// args decodes a list of arguments.
func (d *entryDecoder) args(n node) []string {
	if _, isText := n.text(); isText {
		d.fault(n, "a list of strings", `"args": ["…", "…"], one string for each argument`, "is a string")
		return nil
	}
	return d.textList(n)
}

func (d *entryDecoder) textList(n node) []string {
	var out []string
	for _, e := range d.list(n, "a list of strings") {
		out = append(out, d.text(e, "a string"))
	}
	return out
}

// textMap decodes an object of strings. check checks the names.
func (d *entryDecoder) textMap(n node, what string, check func(n node, name string)) map[string]string {
	out := map[string]string{}
	for _, m := range d.object(n, fmt.Sprintf("an object of %s: {\"NAME\": \"value\"}", what)) {
		check(m.key, m.name)
		out[m.name] = d.text(m.value, "a string")
	}
	return out
}

// flag decodes a boolean.
func (d *entryDecoder) flag(n node) bool {
	b, ok := n.boolean()
	instead := ""
	if s, _ := n.text(); s == "true" || s == "false" {
		instead = s + " without quotation marks"
	}
	if !ok {
		d.fault(n, "true or false", instead, "is %s", n.kind())
	}
	return b
}

// number decodes a number of units.
func (d *entryDecoder) number(n node, unit string) (float64, bool) {
	f, ok := n.number()
	if !ok {
		instead := ""
		if _, isText := n.text(); isText {
			instead = "the number without quotation marks, in " + unit
		}
		d.fault(n, "a number of "+unit, instead, "is %s", n.kind())
	}
	return f, ok
}

// maxUntrusted bounds the time limits of a file without trust.
const maxUntrusted = mcphost.DefaultCallTimeout

// duration decodes milliseconds. Like the Claude Code CLI, it ignores less than a second.
func (d *entryDecoder) duration(n node) time.Duration {
	ms, ok := d.number(n, "milliseconds")
	switch limit := float64(maxUntrusted / time.Millisecond); {
	case !ok:
		return 0
	case ms < 1000:
		instead := ""
		if ms > 0 {
			instead = fmt.Sprintf("%v, if %v seconds are meant", ms*1000, ms)
		}
		d.note(n, instead, "is ignored: it is in milliseconds, and less than 1000 is taken for a mistake")
		return 0
	case d.opts.Untrusted && ms > limit:
		d.withhold(n, fmt.Sprintf("more than %.0f, which is used", limit))
		return maxUntrusted
	}
	return time.Duration(min(ms, float64(math.MaxInt64/int64(time.Millisecond)-1))) * time.Millisecond
}

// minMessageBytes is the smallest plausible value of maxMessageBytes.
const minMessageBytes = 64 << 10

// size decodes a number of bytes.
func (d *entryDecoder) size(n node) int {
	size, ok := d.number(n, "bytes")
	if ok && size < minMessageBytes {
		d.note(n, "", "is ignored: it is in bytes, and less than %d is taken for a mistake", minMessageBytes)
		return 0
	}
	return int(min(size, math.MaxInt32))
}

// strictness orders the policies. Of two policies for a tool, the stricter is used.
var strictness = []permission.ToolPolicy{permission.AlwaysAllow, permission.AlwaysAsk, permission.AlwaysDeny}

// policies decodes tools. A faulty policy refuses the entry: without the policy, a tool could run that
// should not.
func (d *entryDecoder) policies(n node) map[string]permission.ToolPolicy {
	const want = `{"name": "TOOL", "permission_policy": "always_allow", "always_ask" or "always_deny"}`
	out := map[string]permission.ToolPolicy{}
	for _, e := range d.list(n, "a list of "+want) {
		name, policy, ok := d.policy(e, want)
		if !ok {
			continue
		}
		if before, twice := out[name]; twice && before != policy {
			d.note(e, "", "the tool has a policy already; the stricter one holds")
			policy = strictness[max(slices.Index(strictness, before), slices.Index(strictness, policy))]
		}
		out[name] = policy
	}
	if d.opts.Untrusted {
		all := len(out)
		maps.DeleteFunc(out, func(_ string, p permission.ToolPolicy) bool { return p == permission.AlwaysAllow })
		if allowed := all - len(out); allowed > 0 {
			d.withhold(n, fmt.Sprintf("always_allow for %d tools", allowed))
		}
	}
	return out
}

// policy decodes an element of tools. ok is false if it has no policy.
func (d *entryDecoder) policy(n node, want string) (name string, p permission.ToolPolicy, ok bool) {
	if d.object(n, want) == nil {
		return "", "", false
	}
	name, _ = n.get("name").text()
	at, camel := n.get("permission_policy"), n.get("permissionPolicy")
	s, _ := at.text()
	p = permission.ToolPolicy(s)
	switch {
	case name == "":
		d.fault(n, "the name of a tool", "", `"name" is missing or no string`)
	case !at.exists() && camel.exists():
		d.fault(camel, "", `"permission_policy"`, "is no key of a tool")
	case at.exists() && !slices.Contains(strictness, p):
		d.fault(at, `"always_allow", "always_ask" or "always_deny"`, "", "is no permission policy")
	default:
		return name, p, at.exists()
	}
	return "", "", false
}

// oauth decodes the settings of the authorization server.
func (d *entryDecoder) oauth(n node) *OAuth {
	o := &OAuth{}
	for _, f := range d.object(n, `an object like {"clientId": "…", "callbackPort": 8080}`) {
		switch f.name {
		case "clientId":
			o.ClientID = d.text(f.value, "a string")
		case "clientSecret":
			o.ClientSecret = d.text(f.value, "a string")
		case "authServerMetadataUrl":
			o.MetadataURL = d.url(f.value, "a string: the URL of the metadata")
		case "callbackPort":
			port, ok := f.value.number()
			if !ok || port != math.Trunc(port) || port < 0 || port > 65535 {
				d.fault(f.value, "a port number from 0 to 65535", "", "is no port")
				continue
			}
			o.CallbackPort = int(port)
		case "scopes":
			o.Scopes = d.scopes(f.value)
		default:
			d.note(f.key, "", "is no key of oauth and does nothing")
		}
	}
	return o
}

// scopes decodes a list of scopes, or a string of scopes separated by spaces.
func (d *entryDecoder) scopes(n node) []string {
	if s, ok := n.text(); ok {
		return strings.Fields(d.expand(n, s))
	}
	return d.textList(n)
}

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
