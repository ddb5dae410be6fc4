// Command server is an MCP server on the official library, for the benchmarks of the host: it serves one tool over
// standard input and output, or with -http many servers on one port. The same one is used by both sides.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	serve := flag.Bool("http", false, "serve over HTTP")
	flag.Parse()
	var err error
	if *serve {
		err = serveHTTP()
	} else {
		err = newServer().Run(context.Background(), &mcp.StdioTransport{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

// An in says how many bytes of text to return.
type in struct {
	Bytes int `json:"bytes"`
}

func newServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "text", Description: "Return text"}, func(_ context.Context, _ *mcp.CallToolRequest, in in) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("x", in.Bytes)}}}, nil, nil
	})
	return s
}

// serveHTTP serves until it is killed. Every path is a server of its own.
func serveHTTP() error {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	mux := http.NewServeMux()
	for i := range 64 {
		s := newServer()
		mux.Handle(fmt.Sprintf("/%d", i), mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	}
	return (&http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}).Serve(listener)
}
