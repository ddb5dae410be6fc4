package claudecode

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/modeltest"
)

// What a program says may be longer than a command line: an output schema of 200 KB, prompts, and lists of
// rules and folders. All of it has its effect.
//
// fault D3
func TestRealLongOptions(t *testing.T) {
	peers.ClaudePath(t) // skips without the CLI
	properties := map[string]any{"n": map[string]any{"type": "string"}}
	for i := range 2000 {
		properties[fmt.Sprintf("member_%04d", i)] = map[string]any{"type": "string", "description": strings.Repeat("d", 100)}
	}
	schema, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": []string{"n"}})
	if err != nil {
		t.Fatal(err)
	}
	long := func(rule string) []string {
		var all []string
		for i := range 10_000 {
			all = append(all, fmt.Sprintf("mcp__other__%s_tool_%05d", rule, i))
		}
		return all
	}
	m := modeltest.New(t,
		modeltest.ToolUse("mcp__mine__echo", map[string]string{"text": "hello"}),
		modeltest.ToolUse("StructuredOutput", map[string]string{"n": "x"}),
		modeltest.Text("done"))
	dirs := make([]string, 300)
	for i := range dirs {
		dirs[i] = t.TempDir()
	}
	o := &agent.Options{
		MCPServers:      map[string]mcphost.ServerConfig{"mine": mcphost.InProcess(echo(t)), "denied": mcphost.InProcess(echo(t))},
		OutputSchema:    schema,
		SystemPrompt:    strings.Repeat("A long prompt. ", 20_000),
		AllowedTools:    append(long("allow"), "mcp__mine__echo"),
		DisallowedTools: append(long("deny"), "mcp__denied__echo"),
		AskTools:        long("ask"), AdditionalDirectories: dirs,
	}
	if len(schema) < 200_000 {
		t.Fatalf("the schema has %d bytes", len(schema))
	}
	msgs, err := ask(t, realCLI(t, m), o)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := msgs[len(msgs)-1].(*agent.Result)
	if !ok || string(r.StructuredOutput) != `{"n":"x"}` || len(r.PermissionDenials) != 0 {
		t.Errorf("the last message is %+v", msgs[len(msgs)-1])
	}
	first := m.Requests()[0]
	if _, ok := first.Tool("mcp__denied__echo"); ok || !strings.Contains(first.SystemText(), o.SystemPrompt) {
		t.Errorf("the model has the tools %q and %d bytes of a prompt", first.ToolNames(), len(first.SystemText()))
	}
	if tool, ok := first.Tool("StructuredOutput"); !ok || !strings.Contains(string(tool.InputSchema), "member_1999") {
		t.Error("the model has not all of the schema")
	}
}
