package native

import (
	"context"
	"encoding/json"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

// How long the first turn waits for a server that takes twenty seconds to connect: what the host decides
// (mcphost, TestPlanWaits) on what this engine tells it of the run. The init message goes out when the wait ends.
func TestFirstTurnWaitsAsTheOptionsSay(t *testing.T) {
	const takes = 20 * time.Second
	own := "https://api.anthropic.com"
	env := func(kv ...string) map[string]string { return map[string]string{kv[0]: kv[1]} }
	tests := []struct {
		name    string
		o       agent.Options
		common  mcphost.Common // of the server; it is of a file unless Source says something else
		baseURL string         // of the engine
		want    time.Duration
		status  string
	}{
		{name: "of a file", baseURL: own, want: 0}, // D15 D18
		{name: "named by a tool", o: agent.Options{AllowedTools: []string{"mcp__f__x"}}, baseURL: own, want: 2 * time.Second},                                                                               // D18 D21
		{name: "named by all its tools", o: agent.Options{AllowedTools: []string{"mcp__f__*"}}, baseURL: own, want: 2 * time.Second},                                                                        // D21
		{name: "another is named", o: agent.Options{AllowedTools: []string{"mcp__g__*"}}, baseURL: own, want: 0},                                                                                            // D21
		{name: "named in the settings", o: agent.Options{Settings: `{"permissions": {"allow": ["mcp__f__x"]}}`}, baseURL: own, want: 2 * time.Second},                                                       // D21
		{name: "denied in the settings", o: agent.Options{Settings: `{"permissions": {"deny": ["mcp__f__y"]}}`}, baseURL: own, want: 0},                                                                     // D21
		{name: "the prompt tool's", o: agent.Options{PermissionPromptTool: "mcp__f__x"}, baseURL: own, want: takes, status: "connected"},                                                                    // D10
		{name: "the prompt tool's, no startup wait", o: agent.Options{PermissionPromptTool: "mcp__f__x", Env: env("CLAUDE_CODE_MCP_STARTUP_WAIT_MS", "0")}, baseURL: own, want: takes, status: "connected"}, // D26
		{name: "search denied", o: agent.Options{DisallowedTools: []string{"ToolSearch"}}, baseURL: own, want: 2 * time.Second},                                                                             // D19 D20
		{name: "search denied in the settings", o: agent.Options{Settings: `{"permissions": {"deny": ["ToolSearch"]}}`}, baseURL: own, want: 2 * time.Second},                                               // D19 D20
		{name: "search off for the model", o: agent.Options{Model: "claude-3-5-haiku-20241022"}, baseURL: own, want: 2 * time.Second},                                                                       // D19 D20
		{name: "search off by the option", o: agent.Options{ToolSearch: agent.ToolSearchOff}, baseURL: own, want: 2 * time.Second},                                                                          // D19 D20
		{name: "search off by the variable", o: agent.Options{Env: env("ENABLE_TOOL_SEARCH", "auto:100")}, baseURL: own, want: 2 * time.Second},                                                             // D19 D20
		{name: "the option wins over the variable", o: agent.Options{ToolSearch: agent.ToolSearchOn, Env: env("ENABLE_TOOL_SEARCH", "0")}, baseURL: own, want: 0},
		{name: "a gateway of the engine's", baseURL: "http://gateway.test", want: 2 * time.Second},                                                                                                            // D17
		{name: "a gateway of the environment's", o: agent.Options{Env: env("ANTHROPIC_BASE_URL", "http://gateway.test")}, want: 2 * time.Second},                                                              // D17
		{name: "a gateway, search set by the option", o: agent.Options{ToolSearch: agent.ToolSearchOn}, baseURL: "http://gateway.test", want: 0},                                                              // D17
		{name: "a gateway, search set by the variable", o: agent.Options{Env: env("ENABLE_TOOL_SEARCH", "true")}, baseURL: "http://gateway.test", want: 0},                                                    // D17
		{name: "startup wait", o: agent.Options{Env: env("CLAUDE_CODE_MCP_STARTUP_WAIT_MS", "1500")}, baseURL: own, want: 1500 * time.Millisecond},                                                            // D24
		{name: "startup wait of the settings", o: agent.Options{Settings: `{"env": {"CLAUDE_CODE_MCP_STARTUP_WAIT_MS": "1500"}}`}, baseURL: own, want: 1500 * time.Millisecond},                               // D24
		{name: "startup wait below what a named server gets", o: agent.Options{AllowedTools: []string{"mcp__f__x"}, Env: env("CLAUDE_CODE_MCP_STARTUP_WAIT_MS", "500")}, baseURL: own, want: 2 * time.Second}, // D28
		{name: "blocking", o: agent.Options{Env: env("MCP_CONNECTION_NONBLOCKING", "0")}, baseURL: own, want: 5 * time.Second},                                                                                // D31
		{name: "blocking, other limit", o: agent.Options{Env: map[string]string{"MCP_CONNECTION_NONBLOCKING": "0", "MCP_CONNECT_TIMEOUT_MS": "3000"}}, baseURL: own, want: 3 * time.Second},                   // D32
		{name: "always loaded", common: mcphost.Common{AlwaysLoad: true}, baseURL: own, want: 7 * time.Second},                                                                                                // D18 D33
		{name: "given in code", common: mcphost.Common{Source: "sdk"}, baseURL: own, want: takes, status: "connected"},                                                                                        // D11
		{name: "given in code, and too slow", common: mcphost.Common{Source: "sdk"}, o: agent.Options{Env: env("MCP_TIMEOUT", "4000")}, baseURL: own, want: 4 * time.Second, status: "failed"},                // D11 D91
		{name: "given in code, startup wait", common: mcphost.Common{Source: "sdk"}, o: agent.Options{Env: env("CLAUDE_CODE_MCP_STARTUP_WAIT_MS", "1000")}, baseURL: own, want: time.Second},                  // D25
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if tt.common.Source == "" {
					tt.common.Source = "project"
				}
				o := tt.o
				o.Env = maps.Clone(o.Env)
				o.SettingSources = []agent.SettingSource{}
				o.MCPServers = map[string]mcphost.ServerConfig{"f": mcphost.HTTP{URL: "http://f.test/mcp", HTTPClient: slowServer(takes), Common: tt.common}}
				e := testEngine(modeltest.New(t, modeltest.Text("x")))
				e.opts.BaseURL = tt.baseURL
				began := time.Now()
				var init *agent.SystemInit
				for m, err := range agent.Query(t.Context(), e, "x", &o) {
					if err != nil {
						t.Fatal(err)
					}
					if m, ok := m.(*agent.SystemInit); ok && init == nil {
						init = m
						if got := time.Since(began); got != tt.want {
							t.Errorf("the first turn waited %v, want %v", got, tt.want)
						}
					}
				}
				want := tt.status
				if want == "" {
					want = "pending" // and it goes on connecting
				}
				if len(init.MCPServers) != 1 || init.MCPServers[0].Status != want {
					t.Errorf("init has the servers %+v, want it %s", init.MCPServers, want)
				}
			})
		})
	}
}

// The permission prompt tool may be one of a shared host, whose other servers nobody waits for. // D10 D107
func TestPromptToolOfASharedHostIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const takes = 20 * time.Second
		asks := serverWith(t, "ask", func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
			return mcpserver.Text(`{"behavior":"allow"}`), nil
		})
		prompt, never := &slowProvider{asks, make(chan struct{})}, &slowProvider{serverWith(t, "w", echoArgs), make(chan struct{})}
		h, err := mcphost.New(&mcphost.Options{Servers: map[string]mcphost.ServerConfig{
			"prompt": mcphost.InProcess(prompt), "never": mcphost.InProcess(never), "s": mcphost.InProcess(serverWith(t, "w", echoArgs)),
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		h.Start(t.Context())
		time.AfterFunc(takes, func() { close(prompt.release) })
		began := time.Now()
		model := modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{"n":1}`), modeltest.Text("x"))
		_, msgs := answered(t, model, &agent.Options{Host: h, PermissionPromptTool: "mcp__prompt__ask"})
		if took := time.Since(began); took != takes {
			t.Errorf("the run took %v, want %v", took, takes)
		}
		if got := results(msgs); len(got) != 1 || got[0].IsError || got[0].Text() != `{"n":1}` {
			t.Errorf("results %+v", got)
		}
	})
}
