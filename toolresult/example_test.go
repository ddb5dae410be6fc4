package toolresult_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/toolresult"
)

// A loop of your own: what a tool returned becomes blocks for the model, what is
// too large for it goes to a file, and the model reads that in parts.
func ExampleFit() {
	store := toolresult.NewStore("", 0)
	defer func() { _ = store.Close() }()

	result := mcpserver.Text(strings.Repeat("a line of a long log\n", 3000) + "the last line") // as Host.Call returns it
	path := ""
	blocks := toolresult.Fit(context.Background(), toolresult.Convert(context.Background(), "logs", "tail", result, &toolresult.ConvertOptions{Save: store.Save}), &toolresult.FitOptions{
		ReadTool: "ReadResult", // the name of a tool of yours that calls store.Read
		Store: func(text string) (string, error) {
			var err error
			path, err = store.StoreText("logs", "tail", text)
			return path, err
		},
	})
	head, _, _ := strings.Cut(blocks[0].Text, " Full output")
	fmt.Println(head)

	part, err := store.Read(context.Background(), path, toolresult.Query{Pattern: "last"}) // when the model calls ReadResult
	fmt.Print(part, err, "\n")
	// Output:
	// <persisted-output>
	// Output too large (61.5KB).
	// 3001: the last line
	// <nil>
}
