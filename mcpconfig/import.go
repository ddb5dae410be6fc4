package mcpconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// An Imported is an entry of another host's file in the form of this package's.
type Imported struct {
	Name string
	// Entry is for [SetServer]. Its references are not expanded.
	Entry json.RawMessage
}

// Import reads the servers of another host's file: Claude Desktop's and Cursor's (mcpServers), VS Code's mcp.json
// (servers, with inputs) and settings.json (mcp.servers). Forms that mean the same are translated: ${env:NAME} becomes ${NAME}, a question
// to the user, ${input:id}, becomes the variable ${ID}, ${workspaceFolder} a relative path; serverUrl and httpUrl become url. Each translation that
// somebody must know of is a note, and what cannot be translated a problem that costs the entry. The entries are
// in the order of the file.
func Import(data []byte, file string) ([]Imported, []Problem) {
	doc, problem := open(data, file)
	if problem != nil {
		problem.Want = "JSON of Claude Desktop, Cursor or VS Code"
		return nil, []Problem{*problem}
	}
	servers, inputs, ok := foreignServers(doc.top())
	members, doubled, isObj := servers.objectOrNone()
	if !ok || !isObj {
		p := doc.at(doc.top(), LevelFile)
		p.Message, p.Want = "holds no servers", `"mcpServers", or "servers" or "mcp.servers" as VS Code has them`
		return nil, []Problem{p}
	}
	im := &importer{inputs: inputs}
	for _, m := range doubled {
		p := doc.at(m.key, LevelNote)
		p.Server, p.Message = m.name, "stands twice; the last one counts and this one is ignored"
		im.problems = append(im.problems, p)
	}
	var out []Imported
	for _, m := range members {
		f := &faults{doc: doc, server: m.name}
		entry := im.entry(f, m)
		im.problems = append(im.problems, f.problems()...)
		if len(f.bad) == 0 {
			out = append(out, Imported{m.name, entry})
		}
	}
	return out, im.problems
}

// ClaudeDesktopFile is where Claude Desktop keeps its configuration on this system.
func ClaudeDesktopFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "Claude", "claude_desktop_config.json"), nil
}

// foreignServers finds the map of servers, and the questions that VS Code asks.
func foreignServers(top node) (servers node, inputs map[string]string, ok bool) {
	if n, ok := top.get(serversKey); ok {
		return n, nil, true
	}
	if mcp, ok := top.get("mcp"); ok {
		top = mcp
	}
	n, ok := top.get("servers")
	inputs = map[string]string{}
	if list, has := top.get("inputs"); has {
		elements, _ := list.list()
		for _, e := range elements {
			id, _ := e.get("id")
			about, _ := e.get("description")
			if name, ok := id.textOrNone(); ok {
				inputs[name], _ = about.textOrNone()
			}
		}
	}
	return n, inputs, ok
}

// An importer translates entries.
type importer struct {
	inputs   map[string]string
	problems []Problem
}

// importedKeys are the keys that other hosts call otherwise.
var importedKeys = map[string]string{"serverUrl": keyURL, "httpUrl": keyURL}

// unimported are keys whose loss somebody should know of, with what to do.
var unimported = map[string]string{
	"envFile":     `the variables in "env", as ${NAME}`,
	"autoApprove": "rules for --allowedTools",
	"alwaysAllow": "rules for --allowedTools",
	"dev":         "",
	"sandbox":     "",
	"gallery":     "",
}

// entry translates one entry.
func (im *importer) entry(f *faults, m member) json.RawMessage {
	members, _, ok := m.value.object()
	if !ok {
		f.fault(m.value, "an object", "", "is %s", m.value.kind())
		return nil
	}
	keys := make([]string, 0, len(members)+1)
	values := map[string]json.RawMessage{}
	put := func(key string, v json.RawMessage) {
		if _, there := values[key]; !there {
			keys = append(keys, key)
		}
		values[key] = v
	}
	for _, field := range members {
		key := field.name
		if k, ok := importedKeys[key]; ok {
			key = k
		}
		if instead, ok := unimported[key]; ok {
			f.note(field.key, instead, "is not imported")
			continue
		}
		if key == keyEnv {
			put(key, im.env(f, field.value))
			continue
		}
		if key == keyType {
			put(key, importedType(field.value))
			continue
		}
		put(key, im.translate(f, field.value))
	}
	if _, typed := values[keyType]; !typed && values[keyURL] != nil {
		keys = slices.Insert(keys, 0, keyType)
		values[keyType] = json.RawMessage(`"http"`)
		f.note(m.key, `"type": "sse", if it is the older transport`, "has a url and no type; it is imported as http")
	}
	return assemble(keys, values)
}

// assemble writes an object with its members in order.
func assemble(keys []string, values map[string]json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(hujson.String(k))
		b.WriteByte(':')
		b.Write(values[k])
	}
	b.WriteByte('}')
	return b.Bytes()
}

// importedType translates what hosts call streamable HTTP.
func importedType(n node) json.RawMessage {
	s, _ := n.text()
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(s)) {
	case "http", "streamablehttp":
		return json.RawMessage(`"http"`)
	}
	return n.raw()
}

// env translates environment variables. VS Code takes numbers, and null for none.
func (im *importer) env(f *faults, n node) json.RawMessage {
	members, _, ok := n.object()
	if !ok {
		return n.raw()
	}
	var keys []string
	values := map[string]json.RawMessage{}
	for _, m := range members {
		v := im.translate(f, m.value)
		switch m.value.v.Value.Kind() {
		case 'n':
			f.note(m.key, "", "is null, which takes a variable away, and is not imported")
			continue
		case '0', 't', 'f':
			v = json.RawMessage(hujson.String(string(v)))
		}
		keys = append(keys, m.name)
		values[m.name] = v
	}
	return assemble(keys, values)
}

// translate translates the references in all strings of a value.
func (im *importer) translate(f *faults, n node) json.RawMessage {
	if s, ok := n.text(); ok {
		return json.RawMessage(hujson.String(im.references(f, n, s)))
	}
	if list, ok := n.list(); ok {
		parts := make([][]byte, len(list))
		for i, e := range list {
			parts[i] = im.translate(f, e)
		}
		return slices.Concat([]byte("["), bytes.Join(parts, []byte(",")), []byte("]"))
	}
	if members, _, ok := n.object(); ok {
		keys, values := make([]string, 0, len(members)), make(map[string]json.RawMessage, len(members))
		for _, m := range members {
			keys = append(keys, m.name)
			values[m.name] = im.translate(f, m.value)
		}
		return assemble(keys, values)
	}
	return n.raw()
}

// foreignForm is a reference of VS Code's.
var foreignForm = regexp.MustCompile(`\$\{(env|input|config|command):([^{}]*)\}|\$\{(workspaceFolder|workspaceRoot|userHome|cwd|workspaceFolderBasename|pathSeparator|/)\}`)

// references translates the references in one string.
func (im *importer) references(f *faults, n node, s string) string {
	return foreignForm.ReplaceAllStringFunc(s, func(ref string) string {
		m := foreignForm.FindStringSubmatch(ref)
		switch {
		case m[1] == "env":
			return "${" + m[2] + "}"
		case m[1] == "input":
			name := variableName(m[2])
			about := ""
			if d := im.inputs[m[2]]; d != "" {
				about = fmt.Sprintf(" (%s)", shorten(d))
			}
			f.note(n, "", "%s is a question that VS Code asks%s; here it is the environment variable %s, which must be set", ref, about, name)
			return "${" + name + "}"
		case m[3] == "workspaceFolder" || m[3] == "workspaceRoot" || m[3] == "cwd":
			f.note(n, "", "%s has become a relative path: servers start in the session's directory", ref)
			return "."
		case m[3] == "userHome":
			return "${HOME}"
		case m[3] == "pathSeparator" || m[3] == "/":
			return "/"
		}
		f.fault(n, "", "", "%s has no counterpart", ref)
		return ref
	})
}
