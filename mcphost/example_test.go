package mcphost_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/toolresult"
)

// A host connects its servers and calls their tools; no agent is needed.
func Example() {
	ctx := context.Background()
	stock := mcpserver.New("stock", nil)
	type article struct {
		SKU string `json:"sku"`
	}
	mcpserver.MustAddTool(stock, &mcpserver.Tool{Name: "lookup", Description: "Find an article on the shelves", ReadOnly: true},
		func(_ context.Context, in article) (string, error) { return in.SKU + " is on shelf 7", nil })

	h, err := mcphost.New(&mcphost.Options{Servers: map[string]mcphost.ServerConfig{
		"stock":  mcphost.InProcess(stock),
		"broken": mcphost.Stdio{Command: "no-such-program", Env: map[string]string{"PATH": "/nowhere"}},
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	h.Start(ctx)
	if err := h.Ready(ctx); err != nil {
		log.Fatal(err)
	}
	for _, s := range h.Status() {
		fmt.Println(s.Name, s.Status, s.ToolCount)
	}
	for _, t := range h.Tools() {
		fmt.Println(t.FullName)
	}
	res, err := h.Call(ctx, "mcp__stock__lookup", json.RawMessage(`{"sku":"AB-00017"}`), nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, b := range toolresult.Convert(ctx, "stock", "lookup", res, nil) {
		fmt.Println(b.Text)
	}
	// Output:
	// broken failed 0
	// stock connected 1
	// mcp__stock__lookup
	// AB-00017 is on shelf 7
}
