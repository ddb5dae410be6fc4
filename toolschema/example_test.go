package toolschema_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tenon-sdk/tenon/toolschema"
)

func ExampleForModel() {
	m, q := toolschema.ForModel(context.Background(), toolschema.Tool{
		Server: "notion", Name: "search", Description: "Finds pages.",
		InputSchema: json.RawMessage(`{"oneOf": [
			{"properties": {"filter[]": {"type": "array"}}, "required": ["filter[]"]},
			{"properties": {"id": {"type": "str"}}, "required": ["id"]}]}`),
	}, nil)
	if q != nil {
		fmt.Println(q) // leave it out, keep its siblings
		return
	}
	fmt.Println(m.Name)
	fmt.Println(m.Description)
	fmt.Println(string(m.InputSchema))
	fmt.Println(string(m.RestoreArgs(json.RawMessage(`{"filter__": ["a"]}`))))
	// Output:
	// mcp__notion__search
	// Finds pages.
	// Give exactly one of these sets of arguments: {filter__} or {id}.
	// {"type":"object","properties":{"filter__":{"type":"array","description":"Called \"filter[]\" by the server."},"id":{"type":"string"}}}
	// {"filter[]": ["a"]}
}
