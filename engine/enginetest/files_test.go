package enginetest

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

// A serveFunc serves a handler where the engine can reach it, until the test ends, and returns its address.
type serveFunc func(t *testing.T, h http.Handler) (url string)

// testFiles runs the tests of configuration files and of servers over HTTP. The engine's requests
// must reach the servers that its serveFunc starts. child starts a process that runs serveChild.
func testFiles(t *testing.T, newEngine func(t *testing.T, m *modeltest.Model) (agent.Engine, serveFunc), child mcphost.Stdio) {
	for _, b := range fileBehaviours {
		t.Run(b.name, func(t *testing.T) {
			e := &env{T: t, child: child}
			e.newEngine = func(t *testing.T, m *modeltest.Model) agent.Engine {
				engine, serve := newEngine(t, m)
				e.serve = serve
				return engine
			}
			b.test(e)
		})
	}
}

var fileBehaviours = []behaviour{
	{"RemoteServer", remoteServer},
	{"ServerThatWantsALogin", serverThatWantsALogin},
	{"Reconnect", reconnect},
	{"ProjectServers", projectServers},
	{"WithoutTheProjectSource", withoutTheProjectSource},
	{"ChildServer", childServer},
	{"PromptToolOfAFile", promptToolOfAFile},
	{"SettingsAllow", settingsAllow},
	{"ToolHook", toolHook},
}

// A remote is an MCP server over HTTP.
type remote struct {
	url string

	mu      sync.Mutex // guards the rest
	headers []http.Header
}

// remote serves a server over HTTP in the network of the engine that was made last, until the test ends.
func (e *env) remote(s *mcpserver.Server) *remote {
	e.Helper()
	r := &remote{}
	h := mcpserver.NewHTTPHandler(s, nil)
	r.url = e.serve(e.T, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		r.headers = append(r.headers, q.Header.Clone())
		r.mu.Unlock()
		h.ServeHTTP(w, q)
	}))
	e.Cleanup(func() {
		if err := h.Shutdown(context.WithoutCancel(e.Context())); err != nil {
			e.Error(err)
		}
	})
	return r
}

// wantHeader checks that every request so far had a header, and that there were some.
func (r *remote) wantHeader(e *env, name, value string) {
	e.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.headers) == 0 {
		e.Error("no request came")
	}
	for i, h := range r.headers {
		if got := h.Get(name); got != value {
			e.Errorf("request %d of %d has %s: %q, want %q", i+1, len(r.headers), name, got, value)
		}
	}
}

// project makes a folder whose .mcp.json has one server.
func (e *env) project(name, config string) string {
	e.Helper()
	dir := e.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".mcp.json"), []byte(`{"mcpServers":{"`+name+`":`+config+`}}`), 0o600); err != nil {
		e.Fatal(err)
	}
	return dir
}

// inProject are options for a project whose server p is a remote one, with the token of the environment in a
// header. Its first turn waits for that server.
func (e *env) inProject(r *remote) *agent.Options {
	e.Helper()
	return &agent.Options{
		Dir: e.project("p", `{"type":"streamable-http","url":"`+r.url+`","headers":{"X-Token":"${ENGINETEST_TOKEN}"}}`),
		Env: map[string]string{"ENGINETEST_TOKEN": "sesame", "CLAUDE_CODE_MCP_STARTUP_WAIT_MS": "20000"},
	}
}

const toolP = "mcp__p__x"

// A server over HTTP that the program gives is there when the first turn begins, and the headers go with each
// request. // D02 D11 D46 D60 D69 D104
func remoteServer(e *env) {
	s := server("p")
	e.add(s, &mcpserver.Tool{Name: "x"}, echo)
	engine := e.script(modeltest.ToolUseID("toolu_1", toolP, `{"a":1}`), modeltest.Text("done"))
	r := e.remote(s)
	tr, _ := e.answered(engine, "x", &agent.Options{
		MCPServers:   map[string]mcphost.ServerConfig{"p": mcphost.HTTP{URL: r.url, Headers: map[string]string{"Authorization": "Bearer sesame"}}},
		AllowedTools: []string{"mcp__p__*"},
	})
	if got := tr.init(e); len(got.MCPServers) != 1 || got.MCPServers[0].Name != "p" || got.MCPServers[0].Status != "connected" || !contains(got.Tools, toolP) {
		e.Errorf("init has the servers %+v and the tools %q", got.MCPServers, got.Tools)
	}
	if got := tr.toolResult(e, "toolu_1"); got.IsError || got.Text() != `{"a":1}` {
		e.Errorf("result %+v", got)
	}
	r.wantHeader(e, "Authorization", "Bearer sesame")
}

// A server that wants a login which nobody has costs its own tools and nothing else, and its state says so before the
// answer is used. // D63 D67 D72 D76 D79
func serverThatWantsALogin(e *env) {
	engine := e.script(modeltest.Text("fine"))
	url := e.serve(e.T, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	o := e.toolbox(nil, echo)
	o.MCPServers["auth"] = mcphost.HTTP{URL: url + "/mcp"}
	c := e.open(engine, o)
	e.send(c, "x")
	tr := e.hear(c)
	if r := tr.result(e); r.Result != "fine" {
		e.Errorf("result %+v", r)
	}
	for _, name := range tr.init(e).Tools {
		if strings.HasPrefix(name, "mcp__auth__") {
			e.Errorf("init has the tool %s", name)
		}
	}
	status, err := c.MCPStatus(e.Context())
	if err != nil {
		e.Fatal(err)
	}
	for _, st := range status {
		switch {
		case st.Name == "t" && st.Status != mcphost.StatusConnected:
			e.Errorf("status %+v", st)
		case st.Name == "auth" && st.Status != mcphost.StatusNeedsAuth && (st.Status != mcphost.StatusFailed || st.Error == ""):
			e.Errorf("status %+v", st)
		}
	}
}

// A manual attempt to connect is made at once, in any state, and its error is returned. // D84
func reconnect(e *env) {
	s := server("p")
	e.add(s, &mcpserver.Tool{Name: "x"}, echo)
	engine := e.script(modeltest.Text("one"), modeltest.ToolUseID("toolu_1", toolP, `{"a":1}`), modeltest.Text("two"))
	h := mcpserver.NewHTTPHandler(s, nil)
	e.Cleanup(func() {
		if err := h.Shutdown(context.WithoutCancel(e.Context())); err != nil {
			e.Error(err)
		}
	})
	var up atomic.Bool
	url := e.serve(e.T, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if !up.Load() {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		h.ServeHTTP(w, q)
	}))
	c := e.open(engine, &agent.Options{
		MCPServers: map[string]mcphost.ServerConfig{"p": mcphost.HTTP{URL: url}}, AllowedTools: []string{"mcp__p__*"},
	})
	e.send(c, "x")
	if got := e.hear(c).init(e).MCPServers; len(got) != 1 || got[0].Status != "failed" {
		e.Errorf("init has the servers %+v", got)
	}
	if err := c.ReconnectMCPServer(e.Context(), "p"); err == nil {
		e.Error("an attempt that failed has no error")
	}
	up.Store(true)
	for range 2 { // in the state of health, too
		if err := c.ReconnectMCPServer(e.Context(), "p"); err != nil {
			e.Errorf("an attempt that can succeed: %v", err)
		}
		if st, err := c.MCPStatus(e.Context()); err != nil || len(st) != 1 || st[0].Status != mcphost.StatusConnected {
			e.Errorf("status %+v, %v", st, err)
		}
	}
	e.send(c, "y")
	if got := e.hear(c).toolResult(e, "toolu_1"); got.IsError || got.Text() != `{"a":1}` {
		e.Errorf("result %+v", got)
	}
}

// By default the servers of the project's file are there, the headers with the variables of this run, in each
// request. // D02 D04 D06 D07 D53 D60 D61 D101
func projectServers(e *env) {
	s := server("p")
	e.add(s, &mcpserver.Tool{Name: "x"}, echo)
	for _, sources := range [][]agent.SettingSource{nil, {agent.SourceProject}} {
		engine := e.script(modeltest.ToolUseID("toolu_1", toolP, `{"a":1}`), modeltest.Text("done"))
		r := e.remote(s)
		o := e.inProject(r)
		o.SettingSources, o.AllowedTools = sources, []string{"mcp__p__*"}
		tr := &transcript{}
		for m, err := range agent.Query(e.Context(), engine, "x", o) { // not through ask, which has no sources by default
			if err != nil {
				e.Fatal(err)
			}
			tr.messages = append(tr.messages, m)
		}
		if got := tr.init(e).MCPServers; len(got) != 1 || got[0].Name != "p" || got[0].Status != "connected" {
			e.Errorf("sources %q: init has the servers %+v", sources, got)
		}
		if got := tr.toolResult(e, "toolu_1"); got.IsError || got.Text() != `{"a":1}` {
			e.Errorf("sources %q: result %+v", sources, got)
		}
		r.wantHeader(e, "X-Token", "sesame")
	}
}

// D08
func withoutTheProjectSource(e *env) {
	for _, sources := range [][]agent.SettingSource{{}, {agent.SourceUser}, {agent.SourceUser, agent.SourceLocal}} {
		engine := e.script(modeltest.Text("done"))
		r := e.remote(server("p"))
		o := e.inProject(r)
		o.SettingSources = sources
		tr, _ := e.answered(engine, "x", o)
		if got := tr.init(e).MCPServers; len(got) != 0 || len(r.headers) != 0 {
			e.Errorf("sources %q: init has the servers %+v, %d requests came to the server", sources, got, len(r.headers))
		}
	}
}

// The prompt tool may be one of a server of a file, and the first turn waits for it although nothing else does. // D10 D26 D102
func promptToolOfAFile(e *env) {
	s, c := server("p"), &counter{}
	e.add(s, &mcpserver.Tool{Name: "x"}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		return mcpserver.Text(`{"behavior":"allow","updatedInput":{"a":2}}`), nil
	})
	engine := e.script(callX("toolu_1", `{"a":1}`), modeltest.Text("done"))
	o := e.inProject(e.remote(s))
	own := e.toolbox(nil, c.handle)
	o.MCPServers, o.SettingSources, o.PermissionPromptTool = own.MCPServers, []agent.SettingSource{agent.SourceProject}, toolP
	o.Env["CLAUDE_CODE_MCP_STARTUP_WAIT_MS"] = "0"
	tr, r := e.answered(engine, "x", o)
	e.wantRun(tr, r, c)
	if got := tr.toolResult(e, "toolu_1").Text(); got != `ran with {"a":2}` {
		e.Errorf("the result is %s", got)
	}
}

// The rules of the settings hold beside those of the options. // D21 D40
func settingsAllow(e *env) {
	tr, r, c := e.oneCall(nil, func(o *agent.Options) {
		o.AllowedTools, o.Settings = nil, `{"permissions":{"allow":["`+toolX+`"]}}`
	})
	e.wantRun(tr, r, c)
}

// A hook of the settings calls a tool when its event fires, and what the tool answers decides. // D103
func toolHook(e *env) {
	var mu sync.Mutex
	var heard []string
	guard := server("guard")
	e.add(guard, &mcpserver.Tool{Name: "check"}, func(_ context.Context, args json.RawMessage) (*mcpserver.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, string(args))
		return mcpserver.Text(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"not on a Sunday"}}`), nil
	})
	for matcher, denied := range map[string]bool{toolX: true, "mcp__other__x": false} {
		heard = nil
		tr, _, c := e.oneCall(nil, func(o *agent.Options) {
			o.MCPServers["guard"] = mcphost.InProcess(guard)
			o.Settings = `{"hooks":{"PreToolUse":[{"matcher":"` + matcher + `","hooks":[{"type":"mcp_tool","server":"guard","tool":"check","input":{"called":"${tool_name}","with":"${tool_input.a}"}}]}]}}`
		})
		got := tr.toolResult(e, "toolu_1")
		if !denied {
			if got.IsError || c.n.Load() != 1 || len(heard) != 0 {
				e.Errorf("a hook on another tool: result %q, the guard heard %q", got.Text(), heard)
			}
			continue
		}
		if !got.IsError || c.n.Load() != 0 || !strings.Contains(got.Text(), "not on a Sunday") {
			e.Errorf("ran %d times, result %q", c.n.Load(), got.Text())
		}
		if len(heard) != 1 || !sameJSON(json.RawMessage(heard[0]), json.RawMessage(`{"called":"mcp__t__x","with":"1"}`)) {
			e.Errorf("the guard heard %q", heard)
		}
	}
}
