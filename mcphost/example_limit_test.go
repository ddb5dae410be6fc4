package mcphost_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// A loop of your own: what a tool returned becomes blocks for the model, what is
// too large for it goes to a file, and the model reads that in parts.
func ExampleFitOutput() {
	store := mcphost.NewResultStore("", 0)
	defer func() { _ = store.Close() }()

	result := mcpserver.Text(strings.Repeat("a line of a long log\n", 3000) + "the last line") // as Host.Call returns it
	path := ""
	blocks := mcphost.FitOutput(context.Background(), mcphost.ModelContent("logs", "tail", result, &mcphost.ContentOptions{Save: store.Save}), &mcphost.OutputOptions{
		ReadTool: "ReadResult", // the name of a tool of yours that calls store.Read
		Store: func(text string) (string, error) {
			var err error
			path, err = store.StoreText("logs", "tail", text)
			return path, err
		},
	})
	head, _, _ := strings.Cut(blocks[0].Text, " Full output")
	fmt.Println(head)

	part, err := store.Read(path, mcphost.StoredQuery{Pattern: "last"}) // when the model calls ReadResult
	fmt.Print(part, err, "\n")
	// Output:
	// <persisted-output>
	// Output too large (61.5KB).
	// 3001: the last line
	// <nil>
}
