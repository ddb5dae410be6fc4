package toolsearch_test

import (
	"context"
	"fmt"
	"log"

	"github.com/tenon-sdk/tenon/toolsearch"
)

func ExampleIndex_Search() {
	index := toolsearch.New([]toolsearch.Tool{
		{FullName: "mcp__github__create_issue", Server: "github", Name: "create_issue", Description: "Create a new issue in a repository"},
		{FullName: "mcp__github__list_issues", Server: "github", Name: "list_issues", Description: "List issues with filters"},
		{FullName: "mcp__files__read_file", Server: "files", Name: "read_file", Description: "Read a file"},
	})
	r, err := index.Search(context.Background(), toolsearch.Query{Phrasings: []string{"report a bug", "crate issue"}, Max: 1})
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range r.Matches {
		fmt.Println(m.FullName)
	}
	// Output:
	// mcp__github__create_issue
}
