package mcpconfig

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

// text decodes and expands a string.
func (d *entryDecoder) text(n node, want string) string {
	s, ok := n.text()
	if !ok {
		d.fault(n, want, quoteHint(n), "is %s", n.kind())
		return ""
	}
	return d.expand(n, s)
}

// quoteHint says how to write a value that should be a string; it never repeats the value.
func quoteHint(n node) string {
	switch n.v.Value.Kind() {
	case '0', 't', 'f':
		return "it in quotation marks"
	case 'n':
		return `"" for an empty string, or leave it out`
	}
	return ""
}

// expand resolves the references in a string of the entry.
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
	if secret != "" {
		d.refuse(n, "refers to %s, a credential of the model, which it gets with trust only: this server is left out", secret)
		return ""
	}
	if err != nil {
		out = ""
		instead := ""
		if ee := (*expandError)(nil); errors.As(err, &ee) {
			instead = ee.instead
		}
		d.fault(n, "", instead, "%v", err)
		return ""
	}
	if strings.ContainsRune(out, 0) {
		d.fault(n, "text without it", "", "holds a NUL character")
	}
	return out
}

// texts decodes a list of strings. Null counts as absent.
func (d *entryDecoder) texts(key string) []string {
	m, ok := d.fields[key]
	if !ok || m.value.isNull() {
		return nil
	}
	list, ok := m.value.list()
	if !ok {
		instead := ""
		if _, isText := m.value.text(); isText {
			instead = fmt.Sprintf(`%q: ["…", "…"], one string for each argument`, key)
		}
		d.fault(m.value, "a list of strings", instead, "is %s", m.value.kind())
		return nil
	}
	out := make([]string, 0, len(list))
	for _, n := range list {
		out = append(out, d.text(n, "a string"))
	}
	return out
}

// textMap decodes an object of strings, whose names check looks at. Null counts as absent.
func (d *entryDecoder) textMap(key, what string, check func(n node, name string)) map[string]string {
	m, ok := d.fields[key]
	if !ok || m.value.isNull() {
		return nil
	}
	members, doubled, ok := m.value.object()
	if !ok {
		d.fault(m.value, fmt.Sprintf("an object of %s: {\"NAME\": \"value\"}", what), "", "is %s", m.value.kind())
		return nil
	}
	for _, dup := range doubled {
		d.note(dup.key, "", "stands twice; the last one counts and this one is ignored")
	}
	out := make(map[string]string, len(members))
	for _, v := range members {
		check(v.key, v.name)
		out[v.name] = d.text(v.value, "a string")
	}
	return out
}

// flag decodes a boolean that is false when it is absent.
func (d *entryDecoder) flag(key string) bool {
	m, ok := d.fields[key]
	if !ok || m.value.isNull() {
		return false
	}
	b, ok := m.value.boolean()
	if !ok {
		instead := ""
		if s, isText := m.value.text(); isText && (s == "true" || s == "false") {
			instead = s + " without quotation marks"
		}
		d.fault(m.value, "true or false", instead, "is %s", m.value.kind())
	}
	return b
}

// shortest is the time below which a limit is taken for a mistake, as the Claude Code CLI does: seconds for milliseconds.
const shortest = time.Second

// mostUntrusted is the longest limit that a file sets without trust: a server that never answers holds up a run no longer.
const mostUntrusted = mcphost.DefaultCallTimeout

// duration decodes milliseconds. Zero means that none are given.
func (d *entryDecoder) duration(key string) time.Duration {
	m, ok := d.fields[key]
	if !ok || m.value.isNull() {
		return 0
	}
	const want = "a number of milliseconds"
	ms, ok := m.value.number()
	if !ok {
		instead := ""
		if _, isText := m.value.text(); isText {
			instead = "the number without quotation marks, in milliseconds"
		}
		d.fault(m.value, want, instead, "is %s", m.value.kind())
		return 0
	}
	if ms < float64(shortest/time.Millisecond) {
		instead := ""
		if ms > 0 {
			instead = fmt.Sprintf("%v, if %v seconds are meant", ms*1000, ms)
		}
		d.note(m.value, instead, "is ignored: it is in milliseconds, and less than 1000 is taken for a mistake")
		return 0
	}
	if most := float64(mostUntrusted / time.Millisecond); d.opts.Untrusted && ms > most {
		d.withhold(m.value, fmt.Sprintf("more than %.0f, which is used", most))
		ms = most
	}
	return time.Duration(min(ms, float64(math.MaxInt64/int64(time.Millisecond)-1))) * time.Millisecond
}

// leastMessage is the size below which a limit for messages is taken for a mistake: no server can be talked to within it.
const leastMessage = 64 << 10

// size decodes a number of bytes. Zero means that none is given.
func (d *entryDecoder) size(key string) int {
	m, ok := d.granted(key)
	if !ok || m.value.isNull() {
		return 0
	}
	n, ok := m.value.number()
	switch {
	case !ok:
		instead := ""
		if _, isText := m.value.text(); isText {
			instead = "the number without quotation marks, in bytes"
		}
		d.fault(m.value, "a number of bytes", instead, "is %s", m.value.kind())
		return 0
	case n < leastMessage:
		d.note(m.value, "", "is ignored: it is in bytes, and less than %d is taken for a mistake", leastMessage)
		return 0
	}
	return int(min(n, math.MaxInt32))
}

// common decodes what all kinds of servers have.
func (d *entryDecoder) common(e *Entry) {
	e.CallTimeout = d.duration(keyTimeout)
	e.ConnectTimeout = d.duration(keyConnectTimeout)
	e.MaxMessageBytes = d.size(keyMaxMessage)
	e.AlwaysLoad = d.flag(keyAlwaysLoad)
	e.Required = d.flag(keyRequired)
	e.Disabled = d.flag(keyDisabled)
	e.Policies = d.policies()
}

// strictness orders policies: of two for one tool the stricter holds.
var strictness = []permission.ToolPolicy{permission.AlwaysAllow, permission.AlwaysAsk, permission.AlwaysDeny}

// policies decodes tools, the per-tool policies. A faulty one refuses the entry: left out, it could let a tool run that
// should not.
func (d *entryDecoder) policies() map[string]permission.ToolPolicy {
	m, ok := d.fields[keyTools]
	if !ok || m.value.isNull() {
		return nil
	}
	const want = `a list of {"name": "TOOL", "permission_policy": "always_allow", "always_ask" or "always_deny"}`
	list, ok := m.value.list()
	if !ok {
		d.fault(m.value, want, "", "is %s", m.value.kind())
		return nil
	}
	out := make(map[string]permission.ToolPolicy, len(list))
	for _, n := range list {
		name, policy, ok := d.policy(n, want)
		if !ok {
			continue
		}
		if before, twice := out[name]; twice && before != policy {
			d.note(n, "", "the tool has a policy already; the stricter one holds")
			policy = strictness[max(slices.Index(strictness, before), slices.Index(strictness, policy))]
		}
		out[name] = policy
	}
	if d.opts.Untrusted {
		n := len(out)
		maps.DeleteFunc(out, func(_ string, p permission.ToolPolicy) bool { return p == permission.AlwaysAllow })
		if allowed := n - len(out); allowed > 0 {
			d.withhold(m.value, fmt.Sprintf("always_allow for %d tools", allowed))
		}
	}
	return out
}

// policy decodes one element of tools. A tool without a policy is listed for its name alone.
func (d *entryDecoder) policy(n node, want string) (name string, p permission.ToolPolicy, ok bool) {
	if _, _, isObject := n.object(); !isObject {
		d.fault(n, want[len("a list of "):], "", "is %s", n.kind())
		return "", "", false
	}
	nameNode, ok := n.get("name")
	if name, _ = nameNode.textOrNone(); !ok || name == "" {
		d.fault(n, "the name of a tool", "", `"name" is missing or no string`)
		return "", "", false
	}
	at, ok := n.get("permission_policy")
	if !ok {
		if camel, has := n.get("permissionPolicy"); has {
			d.fault(camel, "", `"permission_policy"`, "is no key of a tool")
		}
		return "", "", false
	}
	s, _ := at.text()
	if p = permission.ToolPolicy(s); !slices.Contains(strictness, p) {
		d.fault(at, `"always_allow", "always_ask" or "always_deny"`, "", "is no permission policy")
		return "", "", false
	}
	return name, p, true
}

// textOrNone is text for a node that may be absent.
func (n node) textOrNone() (string, bool) {
	if n.v.Value == nil {
		return "", false
	}
	return n.text()
}

// oauth decodes the settings of the authorization server.
func (d *entryDecoder) oauth() *OAuth {
	m, ok := d.granted(keyOAuth)
	if !ok || m.value.isNull() {
		return nil
	}
	members, _, ok := m.value.object()
	if !ok {
		d.fault(m.value, `an object like {"clientId": "…", "callbackPort": 8080}`, "", "is %s", m.value.kind())
		return nil
	}
	o := &OAuth{}
	for _, f := range members {
		switch f.name {
		case "clientId":
			o.ClientID = d.text(f.value, "a string")
		case "clientSecret":
			o.ClientSecret = d.text(f.value, "a string")
		case "authServerMetadataUrl":
			o.MetadataURL = d.text(f.value, "a string: the URL of the metadata")
			if d.clean(f.value) {
				d.url(f.value, o.MetadataURL)
			}
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

// scopes decodes scopes as a list, or as one string with blanks between them, which is how OAuth writes them.
func (d *entryDecoder) scopes(n node) []string {
	if s, ok := n.text(); ok {
		return strings.Fields(d.expand(n, s))
	}
	list, ok := n.list()
	if !ok {
		d.fault(n, "a list of strings", "", "is %s", n.kind())
		return nil
	}
	out := make([]string, 0, len(list))
	for _, e := range list {
		out = append(out, d.text(e, "a string"))
	}
	return out
}
