package native

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

// With the discovery cache a run has the tools of a remote server without connecting to it, those that are always
// loaded with their schemas; the first call connects. // D12 D14 D35 D47 D71
func TestToolsOfACachedServer(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // on Linux
	t.Setenv("HOME", t.TempDir())
	var requests atomic.Int64
	h := mcpserver.NewHTTPHandler(serverWith(t, "w", echoArgs), nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		if err := h.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		srv.Close()
	})
	run := func(cache string, turns ...modeltest.Turn) (*modeltest.Model, []agent.Message) {
		t.Helper()
		model := modeltest.New(t, turns...)
		_, msgs := answered(t, model, &agent.Options{
			MCPServers:   map[string]mcphost.ServerConfig{"r": mcphost.HTTP{URL: srv.URL, Common: mcphost.Common{AlwaysLoad: true}}},
			AllowedTools: []string{"mcp__r__*"}, SettingSources: []agent.SettingSource{},
			Env: map[string]string{"MCP_DISCOVERY_CACHE": cache},
		})
		return model, msgs
	}
	state := func(msgs []agent.Message) string { return last[*agent.SystemInit](msgs).MCPServers[0].Status }
	for _, cache := range []string{"0", "0", "1"} { // nothing is kept until the cache is switched on
		if _, msgs := run(cache, modeltest.Text("x")); state(msgs) != "connected" {
			t.Errorf("cache %s: the server is %s", cache, state(msgs))
		}
	}
	before := requests.Load()
	model, msgs := run("1", modeltest.Text("x"))
	if n := requests.Load() - before; n != 0 || state(msgs) != "pending" {
		t.Errorf("the cached server is %s, and got %d requests", state(msgs), n)
	}
	if tools := last[*agent.SystemInit](msgs).Tools; !slices.Contains(tools, "mcp__r__w") {
		t.Errorf("init has the tools %q", tools)
	}
	if tool, ok := model.Last().Tool("mcp__r__w"); !ok || tool.DeferLoading {
		t.Errorf("the model was offered %+v (%v)", tool, ok)
	}
	_, msgs = run("1", modeltest.ToolUse("mcp__r__w", `{"n":1}`), modeltest.Text("x"))
	if got := results(msgs); len(got) != 1 || got[0].IsError || got[0].Text() != `{"n":1}` || requests.Load() == before {
		t.Errorf("the first call: %+v after %d requests", got, requests.Load()-before)
	}
}
