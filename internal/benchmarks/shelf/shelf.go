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
			if delay > 0 { // else its own cost is that of a tool which has the answer at hand
				select {
				case <-time.After(delay):
				case <-ctx.Done():
				}
			}
			return lookupOut{Quantity: 7, Shelf: "C3"}, ctx.Err()
		})
	for _, name := range []string{"order", "count"} {
		mcpserver.MustAddTool(s, &mcpserver.Tool{Name: name, Description: "Another tool"},
			func(_ context.Context, in lookupIn) (string, error) { return in.SKU, nil })
	}
	return s
}

// AddNumbers adds a tool that takes an integer.
func AddNumbers(s *mcpserver.Server) {
	type in struct {
		ID int64 `json:"id"`
	}
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "by_id", Description: "Find an article by its number"},
		func(_ context.Context, in in) (int64, error) { return in.ID, nil })
}
