package mcpconfig

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/tailscale/hujson"

	"github.com/tenon-sdk/tenon/internal/clip"
)

// An Imported is a server of another host's file as an entry of this package.
type Imported struct {
	Name string
	// Entry is for [SetServer]. Its references are not expanded.
	Entry json.RawMessage
}

// Import reads the servers of a file of Claude Desktop or Cursor (mcpServers), or of VS Code's mcp.json
// (servers and inputs) or settings.json (mcp.servers), in the order of the file. It translates equivalent
// forms: ${env:NAME} to ${NAME}, a question to the user, ${input:id}, to the variable ${ID},
// ${workspaceFolder} to a relative path, and serverUrl and httpUrl to url. Notes report the translations
// that the user must know. An entry that cannot be translated is left out and reported.
func Import(data []byte, file string) ([]Imported, []Problem) {
	doc, problem := open(data, file)
	if problem != nil {
		problem.Want = "JSON of Claude Desktop, Cursor or VS Code"
		return nil, []Problem{*problem}
	}
	servers, inputs := foreignServers(doc.top())
	members, doubled, ok := servers.object()
	if !ok {
		p := doc.problem(doc.top(), LevelFile, "holds no servers")
		p.Want = `"mcpServers", or "servers" or "mcp.servers" as VS Code has them`
		return nil, []Problem{p}
	}
	r := parsed{doc: doc}
	for _, m := range doubled {
		r.note(m, repeated)
	}
	var out []Imported
	for _, m := range members {
		im := &importer{faults: &faults{doc: doc, server: m.name}, inputs: inputs}
		entry := im.entry(m)
		r.problems = append(r.problems, im.problems()...)
		if len(im.bad) == 0 {
			entry.Minimize()
			out = append(out, Imported{m.name, entry.Pack()})
		}
	}
	return out, r.problems
}

// ClaudeDesktopFile returns the path of Claude Desktop's configuration.
func ClaudeDesktopFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "Claude", "claude_desktop_config.json"), nil
}

// foreignServers returns the map of servers, and the descriptions of VS Code's inputs by ID.
func foreignServers(top node) (servers node, inputs map[string]string) {
	if n := top.get(serversKey); n.exists() {
		return n, nil
	}
	if mcp := top.get("mcp"); mcp.exists() {
		top = mcp
	}
	inputs = map[string]string{}
	list, _ := top.get("inputs").list()
	for _, e := range list {
		if id, ok := e.get("id").text(); ok {
			inputs[id], _ = e.get("description").text()
		}
	}
	return top.get("servers"), inputs
}

// An importer translates an entry.
type importer struct {
	*faults
	inputs map[string]string
}

// unimported are keys that are left out, with what to write instead.
var unimported = map[string]string{
	"envFile":     `the variables in "env", as ${NAME}`,
	"autoApprove": "rules for --allowedTools",
	"alwaysAllow": "rules for --allowedTools",
	"dev":         "",
	"sandbox":     "",
	"gallery":     "",
}

// entry translates an entry.
func (im *importer) entry(m member) hujson.Value {
	out := &hujson.Object{}
	for _, field := range im.object(m.value, "an object") {
		if instead, ok := unimported[field.name]; ok {
			im.note(field.key, instead, "is not imported")
			continue
		}
		key, value := field.name, im.translate(field.value)
		switch key {
		case "serverUrl", "httpUrl":
			key = "url"
		case "env":
			im.env(field.value, value)
		case "type": // other hosts have other names of streamable HTTP
			if s, _ := field.value.text(); similarType(s) == `"http"` {
				value = stringValue("http")
			}
		}
		if i := lastMember(out, key); i >= 0 {
			out.Members[i].Value = value
			continue
		}
		out.Members = append(out.Members, newMember(key, value))
	}
	if lastMember(out, "type") < 0 && lastMember(out, "url") >= 0 {
		out.Members = slices.Insert(out.Members, 0, newMember("type", stringValue("http")))
		im.note(m.key, `"type": "sse", if it is the older transport`, "has a url and no type; it is imported as http")
	}
	return hujson.Value{Value: out}
}

func stringValue(s string) hujson.Value { return hujson.Value{Value: hujson.String(s)} }

// env changes translated environment variables n. VS Code accepts numbers, and null to remove a
// variable.
func (im *importer) env(n node, translated hujson.Value) {
	members, _, ok := n.object()
	if !ok {
		return
	}
	out := translated.Value.(*hujson.Object)
	all := out.Members
	out.Members = nil
	for i, m := range all {
		switch m.Value.Value.Kind() {
		case 'n':
			im.note(members[i].key, "", "is null, which takes a variable away, and is not imported")
			continue
		case '0', 't', 'f':
			m.Value = stringValue(string(m.Value.Value.(hujson.Literal)))
		}
		out.Members = append(out.Members, m)
	}
}

// translate translates the references in all strings of a value.
func (im *importer) translate(n node) hujson.Value {
	if s, ok := n.text(); ok {
		return stringValue(im.references(n, s))
	}
	if list, ok := n.list(); ok {
		out := &hujson.Array{}
		for _, e := range list {
			out.Elements = append(out.Elements, im.translate(e))
		}
		return hujson.Value{Value: out}
	}
	if members, _, ok := n.object(); ok {
		out := &hujson.Object{}
		for _, m := range members {
			out.Members = append(out.Members, newMember(m.name, im.translate(m.value)))
		}
		return hujson.Value{Value: out}
	}
	return n.v.Clone()
}

// foreignForm matches a reference of VS Code.
var foreignForm = regexp.MustCompile(`\$\{(env|input|config|command):([^{}]*)\}|\$\{(workspaceFolder|workspaceRoot|userHome|cwd|workspaceFolderBasename|pathSeparator|/)\}`)

// references translates the references in a string.
func (im *importer) references(n node, s string) string {
	return foreignForm.ReplaceAllStringFunc(s, func(ref string) string {
		m := foreignForm.FindStringSubmatch(ref)
		switch {
		case m[1] == "env":
			return "${" + m[2] + "}"
		case m[1] == "input":
			name := variableName(m[2])
			about := ""
			if d := im.inputs[m[2]]; d != "" {
				about = fmt.Sprintf(" (%s)", clip.Text(d, 40))
			}
			im.note(n, "", "%s is a question that VS Code asks%s; here it is the environment variable %s, which must be set", ref, about, name)
			return "${" + name + "}"
		case m[3] == "workspaceFolder" || m[3] == "workspaceRoot" || m[3] == "cwd":
			im.note(n, "", "%s has become a relative path: servers start in the session's directory", ref)
			return "."
		case m[3] == "userHome":
			return "${HOME}"
		case m[3] == "pathSeparator" || m[3] == "/":
			return "/"
		}
		im.fault(n, "", "", "%s has no counterpart", ref)
		return ref
	})
}
