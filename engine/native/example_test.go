package native_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

type lookupIn struct {
	SKU string `json:"sku" jsonschema:"stock keeping unit"`
}

type lookupOut struct {
	Quantity int `json:"quantity"`
}

// stock is a server in this process with one typed tool.
func stock() *mcpserver.Server {
	s := mcpserver.New("stock", nil)
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "lookup", Description: "Find an article on the shelves", ReadOnly: true},
		func(_ context.Context, in lookupIn) (lookupOut, error) { return lookupOut{Quantity: len(in.SKU)}, nil })
	return s
}

// engine is an engine on a model that follows a script. In a program, native.New(nil) asks Claude.
func engine(turns ...modeltest.Turn) *native.Engine {
	return native.New(&native.Options{APIKey: "test", HTTPClient: modeltest.New(nil, turns...).Client()})
}

func Example() {
	e := engine(
		modeltest.Say(modeltest.Text("Let me look."), modeltest.ToolUse("mcp__stock__lookup", `{"sku":"AB-00017"}`)),
		modeltest.Text("There are 8 left."),
	)
	opts := &agent.Options{
		MCPServers:   map[string]mcphost.ServerConfig{"stock": mcphost.InProcess(stock())},
		AllowedTools: []string{"mcp__stock__*"},
	}
	for msg, err := range agent.Query(context.Background(), e, "How many of AB-00017 are left?", opts) {
		if err != nil {
			slog.Error("run failed", "error", err)
			return
		}
		switch m := msg.(type) {
		case *agent.SystemInit:
			fmt.Println("server:", m.MCPServers[0].Name, m.MCPServers[0].Status)
		case *agent.Assistant:
			for _, use := range m.ToolUses() {
				fmt.Println("call:", use.Name, string(use.Input))
			}
		case *agent.User:
			for _, r := range m.ToolResults() {
				fmt.Println("tool result:", r.Text())
			}
		case *agent.Result:
			fmt.Println("answer:", m.Result)
		}
	}
	// Output:
	// server: stock connected
	// call: mcp__stock__lookup {"sku":"AB-00017"}
	// tool result: {"quantity":8}
	// answer: There are 8 left.
}

// A callback decides about the calls that no rule settles.
func Example_permission() {
	e := engine(modeltest.ToolUse("mcp__stock__lookup", `{"sku":"secret"}`), modeltest.Text("I may not look."))
	opts := &agent.Options{
		MCPServers: map[string]mcphost.ServerConfig{"stock": mcphost.InProcess(stock())},
		CanUseTool: func(_ context.Context, r *agent.ToolRequest) (*permission.PromptResult, error) {
			if strings.Contains(string(r.Input), "secret") {
				return agent.Deny("This article is not to be looked up."), nil
			}
			return agent.Allow(), nil
		},
	}
	for msg, err := range agent.Query(context.Background(), e, "Look up the secret article.", opts) {
		if err != nil {
			slog.Error("run failed", "error", err)
			return
		}
		if r, ok := msg.(*agent.Result); ok {
			fmt.Println(r.Result)
			fmt.Println("denied:", r.PermissionDenials[0].ToolName)
		}
	}
	// Output:
	// I may not look.
	// denied: mcp__stock__lookup
}

// A hook runs before each call, sees it, and may change or stop it.
func Example_hooks() {
	e := engine(modeltest.ToolUse("mcp__stock__lookup", `{"sku":"ab"}`), modeltest.Text("done"))
	whole := func(_ context.Context, in *agent.PreToolUse) (*agent.PreToolUseOutput, error) {
		fmt.Println("before:", in.ToolName, string(in.ToolInput))
		return &agent.PreToolUseOutput{UpdatedInput: json.RawMessage(`{"sku":"AB-00017"}`)}, nil
	}
	opts := &agent.Options{
		MCPServers:   map[string]mcphost.ServerConfig{"stock": mcphost.InProcess(stock())},
		AllowedTools: []string{"mcp__stock__lookup"},
		Hooks:        &agent.Hooks{PreToolUse: []agent.Hook[agent.PreToolUse, agent.PreToolUseOutput]{{Matcher: "mcp__stock__.*", Func: whole}}},
	}
	for msg, err := range agent.Query(context.Background(), e, "Look.", opts) {
		if err != nil {
			slog.Error("run failed", "error", err)
			return
		}
		if u, ok := msg.(*agent.User); ok {
			fmt.Println("after:", u.ToolResults()[0].Text())
		}
	}
	// Output:
	// before: mcp__stock__lookup {"sku":"ab"}
	// after: {"quantity":8}
}

// An answer in the form of a JSON Schema.
func Example_structuredOutput() {
	e := engine(modeltest.ToolUse("StructuredOutput", `{"city":"Paris","population":2100000}`))
	opts := &agent.Options{OutputSchema: json.RawMessage(`{
		"type": "object",
		"properties": {"city": {"type": "string"}, "population": {"type": "integer"}},
		"required": ["city", "population"]
	}`)}
	for msg, err := range agent.Query(context.Background(), e, "The largest city of France?", opts) {
		if err != nil {
			slog.Error("run failed", "error", err)
			return
		}
		if r, ok := msg.(*agent.Result); ok {
			fmt.Println(string(r.StructuredOutput))
		}
	}
	// Output:
	// {"city":"Paris","population":2100000}
}

// A conversation of several turns.
func Example_client() {
	ctx := context.Background()
	client, err := agent.Open(ctx, engine(modeltest.Text("Hello, Ada."), modeltest.Text("You are Ada.")), &agent.Options{Model: "claude-haiku-5-5"})
	if err != nil {
		slog.Error("no client", "error", err)
		return
	}
	defer client.Close()
	for _, text := range []string{"I am Ada.", "Who am I?"} {
		if err := client.Send(ctx, text); err != nil {
			slog.Error("not sent", "error", err)
			return
		}
		for msg, err := range client.Response(ctx) {
			if err != nil {
				slog.Error("no answer", "error", err)
				return
			}
			if r, ok := msg.(*agent.Result); ok {
				fmt.Println(r.Result)
			}
		}
	}
	// Output:
	// Hello, Ada.
	// You are Ada.
}
