package mcpserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestScratchConn(t *testing.T) {
	lib := mcp.NewServer(&mcp.Implementation{Name: "x", Version: "1"}, nil)
	mcp.AddTool(lib, &mcp.Tool{Name: "add"}, func(_ context.Context, r *mcp.CallToolRequest, in struct{ A, B int }) (*mcp.CallToolResult, any, error) {
		fmt.Println("header", r.Extra.Header)
		return nil, map[string]int{"sum": in.A + in.B}, nil
	})
	mcp.AddTool(lib, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, in struct{}) (*mcp.CallToolResult, any, error) {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	in, w := io.Pipe()
	r, out := io.Pipe()
	conn := newStdioConn(in, out, 1000, time.Second, slog.New(slog.NewTextHandler(os.Stdout, nil)))
	ss, err := lib.Connect(t.Context(), conn, nil)
	if err != nil {
		t.Fatal(err)
	}
	go conn.readLines()
	go func() {
		sc := bufio.NewScanner(r)
		for sc.Scan() {
			fmt.Println("<-", sc.Text())
		}
	}()
	for _, l := range []string{
		`{"id":"a\u0062","method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		`{"method":"notifications/initialized"}`,
		`hello`, `{"id":`, `{"id":1.50,"method":"ping"}`, `{"id":null,"method":"ping"}`,
		`{"id":12345678901234567890,"method":"tools/call","params":{"name":"add","arguments":{"A":1,"B":2}}}`,
		`[{"id":1,"method":"ping"},{"id":2,"method":"ping"},{"method":"notifications/x"},5]`,
		`{"id":"w","method":"tools/call","params":{"name":"wait","arguments":{}}}`,
		`{"method":"notifications/cancelled","params":{"requestId":"w"}}`,
		`{"method":"tools/call","params":{"name":"` + string(make([]byte, 2000)) + `"},"jsonrpc":"2.0","id":77}`,
		`{"id":"w2","method":"tools/call","params":{"name":"wait","arguments":{}}}`,
	} {
		fmt.Fprintln(w, l)
		time.Sleep(20 * time.Millisecond)
	}
	start := time.Now()
	w.Close()
	fmt.Println(ss.Wait(), time.Since(start))
	out.Close()
}
