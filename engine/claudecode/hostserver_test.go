package claudecode

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

func init() { children["server"] = serverMain }

// serverMain is an MCP server over stdio that notes each start.
func serverMain() {
	f, err := os.OpenFile(os.Getenv("CLAUDECODE_TEST_STARTS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	s := mcpserver.New("child", nil)
	type in struct {
		Text string `json:"text"`
	}
	err2 := mcpserver.AddTool(s, &mcpserver.Tool{Name: "echo"}, func(_ context.Context, a in) (string, error) { return a.Text + " yourself", nil })
	if err != nil || err2 != nil {
		os.Exit(1)
	}
	_ = mcpbridge.ServeStdio(context.Background(), s, nil)
}

// started is a host with n servers over stdio; starts is where they note that they were started.
func started(t *testing.T, n int) (h *mcphost.Host, starts string) {
	t.Helper()
	starts = filepath.Join(t.TempDir(), "starts")
	servers := map[string]mcphost.ServerConfig{}
	for i := range n {
		servers[fmt.Sprintf("ext%d", i)] = mcphost.Stdio{
			Command: os.Args[0], Args: []string{"-test.run=none"},
			Env: map[string]string{"CLAUDECODE_TEST_CHILD": "server", "CLAUDECODE_TEST_STARTS": starts},
		}
	}
	h, err := mcphost.New(&mcphost.Options{Servers: servers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	h.Start(t.Context())
	if err := h.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h, starts
}

func lines(t *testing.T, path string) int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(data, []byte("\n"))
}

// Eight queries that share five external servers open five connections, and each query reaches each server.
func TestQueriesShareConnections(t *testing.T) {
	h, starts := started(t, 5)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			e, o := fake("polite")
			o.Host = h
			msgs, err := ask(t, e, o)
			if err != nil {
				t.Error(err)
				return
			}
			r, ok := msgs[len(msgs)-1].(*agent.Result)
			if !ok || strings.Count(r.Result, "hello yourself") != 5 {
				t.Errorf("the last message is %+v", msgs[len(msgs)-1])
			}
		})
	}
	wg.Wait()
	if n := lines(t, starts); n != 5 {
		t.Errorf("%d connections, want 5", n)
	}
}

// A host's servers on the real CLI: listed, called, and shown with the state that the host knows. // D107
func TestRealCLIWithAHost(t *testing.T) {
	peers.ClaudePath(t)
	h, starts := started(t, 1)
	if _, err := h.SetServers(t.Context(), map[string]mcphost.ServerConfig{
		"ext0": mcphost.Stdio{Command: os.Args[0], Args: []string{"-test.run=none"}, Env: map[string]string{"CLAUDECODE_TEST_CHILD": "server", "CLAUDECODE_TEST_STARTS": starts}},
		"gone": mcphost.Stdio{Command: "/nothing/here"},
	}); err != nil {
		t.Fatal(err)
	}
	if err := h.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := modeltest.New(t,
		modeltest.ToolUse("mcp__ext0__echo", map[string]string{"text": "hello"}), modeltest.Text("done"),
		modeltest.ToolUse("mcp__mine__echo", map[string]string{"text": "ours"}), modeltest.Text("done"))
	e, _ := realWith(t, m, &Options{})
	c, err := agent.Open(t.Context(), e, &agent.Options{
		Host: h, AllowedTools: []string{"mcp__ext0", "mcp__mine"},
		MCPServers: map[string]mcphost.ServerConfig{"mine": mcphost.InProcess(echo(t))},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	turn := func() (rows map[string]string, result string) {
		t.Helper()
		if err := c.Send(t.Context(), "hi"); err != nil {
			t.Fatal(err)
		}
		rows = map[string]string{}
		for msg, err := range c.Response(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			switch msg := msg.(type) {
			case *agent.SystemInit:
				for _, row := range msg.MCPServers {
					rows[row.Name] = row.Status
				}
			case *agent.User:
				for _, r := range msg.ToolResults() {
					result = r.Text()
				}
			}
		}
		return rows, result
	}
	rows, result := turn()
	if result != "hello yourself" {
		t.Errorf("the tool's result is %q", result)
	}
	if rows["ext0"] != "connected" || rows["gone"] != "failed" || rows["mine"] != "connected" {
		t.Errorf("init says %v", rows)
	}
	status, err := c.MCPStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range status {
		if st.Name == "gone" && (st.Status != mcphost.StatusFailed || st.Err == nil) {
			t.Errorf("status %+v", st)
		}
	}
	if err := c.ReconnectMCPServer(t.Context(), "gone"); err == nil {
		t.Error("a server that is not there was reconnected")
	}
	// Replacing the session's servers leaves the host's.
	if _, err := c.SetMCPServers(t.Context(), map[string]mcphost.ServerConfig{"mine": mcphost.InProcess(echo(t))}); err != nil {
		t.Fatal(err)
	}
	if rows, result := turn(); result != "ours yourself" || rows["ext0"] == "" {
		t.Errorf("result %q, init says %v", result, rows)
	}
	if n := lines(t, starts); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// Tools that come late, or change, reach the CLI by the notification.
func TestHostServerNotifies(t *testing.T) {
	own := mcpserver.New("late", nil)
	h, err := mcphost.New(&mcphost.Options{Servers: map[string]mcphost.ServerConfig{"late": mcphost.InProcess(own)}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	p := &hostServer{host: h, name: "late"}
	changed := make(chan string, 64)
	ss, err := p.OpenSession(t.Context(), &mcpserver.SessionOptions{Notify: func(_ context.Context, n mcpserver.Notification) { changed <- n.Method }})
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	if tools, err := ss.ListTools(t.Context()); err != nil || len(tools) != 0 {
		t.Errorf("before it is connected: %v, %v", tools, err)
	}
	h.Start(t.Context())
	if method := <-changed; method != mcpserver.MethodToolListChanged {
		t.Errorf("notified of %s", method)
	}
	if err := h.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := mcpserver.AddTool(own, &mcpserver.Tool{Name: "new"}, func(context.Context, struct{}) (string, error) { return "", nil }); err != nil {
		t.Fatal(err)
	}
	for {
		<-changed
		if tools, err := ss.ListTools(t.Context()); err != nil || len(tools) == 1 && tools[0].Name == "new" {
			break
		}
	}
}

// What goes wrong with a host's server is a result that the model reads.
func TestHostServerFails(t *testing.T) {
	h, _ := started(t, 1)
	p := &hostServer{host: h, name: "ext0"}
	ss, err := p.OpenSession(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ss.Close()
	if r, err := ss.CallTool(t.Context(), mcpserver.Call{Name: "nothing"}); err != nil || !r.IsError || !strings.Contains(r.Text(), "'nothing' not found") {
		t.Errorf("got %+v, %v", r, err)
	}
	if r, err := ss.CallTool(t.Context(), mcpserver.Call{Name: "echo", Arguments: json.RawMessage(`{"text":"a"}`), Meta: mcp.Meta{toolUseIDKey: "t", "progressToken": 1}}); err != nil || r.Text() != "a yourself" {
		t.Errorf("got %+v, %v", r, err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := ss.CallTool(t.Context(), mcpserver.Call{Name: "echo", Arguments: json.RawMessage(`{"text":"a"}`)}); err != nil || !r.IsError {
		t.Errorf("got %+v, %v", r, err)
	}
}

// A server that is connected by a host and dies while nothing is called is pending for the run, and connected
// again when it is back. // D111
func TestRealHostServerDiesIdle(t *testing.T) {
	peers.ClaudePath(t)
	handler := mcpserver.NewHTTPHandler(echo(t), nil)
	srv := httptest.NewServer(handler)
	defer func() { srv.Close() }()
	addr := srv.Listener.Addr().String()
	h, err := mcphost.New(&mcphost.Options{Servers: map[string]mcphost.ServerConfig{"web": mcphost.HTTP{URL: srv.URL}}, ProbeInterval: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	h.Start(t.Context())
	if err := h.Ready(limited(t, "the server")); err != nil {
		t.Fatal(err)
	}
	m := modeltest.New(t, modeltest.ToolUseID("toolu_1", "mcp__web__echo", `{"text":"back"}`), modeltest.Text("done"))
	c, err := agent.Open(t.Context(), realCLI(t, m), &agent.Options{Host: h, AllowedTools: []string{"mcp__web"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	becomes := func(want mcphost.Status, do func()) {
		t.Helper()
		events := h.Watch(limited(t, "the server to be "+string(want)))
		do()
		for ev := range events {
			if ev.Status == want {
				status, err := c.MCPStatus(t.Context())
				if err != nil || len(status) != 1 || status[0].Status != want {
					t.Errorf("the run has %+v, %v, want %s", status, err, want)
				}
				return
			}
		}
		t.Fatalf("the server is never %s", want)
	}
	becomes(mcphost.StatusPending, func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	becomes(mcphost.StatusConnected, func() {
		lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		srv = &httptest.Server{Listener: lis, Config: &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}}
		srv.Start()
	})
	if err := c.Send(t.Context(), "hi"); err != nil {
		t.Fatal(err)
	}
	response(t, c)
	if got, _ := m.Last().ToolResult("toolu_1"); !strings.Contains(string(got.Raw), "back yourself") {
		t.Errorf("the model was sent %s", got.Raw)
	}
}

// A tool that is left out is in the init message and once in the run's log, whoever connected its server. // D112
func TestToolsThatAHostLeftOut(t *testing.T) {
	s := mcpserver.New("mine", nil)
	add := func(name string) {
		_ = s.AddTool(&mcpserver.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/nowhere"}}}`)},
			func(context.Context, json.RawMessage) (*mcpserver.Result, error) { return nil, nil })
	}
	add("endless")
	h, err := mcphost.New(&mcphost.Options{Servers: map[string]mcphost.ServerConfig{"shared": mcphost.InProcess(s)}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	h.Start(t.Context())
	if err := h.Ready(limited(t, "the server")); err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]func(o *agent.Options){
		"shared": func(o *agent.Options) { o.Host = h },
		"own": func(o *agent.Options) { // by a host of the session's, for its limit
			o.MCPServers = map[string]mcphost.ServerConfig{"own": mcphost.InProcessServer{Provider: s, Common: mcphost.Common{ConnectTimeout: time.Minute}}}
		},
		"direct": func(o *agent.Options) { o.MCPServers = map[string]mcphost.ServerConfig{"direct": mcphost.InProcess(s)} },
	} {
		e, o := fake("polite")
		log := &logBuffer{}
		o.Logger = slog.New(slog.NewTextHandler(log, nil))
		set(o)
		msgs, err := ask(t, e, o)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(msgs, func(m agent.Message) bool { _, ok := m.(*agent.SystemInit); return ok })
		init, _ := msgs[i].(*agent.SystemInit)
		if len(init.MCPServerErrors) != 1 || init.MCPServerErrors[0].Name != name || !strings.Contains(init.MCPServerErrors[0].Message, "endless") {
			t.Errorf("%s: the init message has %+v", name, init.MCPServerErrors)
		}
		if n := strings.Count(log.String(), `msg="tool left out"`); n != 1 {
			t.Errorf("%s: %d records in the log, want 1:\n%s", name, n, log)
		}
	}
}
