package mcpconfig

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestImport(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string
		problems []string
	}{
		{"Claude Desktop", `{"globalShortcut": "x", "mcpServers": {"files": {"command": "npx", "args": ["-y", "$HOME"], "env": {"K": "v"}}}}`, []string{
			`files {"command":"npx","args":["-y","$HOME"],"env":{"K":"v"}}`,
		}, nil},
		{"VS Code", `{
  "inputs": [{"type": "promptString", "id": "github-token", "description": "GitHub token", "password": true}],
  "servers": { // mine
    "gh": {"type": "http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer ${input:github-token}"}},
    "fs": {"type": "stdio", "command": "node", "args": ["${workspaceFolder}/server.js"], "env": {"A": "${env:A}", "N": 7, "GONE": null}, "envFile": ".env"},
    "cfg": {"command": "x", "args": ["${config:foo.bar}"]},
    "old": {"url": "https://h/mcp"},
  },
}`, []string{
			`gh {"type":"http","url":"https://h/mcp","headers":{"Authorization":"Bearer ${GITHUB_TOKEN}"}}`,
			`fs {"type":"stdio","command":"node","args":["./server.js"],"env":{"A":"${A}","N":"7"}}`,
			`old {"type":"http","url":"https://h/mcp"}`,
		}, []string{
			`note f:4:81: gh: ${input:github-token} is a question that VS Code asks (GitHub token); here it is the environment variable GITHUB_TOKEN, which must be set`,
			`note f:5:57: fs: ${workspaceFolder} has become a relative path: servers start in the session's directory`,
			`note f:5:123: fs: is null, which takes a variable away, and is not imported`,
			`note f:5:138: fs: is not imported; write the variables in "env", as ${NAME}`,
			`entry f:6:38: cfg: ${config:foo.bar} has no counterpart (this server is left out)`,
			`note f:7:5: old: has a url and no type; it is imported as http; write "type": "sse", if it is the older transport`,
		}},
		{"settings of VS Code", `{"editor.fontSize": 12, "mcp": {"servers": {"a": {"command": "x"}}}}`, []string{`a {"command":"x"}`}, nil},
		{"other names of the same", `{"mcpServers": {"w": {"serverUrl": "https://h/sse", "type": "sse"}, "g": {"httpUrl": "https://h/mcp"}, "c": {"type": "streamableHttp", "url": "https://h/mcp", "alwaysAllow": ["t"]}}}`, []string{
			`w {"url":"https://h/sse","type":"sse"}`, `g {"type":"http","url":"https://h/mcp"}`, `c {"type":"http","url":"https://h/mcp"}`,
		}, []string{
			`note f:1:69: g: has a url and no type; it is imported as http; write "type": "sse", if it is the older transport`,
			`note f:1:160: c: is not imported; write rules for --allowedTools`,
		}},
		{"what nobody else has", `{"servers": {"a": {"command": "x", "dev": {}, "sandbox": true, "gallery": "g", "autoApprove": []}}}`, []string{`a {"command":"x"}`}, []string{
			`note f:1:36: a: is not imported`, `note f:1:47: a: is not imported`, `note f:1:64: a: is not imported`,
			`note f:1:80: a: is not imported; write rules for --allowedTools`,
		}},
		{"no servers", `{"a": 1}`, nil, []string{`file f:1:1: : holds no servers, want "mcpServers", or "servers" or "mcp.servers" as VS Code has them (nothing of this file is used)`}},
		{"servers of another form", `{"servers": []}`, nil, []string{`file f:1:1: : holds no servers, want "mcpServers", or "servers" or "mcp.servers" as VS Code has them (nothing of this file is used)`}},
		{"broken", `{`, nil, []string{`file f:1:2: : the JSON ends too soon: a bracket, a quotation mark or a comment is not closed, want JSON of Claude Desktop, Cursor or VS Code (nothing of this file is used)`}},
		{"an entry of another form", `{"mcpServers": {"a": 1, "b": {"command": "x"}}}`, []string{`b {"command":"x"}`}, []string{`entry f:1:22: a: is a number, want an object (this server is left out)`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, problems := Import([]byte(tt.in), "f")
			var entries, texts []string
			for _, e := range got {
				entries = append(entries, fmt.Sprintf("%s %s", e.Name, e.Entry))
				if _, err := SetServer(nil, nil, e.Name, e.Entry); err != nil {
					t.Errorf("%s cannot be put into a file: %v", e.Name, err)
				}
			}
			for _, p := range problems {
				server := p.Server
				p.Path = ""
				pos := fmt.Sprintf("%s %s:%d:%d: %s: ", p.Level, p.File, p.Line, p.Column, server)
				level := p
				level.File = ""
				texts = append(texts, pos+level.String())
			}
			if d := cmp.Diff(tt.want, entries); d != "" {
				t.Errorf("entries (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.problems, texts); d != "" {
				t.Errorf("problems (-want +got):\n%s", d)
			}
		})
	}
}

// What is imported and needs an answer that VS Code would have asked for is refused until the variable is set.
func TestImportedQuestionMustBeAnswered(t *testing.T) {
	got, _ := Import([]byte(`{"inputs": [{"id": "key"}], "servers": {"a": {"command": "x", "env": {"K": "${input:key}"}}}}`), "f")
	doc, err := SetServer(nil, nil, got[0].Name, got[0].Entry)
	if err != nil {
		t.Fatal(err)
	}
	if _, problems := Parse(doc, &ParseOptions{LookupEnv: env()}); len(problems) != 1 || problems[0].Message != "the environment variable KEY is not set" {
		t.Errorf("got %v, want one about KEY", problems)
	}
	cfg, problems := Parse(doc, &ParseOptions{LookupEnv: env("KEY", "v")})
	if len(problems) > 0 || cfg.Servers["a"].Env["K"] != "v" {
		t.Errorf("got %+v, %v", cfg.Servers["a"], problems)
	}
}

func FuzzImport(f *testing.F) {
	f.Add([]byte(`{"inputs": [{"id": "k"}], "servers": {"a": {"command": "x", "env": {"K": "${input:k}", "N": 1}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, _ := Import(data, "f")
		for _, e := range got {
			if !json.Valid(e.Entry) || e.Entry[0] != '{' {
				t.Errorf("entry %q becomes %s", e.Name, e.Entry)
			}
		}
	})
}
