// Command serve shows one server behind three faces: called by this very program,
// over standard input and output, and over HTTP.
//
//	go run ./examples/serve                        # in-process: calls a tool and prints the result
//	go run ./examples/serve -stdio                 # for a host that starts it as a child process
//	go run ./examples/serve -http localhost:8080   # for clients at http://localhost:8080/mcp
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tenon-sdk/tenon/mcpbridge"
	"github.com/tenon-sdk/tenon/mcpserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.SetOutput(stderr)
	stdio := flags.Bool("stdio", false, "serve over standard input and output")
	addr := flags.String("http", "", "serve over HTTP at this `address`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	server := newServer()
	switch {
	case *stdio:
		return mcpbridge.ServeStdio(ctx, server, &mcpbridge.StdioOptions{In: stdin, Out: stdout})
	case *addr != "":
		return serveHTTP(ctx, server, *addr, stderr)
	}
	return callInProcess(ctx, server, stdout)
}

// callInProcess is the first face: a method call.
func callInProcess(ctx context.Context, server *mcpserver.Server, stdout io.Writer) error {
	result, err := server.CallTool(ctx, "lookup", json.RawMessage(`{"sku":"AB-00017"}`))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, result.Text())
	return err
}

// serveHTTP is the third face. It ends with ctx: first the handler, which closes
// the streams that clients keep open, then the HTTP server.
func serveHTTP(ctx context.Context, server *mcpserver.Server, addr string, stderr io.Writer) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	handler := mcpserver.NewHTTPHandler(server, nil)
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintf(stderr, "serving at http://%s/mcp\n", listener.Addr())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(handler.Shutdown(ending), srv.Shutdown(ending))
}
