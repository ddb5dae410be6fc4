package mcpconfig

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tenon-sdk/tenon/internal/clip"
	"github.com/tenon-sdk/tenon/internal/editdistance"
)

// The keys of an entry.
const (
	keyType           = "type"
	keyCommand        = "command"
	keyArgs           = "args"
	keyEnv            = "env"
	keyDir            = "cwd"
	keyURL            = "url"
	keyHeaders        = "headers"
	keyHeadersHelper  = "headersHelper"
	keyTimeout        = "timeout"
	keyConnectTimeout = "connectTimeout"
	keyMaxMessage     = "maxMessageBytes"
	keyAlwaysLoad     = "alwaysLoad"
	keyRequired       = "required"
	keyDisabled       = "disabled"
	keyTools          = "tools"
	keyOAuth          = "oauth"
)

var entryKeys = []string{
	keyType, keyCommand, keyArgs, keyEnv, keyDir, keyURL, keyHeaders, keyHeadersHelper,
	keyTimeout, keyConnectTimeout, keyMaxMessage, keyAlwaysLoad, keyRequired, keyDisabled, keyTools, keyOAuth,
}

// foreignKeys are other names of the keys, in lower case, from other hosts or by mistake.
var foreignKeys = map[string]string{
	"serverurl": keyURL, "httpurl": keyURL, "uri": keyURL, "endpoint": keyURL, "baseurl": keyURL, "sseurl": keyURL,
	"transport": keyType, "transporttype": keyType, "kind": keyType, "protocol": keyType,
	"cmd": keyCommand, "executable": keyCommand, "program": keyCommand, "path": keyCommand,
	"arguments": keyArgs, "argv": keyArgs, "params": keyArgs,
	"environment": keyEnv, "environ": keyEnv, "envs": keyEnv, "envvars": keyEnv,
	"workingdirectory": keyDir, "workdir": keyDir, "dir": keyDir, "directory": keyDir,
	"httpheaders": keyHeaders, "requestheaders": keyHeaders, "requestinit": keyHeaders,
	"enabled": keyDisabled, "disable": keyDisabled,
	"timeoutms": keyTimeout, "calltimeout": keyTimeout, "tooltimeout": keyTimeout, "starttimeout": keyConnectTimeout, "startuptimeout": keyConnectTimeout,
	"auth": keyOAuth, "autoapprove": keyTools, "alwaysallow": keyTools, "disabledtools": keyTools, "permissions": keyTools,
}

// An entryDecoder decodes one entry.
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
	members, doubled, ok := m.value.object()
	if !ok {
		d.fault(m.value, `an object like {"command": "…"} or {"type": "http", "url": "…"}`, "", "is %s", m.value.kind())
		return Entry{}
	}
	for _, m := range doubled {
		d.note(m.key, "", repeated)
	}
	for _, field := range members {
		if slices.Contains(entryKeys, field.name) {
			d.fields[field.name] = field
		} else {
			d.unknown = append(d.unknown, field)
		}
	}
	if strings.TrimSpace(m.name) == "" {
		d.fault(m.key, "a name", "", "the server has no name")
	}
	var e Entry
	e.Kind = d.kind()
	switch e.Kind {
	case Stdio:
		d.stdio(&e)
		d.noteUnused(keyURL, keyHeaders, keyHeadersHelper, keyOAuth)
	case HTTP, SSE:
		d.remote(&e)
		d.noteUnused(keyCommand, keyArgs, keyEnv, keyDir)
	}
	d.common(&e)
	d.noteUnknown()
	return e
}

// kind decodes the transport. It returns "" after a fault.
func (d *entryDecoder) kind() Kind {
	_, hasCommand := d.fields[keyCommand]
	urlField, hasURL := d.fields[keyURL]
	t, given := d.fields[keyType]
	if !given {
		switch similar := d.similar(keyType); {
		case hasCommand:
			return Stdio
		case hasURL && similar != nil:
			name, _ := similar.value.text()
			d.fault(similar.key, "", `"type": `+cmp.Or(similarType(name), `"http"`), "is no key of an entry, and the transport depends on it")
			return ""
		case hasURL:
			d.note(urlField.key, d.typeHint(), `the entry has a url and no type; it is taken as http`)
			return HTTP
		}
		d.fault(d.node, `a "command" (stdio) or a "type" and a "url" (http, sse)`, d.misnamed(keyCommand, keyURL), `neither "command" nor "url" is given`)
		return ""
	}
	name, ok := t.value.text()
	if !ok {
		d.fault(t.value, `"stdio", "http" or "sse"`, "", "is %s", t.value.kind())
		return ""
	}
	switch name {
	case "stdio":
		return Stdio
	case "http", "streamable-http":
		return HTTP
	case "sse":
		return SSE
	}
	d.unknownType(t.value, name)
	return ""
}

// unknownType records the fault of an unknown type with the type that may be meant.
func (d *entryDecoder) unknownType(n node, name string) {
	const want = `"stdio", "http" or "sse"`
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(name)) {
	case "ws", "wss", "websocket":
		d.fault(n, want, "", "WebSocket servers are not supported")
	case "sdk", "inprocess":
		d.fault(n, want, "", "a server in the program itself is given in code, not in a file")
	default:
		d.fault(n, want, similarType(name), "the type %q is not known", clip.Text(name, 40))
	}
}

// similarType returns the type that a name resembles in quotation marks, or "".
func similarType(name string) string {
	low := strings.ToLower(name)
	contains := func(s string) bool { return strings.Contains(low, s) }
	switch {
	case contains("sse"):
		return `"sse"`
	case slices.ContainsFunc([]string{"http", "stream", "remote"}, contains):
		return `"http"`
	case slices.ContainsFunc([]string{"std", "local", "command", "process"}, contains):
		return `"stdio"`
	}
	return ""
}

// typeHint returns the types that a URL suggests.
func (d *entryDecoder) typeHint() string {
	raw, _ := d.fields[keyURL].value.text()
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
	low := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
	if k, ok := foreignKeys[low]; ok {
		return k
	}
	for _, k := range entryKeys {
		if kl := strings.ToLower(k); kl == low || len(low) > 3 && editdistance.Distance(kl, low, 1) <= 1 {
			return k
		}
	}
	return ""
}

// noteUnknown notes the unknown keys.
func (d *entryDecoder) noteUnknown() {
	for _, m := range d.unknown {
		k := resembles(m.name)
		switch {
		case k == keyDisabled && strings.EqualFold(m.name, "enabled"):
			d.note(m.key, `"disabled": true, if it is not to be used`, "is no key of an entry and does nothing")
		case k == keyTools:
			d.note(m.key, `"tools": [{"name": …, "permission_policy": …}]`, "is no key of an entry and does nothing")
		case k != "" && !d.has(k):
			d.note(m.key, fmt.Sprintf("%q, if that is meant", k), "is no key of an entry and does nothing")
		default:
			d.note(m.key, "", "is no key of an entry and does nothing")
		}
	}
}

func (d *entryDecoder) has(key string) bool {
	_, ok := d.fields[key]
	return ok
}

// noteUnused notes known keys that this transport does not use.
func (d *entryDecoder) noteUnused(keys ...string) {
	for _, k := range keys {
		if _, ok := d.field(k); ok {
			d.note(d.fields[k].key, "", "does nothing with this type of server")
		}
	}
}

func (d *entryDecoder) stdio(e *Entry) {
	m, ok := d.fields[keyCommand]
	if !ok {
		d.fault(d.node, "a string: the program to start", d.misnamed(keyCommand), `"command" is missing`)
		return
	}
	if _, isList := m.value.list(); isList {
		d.fault(m.value, "a string: the program to start", `the first of the list as "command" and the rest as "args"`, "is a list")
	} else if e.Command = d.text(m.value, "a string: the program to start"); d.clean(m.value) {
		e.Command = d.command(m.value, e.Command)
	}
	e.Args = d.texts(keyArgs)
	e.Env = d.textMap(keyEnv, "environment variables", func(n node, name string) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			d.fault(n, "the name of a variable", "", "cannot be the name of an environment variable")
		}
	})
	if m, ok := d.fields[keyDir]; ok {
		e.Dir = d.opts.resolve(d.text(m.value, "a string: the directory to start in"))
	}
}

// clean reports whether there is no fault at the node or below it.
func (d *entryDecoder) clean(n node) bool {
	return !slices.ContainsFunc(d.bad, func(p Problem) bool { return strings.HasPrefix(p.Path, n.path) })
}

// command checks the name of the program.
func (d *entryDecoder) command(n node, s string) string {
	if strings.TrimSpace(s) == "" {
		d.fault(n, "the program to start", "", "is empty")
		return s
	}
	first, _, blank := strings.Cut(s, " ")
	if blank && !strings.ContainsAny(first, `/\`) && !d.has(keyArgs) {
		d.note(n, `the program as "command" and the rest as "args", a list`, "holds a blank; it is one program's name, not a command line")
	}
	return s
}

func (d *entryDecoder) remote(e *Entry) {
	m, ok := d.fields[keyURL]
	if !ok {
		instead := d.misnamed(keyURL)
		if instead == "" && d.has(keyCommand) {
			instead = `"type": "stdio", if the command is meant`
		}
		d.fault(d.node, `a string like "https://example.com/mcp"`, instead, `"url" is missing`)
		return
	}
	if e.URL = d.text(m.value, `a string like "https://example.com/mcp"`); d.clean(m.value) {
		d.url(m.value, e.URL)
	}
	e.Headers = d.textMap(keyHeaders, "headers", func(n node, name string) {
		if !isToken(name) {
			d.fault(n, "the name of a header: letters, digits and hyphens", "", "cannot be the name of a header")
		}
	})
	d.headerValues(e.Headers)
	if n, ok := d.trustedField(keyHeadersHelper); ok {
		e.HeadersHelper = d.text(n, "a string: the shell command that prints the headers")
	}
	e.OAuth = d.oauth()
}

// url checks a URL. Its problems do not show the URL, which may contain a password.
func (d *entryDecoder) url(n node, raw string) {
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
}

// headerValues checks the values of headers, and notes equal names.
func (d *entryDecoder) headerValues(headers map[string]string) {
	seen := map[string]string{}
	members, _, _ := d.fields[keyHeaders].value.object()
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
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte("()<>@,;:\\\"/[]?={}", c) >= 0 {
			return false
		}
	}
	return s != ""
}
