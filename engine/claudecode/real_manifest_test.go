package claudecode

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

func init() { children["wire"] = wireMain }

// wireMain starts the command in its arguments and writes down what the other says, line by line.
func wireMain() {
	log, err := os.OpenFile(os.Getenv("CLAUDECODE_TEST_WIRE"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stderr = os.Stderr
	cmd.Stdin = os.Stdin
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadBytes('\n')
		_, _ = log.Write(line)
		_, _ = os.Stdout.Write(line)
		if err != nil {
			break
		}
	}
	_, _ = io.Copy(os.Stdout, r)
	_ = cmd.Wait()
}

// wiredCLI is the real CLI with a record of what it says to the servers in this process.
func wiredCLI(t *testing.T, m *modeltest.Model) (e agent.Engine, said func() []string) {
	t.Helper()
	l := peers.NewLoopback(t)
	wire := filepath.Join(t.TempDir(), "wire")
	env := peers.ClaudeEnv(t, l.Serve(t, m))
	env["ENABLE_TOOL_SEARCH"] = "false"
	env["CLAUDECODE_TEST_CHILD"], env["CLAUDECODE_TEST_WIRE"] = "wire", wire
	o := &Options{Path: l.Executable(t, peers.ClaudePath(t)), Launcher: []string{os.Args[0]}, Stderr: func(line string) { t.Log("cli: " + line) }}
	said = func() []string {
		data, err := os.ReadFile(wire)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for line := range strings.Lines(string(data)) {
			var m struct {
				Request struct {
					Server  string `json:"server_name"`
					Message struct {
						Method string `json:"method"`
					} `json:"message"`
				} `json:"request"`
			}
			if json.Unmarshal([]byte(line), &m) == nil && m.Request.Server != "" {
				all = append(all, m.Request.Server+" "+m.Request.Message.Method)
			}
		}
		return all
	}
	return &withEnv{New(o), env}, said
}

// turn has the model answer an input, and returns what the session began with.
func turn(t *testing.T, c *agent.Client) *agent.SystemInit {
	t.Helper()
	if err := c.Send(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	var init *agent.SystemInit
	for msg, err := range c.Response(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if i, ok := msg.(*agent.SystemInit); ok {
			init = i
		}
	}
	return init
}

// untilListed waits until the CLI has heard of a tool. Until then it calls it unknown.
func untilListed(t *testing.T, c *agent.Client, server, tool string) {
	t.Helper()
	for {
		all, err := c.MCPStatus(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			if s.Name == server && slices.ContainsFunc(s.Tools, func(t mcphost.Tool) bool { return t.Name == tool }) {
				return
			}
		}
		runtime.Gosched()
	}
}

// greeter has a tool that says who calls it.
func greeter() *mcpserver.Server {
	s := mcpserver.New("greeter", &mcpserver.Options{Instructions: "Greet first."})
	type none struct{}
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "who.is"}, func(ctx context.Context, _ none) (string, error) {
		client, err := json.Marshal(mcpserver.RequestFrom(ctx).Client)
		return string(client), err
	})
	return s
}

// The real CLI shakes hands with no server whose manifest it was sent: it asks nothing but to call
// tools, and the model is offered the same. Without manifests each server costs three messages.
// What is connected later, or has changed, is asked about.
func TestRealManifests(t *testing.T) {
	h, err := mcphost.New(&mcphost.Options{Servers: map[string]mcphost.ServerConfig{"shared": mcphost.InProcess(echo(t))}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	h.Start(t.Context())
	type seen struct {
		tools []string
		who   string
		said  []string
	}
	run := func(t *testing.T, off string) (got seen) {
		m := modeltest.New(t,
			modeltest.ToolUseID("toolu_1", "mcp__mine__who_is", `{}`), modeltest.ToolUseID("toolu_2", "mcp__shared__echo", `{"text":"hello"}`), modeltest.Text("done"),
			modeltest.ToolUseID("toolu_3", "mcp__mine__later", `{}`), modeltest.Text("done"),
			modeltest.ToolUseID("toolu_4", "mcp__second__echo", `{"text":"again"}`), modeltest.Text("done"))
		mine := greeter()
		e, said := wiredCLI(t, m)
		configs := map[string]mcphost.ServerConfig{"mine": mcphost.InProcess(mine), "second": mcphost.InProcess(echo(t))}
		c, err := agent.Open(t.Context(), e, &agent.Options{
			Env: map[string]string{manifestsOff: off}, Host: h, MCPServers: configs, AllowedTools: []string{"mcp__mine", "mcp__shared", "mcp__second"},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		got.tools = turn(t, c).Tools
		got.said = said()
		if r, ok := m.Last().ToolResult("toolu_1"); ok && len(r.Content) > 0 {
			got.who = r.Content[0].Text
		}
		if r, ok := m.Last().ToolResult("toolu_2"); !ok || r.IsError || !strings.Contains(r.Content[0].Text, "hello yourself") {
			t.Errorf("the model was sent %s", r.Raw)
		}
		control, _ := ControlOf(c)
		if parked := control.Initialization().MCPManifests; (len(parked) == 3) != (off == "") || off == "" && parked["mine"] != "parked" {
			t.Errorf("the CLI says of the manifests %v", parked)
		}
		since := func() []string { return said()[len(got.said):] }

		// A list that changes is asked for.
		mcpserver.MustAddTool(mine, &mcpserver.Tool{Name: "later"}, func(context.Context, struct{}) (string, error) { return "at last", nil })
		untilListed(t, c, "mine", "later")
		turn(t, c)
		if r, ok := m.Last().ToolResult("toolu_3"); !ok || r.IsError || !strings.Contains(r.Content[0].Text, "at last") {
			t.Errorf("the model was sent %s", r.Raw)
		}
		if n := count(since(), "mine tools/list"); n != 1 {
			t.Errorf("after a change: %v", since())
		}

		// What is switched on again, or added, shakes hands.
		if err := c.ReconnectMCPServer(t.Context(), "second"); err != nil {
			t.Fatal(err)
		}
		configs["third"] = mcphost.InProcess(echo(t))
		if r, err := c.SetMCPServers(t.Context(), configs); err != nil || len(r.Errors) > 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		if got := turn(t, c).Tools; !slices.Contains(got, "mcp__third__echo") || !slices.Contains(got, "mcp__second__echo") {
			t.Errorf("the tools are %v", got)
		}
		if r, ok := m.Last().ToolResult("toolu_4"); !ok || r.IsError || !strings.Contains(r.Content[0].Text, "again yourself") {
			t.Errorf("the model was sent %s", r.Raw)
		}
		for _, server := range []string{"second", "third"} {
			for _, method := range []string{"initialize", "notifications/initialized", "tools/list"} {
				if n := count(since(), server+" "+method); n == 0 {
					t.Errorf("%s was not asked %s: %v", server, method, since())
				}
			}
		}
		return got
	}
	var with, without seen
	t.Run("With", func(t *testing.T) { with = run(t, "") })
	t.Run("Without", func(t *testing.T) { without = run(t, "1") })
	t.Logf("with manifests the CLI said %v, without %v", with.said, without.said)
	if want := []string{"mine tools/call", "shared tools/call"}; !slices.Equal(with.said, want) {
		t.Errorf("with manifests the CLI said %v, want %v", with.said, want)
	}
	if n := len(without.said) - len(with.said); n != 3*3 {
		t.Errorf("manifests save %d messages of three servers, want 9", n)
	}
	if !slices.Equal(with.tools, without.tools) || !slices.Contains(with.tools, "mcp__mine__who_is") {
		t.Errorf("the tools are %v, without manifests %v", with.tools, without.tools)
	}
	if with.who != without.who || !strings.Contains(with.who, "claude-code") {
		t.Errorf("the server is told that its client is %s, without manifests %s", with.who, without.who)
	}
}

func count(all []string, one string) int {
	n := 0
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// A list that changes while it is asked for, and one that a server breaks over, are asked for by the
// real CLI, and the model is offered in its first request what there is.
func TestRealManifestsOfServersThatChangeOrBreak(t *testing.T) {
	changes := &lister{Server: greeter()}
	changes.list = func(_ context.Context, call int) ([]*mcp.Tool, error) {
		tools := slices.Clone(changes.Server.ListTools())
		if call == 1 {
			mcpserver.MustAddTool(changes.Server, &mcpserver.Tool{Name: "grown"}, func(context.Context, struct{}) (string, error) { return "new", nil })
		}
		return tools, nil
	}
	breaks := &lister{Server: echo(t)}
	breaks.list = func(_ context.Context, call int) ([]*mcp.Tool, error) {
		if call == 1 {
			panic("not yet")
		}
		return breaks.Server.ListTools(), nil
	}
	late := &lister{Server: echo(t)}
	late.list = func(ctx context.Context, call int) ([]*mcp.Tool, error) {
		if call == 1 {
			<-ctx.Done()
		}
		return late.Server.ListTools(), nil
	}
	m := modeltest.New(t, modeltest.ToolUseID("toolu_1", "mcp__changes__grown", `{}`), modeltest.ToolUseID("toolu_2", "mcp__breaks__echo", `{"text":"hello"}`), modeltest.Text("done"))
	e, said := wiredCLI(t, m)
	o := inProcess(map[string]mcpserver.Provider{"changes": changes, "breaks": breaks, "late": late, "fine": echo(t)})
	o.AllowedTools = []string{"mcp__changes", "mcp__breaks"}
	c, err := agent.Open(t.Context(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	init := turn(t, c)
	for _, tool := range []string{"mcp__changes__grown", "mcp__breaks__echo", "mcp__late__echo", "mcp__fine__echo"} {
		if !slices.Contains(init.Tools, tool) {
			t.Errorf("the model is not offered %s: %v", tool, init.Tools)
		}
	}
	for id, want := range map[string]string{"toolu_1": "new", "toolu_2": "hello yourself"} {
		if r, ok := m.Last().ToolResult(id); !ok || r.IsError || !strings.Contains(r.Content[0].Text, want) {
			t.Errorf("the model was sent %s, want %s", r.Raw, want)
		}
	}
	all := said()
	if slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, "fine ") || s == "changes initialize" }) {
		t.Errorf("the CLI said %v", all)
	}
	for _, one := range []string{"breaks initialize", "breaks tools/list", "late initialize", "late tools/list", "changes tools/list"} {
		if count(all, one) == 0 {
			t.Errorf("the CLI did not say %s: %v", one, all)
		}
	}
}

// A server that is dead for good costs its siblings nothing but their handshakes: as long as it fails,
// the real CLI connects all of them anew in each turn, without manifests then as well as with them.
func TestRealManifestsBesideADeadServer(t *testing.T) {
	m := modeltest.New(t, modeltest.ToolUseID("toolu_1", "mcp__fine__echo", `{"text":"hello"}`), modeltest.Text("done"), modeltest.ToolUseID("toolu_2", "mcp__fine__echo", `{"text":"again"}`), modeltest.Text("done"))
	e, said := wiredCLI(t, m)
	o := inProcess(map[string]mcpserver.Provider{"fine": echo(t), "dead": shut{echo(t)}})
	o.AllowedTools = []string{"mcp__fine"}
	c, err := agent.Open(t.Context(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for _, want := range []struct{ id, text string }{{"toolu_1", "hello yourself"}, {"toolu_2", "again yourself"}} {
		status := map[string]string{}
		for _, row := range turn(t, c).MCPServers {
			status[row.Name] = row.Status
		}
		if status["fine"] != "connected" || status["dead"] != "failed" {
			t.Errorf("the servers are %v", status)
		}
		if r, ok := m.Last().ToolResult(want.id); !ok || r.IsError || !strings.Contains(r.Content[0].Text, want.text) {
			t.Errorf("the model was sent %s, want %s", r.Raw, want.text)
		}
	}
	all := said()
	if first := slices.Index(all, "fine initialize"); first < 0 || slices.Index(all, "dead initialize") > first {
		t.Errorf("the CLI said %v", all)
	}
}
