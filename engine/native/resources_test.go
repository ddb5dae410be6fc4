package native

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/toolset"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

// library is a server with resources of all kinds.
func library(t *testing.T) *mcpserver.Server {
	t.Helper()
	s := mcpserver.New("library", &mcpserver.Options{Instructions: "Ask for books by their number."})
	read := func(contents ...*mcp.ResourceContents) mcpserver.ResourceReader {
		return func(context.Context) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: contents}, nil
		}
	}
	for _, err := range []error{
		s.AddResource(&mcp.Resource{URI: "book://1", Name: "one", Description: "The first book", MIMEType: "text/plain"}, read(&mcp.ResourceContents{Text: "Call me Ishmael.", MIMEType: "text/plain"})),
		s.AddResource(&mcp.Resource{URI: "book://2", Name: "two"}, read(&mcp.ResourceContents{Blob: []byte("%PDF-1.7 and so on \x00\xff"), MIMEType: "application/pdf"})),
		s.AddResource(&mcp.Resource{URI: "book://3", Name: "three"}, func(context.Context) (*mcp.ReadResourceResult, error) {
			return nil, errors.New("it is lent out")
		}),
		s.AddResource(&mcp.Resource{URI: "book://4", Name: "four"}, read(&mcp.ResourceContents{Text: strings.Repeat("word ", 40_000)})),
		s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "page://{number}", Name: "page"}, func(_ context.Context, uri string, vars map[string]string) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, Text: "This is page " + vars["number"]}}}, nil
		}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestResources(t *testing.T) {
	o := &agent.Options{MCPServers: map[string]mcphost.ServerConfig{"my.library": mcphost.InProcess(library(t)), "other": mcphost.InProcess(serverWith(t, "w", echoArgs))}}
	o.ToolSearch = agent.ToolSearchOn
	read := func(id, uri string) modeltest.Part {
		return modeltest.ToolUseID(id, readResourceTool, `{"server":"my.library","uri":"`+uri+`"}`)
	}
	model := modeltest.New(t,
		modeltest.ToolUseID("toolu_0", toolset.SearchTool, `{"query":"select:`+listResourcesTool+`,`+readResourceTool+`"}`),
		modeltest.Say(
			modeltest.ToolUseID("toolu_l", listResourcesTool, `{}`), modeltest.ToolUseID("toolu_n", listResourcesTool, `{"server":"mcp__my_library"}`),
			modeltest.ToolUseID("toolu_u", listResourcesTool, `{"server":"nobody"}`), modeltest.ToolUseID("toolu_m", readResourceTool, `{"server":"my.library"}`),
			read("toolu_1", "book://1"), read("toolu_2", "book://2"), read("toolu_3", "book://3"), read("toolu_4", "book://4"), read("toolu_5", "page://17"), read("toolu_6", "book://99"),
		),
		modeltest.Text("x"))
	c := open(t, model, o)
	_, msgs := say(t, c, "x")
	text := func(id string, isError bool) string {
		t.Helper()
		got, ok := model.Last().ToolResult(id)
		if !ok || got.IsError != isError {
			t.Errorf("%s: is_error %v: %s", id, got.IsError, got.PlainText())
		}
		return got.PlainText()
	}
	loaded, _ := model.Last().ToolResult("toolu_0")
	if diff := cmp.Diff([]string{listResourcesTool, readResourceTool}, references(loaded)); diff != "" {
		t.Error(diff)
	}
	var list []map[string]any
	if err := json.Unmarshal([]byte(text("toolu_l", false)), &list); err != nil || len(list) != 5 {
		t.Fatalf("%v: %s", err, text("toolu_l", false))
	}
	if list[0]["server"] != "my.library" || list[0]["uri"] != "book://1" || list[0]["description"] != "The first book" || list[4]["uriTemplate"] != "page://{number}" {
		t.Errorf("the list is %v", list)
	}
	for id, want := range map[string]string{
		"toolu_n": "book://1", "toolu_1": "[Resource from my.library at book://1] Call me Ishmael.", "toolu_2": "saved to ", "toolu_4": "Error: result (", "toolu_5": "This is page 17",
	} {
		if got := text(id, false); !strings.Contains(got, want) {
			t.Errorf("%s: %.300s", id, got)
		}
	}
	for id, want := range map[string]string{
		"toolu_u": `Server "nobody" not found. Available servers: my.library`, "toolu_m": "server and uri are both needed", "toolu_3": "it is lent out", "toolu_6": "book://99",
	} {
		if got := text(id, true); !strings.Contains(got, want) {
			t.Errorf("%s: %.300s", id, got)
		}
	}
	if data, err := os.ReadFile(pathIn(t, text("toolu_2", false)+"\n")); err != nil || !bytes.HasPrefix(data, []byte("%PDF")) {
		t.Errorf("the saved file: %q, %v", data, err)
	}
	if tools := last[*agent.SystemInit](msgs).Tools; !contains(tools, listResourcesTool) || !contains(tools, readResourceTool) {
		t.Errorf("init has %q", tools)
	}
	if _, ok := model.Last().Tool(readTool); !ok {
		t.Error("the long resource was stored, and there is no tool to read it")
	}
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

// Without the search the tools are there at once; rules about them and about their servers hold; and without resources there are none.
func TestResourceToolsAreRuled(t *testing.T) {
	tests := []struct {
		name   string
		set    func(o *agent.Options)
		tools  []string
		result string // of reading a book
	}{
		{"on", func(*agent.Options) {}, []string{listResourcesTool, readResourceTool}, "Ishmael"},
		{"plan mode", func(o *agent.Options) { o.PermissionMode = "plan" }, []string{listResourcesTool, readResourceTool}, "Ishmael"},
		{"don't ask", func(o *agent.Options) { o.PermissionMode = "dontAsk" }, []string{listResourcesTool, readResourceTool}, "Ishmael"},
		{"tool denied", func(o *agent.Options) { o.DisallowedTools = []string{readResourceTool} }, []string{listResourcesTool}, "No such tool"},
		{"asked about", func(o *agent.Options) { o.AskTools = []string{readResourceTool} }, []string{listResourcesTool, readResourceTool}, readResourceTool},
		{"server denied", func(o *agent.Options) { o.DisallowedTools = []string{"mcp__library"} }, nil, "No such tool"},
		{"no resources", func(o *agent.Options) { o.MCPServers = nil }, nil, "No such tool"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := &agent.Options{MCPServers: map[string]mcphost.ServerConfig{"library": mcphost.InProcess(library(t))}, ToolSearch: agent.ToolSearchOff}
			tt.set(o)
			model := modeltest.New(t, modeltest.ToolUseID("toolu_1", readResourceTool, `{"server":"library","uri":"book://1"}`), modeltest.Text("x"))
			answered(t, model, o)
			if diff := cmp.Diff(tt.tools, append([]string(nil), model.Last().ToolNames()...)); diff != "" {
				t.Error(diff)
			}
			if got, _ := model.Last().ToolResult("toolu_1"); !strings.Contains(got.PlainText(), tt.result) {
				t.Errorf("the result is %q", got.PlainText())
			}
		})
	}
}
