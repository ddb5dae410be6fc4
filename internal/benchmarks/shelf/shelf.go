// Package shelf is the server that the benchmarks' programs have in their process.
package shelf

import (
	"context"
	"time"

	"github.com/tenon-sdk/tenon/mcpserver"
)

type lookupIn struct {
	SKU string `json:"sku"`
}

type lookupOut struct {
	Quantity int    `json:"quantity"`
	Shelf    string `json:"shelf"`
}

// Server has three tools, the first of which the model calls.
func Server(delay time.Duration) *mcpserver.Server {
	s := mcpserver.New("bench", nil)
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "lookup", Description: "Find an article on the shelves", ReadOnly: true},
		func(ctx context.Context, _ lookupIn) (lookupOut, error) {
			select {
			case <-time.After(delay):
			case <-ctx.Done():
			}
			return lookupOut{Quantity: 7, Shelf: "C3"}, ctx.Err()
		})
	for _, name := range []string{"order", "count"} {
		mcpserver.MustAddTool(s, &mcpserver.Tool{Name: name, Description: "Another tool"},
			func(_ context.Context, in lookupIn) (string, error) { return in.SKU, nil })
	}
	return s
}
