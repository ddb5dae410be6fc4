// Quickstart asks one question that takes three kinds of tools to answer: a Go function in this process, a
// server over stdio (this program again, as a child), and a server over HTTP.
package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native"
	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

const question = "How many of article AB-00017 are left, what are they worth, and what is that with 25 dollars of shipping?"

const offlinePrompt = `@mcp__stock__lookup {"SKU": "AB-00017"}
@mcp__calc__multiply {"A": "{{1.Quantity}}", "B": "{{1.PriceUSD}}"}
@mcp__sums__add {"A": "{{2.$}}", "B": 25}`

type (
	query   struct{ SKU string }
	numbers struct{ A, B float64 }
	article struct{ Quantity, PriceUSD float64 }
)

func lookup(_ context.Context, in query) (article, error) {
	if in.SKU != "AB-00017" {
		return article{}, fmt.Errorf("no article %q", in.SKU) // the model reads this and can try again
	}
	return article{Quantity: 7, PriceUSD: 12.50}, nil
}

func multiply(_ context.Context, in numbers) (string, error) { return fmt.Sprint(in.A * in.B), nil }
func add(_ context.Context, in numbers) (string, error)      { return fmt.Sprint(in.A + in.B), nil }

// server makes an MCP server of a Go function; it can then be used in-process, over stdio or over HTTP.
func server[In, Out any](name, tool, description string, f func(context.Context, In) (Out, error)) *mcpserver.Server {
	s := mcpserver.New(name, nil)
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: tool, Description: description, ReadOnly: true}, f)
	return s
}

func main() {
	run := ask
	if len(os.Args) > 1 { // started by ask, as its stdio server
		run = func(ctx context.Context) error {
			return mcpbridge.ServeStdio(ctx, server("calc", "multiply", "Multiply two numbers", multiply), nil)
		}
	}
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func ask(ctx context.Context) error {
	sums := httptest.NewServer(mcpserver.NewHTTPHandler(server("sums", "add", "Add two numbers", add), nil))
	defer sums.Close()
	engine, prompt := native.New(nil), question
	if os.Getenv("ANTHROPIC_API_KEY") == "" {
		fmt.Println("No ANTHROPIC_API_KEY is set, so this runs on the offline model: it makes the calls that it is told to.")
		engine, prompt = native.New(&native.Options{APIKey: "none", HTTPClient: modeltest.Offline().Client()}), offlinePrompt
	}
	for msg, err := range agent.Query(ctx, engine, prompt, &agent.Options{
		MCPServers: map[string]mcphost.ServerConfig{
			"stock": mcphost.InProcess(server("stock", "lookup", "Find an article in stock, with its price", lookup)),
			"calc":  mcphost.Stdio{Command: os.Args[0], Args: []string{"calc"}},
			"sums":  mcphost.HTTP{URL: sums.URL},
		},
		AllowedTools: []string{"mcp__stock", "mcp__calc", "mcp__sums"},
	}) {
		if err != nil {
			return err
		}
		switch m := msg.(type) {
		case *agent.SystemInit:
			for _, s := range m.MCPServers {
				fmt.Printf("server %-5s %s\n", s.Name, s.Status)
			}
		case *agent.Assistant:
			for _, use := range m.ToolUses() {
				fmt.Printf("call   %s %s\n", use.Name, use.Input)
			}
		case *agent.User:
			for _, result := range m.ToolResults() {
				fmt.Printf("result %s\n", result.Content.Text())
			}
		case *agent.Result:
			fmt.Printf("\n%s\n", m.Result)
		}
	}
	return nil
}
