package mcpconfig

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/mcpauth"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/permission"
)

// env is an environment.
func env(pairs ...string) func(string) (string, bool) {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

// parseOne parses a document with one entry.
func parseOne(t *testing.T, entry string, pairs ...string) (Entry, []Problem) {
	t.Helper()
	cfg, problems := Parse([]byte(`{"mcpServers": {"s": `+entry+`}}`), &ParseOptions{File: "f.json", LookupEnv: env(pairs...)})
	return cfg.Servers["s"], problems
}

func TestEntries(t *testing.T) {
	tests := []struct {
		name, in string
		want     Entry
	}{
		// D05 D50
		{"stdio without type", `{"command": "npx", "args": ["-y", "x"], "env": {"A": "1"}}`, Entry{Kind: Stdio, Command: "npx", Args: []string{"-y", "x"}, Env: map[string]string{"A": "1"}}},
		{"stdio with type", `{"type": "stdio", "command": "x"}`, Entry{Kind: Stdio, Command: "x"}},
		{"stdio, all there is", `{"command": "x", "cwd": "sub", "timeout": 90000, "connectTimeout": 1500.5, "maxMessageBytes": 200e6, "alwaysLoad": true, "required": true, "disabled": true}`, Entry{
			Kind: Stdio, Command: "x", Dir: "sub", CallTimeout: 90 * time.Second, ConnectTimeout: 1500 * time.Millisecond, MaxMessageBytes: 200_000_000, AlwaysLoad: true, Required: true, Disabled: true,
		}},
		{"null counts as absent", `{"command": "x", "args": null, "env": null, "timeout": null, "disabled": null, "tools": null}`, Entry{Kind: Stdio, Command: "x"}},
		// D52
		{"http", `{"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer t"}}`, Entry{Kind: HTTP, URL: "https://example.com/mcp", Headers: map[string]string{"Authorization": "Bearer t"}}},
		// D53
		{"streamable-http is http", `{"type": "streamable-http", "url": "http://localhost:1/mcp"}`, Entry{Kind: HTTP, URL: "http://localhost:1/mcp"}},
		// D51
		{"sse", `{"type": "sse", "url": "http://[::1]:1/sse", "headers": {"X-Key": "k"}}`, Entry{Kind: SSE, URL: "http://[::1]:1/sse", Headers: map[string]string{"X-Key": "k"}}},
		{"headersHelper and oauth", `{"type": "http", "url": "http://h/", "headersHelper": "get-headers", "oauth": {"clientId": "id", "clientSecret": "s", "callbackPort": 8080, "authServerMetadataUrl": "https://as/x", "scopes": "a b"}}`, Entry{
			Kind: HTTP, URL: "http://h/", HeadersHelper: "get-headers", OAuth: &OAuth{ClientID: "id", ClientSecret: "s", CallbackPort: 8080, MetadataURL: "https://as/x", Scopes: []string{"a", "b"}},
		}},
		{"scopes as a list", `{"type": "http", "url": "http://h/", "oauth": {"scopes": ["a", "b"]}}`, Entry{Kind: HTTP, URL: "http://h/", OAuth: &OAuth{Scopes: []string{"a", "b"}}}},
		{"policies", `{"command": "x", "tools": [{"name": "a", "permission_policy": "always_deny"}, {"name": "b", "permission_policy": "always_ask"}, {"name": "c"}]}`, Entry{
			Kind: Stdio, Command: "x", Policies: map[string]permission.ToolPolicy{"a": permission.AlwaysDeny, "b": permission.AlwaysAsk},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, problems := parseOne(t, tt.in)
			for _, p := range problems {
				t.Errorf("problem: %v", p)
			}
			tt.want.Name, tt.want.Scope, tt.want.Source, tt.want.Line = "s", ScopeDynamic, "f.json", 1
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			// What is written back reads the same.
			raw, err := EntryJSON(got)
			if err != nil {
				t.Fatal(err)
			}
			if again, _ := parseOne(t, string(raw)); cmp.Diff(got, again) != "" {
				t.Errorf("%s reads as something else:\n%s", raw, cmp.Diff(got, again))
			}
		})
	}
}

// Each faulty entry gets one problem with path, what was expected and what to write.
func TestFaultyEntries(t *testing.T) {
	tests := []struct {
		name, in, want string
	}{
		{"not an object", `"npx"`, `mcpServers.s: is a string, want an object like {"command": "…"} or {"type": "http", "url": "…"}`},
		{"nothing", `{}`, `mcpServers.s: neither "command" nor "url" is given, want a "command" (stdio) or a "type" and a "url" (http, sse)`},
		{"serverUrl", `{"serverUrl": "http://h/"}`, `mcpServers.s: neither "command" nor "url" is given, want a "command" (stdio) or a "type" and a "url" (http, sse); write "url" for "serverUrl"`},
		{"serverUrl with a type", `{"type": "http", "serverUrl": "http://h/"}`, `mcpServers.s: "url" is missing, want a string like "https://example.com/mcp"; write "url" for "serverUrl"`},
		{"cmd", `{"cmd": "x", "arguments": []}`, `mcpServers.s: neither "command" nor "url" is given, want a "command" (stdio) or a "type" and a "url" (http, sse); write "command" for "cmd"`},
		{"transport", `{"transport": "streamable-http", "url": "http://h/"}`, `mcpServers.s.transport: is no key of an entry, and the transport depends on it; write "type": "http"`},
		{"transport sse", `{"transport": "sse", "url": "http://h/"}`, `mcpServers.s.transport: is no key of an entry, and the transport depends on it; write "type": "sse"`},
		{"type misspelt", `{"type": "streamableHttp", "url": "http://h/"}`, `mcpServers.s.type: the type "streamableHttp" is not known, want "stdio", "http" or "sse"; write "http"`},
		{"type in capitals", `{"type": "SSE", "url": "http://h/"}`, `mcpServers.s.type: the type "SSE" is not known, want "stdio", "http" or "sse"; write "sse"`},
		{"type in other words", `{"type": "STD-IO", "command": "x"}`, `mcpServers.s.type: the type "STD-IO" is not known, want "stdio", "http" or "sse"; write "stdio"`},
		{"type unknown", `{"type": "carrier-pigeon", "url": "http://h/"}`, `mcpServers.s.type: the type "carrier-pigeon" is not known, want "stdio", "http" or "sse"`},
		{"a port too high", `{"type": "http", "url": "http://h:99999/"}`, `mcpServers.s.url: names a port that there is not, want a port from 1 to 65535 in it`},
		{"type ws", `{"type": "ws", "url": "ws://h/"}`, `mcpServers.s.type: WebSocket servers are not supported, want "stdio", "http" or "sse"`},
		{"type sdk", `{"type": "sdk", "name": "s"}`, `mcpServers.s.type: a server in the program itself is given in code, not in a file, want "stdio", "http" or "sse"`},
		{"type number", `{"type": 1, "command": "x"}`, `mcpServers.s.type: is a number, want "stdio", "http" or "sse"`},
		{"http with a command", `{"type": "http", "command": "x"}`, `mcpServers.s: "url" is missing, want a string like "https://example.com/mcp"; write "type": "stdio", if the command is meant`},
		{"stdio with a url", `{"type": "stdio", "url": "http://h/"}`, `mcpServers.s: "command" is missing, want a string: the program to start`},
		{"command empty", `{"command": " "}`, `mcpServers.s.command: is empty, want the program to start`},
		{"command as a list", `{"command": ["npx", "-y"]}`, `mcpServers.s.command: is a list, want a string: the program to start; write the first of the list as "command" and the rest as "args"`},
		{"command number", `{"command": 5}`, `mcpServers.s.command: is a number, want a string: the program to start; write it in quotation marks`},
		{"args as a string", `{"command": "x", "args": "-y secret"}`, `mcpServers.s.args: is a string, want a list of strings; write "args": ["…", "…"], one string for each argument`},
		{"args with a number", `{"command": "x", "args": ["-p", 8080]}`, `mcpServers.s.args[1]: is a number, want a string; write it in quotation marks`},
		{"args with null", `{"command": "x", "args": [null]}`, `mcpServers.s.args[0]: is null, want a string; write "" for an empty string, or leave it out`},
		{"env value number", `{"command": "x", "env": {"PORT": 7}}`, `mcpServers.s.env.PORT: is a number, want a string; write it in quotation marks`},
		{"env value boolean, odd name", `{"command": "x", "env": {"a.b": true}}`, `mcpServers.s.env["a.b"]: is a boolean, want a string; write it in quotation marks`},
		{"env a list", `{"command": "x", "env": ["A=1"]}`, `mcpServers.s.env: is a list, want an object of environment variables: {"NAME": "value"}`},
		{"env name", `{"command": "x", "env": {"A=B": "1"}}`, `mcpServers.s.env["A=B"]: cannot be the name of an environment variable, want the name of a variable`},
		{"cwd", `{"command": "x", "cwd": 1}`, `mcpServers.s.cwd: is a number, want a string: the directory to start in; write it in quotation marks`},
		{"url empty", `{"type": "http", "url": ""}`, `mcpServers.s.url: is empty, want an absolute URL like "https://example.com/mcp"`},
		{"url relative", `{"type": "http", "url": "example.com/mcp"}`, `mcpServers.s.url: does not begin with http:// or https://, want an absolute URL like "https://example.com/mcp"`},
		{"url without host", `{"type": "sse", "url": "http:///mcp"}`, `mcpServers.s.url: names no host, want an absolute URL like "https://example.com/mcp"`},
		{"url broken", `{"type": "http", "url": "http://user:secret@h:port/"}`, `mcpServers.s.url: is no URL, want an absolute URL like "https://example.com/mcp"`},
		{"header name", `{"type": "http", "url": "http://h/", "headers": {"${X}": "1"}}`, `mcpServers.s.headers["${X}"]: cannot be the name of a header, want the name of a header: letters, digits and hyphens`},
		{"header value", `{"type": "http", "url": "http://h/", "headers": {"A": "a\r\nB: secret"}}`, `mcpServers.s.headers.A: holds a line break or another control character, want one line of text`},
		{"timeout as text", `{"command": "x", "timeout": "30000"}`, `mcpServers.s.timeout: is a string, want a number of milliseconds; write the number without quotation marks, in milliseconds`},
		{"flag as text", `{"command": "x", "disabled": "true"}`, `mcpServers.s.disabled: is a string, want true or false; write true without quotation marks`},
		{"flag as number", `{"command": "x", "alwaysLoad": 1}`, `mcpServers.s.alwaysLoad: is a number, want true or false`},
		{"policy unknown", `{"command": "x", "tools": [{"name": "a", "permission_policy": "never"}]}`, `mcpServers.s.tools[0].permission_policy: is no permission policy, want "always_allow", "always_ask" or "always_deny"`},
		{"policy misspelt", `{"command": "x", "tools": [{"name": "a", "permissionPolicy": "always_deny"}]}`, `mcpServers.s.tools[0].permissionPolicy: is no key of a tool; write "permission_policy"`},
		{"policy without name", `{"command": "x", "tools": [{"permission_policy": "always_deny"}]}`, `mcpServers.s.tools[0]: "name" is missing or no string, want the name of a tool`},
		{"tools of another form", `{"command": "x", "tools": {"a": "always_deny"}}`, `mcpServers.s.tools: is an object, want a list of {"name": "TOOL", "permission_policy": "always_allow", "always_ask" or "always_deny"}`},
		{"oauth port", `{"type": "http", "url": "http://h/", "oauth": {"callbackPort": 99999}}`, `mcpServers.s.oauth.callbackPort: is no port, want a port number from 0 to 65535`},
		{"NUL", `{"command": "x", "args": ["a\u0000b"]}`, `mcpServers.s.args[0]: holds a NUL character, want text without it`},
		{"several faults are one problem", `{"command": "x", "args": [1], "env": {"A": 2}, "disabled": "no"}`, `mcpServers.s.args[0]: is a number, want a string; write it in quotation marks; also mcpServers.s.env.A: is a number, want a string; write it in quotation marks; also mcpServers.s.disabled: is a string, want true or false`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, problems := parseOne(t, tt.in)
			if len(problems) != 1 || problems[0].Level != LevelEntry || problems[0].Server != "s" || e.Name != "" {
				t.Fatalf("got entry %+v and problems %v, want one problem that costs the entry", e, problems)
			}
			_, got, _ := strings.Cut(problems[0].String(), ": ")
			if want := tt.want + " (this server is left out)"; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if strings.Contains(problems[0].String(), "secret") {
				t.Errorf("a problem shows a value: %v", problems[0])
			}
		})
	}
}

func TestNotes(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string
	}{
		{"url without type", `{"url": "https://h/mcp"}`, []string{`mcpServers.s.url: the entry has a url and no type; it is taken as http; write "type": "http"`}},
		{"url without type that looks like sse", `{"url": "https://h/sse/"}`, []string{`mcpServers.s.url: the entry has a url and no type; it is taken as http; write "type": "sse", if it is the older transport as its path suggests, or "type": "http"`}},
		{"unknown field", `{"command": "x", "description": "mine"}`, []string{`mcpServers.s.description: is no key of an entry and does nothing`}},
		{"misspelt field", `{"command": "x", "headres": {}, "agrs": []}`, []string{`mcpServers.s.headres: is no key of an entry and does nothing; write "headers", if that is meant`, `mcpServers.s.agrs: is no key of an entry and does nothing; write "args", if that is meant`}},
		{"enabled", `{"command": "x", "enabled": false}`, []string{`mcpServers.s.enabled: is no key of an entry and does nothing; write "disabled": true, if it is not to be used`}},
		{"autoApprove", `{"command": "x", "autoApprove": ["a"]}`, []string{`mcpServers.s.autoApprove: is no key of an entry and does nothing; write "tools": [{"name": …, "permission_policy": …}]`}},
		{"transport of a stdio server", `{"command": "x", "transport": "stdio"}`, []string{`mcpServers.s.transport: is no key of an entry and does nothing; write "type", if that is meant`}},
		{"key of another transport", `{"command": "x", "url": "http://h/", "headers": {}}`, []string{`mcpServers.s.url: does nothing with this type of server`, `mcpServers.s.headers: does nothing with this type of server`}},
		{"seconds for milliseconds", `{"command": "x", "timeout": 30}`, []string{`mcpServers.s.timeout: is ignored: it is in milliseconds, and less than 1000 is taken for a mistake; write 30000, if 30 seconds are meant`}},
		{"megabytes for bytes", `{"command": "x", "maxMessageBytes": 100}`, []string{`mcpServers.s.maxMessageBytes: is ignored: it is in bytes, and less than 65536 is taken for a mistake`}},
		{"command line as command", `{"command": "npx -y x"}`, []string{`mcpServers.s.command: holds a blank; it is one program's name, not a command line; write the program as "command" and the rest as "args", a list`}},
		{"a path with a blank is fine", `{"command": "/opt/my server/run"}`, nil},
		{"key twice", `{"command": "x", "env": {"A": "1", "A": "2"}, "command": "y"}`, []string{`mcpServers.s.command: stands twice; the last one counts and this one is ignored`, `mcpServers.s.env.A: stands twice; the last one counts and this one is ignored`}},
		{"header twice", `{"type": "http", "url": "http://h/", "headers": {"x-a": "1", "X-A": "2"}}`, []string{`mcpServers.s.headers.X-A: is the same header as "x-a"; only one of them is sent`}},
		{"two policies", `{"command": "x", "tools": [{"name": "a", "permission_policy": "always_deny"}, {"name": "a", "permission_policy": "always_allow"}]}`, []string{`mcpServers.s.tools[1]: the tool has a policy already; the stricter one holds`}},
		{"unknown oauth field", `{"type": "http", "url": "http://h/", "oauth": {"client_id": "x"}}`, []string{`mcpServers.s.oauth.client_id: is no key of oauth and does nothing`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, problems := parseOne(t, tt.in)
			var got []string
			for _, p := range problems {
				if p.Level != LevelNote {
					t.Errorf("%v is of level %s", p, p.Level)
				}
				_, s, _ := strings.Cut(p.String(), ": ")
				got = append(got, s)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("notes (-want +got):\n%s", d)
			}
			if e.Name != "s" {
				t.Error("the entry is left out")
			}
		})
	}
	if e, _ := parseOne(t, `{"command": "x", "tools": [{"name": "a", "permission_policy": "always_deny"}, {"name": "a", "permission_policy": "always_allow"}]}`); e.Policies["a"] != permission.AlwaysDeny {
		t.Errorf("of two policies %s holds, want the stricter", e.Policies["a"])
	}
}

func TestDocuments(t *testing.T) {
	tests := []struct {
		name, in string
		servers  []string
		want     []string
	}{
		{"empty map", `{"mcpServers": {}}`, nil, nil},
		{"null map", `{"mcpServers": null}`, nil, nil},
		{"byte order mark", "\ufeff" + `{"mcpServers": {"a": {"command": "x"}}}`, []string{"a"}, nil},
		{"comments", "{\"mcpServers\": { // mine\n\"a\": {\"command\": \"x\",},}}", []string{"a"}, []string{"f: has comments or trailing commas, which Tenon accepts and other hosts of .mcp.json refuse"}},
		{"a comment at the end, without a line end", `{"mcpServers": {"a": {"command": "x"}}} // mine`, []string{"a"}, []string{"f: has comments or trailing commas, which Tenon accepts and other hosts of .mcp.json refuse"}},
		{"a comment alone", `// mine`, nil, []string{`f:1:1: the JSON ends too soon: a bracket, a quotation mark or a comment is not closed, want JSON like {"mcpServers": {"NAME": {"command": "…"}}} (nothing of this file is used)`}},
		{"a comment that does not end", `{"mcpServers": {}} /* mine`, nil, []string{`f:1:20: the JSON ends too soon: a bracket, a quotation mark or a comment is not closed, want JSON like {"mcpServers": {"NAME": {"command": "…"}}} (nothing of this file is used)`}},
		{"nothing", ``, nil, []string{`f: it is empty, want JSON like {"mcpServers": {"NAME": {"command": "…"}}} (nothing of this file is used)`}},
		{"empty object", `{}`, nil, []string{`f:1:1: mcpServers: is missing: no servers are configured here`}},
		{"a list", `[]`, nil, []string{`f:1:1: is a list, want an object like {"mcpServers": {…}} (nothing of this file is used)`}},
		{"servers of VS Code", `{"servers": {}}`, nil, []string{`f:1:1: mcpServers: is missing: "servers" is the form of VS Code; write "mcpServers" for it, or import the file (nothing of this file is used)`}},
		{"a letter too few", `{"mcpServer": {}}`, nil, []string{`f:1:1: mcpServers: is missing; write "mcpServers" for "mcpServer" (nothing of this file is used)`}},
		{"another spelling", `{"MCP-Servers": {}}`, nil, []string{`f:1:1: mcpServers: is missing; write "mcpServers" for "MCP-Servers" (nothing of this file is used)`}},
		{"bare servers", `{"a": {"command": "x"}}`, nil, []string{`f:1:1: mcpServers: is missing; write {"mcpServers": { … }} around the servers (nothing of this file is used)`}},
		{"servers as a list", "{\n \"mcpServers\": []}", nil, []string{`f:2:16: mcpServers: is a list, want an object of servers by name: {"NAME": {"command": "…"}} (nothing of this file is used)`}},
		{"broken", "{\"mcpServers\": {\n  \"a\": {\"command\": \"secret\"\n}", nil, []string{`f:3:2: the JSON ends too soon: a bracket, a quotation mark or a comment is not closed, want JSON like {"mcpServers": {"NAME": {"command": "…"}}} (nothing of this file is used)`}},
		{"broken within a string", `{"mcpServers": {"a": {"command": "sec` + "\n" + `ret"}}}`, nil, []string{`f:1:34: invalid value: a string with a bad escape or line break, or a word without quotation marks, want JSON like {"mcpServers": {"NAME": {"command": "…"}}} (nothing of this file is used)`}},
		{"a comma missing", `{"mcpServers": {"a": {"command": "x"} "b": 1}}`, nil, []string{`f:1:39: invalid JSON: invalid character '"' after object value (expecting ',' or '}'), want JSON like {"mcpServers": {"NAME": {"command": "…"}}} (nothing of this file is used)`}},
		{"UTF-16", "\xff\xfe{\x00", nil, []string{`f: it is UTF-16; save it as UTF-8, want JSON like {"mcpServers": {"NAME": {"command": "…"}}} (nothing of this file is used)`}},
		{"not UTF-8", "{\"mcpServers\": {\"\xff\": {\"command\": \"x\"}}}", nil, []string{`f:1:18: it is not valid UTF-8, want JSON like {"mcpServers": {"NAME": {"command": "…"}}} (nothing of this file is used)`}},
		{"a name twice", `{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}`, []string{"a"}, []string{`f:1:17: mcpServers.a: stands twice; the last one counts and this one is ignored`}},
		{"the map twice", `{"mcpServers": {"a": {"command": "x"}}, "mcpServers": {"b": {"command": "y"}}}`, []string{"b"}, []string{`f:1:2: mcpServers: stands twice; the last one counts and this one is ignored`}},
		{"no name", `{"mcpServers": {"": {"command": "x"}, "a": {"command": "x"}}}`, []string{"a"}, []string{`f:1:17: mcpServers[""]: the server has no name, want a name (this server is left out)`}},
		// The names that the model sees differ in letters, digits, _ and - only.
		{"names that the model sees alike", `{"mcpServers": {"a.b": {"command": "x"}, "a b": {"command": "y"}, "a-b": {"command": "z"}}}`, []string{"a b", "a-b", "a.b"}, []string{`f:1:42: mcpServers["a b"]: its tools are called mcp__a_b__… like those of server "a.b"; write a name that differs in more than dots and blanks`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, problems := Parse([]byte(tt.in), &ParseOptions{File: "f"})
			var got []string
			for _, p := range problems {
				got = append(got, p.String())
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("problems (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.servers, cfg.Names()); d != "" {
				t.Errorf("servers (-want +got):\n%s", d)
			}
		})
	}
}

func TestHostileDocumentsAreBounded(t *testing.T) {
	for name, in := range map[string]string{
		"brackets":            strings.Repeat("[", 1<<20),
		"objects":             strings.Repeat(`{"a":`, 1<<20),
		"brackets in strings": `{"mcpServers": {"s": {"command": "` + strings.Repeat("[{", 1000) + `"}}}`,
		"after a comment":     "/*[" + strings.Repeat("[", 5) + "*/" + strings.Repeat("[", 1<<20),
	} {
		cfg, problems := Parse([]byte(in), nil)
		if name == "brackets in strings" {
			if len(problems) > 0 || len(cfg.Servers) != 1 {
				t.Errorf("%s: %v", name, problems)
			}
			continue
		}
		if len(problems) != 1 || !strings.Contains(problems[0].Message, "levels deep") {
			t.Errorf("%s: got %v, want one problem about the nesting", name, problems)
		}
	}
}

// F17 of the field cases: each bad entry has one message, the good ones load.
func TestOneBadEntryCostsItselfOnly(t *testing.T) {
	const file = "\ufeff" + `{"mcpServers": {
  "good": {"command": "x"},
  "old": {"serverUrl": "http://h/"},
  "number": {"command": "x", "env": {"PORT": 7}},
  "bare": {"url": "http://h/mcp"},
  "alias": {"type": "streamable-http", "url": "http://h/mcp"},
  "extra": {"command": "x", "note": "mine"}
}}`
	cfg, problems := Parse([]byte(file), &ParseOptions{File: ".mcp.json"})
	if d := cmp.Diff([]string{"alias", "bare", "extra", "good"}, cfg.Names()); d != "" {
		t.Errorf("servers (-want +got):\n%s", d)
	}
	got := map[string]string{}
	for _, p := range problems {
		if got[p.Server] != "" {
			t.Errorf("two problems of %s: %s and %v", p.Server, got[p.Server], p)
		}
		got[p.Server] = fmt.Sprintf("%s %s:%d %s", p.Level, p.File, p.Line, p.Path)
	}
	want := map[string]string{
		"old":    "entry .mcp.json:3 mcpServers.old",
		"number": "entry .mcp.json:4 mcpServers.number.env.PORT",
		"bare":   "note .mcp.json:5 mcpServers.bare.url",
		"extra":  "note .mcp.json:7 mcpServers.extra.note",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("problems (-want +got):\n%s", d)
	}
}

func TestServerConfigs(t *testing.T) {
	cfg, _ := Parse([]byte(`{"mcpServers": {
		"files": {"command": "npx", "args": ["-y"], "env": {"A": "1"}, "cwd": "sub", "timeout": 2000, "disabled": true},
		"web": {"type": "http", "url": "https://h/mcp", "headers": {"K": "v"}, "alwaysLoad": true, "oauth": {"clientId": "x"}},
		"old": {"type": "sse", "url": "http://h/sse", "headersHelper": "x"}}}`), &ParseOptions{File: "f", Scope: ScopeProject, Dir: "/srv/project"})
	cfg.Tokens = mcpauth.NewMemoryStore()
	got, problems := cfg.ServerConfigs()
	if len(problems) > 0 {
		t.Errorf("got %v, want no problems", problems)
	}
	sse, ok := got["old"].(mcphost.SSE)
	if !ok || sse.URL != "http://h/sse" || sse.HeadersFunc == nil {
		t.Errorf("old: got %+v", got["old"])
	}
	delete(got, "old")
	auth, err := mcpauth.New("https://h/mcp", &mcpauth.Options{Store: cfg.Tokens, ClientID: "x"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]mcphost.ServerConfig{
		// D50
		"files": mcphost.Stdio{Command: "npx", Args: []string{"-y"}, Env: map[string]string{"A": "1"}, Dir: "/srv/project/sub", Common: mcphost.Common{CallTimeout: 2 * time.Second, Disabled: true, Scope: "project", Source: "project"}},
		"web":   mcphost.HTTP{URL: "https://h/mcp", Headers: map[string]string{"K": "v"}, Auth: auth, Common: mcphost.Common{AlwaysLoad: true, Scope: "project", Source: "project"}},
	}
	if d := cmp.Diff(want, got, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".HeadersFunc" }, cmp.Ignore()), cmp.Comparer(func(a, b *mcpauth.Authenticator) bool { return a.Same(b) })); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]map[string]permission.ToolPolicy{}, cfg.Policies()); d != "" {
		t.Errorf("policies (-want +got):\n%s", d)
	}
}

func TestCheckEntry(t *testing.T) {
	if p := CheckEntry("a", json.RawMessage(`{"command": "x"}`), nil); len(p) > 0 {
		t.Errorf("got %v, want no problems", p)
	}
	p := CheckEntry("a.b", json.RawMessage(`{"command": 1}`), nil)
	if len(p) != 1 || p[0].Path != `mcpServers["a.b"].command` || p[0].Line != 0 {
		t.Errorf("got %v, want one problem of the command, without a line", p)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"mcpServers": {"a": {"command": "x", "args": ["${A:-b}"], "env": {"K": "${K}"}}}}`))
	f.Add([]byte("\ufeff{\"mcpServers\": {\"a\": {\"type\": \"http\", \"url\": \"http://h\", \"headers\": {\"A\": \"${B}\"}}, // c\n},}"))
	f.Add([]byte(`{"mcpServers": {"a": {"command": "x", "tools": [{"name": "t", "permission_policy": "always_ask"}], "timeout": 1e400}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, problems := Parse(data, &ParseOptions{LookupEnv: env("A", "1")})
		left := map[string]bool{}
		for _, p := range problems {
			if p.Message == "" || p.Level == "" {
				t.Errorf("empty problem %+v", p)
			}
			if p.Level == LevelEntry {
				left[p.Server] = true
			}
		}
		for name, e := range cfg.Servers {
			if left[name] {
				t.Errorf("entry %q is refused and loads", name)
			}
			raw, err := EntryJSON(e)
			if err != nil {
				t.Errorf("entry %q: %v", name, err)
			}
			if !json.Valid(raw) {
				t.Errorf("entry %q becomes %s", name, raw)
			}
		}
	})
}
