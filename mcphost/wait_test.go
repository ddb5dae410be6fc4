package mcphost

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/mcphost/internal/transport"
	"github.com/tenon-sdk/tenon/mcpserver"
)

const (
	limit = 30 * time.Second // MCP_TIMEOUT
	two   = 2 * time.Second
)

func TestPlanWaits(t *testing.T) {
	option := func(name string) waitServer { return waitServer{name: name, inOptions: true, timeout: limit} }
	file := func(name string) waitServer { return waitServer{name: name, timeout: limit} }
	sdk := func(name string) waitServer {
		return waitServer{name: name, inOptions: true, inProcess: true, timeout: limit}
	}
	cached := func(s waitServer) waitServer { s.cached = true; return s }
	always := func(s waitServer) waitServer { s.alwaysLoad = true; return s }
	off := func(s waitServer) waitServer { s.disabled = true; return s }
	env := func(kv ...string) map[string]string {
		m := map[string]string{
			"CLAUDE_CODE_MCP_STARTUP_WAIT_MS": "", "MCP_CONNECTION_NONBLOCKING": "", "MCP_CONNECT_TIMEOUT_MS": "",
			"ENABLE_TOOL_SEARCH": "", "ANTHROPIC_BASE_URL": "",
		}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		if m["CLAUDE_CODE_MCP_STARTUP_WAIT_MS"] == "" {
			delete(m, "CLAUDE_CODE_MCP_STARTUP_WAIT_MS")
		}
		return m
	}
	const startup = "CLAUDE_CODE_MCP_STARTUP_WAIT_MS"
	turn := func(name string, d time.Duration) map[string]serverWait {
		return map[string]serverWait{name: {turn: d}}
	}
	none := map[string]serverWait{}
	tests := []struct {
		name    string
		servers []waitServer
		env     map[string]string
		in      WaitInput
		wait    WaitOptions
		want    map[string]serverWait
	}{
		// D10
		{"prompt tool's server of a file", []waitServer{file("f")}, env(), WaitInput{PermissionPromptTool: "mcp__f__ask"}, WaitOptions{}, turn("f", limit)},
		{"prompt tool's server, cached", []waitServer{cached(file("f")), cached(file("g"))}, env(), WaitInput{PermissionPromptTool: "mcp__f__ask"}, WaitOptions{}, turn("f", limit)},
		// D11
		{"given in code", []waitServer{option("o")}, env(), WaitInput{}, WaitOptions{}, turn("o", limit)},
		// D12
		{"given in code, cached", []waitServer{cached(option("o"))}, env(), WaitInput{}, WaitOptions{}, none},
		// D13
		{"in process", []waitServer{sdk("s")}, env(), WaitInput{}, WaitOptions{}, turn("s", limit)},
		// D15 D18
		{"of a file, not named", []waitServer{file("f")}, env(), WaitInput{}, WaitOptions{}, none},
		// D16
		{"of a file, beside one given in code", []waitServer{file("f"), option("o")}, env(), WaitInput{}, WaitOptions{}, map[string]serverWait{"f": {turn: limit}, "o": {turn: limit}}},
		{"of a file, beside one in process", []waitServer{file("f"), sdk("s")}, env(), WaitInput{}, WaitOptions{}, turn("s", limit)},
		{"of a file, beside a cached one", []waitServer{file("f"), cached(option("o"))}, env(), WaitInput{}, WaitOptions{}, none},
		// D17
		{"behind a gateway", []waitServer{file("f")}, env("ANTHROPIC_BASE_URL", "http://gateway.example/v1"), WaitInput{}, WaitOptions{}, turn("f", two)},
		{"behind a gateway that the caller names", []waitServer{file("f")}, env(), WaitInput{BaseURL: "http://127.0.0.1:1"}, WaitOptions{}, turn("f", two)},
		{"at the API's own host", []waitServer{file("f")}, env("ANTHROPIC_BASE_URL", "https://api.anthropic.com/"), WaitInput{}, WaitOptions{}, none},
		{"behind a gateway, search set", []waitServer{file("f")}, env("ANTHROPIC_BASE_URL", "http://gateway.example", "ENABLE_TOOL_SEARCH", "true"), WaitInput{}, WaitOptions{}, none},
		// D18 D21
		{"named by all tools", []waitServer{file("my.f")}, env(), WaitInput{Named: []string{"mcp__my_f__*"}}, WaitOptions{}, turn("my.f", two)},
		{"named by one tool", []waitServer{file("f")}, env(), WaitInput{Named: []string{"Bash", "mcp__f__read"}}, WaitOptions{}, turn("f", two)},
		{"not named by a prefix", []waitServer{file("f")}, env(), WaitInput{Named: []string{"mcp__f__re*", "mcp__f", "mcp__*", "mcp__ff__read"}}, WaitOptions{}, none},
		// D22
		{"named by a hook", []waitServer{file("f")}, env(), WaitInput{HookServers: []string{"f"}}, WaitOptions{}, turn("f", two)},
		// D19 D20
		{"search off by the variable", []waitServer{file("f")}, env("ENABLE_TOOL_SEARCH", "false"), WaitInput{}, WaitOptions{}, turn("f", two)},
		{"search off, 0", []waitServer{file("f")}, env("ENABLE_TOOL_SEARCH", "0"), WaitInput{}, WaitOptions{}, turn("f", two)},
		{"search off, auto:100", []waitServer{file("f")}, env("ENABLE_TOOL_SEARCH", "auto:100"), WaitInput{}, WaitOptions{}, turn("f", two)},
		{"search on, auto:0", []waitServer{file("f")}, env("ENABLE_TOOL_SEARCH", "auto:0"), WaitInput{}, WaitOptions{}, none},
		{"search off for the model", []waitServer{file("f")}, env(), WaitInput{ToolSearchOff: true}, WaitOptions{}, turn("f", two)},
		// D24
		{"startup wait, of a file", []waitServer{file("f")}, env(startup, "4000"), WaitInput{}, WaitOptions{}, turn("f", 4*time.Second)},
		{"startup wait, search off", []waitServer{file("f")}, env(startup, "500", "ENABLE_TOOL_SEARCH", "false"), WaitInput{}, WaitOptions{}, turn("f", 500*time.Millisecond)},
		// D25
		{"startup wait, given in code", []waitServer{option("o")}, env(startup, "1000"), WaitInput{}, WaitOptions{}, turn("o", time.Second)},
		// D26
		{"startup wait 0, prompt tool's server", []waitServer{file("f")}, env(startup, "0"), WaitInput{PermissionPromptTool: "mcp__f__ask"}, WaitOptions{}, turn("f", limit)},
		{"startup wait 0, prompt tool's server given in code", []waitServer{option("o"), option("p")}, env(startup, "0"), WaitInput{PermissionPromptTool: "mcp__o__ask"}, WaitOptions{}, turn("o", limit)},
		// D27
		{"startup wait 0, in process", []waitServer{sdk("s")}, env(startup, "0"), WaitInput{}, WaitOptions{}, turn("s", limit)},
		// D28
		{"startup wait 0, named", []waitServer{option("o"), file("f")}, env(startup, "0"), WaitInput{Named: []string{"mcp__o__*", "mcp__f__x"}}, WaitOptions{}, map[string]serverWait{"o": {turn: two}, "f": {turn: two}}},
		{"startup wait 3000, named", []waitServer{file("f")}, env(startup, "3000"), WaitInput{Named: []string{"mcp__f__x"}}, WaitOptions{}, turn("f", 3*time.Second)},
		// D29
		{"startup wait 0, others", []waitServer{option("o"), file("f")}, env(startup, "0"), WaitInput{}, WaitOptions{}, none},
		{"startup wait that is no number", []waitServer{option("o")}, env(startup, "soon"), WaitInput{}, WaitOptions{}, turn("o", limit)},
		// D31
		{"blocking", []waitServer{file("f"), cached(option("c"))}, env("MCP_CONNECTION_NONBLOCKING", "0"), WaitInput{}, WaitOptions{}, map[string]serverWait{"f": {start: 5 * time.Second}}},
		{"not blocking", []waitServer{file("f")}, env("MCP_CONNECTION_NONBLOCKING", "1"), WaitInput{}, WaitOptions{}, none},
		// D32
		{"blocking, other limit", []waitServer{file("f")}, env("MCP_CONNECTION_NONBLOCKING", "0", "MCP_CONNECT_TIMEOUT_MS", "2000"), WaitInput{}, WaitOptions{}, map[string]serverWait{"f": {start: two}}},
		// D33
		{"always loaded", []waitServer{always(file("f")), file("g")}, env(), WaitInput{}, WaitOptions{}, map[string]serverWait{"f": {start: 5 * time.Second, turn: two}}},
		// D35
		{"always loaded, cached", []waitServer{always(cached(file("f")))}, env(), WaitInput{}, WaitOptions{}, none},
		{"switched off", []waitServer{off(option("o")), file("f")}, env(), WaitInput{}, WaitOptions{}, none},
		{
			"options win over variables",
			[]waitServer{option("o"), always(file("f"))},
			env(startup, "9000", "MCP_CONNECTION_NONBLOCKING", "0", "MCP_CONNECT_TIMEOUT_MS", "9000"),
			WaitInput{},
			WaitOptions{StartupWait: new(time.Second), Blocking: new(false), BatchTimeout: new(two)},
			map[string]serverWait{"o": {turn: time.Second}, "f": {start: two, turn: time.Second}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, err := (&Options{Env: tt.env, Wait: tt.wait}).withDefaults()
			if err != nil {
				t.Fatal(err)
			}
			got := planWaits(tt.servers, o.waitRules(tt.in))
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(serverWait{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// D101: the options' environment beats the process's for every variable of the waits and limits, and applies to its
// own host alone.
func TestEnvironmentOfOneHost(t *testing.T) {
	for name, v := range map[string]string{
		"MCP_TIMEOUT": "1000", "MCP_TOOL_TIMEOUT": "2000", "CLAUDE_CODE_MCP_STARTUP_WAIT_MS": "3000", "MCP_CONNECTION_NONBLOCKING": "0",
		"MCP_CONNECT_TIMEOUT_MS": "4000", "ENABLE_TOOL_SEARCH": "false", "ANTHROPIC_BASE_URL": "http://gateway.example", "CLAUDE_AGENT_TOOL_TIMEOUT": "5",
	} {
		t.Setenv(name, v)
	}
	type seen struct {
		connect, call, inProcess, startup, batch time.Duration
		blocking, searchOff, gateway             bool
	}
	look := func(env map[string]string) seen {
		t.Helper()
		h := newHost(t, map[string]ServerConfig{"e": child("echo"), "p": InProcess(calculator(nil))}, func(o *Options) { o.Env = env })
		connected(t, h)
		e, p := status(t, h, "e"), status(t, h, "p")
		r := h.opts.waitRules(WaitInput{})
		return seen{e.ConnectTimeout, e.CallTimeout, p.CallTimeout, *r.startup, r.batch, r.blocking, r.searchOff, r.gateway}
	}
	own := map[string]string{
		"MCP_TIMEOUT": "10000", "MCP_TOOL_TIMEOUT": "20000", "CLAUDE_CODE_MCP_STARTUP_WAIT_MS": "30000", "MCP_CONNECTION_NONBLOCKING": "1",
		"MCP_CONNECT_TIMEOUT_MS": "40000", "ENABLE_TOOL_SEARCH": "", "ANTHROPIC_BASE_URL": "https://api.anthropic.com", "CLAUDE_AGENT_TOOL_TIMEOUT": "50",
	}
	process := seen{time.Second, two, 5 * time.Second, 3 * time.Second, 4 * time.Second, true, true, false}
	for i, tt := range []struct {
		env  map[string]string
		want seen
	}{
		{nil, process},
		{own, seen{10 * time.Second, 20 * time.Second, 50 * time.Second, 30 * time.Second, 40 * time.Second, false, false, false}},
		{nil, process}, // as it was, with the other host still there
		{map[string]string{"ENABLE_TOOL_SEARCH": "", "MCP_CONNECTION_NONBLOCKING": ""}, func() seen { s := process; s.blocking, s.searchOff, s.gateway = false, false, true; return s }()},
	} {
		if got := look(tt.env); got != tt.want {
			t.Errorf("host %d: got %+v, want %+v", i+1, got, tt.want)
		}
	}
}

// opensAfter is a server in this process that takes its time to connect; it
// stands for a slow server of any kind.
func opensAfter(d time.Duration) *fakeProvider {
	return &fakeProvider{
		open: func(ctx context.Context) error {
			if !transport.Sleep(ctx, d) {
				return ctx.Err()
			}
			return nil
		},
		call: func(context.Context, mcpserver.Call) (*mcpserver.Result, error) { return mcpserver.Text("ok"), nil },
	}
}

// Pain 25 and F40: required servers are there when the wait ends, or the error
// names them; optional ones join later.
func TestWaitFirstTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, map[string]ServerConfig{
			"required": InProcessServer{Provider: opensAfter(3 * time.Second), Common: Common{Required: true}},
			"fast":     InProcess(opensAfter(time.Second)),
			"off":      InProcessServer{Provider: opensAfter(0), Common: Common{Disabled: true}},
		})
		began := time.Now()
		if err := h.WaitFirstTurn(t.Context(), WaitInput{}); err != nil || time.Since(began) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		began = time.Now()
		if err := h.WaitFirstTurn(t.Context(), WaitInput{}); err != nil || time.Since(began) != 0 { // D107
			t.Errorf("a host that is ready: after %v: %v", time.Since(began), err)
		}
		h.Close()

		h = newHost(t, map[string]ServerConfig{
			"never":  InProcessServer{Provider: opensAfter(time.Hour), Common: Common{Required: true, ConnectTimeout: 5 * time.Second}},
			"hidden": InProcessServer{Provider: opensAfter(0), Common: Common{Required: true, Disabled: true}},
			"good":   InProcess(opensAfter(0)),
		})
		began = time.Now()
		err := h.WaitFirstTurn(t.Context(), WaitInput{})
		var nr *NotReadyError
		if !errors.As(err, &nr) || len(nr.Servers) != 2 || nr.Servers[1].Name != "never" || time.Since(began) != 5*time.Second || !strings.Contains(err.Error(), "never is failed (") {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		h.Close()
	})
}

// D14 D29: what the wait leaves pending goes on connecting.
func TestWaitLeavesTheRestPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := InProcessServer{Provider: opensAfter(10 * time.Second), Common: Common{AlwaysLoad: true}}
		h := newHost(t, map[string]ServerConfig{"slow": slow}, func(o *Options) { o.ConnectTimeout = 20 * time.Second })
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		if err := h.WaitFirstTurn(ctx, WaitInput{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if s := status(t, h, "slow"); s.Status != StatusPending {
			t.Errorf("slow is %s", s.Status)
		}
		if err := h.WaitFirstTurn(t.Context(), WaitInput{}); err != nil || status(t, h, "slow").Status != StatusConnected {
			t.Errorf("%v, %s", err, dump(h))
		}
		if tools := h.Tools(); len(tools) != 1 || !tools[0].AlwaysLoad { // D34
			t.Errorf("tools %+v", tools)
		}
		h.Close()
		if err := h.WaitFirstTurn(t.Context(), WaitInput{}); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}
