package enginetest

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

// What the model is shown of many tools, of large results, and of what servers have beside tools.
var contextBehaviours = []behaviour{
	{"SearchFindsATool", searchFindsATool},
	{"SearchByWords", searchByWords},
	{"SearchFindsNoDeniedTool", searchFindsNoDeniedTool},
	{"SearchOff", searchOff},
	{"AlwaysLoad", alwaysLoad},
	{"UnreadToolCanBeCalled", unreadToolCanBeCalled},
	{"LargeResultIsStored", largeResultIsStored},
	{"DeclaredResultSize", declaredResultSize},
	{"ResultLimits", resultLimits},
	{"Instructions", serverInstructions},
	{"Resources", resources},
	{"PromptCommand", promptCommand},
}

// search is a call of the tool search.
func search(id, query string) modeltest.Part {
	return modeltest.ToolUseID(id, "ToolSearch", `{"query":"`+query+`"}`)
}

// found are the tools that a search came back with.
func (e *env) found(id string) []string {
	e.Helper()
	var names []string
	for _, b := range e.sent(id).Content {
		if b.Type == "tool_reference" {
			names = append(names, b.ToolName)
		}
	}
	return names
}

// withheld reports whether a request keeps a tool's definition from the model.
func withheld(r *modeltest.Request, name string) bool {
	tool, ok := r.Tool(name)
	return !ok || tool.DeferLoading
}

// searching are options with a tool x and another one, and the tool search.
func (e *env) searching() *agent.Options {
	e.Helper()
	s := server("t")
	e.add(s, &mcpserver.Tool{Name: "x", Description: "Counts the articles on the shelves of the warehouse"}, echo)
	e.add(s, &mcpserver.Tool{Name: "post", Description: "Sends a letter"}, echo)
	o := allowed(s, "t")
	o.ToolSearch = agent.ToolSearchOn
	return o
}

// D57
func searchFindsATool(e *env) {
	engine := e.script(search("toolu_1", "select:"+toolX), callX("toolu_2", `{"n":1}`), modeltest.Text("done"))
	tr, _ := e.answered(engine, "x", e.searching())
	first := e.model.Requests()[0]
	if _, ok := first.Tool("ToolSearch"); !ok || !withheld(first, toolX) {
		e.Errorf("the first request has the tools %q", first.ToolNames())
	}
	if got := e.found("toolu_1"); len(got) != 1 || got[0] != toolX {
		e.Errorf("found %q", got)
	}
	if tool, ok := e.model.Last().Tool(toolX); !ok || !strings.HasPrefix(tool.Description, "Counts the articles") {
		e.Errorf("the last request has %+v (%v)", tool, ok)
	}
	if got := tr.toolResult(e, "toolu_2"); got.IsError || got.Text() != `{"n":1}` {
		e.Errorf("the call came to %+v", got)
	}
	if !contains(tr.init(e).Tools, toolX) {
		e.Errorf("init has the tools %q", tr.init(e).Tools)
	}
}

func searchByWords(e *env) {
	e.answered(e.script(search("toolu_1", "articles warehouse"), modeltest.Text("done")), "x", e.searching())
	if got := e.found("toolu_1"); len(got) == 0 || got[0] != toolX {
		e.Errorf("found %q", got)
	}
}

func searchFindsNoDeniedTool(e *env) {
	o := e.searching()
	o.DisallowedTools = []string{toolX}
	engine := e.script(modeltest.Say(search("toolu_1", "select:"+toolX), search("toolu_2", "articles warehouse")), modeltest.Text("done"))
	tr, _ := e.answered(engine, "x", o)
	for _, id := range []string{"toolu_1", "toolu_2"} {
		if contains(e.found(id), toolX) {
			e.Errorf("%s found %q", id, e.found(id))
		}
	}
	if contains(tr.init(e).Tools, toolX) {
		e.Error("init has the denied tool")
	}
}

// D20
func searchOff(e *env) {
	o := e.searching()
	o.ToolSearch = agent.ToolSearchOff
	e.answered(e.script(modeltest.Text("done")), "x", o)
	if _, ok := e.model.Last().Tool("ToolSearch"); ok || withheld(e.model.Last(), toolX) {
		e.Errorf("the request has the tools %q", e.model.Last().ToolNames())
	}
}

// D34
func alwaysLoad(e *env) {
	load := true
	s := server("t")
	e.add(s, &mcpserver.Tool{Name: "x", AlwaysLoad: &load}, echo)
	e.add(s, &mcpserver.Tool{Name: "y"}, echo)
	whole := server("u")
	e.add(whole, &mcpserver.Tool{Name: "z"}, echo)
	o := allowed(s, "t")
	o.MCPServers["u"] = mcphost.InProcessServer{Provider: whole, Common: mcphost.Common{AlwaysLoad: true}}
	o.ToolSearch = agent.ToolSearchOn
	e.answered(e.script(modeltest.Text("done")), "x", o)
	if withheld(e.model.Last(), toolX) || !withheld(e.model.Last(), "mcp__t__y") || withheld(e.model.Last(), "mcp__u__z") {
		e.Errorf("the request has the tools %q", e.model.Last().ToolNames())
	}
}

func unreadToolCanBeCalled(e *env) {
	tr, _ := e.answered(e.script(callX("toolu_1", `{"n":1}`), modeltest.Text("done")), "x", e.searching())
	if got := tr.toolResult(e, "toolu_1"); got.IsError || got.Text() != `{"n":1}` {
		e.Errorf("the call came to %+v", got)
	}
}

var savedTo = regexp.MustCompile(`saved to:? (\S+?)\.?\s`)

// D94
func largeResultIsStored(e *env) {
	text := strings.TrimSuffix(strings.Repeat("one line of many, all of them alike\n", 6000), "\n")
	o := e.toolbox(nil, func(context.Context, json.RawMessage) (*mcpserver.Result, error) { return mcpserver.Text(text), nil })
	c := e.open(e.script(callX("toolu_1", `{}`), modeltest.Text("done")), o)
	e.send(c, "x")
	e.hear(c)
	got := e.sent("toolu_1")
	said := textOf(got)
	m := savedTo.FindStringSubmatch(said)
	if got.IsError || len(said) > 50_000 || m == nil {
		e.Fatalf("the model was sent %d bytes: %.300s", len(said), said)
	}
	if whole, err := os.ReadFile(m[1]); err != nil || string(whole) != text {
		e.Errorf("the file has %d bytes of %d, %v", len(whole), len(text), err)
	}
}

// D96
func declaredResultSize(e *env) {
	text := strings.TrimSuffix(strings.Repeat("one line of many, all of them alike\n", 3000), "\n")
	o := e.toolbox(&mcpserver.Tool{MaxResultSize: 200_000}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) { return mcpserver.Text(text), nil })
	e.answered(e.script(callX("toolu_1", `{}`), modeltest.Text("done")), "x", o)
	if said := textOf(e.sent("toolu_1")); said != text {
		e.Errorf("the model was sent %d bytes of %d: %.200s", len(said), len(text), said)
	}
}

// Where the limits lie, and what moves them. // D94 D95 D96 D101
func resultLimits(e *env) {
	for _, tt := range []struct {
		name   string
		chars  int
		tool   mcpserver.Tool
		tokens string // MAX_MCP_OUTPUT_TOKENS of the run
		says   string // what is sent begins so; empty for the result as it is
	}{
		{"50,000 characters", 50_000, mcpserver.Tool{}, "", ""},
		{"50,001 characters", 50_001, mcpserver.Tool{}, "", "<persisted-output>"},
		{"more tokens than there may be", 200_000, mcpserver.Tool{}, "", "Error: result (200,000 characters"},
		{"fewer tokens", 9_000, mcpserver.Tool{}, "1000", "Error: result (9,000 characters"},
		{"within fewer tokens", 1_900, mcpserver.Tool{}, "1000", ""},
		{"more tokens, so that the characters count", 120_000, mcpserver.Tool{}, "100000", "<persisted-output>"},
		{"within what the tool declares, whatever the tokens", 150_000, mcpserver.Tool{MaxResultSize: 150_000}, "1000", ""},
		{"above what the tool declares", 150_001, mcpserver.Tool{MaxResultSize: 150_000}, "", "<persisted-output>"},
	} {
		text := strings.Repeat("x", tt.chars)
		o := e.toolbox(&tt.tool, func(context.Context, json.RawMessage) (*mcpserver.Result, error) { return mcpserver.Text(text), nil })
		if tt.tokens != "" {
			o.Env = map[string]string{"MAX_MCP_OUTPUT_TOKENS": tt.tokens}
		}
		e.answered(e.script(callX("toolu_1", `{}`), modeltest.Text("done")), "x", o)
		got := e.sent("toolu_1")
		said := textOf(got)
		if got.IsError || !strings.HasPrefix(said, tt.says) || (said == text) != (tt.says == "") {
			e.Errorf("%s: is_error %v, the model was sent %d bytes: %.200s", tt.name, got.IsError, len(said), said)
		}
	}
}

// everythingSent is all that the model has read besides tools.
func (e *env) everythingSent() string {
	r := e.model.Last()
	parts := []string{r.SystemText()}
	for _, m := range r.Messages {
		for _, c := range m.Content {
			parts = append(parts, textOf(c))
		}
	}
	return strings.Join(parts, "\n")
}

func serverInstructions(e *env) {
	s := mcpserver.New("t", &mcpserver.Options{Instructions: "Use the shelves gently."})
	e.add(s, &mcpserver.Tool{Name: "x"}, echo)
	e.answered(e.script(modeltest.Text("done")), "x", allowed(s, "t"))
	if sent := e.everythingSent(); strings.Count(sent, "Use the shelves gently.") != 1 {
		e.Errorf("the model was sent %s", sent)
	}
}

func resources(e *env) {
	s := server("t")
	e.add(s, &mcpserver.Tool{Name: "x"}, echo)
	err := s.AddResource(&mcp.Resource{URI: "book://1", Name: "one"}, func(context.Context) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "book://1", Text: "Call me Ishmael."}}}, nil
	})
	if err != nil {
		e.Fatal(err)
	}
	o := allowed(s, "t")
	o.ToolSearch = agent.ToolSearchOff
	engine := e.script(
		modeltest.ToolUseID("toolu_1", "ListMcpResourcesTool", `{"server":"t"}`),
		modeltest.ToolUseID("toolu_2", "ReadMcpResourceTool", `{"server":"t","uri":"book://1"}`),
		modeltest.ToolUseID("toolu_3", "ListMcpResourcesTool", `{"server":"nobody"}`),
		modeltest.Text("done"))
	e.answered(engine, "x", o)
	for id, want := range map[string]string{"toolu_1": "book://1", "toolu_2": "Call me Ishmael.", "toolu_3": "nobody"} {
		got := e.sent(id)
		if !strings.Contains(textOf(got), want) || got.IsError != (id == "toolu_3") {
			e.Errorf("%s: is_error %v: %s", id, got.IsError, textOf(got))
		}
	}
}

func promptCommand(e *env) {
	s := server("t")
	err := s.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "name", Required: true}}}, func(_ context.Context, args map[string]string) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "Greet <" + args["name"] + ">"}}}}, nil
	})
	if err != nil {
		e.Fatal(err)
	}
	tr, _ := e.answered(e.script(modeltest.Text("Hello")), `/mcp__t__greet "Ann Lee"`, allowed(s, "t"))
	if text := e.model.Last().LastUserText(); !strings.Contains(text, "Greet <Ann Lee>") {
		e.Errorf("the model reads %q", text)
	}
	if got := tr.init(e).SlashCommands; !contains(got, "mcp__t__greet") {
		e.Errorf("init has the commands %q", got)
	}
}
