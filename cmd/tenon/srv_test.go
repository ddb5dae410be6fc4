//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// srvMain is the program srv of the scripts: a stdio server in one of several moods. It keeps the FIFO that
// $EVENTS names open while it lives and writes what happens to it, a line each, so that a test can wait for
// something to happen, and for the end of every server.
func srvMain(args []string) int {
	mood := "calc"
	if len(args) > 0 {
		mood = args[0]
	}
	ev := openEvents()
	ev.say("start %s %d", mood, os.Getpid())
	switch mood {
	case "exit3":
		fmt.Fprintln(os.Stderr, "reading the configuration")
		fmt.Fprintln(os.Stderr, "missing KEY")
		return 3
	case "garbage":
		for range 100 {
			fmt.Println("== this is no protocol ==")
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	case "chatty":
		for range 1000 {
			fmt.Println("== this is no protocol ==")
		}
		return 0
	case "silent":
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	case "deaf": // hears of the end of its input and of signals, and goes on
		sig := make(chan os.Signal, 4)
		signal.Notify(sig, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		_, _ = io.Copy(io.Discard, os.Stdin)
		ev.say("heard the end")
		for s := range sig {
			ev.say("heard %v", s)
		}
	case "noisy":
		fmt.Println("welcome to the noisy server")
	case "loud":
		for i := range 1 << 10 {
			fmt.Fprintf(os.Stderr, "noise %d %s\n", i, strings.Repeat("x", 1<<10))
		}
	case "calc", "doomed", "evil":
	default:
		fmt.Fprintf(os.Stderr, "srv: no mood %q\n", mood)
		return 2
	}
	server := calcServer(ev)
	if mood == "evil" {
		mcp.AddTool(server, &mcp.Tool{Name: "mark", Description: "Make a file"},
			func(_ context.Context, _ *mcp.CallToolRequest, in echoIn) (*mcp.CallToolResult, any, error) {
				return nil, nil, os.WriteFile(in.Text, nil, 0o600)
			})
		mcp.AddTool(server, &mcp.Tool{Name: "variable", Description: "Say what a variable is"},
			func(_ context.Context, _ *mcp.CallToolRequest, in echoIn) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "it is <" + os.Getenv(in.Text) + ">"}}}, nil, nil
			})
	}
	if mood == "doomed" {
		mcp.AddTool(server, &mcp.Tool{Name: "die", Description: "End the server"},
			func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				fmt.Fprintln(os.Stderr, "out of shelves")
				os.Exit(7)
				return nil, nil, nil
			})
	}
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		ev.say("end %v", err)
	}
	return 0
}

type events struct{ f *os.File }

func openEvents() *events {
	name := os.Getenv("EVENTS")
	if name == "" {
		return &events{}
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		fmt.Fprintln(os.Stderr, "srv:", err)
		os.Exit(2)
	}
	return &events{f}
}

func (e *events) say(format string, args ...any) {
	if e.f != nil {
		fmt.Fprintf(e.f, format+"\n", args...)
	}
}

type addIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

type echoIn struct {
	Text string `json:"text"`
}

// calcServer is a server of the official library with a tool for each thing that can happen.
func calcServer(ev *events) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "calc", Version: "1.2.3"}, &mcp.ServerOptions{Instructions: "Adds."})
	text := func(t string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: t}}}
	}
	mcp.AddTool(s, &mcp.Tool{Name: "add", Description: "Add two numbers.\nA second line.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, in addIn) (*mcp.CallToolResult, any, error) {
			return text(fmt.Sprint(in.A + in.B)), nil, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "Say it again"},
		func(_ context.Context, _ *mcp.CallToolRequest, in echoIn) (*mcp.CallToolResult, any, error) {
			return text(in.Text), nil, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "fail", Description: "Fail"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, nil, fmt.Errorf("the shelf is empty")
		})
	mcp.AddTool(s, &mcp.Tool{Name: "picture", Description: "Show a picture"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{
				&mcp.TextContent{Text: "here it is"}, &mcp.ImageContent{Data: []byte("PNG"), MIMEType: "image/png"},
			}}, nil, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "big", Description: "Say very much"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			b := make([]byte, 5<<20)
			for i := range b {
				b[i] = 'x'
			}
			return text(string(b)), nil, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "block", Description: "Wait until cancelled"},
		func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			ev.say("blocking %d", os.Getpid())
			<-ctx.Done()
			ev.say("cancelled")
			return nil, nil, ctx.Err()
		})
	s.AddResource(&mcp.Resource{URI: "note://one", Name: "one", MIMEType: "text/plain", Description: "A note"},
		func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, MIMEType: "text/plain", Text: "the first note"}}}, nil
		})
	s.AddPrompt(&mcp.Prompt{Name: "greet", Description: "Greet somebody", Arguments: []*mcp.PromptArgument{{Name: "who", Required: true}}},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "Greet " + r.Params.Arguments["who"]}}}}, nil
		})
	return s
}

// serverConfig is the JSON of --mcp-config for this test binary as a server in some moods.
func serverConfig(moods ...string) string {
	var entries []string
	for _, mood := range moods {
		entries = append(entries, fmt.Sprintf(`%q: {"command": "srv", "args": [%q]}`, mood, mood))
	}
	return `{"mcpServers": {` + strings.Join(entries, ", ") + `}}`
}
