package enginetest

import (
	"net"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

var serverBehaviours = []behaviour{
	{"NamesAreMadeSafe", namesAreMadeSafe},
	{"TwoServers", twoServers},
	{"FailedServerDoesNotHarm", failedServerDoesNotHarm},
	{"Status", mcpStatus},
	{"Toggle", toggleServer},
	{"Set", setServers},
	{"UnknownServer", unknownServer},
}

// D39 D98
func namesAreMadeSafe(e *env) {
	s := server("my.server")
	e.add(s, &mcpserver.Tool{Name: "list.issues"}, echo)
	const name = "mcp__my_server-1__list_issues"
	o := allowed(s, "my.server-1")
	o.AllowedTools = []string{name}
	tr, _ := e.answered(e.script(modeltest.ToolUseID("toolu_1", name, `{"a":1}`), modeltest.Text("x")), "x", o)
	if got := tr.toolResult(e, "toolu_1"); got.IsError || got.Text() != `{"a":1}` {
		e.Errorf("result %+v", got)
	}
	if got := tr.init(e).MCPServers; len(got) != 1 || got[0].Name != "my.server-1" {
		e.Errorf("init has the servers %+v", got)
	}
}

func twoServers(e *env) {
	a, b := server("a"), server("b")
	e.add(a, &mcpserver.Tool{Name: "x"}, echo)
	c := &counter{}
	e.add(b, &mcpserver.Tool{Name: "x"}, c.handle)
	o := &agent.Options{
		MCPServers:   map[string]mcphost.ServerConfig{"a": mcphost.InProcess(a), "b": mcphost.InProcess(b)},
		AllowedTools: []string{"mcp__a", "mcp__b"},
	}
	engine := e.script(modeltest.Say(modeltest.ToolUseID("toolu_1", "mcp__a__x", `{}`), modeltest.ToolUseID("toolu_2", "mcp__b__x", `{}`)), modeltest.Text("x"))
	tr, _ := e.answered(engine, "x", o)
	if tr.toolResult(e, "toolu_1").Text() != "{}" || tr.toolResult(e, "toolu_2").Text() != "ran with {}" || c.n.Load() != 1 {
		e.Errorf("results %+v", tr.toolResults())
	}
}

// D67 D79
func failedServerDoesNotHarm(e *env) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		e.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		e.Fatal(err)
	}
	o := e.toolbox(nil, echo)
	o.MCPServers["gone"] = mcphost.HTTP{URL: "http://" + address + "/mcp"}
	tr, r := e.answered(e.script(callX("toolu_1", `{"a":1}`), modeltest.Text("fine")), "x", o)
	if r.Result != "fine" || tr.toolResult(e, "toolu_1").IsError {
		e.Errorf("result %+v, tool result %+v", r, tr.toolResult(e, "toolu_1"))
	}
	status := map[string]string{}
	for _, s := range tr.init(e).MCPServers {
		status[s.Name] = s.Status
	}
	if status["t"] != "connected" || status["gone"] == "connected" || status["gone"] == "" {
		e.Errorf("init has the servers %v", status)
	}
}

// D72
func mcpStatus(e *env) {
	c := e.open(e.script(modeltest.Text("x")), e.toolbox(nil, echo))
	e.send(c, "x")
	e.hear(c)
	status, err := c.MCPStatus(e.Context())
	if err != nil || len(status) != 1 || status[0].Name != "t" || status[0].Status != mcphost.StatusConnected {
		e.Errorf("status %+v, %v", status, err)
	}
	if len(status) == 1 && (len(status[0].Tools) != 1 || status[0].Tools[0].Name != "x") {
		e.Errorf("tools %+v", status[0].Tools)
	}
}

func toggleServer(e *env) {
	call := func(id string) modeltest.Turn { return callX(id, `{}`) }
	c := e.open(e.script(call("toolu_1"), modeltest.Text("off"), call("toolu_2"), modeltest.Text("on")), e.toolbox(nil, echo))
	for i, on := range []bool{false, true} {
		if err := c.SetMCPServerEnabled(e.Context(), "t", on); err != nil {
			e.Fatal(err)
		}
		e.send(c, "x")
		tr := e.hear(c)
		id := []string{"toolu_1", "toolu_2"}[i]
		if got := tr.toolResult(e, id); got.IsError == on {
			e.Errorf("enabled %v: %+v", on, got)
		}
		status, err := c.MCPStatus(e.Context())
		if err != nil || len(status) != 1 || (status[0].Status == mcphost.StatusDisabled) == on {
			e.Errorf("enabled %v: status %+v, %v", on, status, err)
		}
	}
}

func setServers(e *env) {
	added := server("u")
	e.add(added, &mcpserver.Tool{Name: "z", ReadOnly: true}, echo)
	o := e.toolbox(nil, echo)
	o.AllowedTools = append(o.AllowedTools, "mcp__u__*")
	c := e.open(e.script(modeltest.Text("one"), modeltest.ToolUseID("toolu_1", "mcp__u__z", `{"b":2}`), modeltest.Text("two")), o)
	e.send(c, "x")
	e.hear(c)
	res, err := c.SetMCPServers(e.Context(), map[string]mcphost.ServerConfig{"u": mcphost.InProcess(added)})
	if err != nil || strings.Join(res.Added, ",") != "u" || strings.Join(res.Removed, ",") != "t" || len(res.Errors) != 0 {
		e.Errorf("result %+v, %v", res, err)
	}
	e.send(c, "y")
	tr := e.hear(c)
	if got := tr.toolResult(e, "toolu_1"); got.IsError || got.Text() != `{"b":2}` {
		e.Errorf("tool result %+v", got)
	}
	status, err := c.MCPStatus(e.Context())
	if err != nil || len(status) != 1 || status[0].Name != "u" {
		e.Errorf("status %+v, %v", status, err)
	}
}

func unknownServer(e *env) {
	c := e.open(e.script(modeltest.Text("x")), e.toolbox(nil, echo))
	for _, err := range []error{c.ReconnectMCPServer(e.Context(), "nobody"), c.SetMCPServerEnabled(e.Context(), "nobody", true)} {
		if err == nil || !strings.Contains(err.Error(), "nobody") {
			e.Errorf("got %v, want an error that names the server", err)
		}
	}
}
