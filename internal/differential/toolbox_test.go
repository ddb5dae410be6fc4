package differential

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

// handler is a tool's function in the scripts.
type handler func(ctx context.Context, args json.RawMessage) (*mcpserver.Result, error)

// returns is a handler that always returns r.
func returns(r *mcpserver.Result) handler {
	return func(context.Context, json.RawMessage) (*mcpserver.Result, error) { return r, nil }
}

// tool adds a tool to a server; its calls go into the record.
func (w *world) tool(s *mcpserver.Server, t mcpserver.Tool, h handler) {
	w.Helper()
	if t.InputSchema == nil {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	name := t.Name
	err := s.AddTool(&t, mcpserver.RawHandler(func(ctx context.Context, args json.RawMessage) (*mcpserver.Result, error) {
		w.add("called "+name, "%s", canonical(args))
		return h(ctx, args)
	}))
	if err != nil {
		w.Fatal(err)
	}
}

// serving are options with one server t that has one tool x, which may run.
func serving(t mcpserver.Tool, h handler) func(*world) *agent.Options {
	return func(w *world) *agent.Options {
		s := mcpserver.New("t", nil)
		t.Name = "x"
		w.tool(s, t, h)
		return &agent.Options{
			MCPServers:   map[string]mcphost.ServerConfig{"t": mcphost.InProcess(s)},
			AllowedTools: []string{"mcp__t__*"},
		}
	}
}

// with changes what options makes.
func with(options func(*world) *agent.Options, change func(*world, *agent.Options)) func(*world) *agent.Options {
	return func(w *world) *agent.Options {
		o := options(w)
		change(w, o)
		return o
	}
}

// echoing is a tool that returns its arguments.
var echoing = serving(mcpserver.Tool{Description: "Echoes"}, echo)

func echo(_ context.Context, args json.RawMessage) (*mcpserver.Result, error) {
	return mcpserver.Text("echo " + string(args)), nil
}

// x is a call of the tool.
func x(id, input string) modeltest.Part { return modeltest.ToolUseID(id, "mcp__t__x", input) }

// turns is a fixed script of the model.
func turns(all ...modeltest.Turn) func() []modeltest.Turn {
	return func() []modeltest.Turn { return all }
}

// once is one call and an end.
var once = turns(x("toolu_1", `{"a":1}`), modeltest.Text("done"))

// result is a script in which the tool returns r.
func result(name string, r *mcpserver.Result) script {
	return script{name: name, turns: once, options: serving(mcpserver.Tool{}, returns(r))}
}

// png is an image of one pixel.
var png, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==")

// structured is a result with structured content beside the blocks.
func structured(v string, content ...mcp.Content) *mcpserver.Result {
	return &mcpserver.Result{Content: content, StructuredContent: json.RawMessage(v)}
}

func text(s string) *mcp.TextContent { return &mcp.TextContent{Text: s} }

var contentScripts = []script{
	{name: "plain answer", turns: turns(modeltest.Text("hello"))},
	{name: "two blocks of text", turns: turns(modeltest.Say(modeltest.Text("one"), modeltest.Text("two")))},
	{name: "system prompt", turns: turns(modeltest.Text("aye")), options: func(*world) *agent.Options {
		return &agent.Options{SystemPrompt: "Speak like a sailor.", AppendSystemPrompt: "Be brief."}
	}},
	{name: "thinking", turns: turns(modeltest.Say(modeltest.Thinking("hm"), x("toolu_1", `{}`)), modeltest.Text("done")), options: echoing},
	result("text result", mcpserver.Text("four")),
	result("several texts", mcpserver.Mixed(text("one"), text("two"))),
	result("image result", mcpserver.Image(png, nil)),
	result("text and image", mcpserver.Mixed(text("look"), &mcp.ImageContent{MIMEType: "image/png", Data: png})),
	result("audio result", mcpserver.Audio([]byte("RIFF0000WAVE"), &mcpserver.MediaOptions{MIMEType: "audio/wav"})),
	result("resource text", mcpserver.Embedded(&mcp.ResourceContents{URI: "file:///a.txt", MIMEType: "text/plain", Text: "body"})),
	result("resource blob", mcpserver.Embedded(&mcp.ResourceContents{URI: "file:///a.bin", MIMEType: "application/octet-stream", Blob: []byte{1, 2, 3}})),
	result("resource image", mcpserver.Embedded(&mcp.ResourceContents{URI: "file:///a.png", MIMEType: "image/png", Blob: png})),
	result("resource link", mcpserver.ResourceLink("https://example.com/a", &mcpserver.LinkOptions{Name: "a", Description: "the letter"})),
	result("structured only", structured(`{"quantity":4}`)),
	result("structured with its text", structured(`{"quantity":4}`, text(`{"quantity":4}`))),
	result("structured with other text", structured(`{"quantity":4}`, text("four left, two reserved"))),
	result("structured with an image", structured(`{"quantity":4}`, &mcp.ImageContent{MIMEType: "image/png", Data: png})),
	result("structured with big numbers", structured(`{"id":12345678901234567890,"price":1.50}`)),
	result("empty result", &mcpserver.Result{}),
	result("blank text", mcpserver.Text("  \n")),
	result("odd characters", mcpserver.Text("<b>&amp; \u2028 日本語 😀 \x01 end")),
	result("long text", mcpserver.Text(strings.Repeat("0123456789", 6_000))),
	result("many lines", mcpserver.Text(strings.Repeat("line\n", 20_000))),
	{name: "text beside a call", turns: turns(modeltest.Say(modeltest.Text("Let me look."), x("toolu_1", `{}`)), modeltest.Text("done")), options: echoing},
	{name: "big numbers in arguments", turns: turns(x("toolu_1", `{"n":12345678901234567890,"f":1.50}`), modeltest.Text("done")), options: echoing},
	{name: "image in the prompt", turns: turns(modeltest.Text("a dot")), run: func(w *world, e agent.Engine, o *agent.Options) {
		c := w.open(e, o)
		in := &agent.Input{UUID: "0b9c3f0e-6d3c-4f2b-8a55-0123456789ab", Content: agent.Content{
			&agent.TextBlock{Text: "what is this?"},
			&agent.ImageBlock{Source: agent.ImageSource{Type: "base64", MediaType: "image/png", Data: base64.StdEncoding.EncodeToString(png)}},
		}}
		if err := c.SendInput(w.Context(), in); err != nil {
			w.Fatal(err)
		}
		w.answer(c)
	}},
}
