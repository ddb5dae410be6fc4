package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/mcpserver"
)

// shelves is what the tools know about.
var shelves = map[string]lookupOut{
	"AB-00017": {Quantity: 12, Shelf: "C3"},
	"AB-00018": {Quantity: 0, Shelf: "C4"},
	"XZ-90210": {Quantity: 3, Shelf: "A1"},
}

type lookupIn struct {
	SKU string `json:"sku" jsonschema:"stock keeping unit, such as AB-00017"`
}

type lookupOut struct {
	Quantity int    `json:"quantity"`
	Shelf    string `json:"shelf"`
}

type searchIn struct {
	Prefix string `json:"prefix" jsonschema:"how the stock keeping units begin"`
}

// newServer returns the server: it is written once and served by every face.
func newServer() *mcpserver.Server {
	s := mcpserver.New("stock", &mcpserver.Options{Version: "1.2.0", Instructions: "Look an article up before you promise it."})
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "lookup", Description: "Find an article on the shelves", ReadOnly: true}, lookup)
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "search", Description: "List the articles by the beginning of their number", ReadOnly: true}, search)
	return s
}

func lookup(_ context.Context, in lookupIn) (lookupOut, error) {
	article, ok := shelves[in.SKU]
	if !ok {
		return lookupOut{}, fmt.Errorf("no article %s; use search to find one", in.SKU)
	}
	return article, nil
}

func search(_ context.Context, in searchIn) (string, error) {
	var found []string
	for sku := range shelves {
		if strings.HasPrefix(sku, in.Prefix) {
			found = append(found, sku)
		}
	}
	slices.Sort(found)
	return strings.Join(found, "\n"), nil
}
