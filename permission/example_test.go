package permission_test

import (
	"fmt"

	"github.com/tenon-sdk/tenon/permission"
)

func ExamplePolicy_Decide() {
	policy, problems := permission.NewPolicy(&permission.Options{
		Allow: []string{"mcp__stock__*", "mcp__*"},
		Deny:  []string{"mcp__*__delete*"},
	})
	for _, p := range problems {
		fmt.Println(p)
	}
	for _, name := range []string{"lookup", "delete_all"} {
		d := policy.Decide(permission.Request{Tool: "mcp__stock__" + name, Server: "stock", ToolName: name})
		fmt.Printf("%s: %s by %s %s\n", name, d.Behavior, d.Reason, d.Rule)
	}
	// Output:
	// allow rule "mcp__*": an allow rule may have * only after a literal mcp__SERVER__; write one rule mcp__SERVER__* for each server
	// lookup: allow by rule mcp__stock__*
	// delete_all: deny by rule mcp__*__delete*
}

func ExamplePolicy_Apply() {
	policy, _ := permission.NewPolicy(nil)
	call := permission.Request{Tool: "mcp__files__write", Server: "files", ToolName: "write"}
	fmt.Println(policy.Decide(call).Behavior)
	policy, _ = policy.Apply(policy.Suggest(call)...) // somebody said: yes, and don't ask again
	fmt.Println(policy.Decide(call).Behavior)
	// Output:
	// ask
	// allow
}
