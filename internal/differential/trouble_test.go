package differential

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

// always answers every request alike.
func always(t modeltest.Turn) func() []modeltest.Turn {
	return turns(modeltest.Func(func(*modeltest.Request) modeltest.Turn { return t }))
}

var failureScripts = []script{
	{name: "tool error", turns: once, options: serving(mcpserver.Tool{}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		return nil, errors.New("shelf is empty")
	})},
	{name: "tool panic", turns: once, options: serving(mcpserver.Tool{}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		panic("secret")
	})},
	result("error result", mcpserver.Errorf("no article %d", 7)),
	result("error of two texts", &mcpserver.Result{IsError: true, Content: []mcp.Content{text("one"), text("two")}}),
	result("error with an image", &mcpserver.Result{IsError: true, Content: []mcp.Content{text("broken"), &mcp.ImageContent{MIMEType: "image/png", Data: png}}}),
	result("error with structured content", &mcpserver.Result{IsError: true, Content: []mcp.Content{text("broken")}, StructuredContent: json.RawMessage(`{"code":7}`)}),
	result("error without a text", &mcpserver.Result{IsError: true}),
	{name: "unknown tool", turns: turns(modeltest.ToolUseID("toolu_1", "mcp__t__y", `{}`), modeltest.Text("done")), options: echoing},
	{name: "wrong arguments", turns: turns(x("toolu_1", `{"n":"seven"}`), modeltest.Text("done")), options: serving(mcpserver.Tool{
		InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
	}, echo)},
	{name: "no arguments", turns: turns(modeltest.RawToolUse("mcp__t__x"), modeltest.Text("done")), options: echoing},
	{name: "refused request", turns: always(modeltest.Fail(http.StatusBadRequest, "invalid_request_error", "not like this"))},
	{name: "unknown key", turns: always(modeltest.Fail(http.StatusUnauthorized, "authentication_error", "invalid x-api-key")), options: func(*world) *agent.Options {
		return &agent.Options{Env: map[string]string{"CLAUDE_CODE_MAX_RETRIES": "0"}} // each costs the CLI seconds
	}},
	{name: "overloaded for a moment", turns: turns(modeltest.Overloaded(), modeltest.Text("made it"))},
	{name: "server that cannot connect", turns: once, options: with(echoing, func(_ *world, o *agent.Options) {
		o.MCPServers["gone"] = mcphost.HTTP{URL: "http://127.0.0.1:9/mcp"}
	})},
	{name: "answer cut short", turns: turns(modeltest.Say(modeltest.Text("once upon")).Stop(modeltest.StopMaxTokens), modeltest.Text("a time"))},
	{name: "refusal", turns: turns(modeltest.Say(modeltest.Text("no")).Stop(modeltest.StopRefusal), modeltest.Text("sorry"))},
}

var limitScripts = []script{
	{name: "turn limit", turns: turns(x("toolu_1", `{}`), x("toolu_2", `{}`)), options: with(echoing, func(_ *world, o *agent.Options) { o.MaxTurns = 2 })},
	{name: "turn limit with parallel calls", turns: turns(modeltest.Say(x("toolu_1", `{}`), x("toolu_2", `{}`)), modeltest.Text("done")), options: with(echoing, func(_ *world, o *agent.Options) { o.MaxTurns = 2 })},
	{
		name:    "budget",
		turns:   turns(modeltest.Say(x("toolu_1", `{}`)).Usage(modeltest.Usage{InputTokens: 10_000, OutputTokens: 1000})),
		options: with(echoing, func(_ *world, o *agent.Options) { o.MaxBudgetUSD = 0.01 }),
	},
	{name: "call that takes too long", turns: once, options: func(w *world) *agent.Options {
		s := mcpserver.New("t", nil)
		w.tool(s, mcpserver.Tool{Name: "x"}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		return &agent.Options{
			MCPServers:   map[string]mcphost.ServerConfig{"t": mcphost.InProcessServer{Provider: s, Common: mcphost.Common{CallTimeout: 50 * time.Millisecond}}},
			AllowedTools: []string{"mcp__t__*"},
		}
	}},
	{name: "most tokens", turns: turns(modeltest.Text("x")), options: func(*world) *agent.Options { return &agent.Options{MaxTokens: 1234} }, run: func(w *world, e agent.Engine, o *agent.Options) {
		w.query(e, o)
		w.set("sent max_tokens", "%d", w.model.Last().MaxTokens)
	}},
}

// named is a script with one tool of this name on a server of this key, called by its full name.
func named(name, key, tool, full string) script {
	return script{
		name:  name,
		turns: turns(modeltest.ToolUseID("toolu_1", full, `{"a":1}`), modeltest.Text("done")),
		options: func(w *world) *agent.Options {
			s := mcpserver.New("s", nil)
			w.tool(s, mcpserver.Tool{Name: tool, Description: "Does it"}, echo)
			return &agent.Options{MCPServers: map[string]mcphost.ServerConfig{key: mcphost.InProcess(s)}, AllowedTools: []string{full}}
		},
	}
}

const longName = "a_tool_whose_name_goes_on_and_on_until_it_is_longer_than_what_a_reference_may_have"

// library is a server of the official library, which takes any tool.
func library(w *world, name string, tools ...*mcp.Tool) mcphost.ServerConfig {
	w.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
	for _, t := range tools {
		s.AddTool(t, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			w.add("called "+t.Name, "%s", canonical(r.Params.Arguments))
			return &mcp.CallToolResult{Content: []mcp.Content{text("from " + t.Name)}}, nil
		})
	}
	return mcphost.InMemory(s)
}

var nameScripts = []script{
	named("dots and blanks", "my.server 1", "list.issues", "mcp__my_server_1__list_issues"),
	named("other letters", "büro", "size", "mcp__b_ro__size"),
	{name: "long name", turns: turns(modeltest.Func(func(r *modeltest.Request) modeltest.Turn {
		if len(r.ToolResults()) > 0 || len(r.ToolNames()) != 1 {
			return modeltest.Text("done")
		}
		return modeltest.ToolUseID("toolu_1", r.ToolNames()[0], `{}`)
	})), options: func(w *world) *agent.Options {
		s := mcpserver.New("s", nil)
		w.tool(s, mcpserver.Tool{Name: longName}, echo)
		return &agent.Options{MCPServers: map[string]mcphost.ServerConfig{"s": mcphost.InProcess(s)}, AllowedTools: []string{"mcp__s"}}
	}},
	{name: "two names that become one", turns: turns(modeltest.ToolUseID("toolu_1", "mcp__t__a_b", `{}`), modeltest.Text("done")), options: func(w *world) *agent.Options {
		s := mcpserver.New("t", nil)
		w.tool(s, mcpserver.Tool{Name: "a.b", Description: "first"}, echo)
		w.tool(s, mcpserver.Tool{Name: "a_b", Description: "second"}, echo)
		return &agent.Options{MCPServers: map[string]mcphost.ServerConfig{"t": mcphost.InProcess(s)}, AllowedTools: []string{"mcp__t"}}
	}},
	{name: "a malformed tool among others", turns: turns(modeltest.ToolUseID("toolu_1", "mcp__t__good", `{}`), modeltest.Text("done")), options: func(w *world) *agent.Options {
		p := library(w, "t",
			&mcp.Tool{Name: "good", Description: "Good", InputSchema: json.RawMessage(`{"type":"object"}`)},
			&mcp.Tool{Name: "union", Description: "Union", InputSchema: json.RawMessage(`{"type":"object","anyOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"string"}}}]}`)},
			&mcp.Tool{Name: "odd_key", Description: "Odd", InputSchema: json.RawMessage(`{"type":"object","properties":{"bad key!":{"type":"string"}}}`)},
			&mcp.Tool{Name: "odd_type", Description: "Type", InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"int"}}}`)},
		)
		return &agent.Options{MCPServers: map[string]mcphost.ServerConfig{"t": p}, AllowedTools: []string{"mcp__t"}}
	}},
	{name: "mended key", turns: turns(modeltest.Func(func(r *modeltest.Request) modeltest.Turn {
		if len(r.ToolResults()) > 0 {
			return modeltest.Text("done")
		}
		tool, _ := r.Tool("mcp__t__odd")
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		_ = json.Unmarshal(tool.InputSchema, &schema)
		for key := range schema.Properties {
			return modeltest.ToolUseID("toolu_1", "mcp__t__odd", map[string]string{key: "v"})
		}
		return modeltest.Text("no such tool")
	})), options: func(w *world) *agent.Options {
		p := library(w, "t", &mcp.Tool{Name: "odd", Description: "Odd", InputSchema: json.RawMessage(`{"type":"object","properties":{"bad key!":{"type":"string"}}}`)})
		return &agent.Options{MCPServers: map[string]mcphost.ServerConfig{"t": p}, AllowedTools: []string{"mcp__t"}}
	}},
}
