package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/peers"
)

// child makes the test binary play the program: with it set, main runs.
const child = "SERVE_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(child) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestInProcess(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), nil, nil, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), `{"quantity":12,"shelf":"C3"}`+"\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

func TestWrongFlag(t *testing.T) {
	if err := run(t.Context(), []string{"-nonsense"}, nil, io.Discard, io.Discard); err == nil {
		t.Error("a wrong flag was accepted")
	}
}

// The official library's client gets the same answer over stdio and over HTTP.
func TestFaces(t *testing.T) {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- run(ctx, []string{"-stdio"}, in, out, io.Discard) }()
	call(t, &mcp.IOTransport{Reader: fromServer, Writer: toServer})
	toServer.Close() // the client left
	if err := <-served; err != nil {
		t.Errorf("stdio: %v", err)
	}
	cancel()

	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	said, stderr := io.Pipe()
	go func() { served <- run(ctx, []string{"-http", "127.0.0.1:0"}, nil, io.Discard, stderr) }()
	line := make([]byte, 200)
	n, err := said.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	url := regexp.MustCompile(`http://\S+`).FindString(string(line[:n]))
	call(t, &mcp.StreamableClientTransport{Endpoint: url})
	cancel()
	if err := <-served; err != nil {
		t.Errorf("HTTP: %v", err)
	}
}

func call(t *testing.T, transport mcp.Transport) {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "lookup", Arguments: map[string]string{"sku": "XZ-90210"}})
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := result.Content[0].(*mcp.TextContent); text == nil || text.Text != `{"quantity":3,"shelf":"A1"}` {
		t.Errorf("got %+v", result.Content)
	}
}

// self is this test binary as the program.
func self(t *testing.T, args ...string) peers.Command {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return peers.Command{Path: path, Args: args, Env: map[string]string{child: "1"}}
}

// serveChild starts the program serving over HTTP and returns its URL.
func serveChild(t *testing.T) string {
	t.Helper()
	return peers.Start(t, self(t, "-http", "127.0.0.1:0")).WaitFor(t, `http://\S+`)[0]
}

const typescriptClient = `
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
const [kind, target] = process.argv.slice(2);
const transport = kind === "stdio"
  ? new StdioClientTransport({ command: target, args: ["-stdio"], env: { ...process.env, SERVE_TEST_CHILD: "1" } })
  : new StreamableHTTPClientTransport(new URL(target));
const client = new Client({ name: "test", version: "1.0.0" });
await client.connect(transport);
const { tools } = await client.listTools();
console.log("tools", tools.map((t) => t.name).join(" "));
const good = await client.callTool({ name: "lookup", arguments: { sku: "AB-00017" } });
console.log("structured", JSON.stringify(good.structuredContent));
const bad = await client.callTool({ name: "lookup", arguments: { sku: "nothing" } });
console.log("error", bad.isError, bad.content[0].text);
await client.close();
console.log("closed");
`

// The official TypeScript client lists and calls the tools over both transports.
func TestTypeScriptClient(t *testing.T) {
	for _, target := range [][]string{{"stdio", self(t).Path}, {"http", ""}} {
		t.Run(target[0], func(t *testing.T) {
			script := peers.Script(t, typescriptClient) // skips where there are no peers
			if target[0] == "http" {
				target[1] = serveChild(t)
			}
			script.Args = append(script.Args, target...)
			p := peers.Start(t, script)
			if err := p.Wait(t); err != nil {
				t.Fatalf("%v\n%s", err, p.Output())
			}
			for _, want := range []string{
				"tools lookup search\n",
				`structured {"quantity":12,"shelf":"C3"}` + "\n",
				"error true no article nothing; use search to find one\n",
				"closed\n",
			} {
				if !strings.Contains(p.Output(), want) {
					t.Errorf("no %q in\n%s", want, p.Output())
				}
			}
		})
	}
}

// The MCP Inspector's command line does so as well.
func TestInspector(t *testing.T) {
	stdio := self(t, "-stdio")
	for _, target := range [][]string{{"stdio"}, {"http"}} {
		t.Run(target[0], func(t *testing.T) {
			inspect := func(args ...string) string {
				to := append([]string{"-e", child + "=1", stdio.Path}, stdio.Args...)
				if target[0] == "http" {
					to = []string{serveChild(t), "--transport", "http"}
				}
				p := peers.Start(t, peers.Inspector(t, append(to, args...)...))
				if err := p.Wait(t); err != nil {
					t.Fatalf("%v\n%s", err, p.Output())
				}
				return p.Output()
			}
			if got := inspect("--method", "tools/list"); !strings.Contains(got, `"lookup"`) || !strings.Contains(got, `"search"`) {
				t.Errorf("tools/list:\n%s", got)
			}
			got := inspect("--method", "tools/call", "--tool-name", "lookup", "--tool-arg", "sku=AB-00017")
			if !strings.Contains(got, `"quantity": 12`) {
				t.Errorf("tools/call:\n%s", got)
			}
		})
	}
}
