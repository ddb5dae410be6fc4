package native

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/modeltest"
)

// D46 D48 D49: the tools of init are those of the servers that are connected by
// then, deferred or not, and none of a server that is not.
func TestInitHasTheToolsOfConnectedServers(t *testing.T) {
	slow := &slowProvider{serverWith(t, "late", echoArgs), make(chan struct{})}
	h, err := mcphost.New(&mcphost.Options{Servers: map[string]mcphost.ServerConfig{
		"fast": mcphost.InProcess(serverWith(t, "early", echoArgs)),
		"own":  mcphost.InProcess(serverWith(t, "also", echoArgs)),
		"slow": mcphost.InProcess(slow),
	}})
	if err != nil {
		t.Fatal(err)
	}
	h.Start(t.Context())
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := h.Ready(t.Context(), "fast", "own"); err != nil {
		t.Fatal(err)
	}
	want := func(names ...string) {
		t.Helper()
		_, msgs := answered(t, modeltest.New(t, modeltest.Text("x")), &agent.Options{Host: h})
		got := slices.DeleteFunc(slices.Clone(last[*agent.SystemInit](msgs).Tools), func(name string) bool { return !strings.HasPrefix(name, "mcp__") })
		if diff := cmp.Diff(names, got); diff != "" {
			t.Errorf("the MCP tools of init (-want +got):\n%s", diff)
		}
	}
	want("mcp__fast__early", "mcp__own__also")
	close(slow.release)
	if err := h.Ready(t.Context(), "slow"); err != nil {
		t.Fatal(err)
	}
	want("mcp__fast__early", "mcp__own__also", "mcp__slow__late")
}
