package claudecode

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

func init() { children["where"] = whereMain }

// whereMain is an MCP server over stdio that tells where it runs.
func whereMain() {
	fmt.Fprintln(os.Stderr, "somewhere")
	s := mcpserver.New("child", nil)
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "where"}, func(context.Context, struct{}) (string, error) {
		dir, err := os.Getwd()
		return fmt.Sprintf("%s, inherited: %q", dir, os.Getenv("CLAUDECODE_TEST_INHERITED")), err
	})
	_ = mcpbridge.ServeStdio(context.Background(), s, nil)
}

// gated is an HTTP server that wants a token.
func gated(t *testing.T, token *atomic.Value) string {
	t.Helper()
	h := mcpserver.NewHTTPHandler(echo(t), nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token.Load().(string) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// What the CLI has no configuration for works on this engine all the same: computed headers, a
// directory and a bare environment of a child's own, limits, and what children write to stderr.
func TestServersBeyondTheCLI(t *testing.T) {
	var token atomic.Value
	token.Store("first")
	dir := t.TempDir()
	t.Setenv("CLAUDECODE_TEST_INHERITED", "yes")
	var heard atomic.Value
	m := modeltest.New(t,
		modeltest.ToolUseID("toolu_1", "mcp__login__echo", `{"text":"hello"}`),
		modeltest.ToolUseID("toolu_2", "mcp__login__echo", `{"text":"again"}`),
		modeltest.ToolUseID("toolu_3", "mcp__child__where", `{}`), modeltest.Text("done"))
	c, err := agent.Open(t.Context(), realCLI(t, m), &agent.Options{
		Stderr: func(server, line string) { heard.Store(server + ": " + line) },
		MCPServers: map[string]mcphost.ServerConfig{
			"login": mcphost.HTTP{URL: gated(t, &token), HeadersFunc: func(context.Context) (map[string]string, error) {
				return map[string]string{"Authorization": "Bearer " + token.Load().(string)}, nil
			}},
			"child": mcphost.Stdio{Command: os.Args[0], Args: []string{"-test.run=none"}, Dir: dir, CleanEnv: true, Env: map[string]string{"CLAUDECODE_TEST_CHILD": "where"}},
			"gone":  mcphost.Stdio{Command: filepath.Join(dir, "missing"), Dir: dir},
		},
		AllowedTools: []string{"mcp__login", "mcp__child"},
		Hooks: &agent.Hooks{PostToolUse: []agent.Hook[agent.PostToolUse, agent.PostToolUseOutput]{{
			Func: func(context.Context, *agent.PostToolUse) (*agent.PostToolUseOutput, error) {
				token.Store("second")
				return nil, nil
			},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
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
	status := map[string]string{}
	for _, s := range init.MCPServers {
		status[s.Name] = s.Status
	}
	if status["login"] != "connected" || status["child"] != "connected" || status["gone"] != "failed" {
		t.Errorf("init has %v", status)
	}
	rows, err := c.MCPStatus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if row.Name == "gone" && (row.Status != mcphost.StatusFailed || !strings.Contains(row.Error, "missing")) {
			t.Errorf("status of the missing program: %s, %s", row.Status, row.Error)
		}
	}
	for id, want := range map[string]string{"toolu_1": "hello", "toolu_2": "again", "toolu_3": dir + ", inherited: \"\""} {
		got, ok := m.Last().ToolResult(id)
		if !ok || got.IsError || len(got.Content) == 0 || !strings.Contains(got.Content[0].Text, want) {
			t.Errorf("%s: the model was sent %s, want %q", id, got.Raw, want)
		}
	}
	if got := heard.Load(); got != "child: somewhere" {
		t.Errorf("stderr: heard %v", got)
	}
}

// A required server that fails ends Open, before the model is asked.
func TestRequiredServer(t *testing.T) {
	e, o := fake("polite")
	o.MCPServers = map[string]mcphost.ServerConfig{"must": mcphost.Stdio{Command: "/no/such/program", Common: mcphost.Common{Required: true}}}
	_, err := agent.Open(t.Context(), e, o)
	var missing *mcphost.NotReadyError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "must") {
		t.Errorf("got %v", err)
	}
}

// As many read-only calls run at once as the option says: by default more than the CLI's own ten,
// and one after the other if the program wants it so.
func TestMaxToolConcurrency(t *testing.T) {
	for _, limit := range []int{0, 1} {
		const calls = 12
		var running, most atomic.Int64
		together := make(chan struct{})
		s := mcpserver.New("s", nil)
		mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "meet", ReadOnly: true}, func(ctx context.Context, _ struct{}) (string, error) {
			n := running.Add(1)
			defer running.Add(-1)
			most.Store(max(n, most.Load()))
			if limit == 1 {
				return "alone", nil
			}
			if n == calls {
				close(together)
			}
			select {
			case <-together:
				return "met", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		})
		var uses []modeltest.Part
		for i := range calls {
			uses = append(uses, modeltest.ToolUseID(fmt.Sprintf("toolu_%d", i), "mcp__s__meet", `{}`))
		}
		m := modeltest.New(t, modeltest.Say(uses...), modeltest.Text("done"))
		msgs, err := ask(t, realCLI(t, m), &agent.Options{
			MCPServers: map[string]mcphost.ServerConfig{"s": mcphost.InProcess(s)}, AllowedTools: []string{"mcp__s"}, MaxToolConcurrency: limit,
		})
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := msgs[len(msgs)-1].(*agent.Result); !ok || r.Result != "done" {
			t.Errorf("the last message is %+v", msgs[len(msgs)-1])
		}
		if limit == 1 && most.Load() != 1 {
			t.Errorf("%d calls ran at once, want one", most.Load())
		}
	}
}

// blockedProvider is a server that cannot be opened before it may.
type blockedProvider struct {
	*mcpserver.Server
	may chan struct{}
}

func (p *blockedProvider) OpenSession(ctx context.Context, o *mcpserver.SessionOptions) (mcpserver.ServerSession, error) {
	select {
	case <-p.may:
		return p.Server.OpenSession(ctx, o)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// The start waits for a server of a shared host that is still connecting if it has the permission prompt tool, and
// for no other. // D10
func TestStartWaitsForThePromptToolOfASharedHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &blockedProvider{echo(t), make(chan struct{})}
		h, err := mcphost.New(&mcphost.Options{Servers: map[string]mcphost.ServerConfig{"guard": mcphost.InProcess(p)}})
		if err != nil {
			t.Fatal(err)
		}
		h.Start(t.Context())
		if err := sessionOf(t, &agent.Options{Host: h, PermissionPromptTool: "mcp__other__ask"}).servers.wait(t.Context()); err != nil {
			t.Error(err)
		}
		s := sessionOf(t, &agent.Options{Host: h, PermissionPromptTool: "mcp__guard__echo"})
		done := make(chan error, 1)
		go func() { done <- s.servers.wait(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("nothing was waited for: %v", err)
		default:
		}
		close(p.may)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if st, _ := h.ServerStatus("guard"); st.Status != mcphost.StatusConnected {
			t.Errorf("the server is %s", st.Status)
		}
		if err := errors.Join(s.Close(), h.Close()); err != nil {
			t.Error(err)
		}
	})
}
