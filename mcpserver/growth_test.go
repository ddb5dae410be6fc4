package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/growth"
)

// What clients send costs in proportion to its size.
//
// fault H12
func TestRequestsCostInProportion(t *testing.T) {
	for name, work := range map[string]func(n int) func(){
		"canonical arguments, many members": func(n int) func() {
			raw := json.RawMessage(`{` + strings.Repeat(`"a":1,`, n) + `"b":2}`)
			return func() { canonicalJSON(raw) }
		},
		"canonical arguments, nested": func(n int) func() {
			raw := json.RawMessage(strings.Repeat(`{"a":[`, n/10) + strings.Repeat(`]}`, n/10))
			return func() { canonicalJSON(raw) }
		},
		"canonical arguments, long names": func(n int) func() {
			var b strings.Builder
			for i := range n / 10 {
				fmt.Fprintf(&b, `"%s%d":0,`, strings.Repeat("x", 200), i)
			}
			raw := json.RawMessage(`{` + b.String() + `"b":2}`)
			return func() { canonicalJSON(raw) }
		},
		"an Accept header of many ranges": func(n int) func() {
			value := []string{strings.Repeat("text/plain;q=0.1,", n)}
			return func() { accepts(value, "text/event-stream") }
		},
		"an Accept header of many parameters": func(n int) func() {
			value := []string{"text/event-stream" + strings.Repeat(";a=b", n)}
			return func() { accepts(value, "text/event-stream") }
		},
		"many Accept headers": func(n int) func() {
			values := make([]string, n)
			for i := range values {
				values[i] = "text/*;q=0"
			}
			return func() { accepts(values, "text/event-stream") }
		},
		"an elicited schema": func(n int) func() {
			schema := json.RawMessage(`{"properties":{` + strings.Repeat(`"a":{"type":"string"},`, n) + `"b":{}}}`)
			return func() { _ = checkElicitSchema(schema) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			growth.Check(t, 1000, func(n int) int { return growth.Bytes(work(n)) + 1000*n }) // some allocate little, and buffers are pooled
		})
	}
}

// A call of a tool that there is not costs the same however many tools there are.
//
// fault G11
func TestCallsOfUnknownToolsCostLittle(t *testing.T) {
	growth.AtMost(t, 4096, []int{10, 100, 1000}, func(n int) int {
		s := newTestServer(t, nil)
		for i := range n {
			if err := s.AddTool(&Tool{Name: fmt.Sprint("t", i)}, returns(Text("x"), nil)); err != nil {
				t.Fatal(err)
			}
		}
		handle := s.library().receive(func(context.Context, string, mcp.Request) (mcp.Result, error) { return nil, errors.New("not found") })
		req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "nobody"}}
		return growth.Bytes(func() { _, _ = handle(t.Context(), "tools/call", req) })
	})
}

func TestUserBounds(t *testing.T) {
	for _, tt := range []struct{ bound, all, want int }{
		{0, 10_000, 1000}, {0, 110, 11}, {0, 109, 10}, {0, 5, 10}, {0, -1, -1}, {-1, 5, -1}, {3, 5, 3}, {7, -1, 7}, {0, 0, 10},
	} {
		if got := userBound(tt.bound, tt.all); got != tt.want {
			t.Errorf("userBound(%d, %d) = %d, want %d", tt.bound, tt.all, got, tt.want)
		}
	}
}
