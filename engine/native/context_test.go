package native

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

// The total is what the API counted; the conversation is what is left of it.
func TestContextUsage(t *testing.T) {
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "a"}, &mcpserver.Tool{Name: "b"})
	o.SystemPrompt, o.Model, o.ToolSearch = "be brief", "claude-haiku-4-5", "false"
	host, err := mcphost.New(&mcphost.Options{Servers: o.MCPServers})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	host.Start(t.Context())
	if err := host.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.MCPServers, o.Host = nil, host // its tools are there before the first turn
	turn := modeltest.Say(modeltest.Text("x")).Usage(modeltest.Usage{InputTokens: 1000, CacheReadInputTokens: 500, OutputTokens: 100})
	c := open(t, modeltest.New(t, turn), o)
	before, err := c.ContextUsage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	say(t, c, "x")
	after, err := c.ContextUsage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if after.TotalTokens != 1600 || after.MaxTokens != 200_000 || after.Percentage != 0.8 || after.Model != "claude-haiku-4-5" {
		t.Errorf("got %+v", after)
	}
	var sum, used int64
	for _, category := range after.Categories {
		sum += category.Tokens
		if category.Kind == "used" {
			used += category.Tokens
		}
	}
	if used != 1600 || sum != 200_000 {
		t.Errorf("the categories come to %d, with what is free %d: %+v", used, sum, after.Categories)
	}
	if len(after.MCPTools) != 2 || after.ServerTokens()["s"] != after.MCPTools[0].Tokens+after.MCPTools[1].Tokens || after.ServerTokens()["s"] == 0 {
		t.Errorf("tools %+v", after.MCPTools)
	}
	if before.TotalTokens == 0 || before.TotalTokens >= 1600 || before.ServerTokens()["s"] != after.ServerTokens()["s"] {
		t.Errorf("before the first turn %+v", before)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ContextUsage(t.Context()); !errors.Is(err, agent.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Tools that are left to tool search are told of, and take nothing of the window.
func TestContextUsageOfDeferredTools(t *testing.T) {
	load := true
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "a", AlwaysLoad: &load}, &mcpserver.Tool{Name: "b"})
	o.ToolSearch = agent.ToolSearchOn
	c := open(t, modeltest.New(t, modeltest.Text("x")), o)
	say(t, c, "x")
	u, err := c.ContextUsage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(u.MCPTools) != 2 || !u.MCPTools[0].IsLoaded || u.MCPTools[1].IsLoaded || u.ServerTokens()["s"] != u.MCPTools[0].Tokens {
		t.Errorf("tools %+v", u.MCPTools)
	}
	var kinds []string
	for _, category := range u.Categories {
		if category.Tokens > 0 {
			kinds = append(kinds, category.ID+" "+category.Kind)
		}
	}
	want := []string{"system_prompt used", "system_tools used", "mcp_tools used", "messages used", "mcp_tools_deferred deferred", "free_space free"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Error(diff)
	}
}
