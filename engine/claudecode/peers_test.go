package claudecode

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// attachedSession is a session with a server of its own and without a CLI.
func attachedSession(t *testing.T, p mcpserver.Provider) *session {
	t.Helper()
	e, o := fake("polite")
	s := connected(t, e, o)
	s.servers.attach(map[string]mcphost.ServerConfig{"srv": mcphost.InProcess(p)})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// tell hands a message of the CLI to the session and returns the answer's mcp_response.
func tell(t *testing.T, s *session, server, message string) (string, error) {
	t.Helper()
	request, err := json.Marshal(mcpMessage{Server: server, Message: json.RawMessage(message)})
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.serve(t.Context(), "mcp_message", request)
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Reply json.RawMessage `json:"mcp_response"`
	}
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return string(r.Reply), nil
}

// What the CLI says to a server in this process, and what it gets: the protocol's errors for what
// makes no sense, an acknowledgement for notifications, and results with everything that is in them.
func TestMessagesOfTheCLI(t *testing.T) {
	p := mcpserver.New("inner", nil)
	add := func(tool *mcpserver.Tool, r *mcpserver.Result) {
		t.Helper()
		if err := p.AddTool(tool, func(context.Context, json.RawMessage) (*mcpserver.Result, error) { return r, nil }); err != nil {
			t.Fatal(err)
		}
	}
	yes := true
	add(&mcpserver.Tool{Name: "marked", Title: "Marked", Destructive: &yes, Meta: mcp.Meta{"anthropic/maxResultSizeChars": 500_000, "own": "x"}}, mcpserver.Text("one"))
	add(&mcpserver.Tool{Name: "fails"}, mcpserver.Errorf("it broke"))
	add(&mcpserver.Tool{Name: "mixed"}, mcpserver.Mixed(
		&mcp.TextContent{Text: "see"},
		&mcp.ImageContent{Data: []byte("png"), MIMEType: "image/png"},
		&mcp.ResourceLink{URI: "file:///a", Name: "a"},
		&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///b", Text: "body"}},
		&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///c", Blob: []byte("blob"), MIMEType: "application/x"}},
	))
	s := attachedSession(t, p)
	call := func(id, tool string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":{}}}`
	}
	tests := []struct {
		name, message string
		want          []string // parts of the reply
	}{
		{"handshake", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, []string{`"name":"inner"`, `"tools":{`}},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, []string{`"jsonrpc":"2.0"`, `"result":{}`}},
		{"no message", `{"jsonrpc":"2.0","id":5,"method":7}`, []string{`"error":{"code":-32600`}},
		{"no parameters", `{"jsonrpc":"2.0","id":6,"method":"tools/call","params":[]}`, []string{`"error":{"code":-32602`, `"id":6`}},
		{"list", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, []string{`"title":"Marked"`, `"destructiveHint":true`, `"anthropic/maxResultSizeChars":500000`, `"own":"x"`, `"name":"mixed"`}},
		{"text", call("2", "marked"), []string{`"id":2`, `{"type":"text","text":"one"}`, `"isError":false`}},
		{"failure", call(`"three"`, "fails"), []string{`"id":"three"`, "it broke", `"isError":true`}},
		{"everything", call("4", "mixed"), []string{`"text":"see"`, `"type":"image"`, `"data":"cG5n"`, `"type":"resource_link"`, `"uri":"file:///a"`, `"text":"body"`, `"blob":"YmxvYg=="`}},
	}
	for _, tt := range tests {
		got, err := tell(t, s, "srv", tt.message)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %s in %s", tt.name, want, got)
			}
		}
	}
	if got, err := tell(t, s, "nobody", call("9", "marked")); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("a server that is not there: %s, %v", got, err)
	}
}

// A session that was closed refuses what the CLI still says, and nothing starts anew.
func TestMessagesAfterClose(t *testing.T) {
	calls := 0
	p := mcpserver.New("inner", nil)
	if err := p.AddTool(&mcpserver.Tool{Name: "t"}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		calls++
		return mcpserver.Text("x"), nil
	}); err != nil {
		t.Fatal(err)
	}
	s := attachedSession(t, p)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := tell(t, s, "srv", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}`)
	if err == nil && !strings.Contains(got, `"error"`) || calls != 0 {
		t.Errorf("got %s, %v; called %d times", got, err, calls)
	}
}

// Servers in this process and others go side by side, each its own way.
func TestOwnAndExternalServersTogether(t *testing.T) {
	e, o := fake("polite")
	o.MCPServers = map[string]mcphost.ServerConfig{
		"mine": mcphost.InProcess(echo(t)), "cmd": mcphost.Stdio{Command: "x", Env: map[string]string{"OWN": "1"}}, "web": mcphost.HTTP{URL: "https://h.example/mcp"},
	}
	msgs, err := ask(t, e, o)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := msgs[len(msgs)-1].(*agent.Result)
	if !ok {
		t.Fatalf("the last message is %T", msgs[len(msgs)-1])
	}
	line, _, _ := strings.Cut(r.Result, "\n")
	var hello struct {
		Servers map[string]cliServer `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(line), &hello); err != nil {
		t.Fatal(err)
	}
	if cmd := hello.Servers["cmd"]; len(hello.Servers) != 2 || cmd.Command != "x" || cmd.Args == nil || cmd.Env["OWN"] != "1" {
		t.Errorf("the CLI is told of %+v", hello.Servers)
	}
	if want := `"sdkMcpServers":["mine"]`; !canonicalContains(t, line, want) {
		t.Errorf("no %s in %s", want, line)
	}
	if web := hello.Servers["web"]; web.Type != "http" || web.URL != "https://h.example/mcp" || web.Env != nil {
		t.Errorf("the CLI is told of %+v", web)
	}
}

// A server that the CLI starts gets this process's environment without the credentials of the model, unless
// its entry names them, and nothing in a configuration is expanded by the CLI.
func TestServersOfTheCLIHaveNoCredentials(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "s3cret")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
	t.Setenv("KEPT", "yes")
	t.Setenv("REFERS", "a${ANTHROPIC_API_KEY}b")
	o := &agent.Options{Env: map[string]string{"CLAUDE_CODE_USE_BEDROCK": "1", "ONLY_THE_RUN": "x"}}
	env := serverEnv(o, map[string]string{"ANTHROPIC_AUTH_TOKEN": "named", "OWN": "1"})
	want := map[string]string{"KEPT": "yes", "REFERS": "${REFERS}", "ANTHROPIC_AUTH_TOKEN": "named", "OWN": "1"}
	for name, value := range want {
		if env[name] != value {
			t.Errorf("%s is %q, want %q", name, env[name], value)
		}
	}
	for name, value := range env {
		if strings.Contains(value, "s3cret") || name == "ONLY_THE_RUN" {
			t.Errorf("%s=%s", name, value)
		}
	}
	for _, c := range []mcphost.ServerConfig{
		mcphost.Stdio{Command: "${X}"},
		mcphost.Stdio{Command: "x", Args: []string{"${X}"}},
		mcphost.Stdio{Command: "x", Env: map[string]string{"K": "${X}"}},
		mcphost.HTTP{URL: "https://h/${X}"},
		mcphost.SSE{URL: "https://h", Headers: map[string]string{"K": "${X}"}},
	} {
		if !needsHost(c) {
			t.Errorf("%+v would be expanded by the CLI", c)
		}
	}
}

// Each test that docs/peers.md names is there.
func TestPeersListNamesTests(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "peers.md"))
	if err != nil {
		t.Fatal(err)
	}
	dirs := map[string]string{"claudecode": ".", "mcpserver": "../../mcpserver", "mcpbridge": "../../mcpbridge", "mcphost": "../../mcphost", "goschema": "../../internal/goschema"}
	there := map[string]bool{}
	test := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for name, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range test.FindAllSubmatch(src, -1) {
				there[name+"."+string(m[1])] = true
			}
		}
	}
	cases := map[string]int{}
	section := ""
	for line := range strings.Lines(string(data)) {
		if title, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			section = title
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 3 || cells[0] == " case " || strings.HasPrefix(cells[0], "---") {
			continue
		}
		cases[section]++
		if strings.TrimSpace(cells[1]) == "-" && strings.TrimSpace(cells[2]) == "" {
			t.Errorf("%s has no test and no reason", cells[0])
		}
		for _, m := range code.FindAllStringSubmatch(cells[1], -1) {
			name, script, scripted := strings.Cut(m[1], "/")
			if !there[name] {
				t.Errorf("%s: there is no %s", cells[0], name)
			}
			if scripted {
				if _, err := os.Stat(filepath.Join("..", "..", "mcpbridge", "testdata", script+".txtar")); err != nil {
					t.Errorf("%s: %v", cells[0], err)
				}
			}
		}
	}
	if cases["Python"] != 85 || cases["Ruby"] != 52 {
		t.Errorf("cases: %v, want 85 and 52", cases)
	}
}

// Tools whose full names would be one, on one server or on two, have different ones, and each is called by its own.
//
// fault B16
func TestNamesThatBecomeOne(t *testing.T) {
	named := func(tools ...string) *mcpserver.Server {
		p := mcpserver.New("x", nil)
		for _, name := range tools {
			err := p.AddTool(&mcpserver.Tool{Name: name}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
				return mcpserver.Text("this is " + name), nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return p
	}
	e, o := fake("polite")
	o.MCPServers = map[string]mcphost.ServerConfig{
		"pay": mcphost.InProcess(named("eu__send", "a.b", "a_b")), "pay__eu": mcphost.InProcess(named("send")),
	}
	s := connected(t, e, o)
	s.servers.attach(o.MCPServers)
	t.Cleanup(func() { _ = s.Close() })
	full := map[string]string{}
	for _, server := range []string{"pay", "pay__eu"} {
		reply, err := tell(t, s, server, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Result mcp.ListToolsResult }
		if err := json.Unmarshal([]byte(reply), &list); err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Result.Tools {
			got, err := tell(t, s, server, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"`+tool.Name+`","arguments":{}}}`)
			if err != nil {
				t.Fatal(err)
			}
			name := "mcp__" + server + "__" + tool.Name
			if full[name] != "" {
				t.Errorf("two tools are called %s", name)
			}
			full[name] = got
		}
	}
	for name, what := range map[string]string{"mcp__pay__eu__send": "send", "mcp__pay__a_b": "a_b"} {
		if !strings.Contains(full[name], "this is "+what+`"`) {
			t.Errorf("%s is %s", name, full[name])
		}
	}
	if len(full) != 4 || len(s.servers.problems()) != 0 {
		t.Errorf("the tools are %v, left out %+v", full, s.servers.problems())
	}
}
