package mcpconfig

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/internal/editdistance"
	"github.com/tenon-sdk/tenon/permission"
)

// A field is a key of an entry.
type field struct {
	key string
	// stdio and remote report whether only these servers use the key.
	stdio, remote bool
	// trust reports whether the key has no effect without trust.
	trust bool
	// value returns a pointer to the value in an entry.
	value func(e *Entry) any
}

// entryFields are the keys of an entry, in the order in which they are written.
var entryFields = []field{
	{key: "type", value: func(e *Entry) any { return &e.Kind }},
	{key: "command", stdio: true, value: func(e *Entry) any { return &e.Command }},
	{key: "args", stdio: true, value: func(e *Entry) any { return &e.Args }},
	{key: "env", stdio: true, value: func(e *Entry) any { return &e.Env }},
	{key: "cwd", stdio: true, value: func(e *Entry) any { return &e.Dir }},
	{key: "url", remote: true, value: func(e *Entry) any { return &e.URL }},
	{key: "headers", remote: true, value: func(e *Entry) any { return &e.Headers }},
	{key: "headersHelper", remote: true, trust: true, value: func(e *Entry) any { return &e.HeadersHelper }},
	{key: "oauth", remote: true, trust: true, value: func(e *Entry) any { return &e.OAuth }},
	{key: "timeout", value: func(e *Entry) any { return &e.CallTimeout }},
	{key: "connectTimeout", value: func(e *Entry) any { return &e.ConnectTimeout }},
	{key: "maxMessageBytes", trust: true, value: func(e *Entry) any { return &e.MaxMessageBytes }},
	{key: "alwaysLoad", value: func(e *Entry) any { return &e.AlwaysLoad }},
	{key: "required", value: func(e *Entry) any { return &e.Required }},
	{key: "disabled", value: func(e *Entry) any { return &e.Disabled }},
	{key: "tools", value: func(e *Entry) any { return &e.Policies }},
}

func isEntryKey(key string) bool {
	return slices.ContainsFunc(entryFields, func(f field) bool { return f.key == key })
}

// foreignKeys are other names of the keys, in lower case, from other hosts or by mistake.
var foreignKeys = map[string]string{
	"serverurl": "url", "httpurl": "url", "uri": "url", "endpoint": "url", "baseurl": "url", "sseurl": "url",
	"transport": "type", "transporttype": "type", "kind": "type", "protocol": "type",
	"cmd": "command", "executable": "command", "program": "command", "path": "command",
	"arguments": "args", "argv": "args", "params": "args",
	"environment": "env", "environ": "env", "envs": "env", "envvars": "env",
	"workingdirectory": "cwd", "workdir": "cwd", "dir": "cwd", "directory": "cwd",
	"httpheaders": "headers", "requestheaders": "headers", "requestinit": "headers",
	"enabled": "disabled", "disable": "disabled",
	"timeoutms": "timeout", "calltimeout": "timeout", "tooltimeout": "timeout",
	"starttimeout": "connectTimeout", "startuptimeout": "connectTimeout",
	"auth": "oauth", "autoapprove": "tools", "alwaysallow": "tools", "disabledtools": "tools", "permissions": "tools",
}

// An entryDecoder decodes an entry.
type entryDecoder struct {
	*faults
	opts    ParseOptions
	node    node
	fields  map[string]member
	unknown []member
}

// decodeEntry decodes the value of a member of mcpServers. If f has faults, the entry must not be used.
func decodeEntry(f *faults, m member, o ParseOptions) Entry {
	d := &entryDecoder{faults: f, opts: o, node: m.value, fields: map[string]member{}}
	members := d.object(m.value, `an object like {"command": "…"} or {"type": "http", "url": "…"}`)
	if members == nil {
		return Entry{}
	}
	for _, field := range members {
		if isEntryKey(field.name) {
			d.fields[field.name] = field
		} else {
			d.unknown = append(d.unknown, field)
		}
	}
	if strings.TrimSpace(m.name) == "" {
		d.fault(m.key, "a name", "", "the server has no name")
	}
	e := Entry{Kind: d.kind()}
	switch {
	case e.Kind == Stdio && !d.has("command"):
		d.fault(d.node, wantCommand, d.misnamed("command"), `"command" is missing`)
	case (e.Kind == HTTP || e.Kind == SSE) && !d.has("url"):
		instead := d.misnamed("url")
		if instead == "" && d.has("command") {
			instead = `"type": "stdio", if the command is meant`
		}
		d.fault(d.node, `a string like "https://example.com/mcp"`, instead, `"url" is missing`)
	}
	for _, f := range entryFields {
		d.decode(&e, f)
	}
	d.noteUnknown()
	return e
}

// notNull are the keys whose value cannot be null, which other keys are the same as absent with.
var notNull = []string{"command", "cwd", "url"}

// decode decodes a field, and checks its value.
func (d *entryDecoder) decode(e *Entry, f field) {
	m, given := d.fields[f.key]
	n := m.value
	switch {
	case !given, n.isNull() && !slices.Contains(notNull, f.key), (f.stdio || f.remote) && e.Kind == "":
		return
	case f.stdio && e.Kind != Stdio, f.remote && e.Kind == Stdio:
		if !n.isNull() {
			d.note(m.key, "", "does nothing with this type of server")
		}
		return
	case f.trust && d.opts.Untrusted:
		d.withhold(n, n.size())
		return
	}
	switch v := f.value(e).(type) {
	case *[]string:
		*v = d.args(n)
	case *bool:
		*v = d.flag(n)
	case *time.Duration:
		*v = d.duration(n)
	case *int:
		*v = d.size(n)
	case *map[string]permission.ToolPolicy:
		*v = d.policies(n)
	case **OAuth:
		*v = d.oauth(n)
	}
	switch f.key {
	case "command":
		e.Command = d.command(n)
	case "cwd":
		e.Dir = d.opts.resolve(d.text(n, "a string: the directory to start in"))
	case "env":
		e.Env = d.textMap(n, "environment variables", func(n node, name string) {
			if name == "" || strings.ContainsAny(name, "=\x00") {
				d.fault(n, "the name of a variable", "", "cannot be the name of an environment variable")
			}
		})
	case "url":
		e.URL = d.url(n, `a string like "https://example.com/mcp"`)
	case "headers":
		e.Headers = d.textMap(n, "headers", func(n node, name string) {
			if !isToken(name) {
				d.fault(n, "the name of a header: letters, digits and hyphens", "", "cannot be the name of a header")
			}
		})
		d.headerValues(n, e.Headers)
	case "headersHelper":
		e.HeadersHelper = d.text(n, "a string: the shell command that prints the headers")
	}
}

// wantKind are the types of servers, wantCommand is what a command is.
const (
	wantKind    = `"stdio", "http" or "sse"`
	wantCommand = "a string: the program to start"
)

// kind decodes the transport. It returns "" after a fault.
func (d *entryDecoder) kind() Kind {
	if t, given := d.fields["type"]; given {
		name, ok := t.value.text()
		if !ok {
			d.fault(t.value, wantKind, "", "is %s", t.value.kind())
			return ""
		}
		return d.namedKind(t.value, name)
	}
	switch similar := d.similar("type"); {
	case d.has("command"):
		return Stdio
	case d.has("url") && similar != nil:
		name, _ := similar.value.text()
		d.fault(similar.key, "", `"type": `+cmp.Or(similarType(name), `"http"`), "is no key of an entry, and the transport depends on it")
		return ""
	case d.has("url"):
		d.note(d.fields["url"].key, d.typeHint(), `the entry has a url and no type; it is taken as http`)
		return HTTP
	}
	d.fault(d.node, `a "command" (stdio) or a "type" and a "url" (http, sse)`, d.misnamed("command", "url"), `neither "command" nor "url" is given`)
	return ""
}

// namedKind returns the transport with a name, or records a fault with the one that may be meant.
func (d *entryDecoder) namedKind(n node, name string) Kind {
	switch name {
	case "stdio", "http", "sse":
		return Kind(name)
	case "streamable-http":
		return HTTP
	}
	switch plainName(name) {
	case "ws", "wss", "websocket":
		d.fault(n, wantKind, "", "WebSocket servers are not supported")
	case "sdk", "inprocess":
		d.fault(n, wantKind, "", "a server in the program itself is given in code, not in a file")
	default:
		d.fault(n, wantKind, similarType(name), "the type %q is not known", clip.Text(name, 40))
	}
	return ""
}

// similarType returns the type that a name resembles in quotation marks, or "".
func similarType(name string) string {
	low := strings.ToLower(name)
	for _, t := range []struct{ word, kind string }{
		{"sse", "sse"},
		{"http", "http"},
		{"stream", "http"},
		{"remote", "http"},
		{"std", "stdio"},
		{"local", "stdio"},
		{"command", "stdio"},
		{"process", "stdio"},
	} {
		if strings.Contains(low, t.word) {
			return strconv.Quote(t.kind)
		}
	}
	return ""
}

// typeHint returns the types that a URL suggests.
func (d *entryDecoder) typeHint() string {
	raw, _ := d.fields["url"].value.text()
	if u, err := url.Parse(raw); err == nil && strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/sse") {
		return `"type": "sse", if it is the older transport as its path suggests, or "type": "http"`
	}
	return `"type": "http"`
}

// similar returns an unknown key that resembles a known one, or nil.
func (d *entryDecoder) similar(known string) *member {
	for i, m := range d.unknown {
		if resembles(m.name) == known {
			return &d.unknown[i]
		}
	}
	return nil
}

// misnamed says which unknown key may be one of the known ones.
func (d *entryDecoder) misnamed(known ...string) string {
	for _, k := range known {
		if m := d.similar(k); m != nil {
			return fmt.Sprintf("%q for %q", k, m.name)
		}
	}
	return ""
}

// resembles returns the known key that a name resembles, or "".
func resembles(name string) string {
	low := plainName(name)
	if k, ok := foreignKeys[low]; ok {
		return k
	}
	for _, f := range entryFields {
		if key := strings.ToLower(f.key); key == low || len(low) > 3 && editdistance.Distance(key, low, 1) <= 1 {
			return f.key
		}
	}
	return ""
}

// noteUnknown notes the unknown keys.
func (d *entryDecoder) noteUnknown() {
	for _, m := range d.unknown {
		instead := ""
		switch k := resembles(m.name); {
		case k == "disabled" && strings.EqualFold(m.name, "enabled"):
			instead = `"disabled": true, if it is not to be used`
		case k == "tools":
			instead = `"tools": [{"name": …, "permission_policy": …}]`
		case k != "" && !d.has(k):
			instead = fmt.Sprintf("%q, if that is meant", k)
		}
		d.note(m.key, instead, "is no key of an entry and does nothing")
	}
}

func (d *entryDecoder) has(key string) bool {
	_, ok := d.fields[key]
	return ok
}

// clean reports whether there is no fault at the node or below it.
func (d *entryDecoder) clean(n node) bool {
	return !slices.ContainsFunc(d.bad, func(p Problem) bool { return strings.HasPrefix(p.Path, n.path) })
}

// command decodes the name of the program.
func (d *entryDecoder) command(n node) string {
	if _, isList := n.list(); isList {
		d.fault(n, wantCommand, `the first of the list as "command" and the rest as "args"`, "is a list")
		return ""
	}
	s := d.text(n, wantCommand)
	first, _, blank := strings.Cut(s, " ")
	switch {
	case !d.clean(n):
	case strings.TrimSpace(s) == "":
		d.fault(n, "the program to start", "", "is empty")
	case blank && !strings.ContainsAny(first, `/\`) && !d.has("args"):
		d.note(n, `the program as "command" and the rest as "args", a list`, "holds a blank; it is one program's name, not a command line")
	}
	return s
}

// url decodes a URL. Its problems do not show the URL, which may contain a password.
func (d *entryDecoder) url(n node, wantText string) string {
	raw := d.text(n, wantText)
	if !d.clean(n) {
		return raw
	}
	const want = `an absolute URL like "https://example.com/mcp"`
	u, err := url.Parse(raw)
	switch {
	case raw == "":
		d.fault(n, want, "", "is empty")
	case err != nil:
		d.fault(n, want, "", "is no URL")
	case u.Scheme == "ws" || u.Scheme == "wss":
		d.fault(n, want, "", "WebSocket servers are not supported")
	case u.Scheme != "http" && u.Scheme != "https":
		d.fault(n, want, "", "does not begin with http:// or https://")
	case u.Host == "" || u.Hostname() == "":
		d.fault(n, want, "", "names no host")
	case u.Port() != "":
		if port, err := strconv.Atoi(u.Port()); err != nil || port < 1 || port > 65535 {
			d.fault(n, "a port from 1 to 65535 in it", "", "names a port that there is not")
		}
	}
	return raw
}

// headerValues checks the values of headers, and notes equal names.
func (d *entryDecoder) headerValues(n node, headers map[string]string) {
	seen := map[string]string{}
	members, _, _ := n.object()
	for _, m := range members {
		if strings.ContainsFunc(headers[m.name], func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			d.fault(m.value, "one line of text", "", "holds a line break or another control character")
		}
		low := strings.ToLower(m.name)
		if other, taken := seen[low]; taken {
			d.note(m.key, "", "is the same header as %q; only one of them is sent", other)
		}
		seen[low] = m.name
	}
}

// isToken reports whether s is a valid name of a header.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) })
}
