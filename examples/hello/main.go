// Hello is the program of the README: one Go function as a tool, one question. It needs ANTHROPIC_API_KEY.
package main

import (
	"context"
	"fmt"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
)

func main() {
	stock := mcpserver.New("stock", nil)
	mcpserver.MustAddTool(stock, &mcpserver.Tool{Name: "lookup", Description: "Say how many of an article are left"},
		func(_ context.Context, in struct{ SKU string }) (string, error) { return "7 of " + in.SKU, nil })

	for msg, err := range agent.Query(context.Background(), native.New(nil), "How many of AB-00017 are left?", &agent.Options{
		MCPServers:   map[string]mcphost.ServerConfig{"stock": mcphost.InProcess(stock)},
		AllowedTools: []string{"mcp__stock__lookup"},
	}) {
		if err != nil {
			panic(err)
		}
		if m, ok := msg.(*agent.Result); ok {
			fmt.Println(m.Result)
		}
	}
}
