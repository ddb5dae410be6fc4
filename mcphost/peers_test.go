//go:build unix

package mcphost

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/peers"
)

// typescriptServer is a server written with the TypeScript library; its argument is the transport.
const typescriptServer = `
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const server = new McpServer({ name: "shop", version: "2.1.0" }, { instructions: "Prices are in cents." });
server.registerTool("price", {
  title: "Price", description: "The price of an article",
  inputSchema: { sku: z.string(), count: z.number().int().default(1) },
  outputSchema: { cents: z.number() }, annotations: { readOnlyHint: true },
}, async ({ sku, count }) => {
  if (sku === "none") throw new Error("no such article: " + sku);
  const structuredContent = { cents: 250 * count };
  return { structuredContent, content: [{ type: "text", text: JSON.stringify(structuredContent) }] };
});
server.registerTool("stocktaking", { description: "Counts everything" }, async (extra) => {
  const progressToken = extra._meta?.progressToken;
  for (let progress = 1; progress <= 3; progress++) {
    await extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress, total: 3 } });
  }
  return { content: [{ type: "text", text: "all is there" }] };
});
server.registerResource("terms", "shop://terms", { mimeType: "text/plain" }, async (uri) => ({ contents: [{ uri: uri.href, text: "Pay at once." }] }));
server.registerPrompt("sell", { argsSchema: { sku: z.string() } }, ({ sku }) => ({ messages: [{ role: "user", content: { type: "text", text: "Sell " + sku } }] }));

if (process.argv[2] === "stdio") {
  await server.connect(new StdioServerTransport());
} else {
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: () => randomUUID() });
  await server.connect(transport);
  createServer((req, res) => transport.handleRequest(req, res)).listen(0, "127.0.0.1", function () {
    console.log("listening on http://127.0.0.1:" + this.address().port);
  });
}
`

// A realCall is a call to a real server and what must be in its answer.
type realCall struct{ tool, args, want string }

// The servers of others, over every transport: each connects, lists and answers, and what one of them cannot do
// costs its call only.
// D01 D02 D50 D51 D52
func TestRealServers(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("the spare key is under the mat\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stdio := func(c peers.Command) Stdio { return Stdio{Command: c.Path, Args: c.Args, Env: c.Env} }
	shop := peers.Start(t, peers.Script(t, typescriptServer, "http")).WaitFor(t, `listening on (\S+)`)[1]
	db := peers.SQLite(t, "create table shelf(sku text, n int); insert into shelf values ('AB-17', 42);")
	everything := []realCall{
		{"echo", `{"message":"hello"}`, "Echo: hello"},
		{"get-sum", `{"a":19,"b":23}`, "42"},
		{"get-tiny-image", `{}`, "image/png"},
		{"get-structured-content", `{"location":"New York"}`, "temperature"},
	}
	inShop := []realCall{{"price", `{"sku":"AB-17","count":3}`, `{"cents":750}`}, {"stocktaking", `{}`, "all is there"}}
	inLibrary := []realCall{{"echo", `{"text":"hi"}`, "echo: hi"}, {"fail", `{}`, "it failed"}}
	sql := []realCall{{"execute_sql", `{"sql":"select n from shelf where sku = 'AB-17'"}`, "42"}}
	servers := map[string]struct {
		cfg   ServerConfig
		calls []realCall
	}{
		"everything": {stdio(peers.Everything(t, "stdio")), everything},
		"streamable": {HTTP{URL: peers.ServeEverything(t, "streamableHttp").URL}, everything},
		"events":     {SSE{URL: peers.ServeEverything(t, "sse").URL}, everything},
		"files":      {stdio(peers.Filesystem(t, dir)), []realCall{{"read_text_file", `{"path":"` + dir + `/notes.txt"}`, "under the mat"}, {"list_directory", `{"path":"` + dir + `"}`, "notes.txt"}}},
		"db":         {stdio(peers.DBHub(t, db)), sql},
		"dbweb":      {HTTP{URL: peers.ServeDBHub(t, db).URL}, sql},
		"shop":       {stdio(peers.Script(t, typescriptServer, "stdio")), inShop},
		"shopweb":    {HTTP{URL: shop}, inShop},
		"go":         {child("library"), inLibrary},
		"goweb":      {HTTP{URL: serve(t, libraryHTTP(t, nil)).URL}, inLibrary},
	}
	configs := map[string]ServerConfig{}
	for name, s := range servers {
		configs[name] = s.cfg
	}
	h := newHost(t, configs, func(o *Options) { o.Dir = dir })
	if err := h.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, s := range servers {
		if st := status(t, h, name); st.Status != StatusConnected || st.ToolCount == 0 || len(st.Rejected) > 0 || st.ServerInfo == nil {
			t.Errorf("%s is %s with %d tools, left out %v: %v", name, st.Status, st.ToolCount, st.Rejected, st.Err)
			continue
		}
		for _, c := range s.calls {
			res, err := h.CallServer(t.Context(), name, c.tool, []byte(c.args), nil)
			if err != nil {
				t.Errorf("%s, %s: %v", name, c.tool, err)
				continue
			}
			all, err := json.Marshal(res)
			if err != nil || !strings.Contains(strings.ReplaceAll(string(all), `\"`, `"`), c.want) {
				t.Errorf("%s, %s: %.300s, %v; want %s", name, c.tool, all, err, c.want)
			}
		}
		// A call that is wrong is answered so, and the next one works.
		if res, err := h.CallServer(t.Context(), name, s.calls[0].tool, []byte(`{"sku":7,"message":[],"path":{},"sql":0,"text":7,"a":"x"}`), nil); err == nil && !res.IsError {
			t.Errorf("%s: wrong arguments were taken: %v", name, res)
		}
		if res, err := h.CallServer(t.Context(), name, s.calls[0].tool, []byte(s.calls[0].args), nil); err != nil || res.IsError {
			t.Errorf("%s, after a wrong call: %v, %v", name, res, err)
		}
	}
	for _, name := range []string{"shop", "shopweb"} {
		checkShop(t, h, name)
	}
}

// checkShop looks at the rest of what the TypeScript library's server offers.
func checkShop(t *testing.T, h *Host, name string) {
	t.Helper()
	s := status(t, h, name)
	if s.Instructions != "Prices are in cents." || s.ServerInfo.Name != "shop" || s.ServerInfo.Version != "2.1.0" {
		t.Errorf("%s says %+v, %q", name, s.ServerInfo, s.Instructions)
	}
	if tool, ok := h.Tool("mcp__" + name + "__price"); !ok || !tool.ReadOnly || tool.Title != "Price" || tool.OutputSchema == nil {
		t.Errorf("%s: price is %+v", name, tool)
	}
	var got []Progress
	if _, err := h.CallServer(t.Context(), name, "stocktaking", nil, &CallOptions{OnProgress: func(p Progress) { got = append(got, p) }}); err != nil || len(got) != 3 || got[2].Progress != 3 {
		t.Errorf("%s: progress %v, %v", name, got, err)
	}
	if res, err := h.CallServer(t.Context(), name, "price", []byte(`{"sku":"none"}`), nil); err != nil || !res.IsError || !strings.Contains(res.Text(), "no such article") {
		t.Errorf("%s: a failing tool: %v, %v", name, res, err)
	}
	if res, err := h.ReadResource(t.Context(), name, "shop://terms"); err != nil || len(res.Contents) != 1 || res.Contents[0].Text != "Pay at once." {
		t.Errorf("%s: resource %v, %v", name, res, err)
	}
	p, err := h.GetPrompt(t.Context(), name, "sell", map[string]string{"sku": "AB-17"})
	if err != nil || len(p.Messages) != 1 || p.Messages[0].Content.(*mcp.TextContent).Text != "Sell AB-17" {
		t.Errorf("%s: prompt %v, %v", name, p, err)
	}
}

// Pain 12: the reference server is restarted and knows no session any more; it says so with 400. The next call
// works, and so does one to the older transport.
func TestRealServersRestart(t *testing.T) {
	web, events := peers.ServeEverything(t, "streamableHttp"), peers.ServeEverything(t, "sse")
	h := newHost(t, map[string]ServerConfig{"web": HTTP{URL: web.URL}, "events": SSE{URL: events.URL}})
	connected(t, h)
	for range 2 {
		for _, name := range []string{"web", "events"} {
			res, err := h.CallServer(t.Context(), name, "get-sum", []byte(`{"a":1,"b":2}`), nil)
			// The call that finds the connection broken may have run: it is told so, and not made again.
			if errors.Is(err, ErrConnectionLost) {
				res, err = h.CallServer(t.Context(), name, "get-sum", []byte(`{"a":1,"b":2}`), nil)
			}
			if err != nil || !strings.Contains(res.Text(), "3") {
				t.Errorf("%s: %v, %v", name, res, err)
			}
		}
		web.Restart(t)
		events.Restart(t)
	}
}

// A real server that is no MCP server, and a real program that is none.
func TestRealStrangers(t *testing.T) {
	web := serve(t, http.FileServer(http.Dir(t.TempDir())))
	h := newHost(t, map[string]ServerConfig{
		"files": HTTP{URL: web.URL}, "cat": Stdio{Command: "true"}, "node": Stdio{Command: peers.Node20(t), Args: []string{"-e", `throw new Error("no database")`}},
	})
	ready(t, h)
	for name, want := range map[string]string{"files": "not as an MCP server", "cat": "exited with code 0", "node": "Error: no database"} {
		if s := status(t, h, name); s.Status != StatusFailed || !strings.Contains(s.Error, want) {
			t.Errorf("%s is %s: %s; want %q", name, s.Status, s.Error, want)
		}
	}
}
