package native

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
)

// A canned model answers from what a request holds, with as little work as can be: the benchmarks
// measure the loop and not the model.
type canned struct {
	turns    int // tool turns in a conversation
	parallel int // calls in each
	// gate, if not nil, holds each conversation at its last request: arrived counts them in.
	gate    chan struct{}
	arrived sync.WaitGroup
}

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	done := bytes.Count(body, []byte(`"tool_result"`)) / c.parallel
	var b strings.Builder
	fmt.Fprintf(&b, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_%d\",\"model\":\"claude-sonnet-5-5\",\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n", done)
	stop := "end_turn"
	if done < c.turns {
		stop = "tool_use"
		for i := range c.parallel {
			fmt.Fprintf(&b, "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":%d,\"content_block\":{\"type\":\"tool_use\",\"id\":\"toolu_%d_%d\",\"name\":\"mcp__s__r\",\"input\":{}}}\n\n", i, done, i)
			fmt.Fprintf(&b, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":%d,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"n\\\":%d}\"}}\n\n", i, done)
			fmt.Fprintf(&b, "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":%d}\n\n", i)
		}
	} else {
		b.WriteString("event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"done\"}}\n\n" +
			"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n")
		if c.gate != nil {
			c.arrived.Done()
			<-c.gate
		}
	}
	fmt.Fprintf(&b, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":%q},\"usage\":{\"output_tokens\":9}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", stop)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(strings.NewReader(b.String())), Request: r,
	}, nil
}

// benchEngine is an engine on a canned model, and options with a server s that has one read-only tool r.
func benchEngine(b *testing.B, c *canned, h handlerFunc) (*Engine, *agent.Options) {
	b.Helper()
	srv := mcpserver.New("s", nil)
	tool := &mcpserver.Tool{Name: "r", ReadOnly: true, InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}
	if err := srv.AddTool(tool, h); err != nil {
		b.Fatal(err)
	}
	e := New(&Options{APIKey: "test", HTTPClient: &http.Client{Transport: c}})
	return e, &agent.Options{
		MCPServers:   map[string]mcphost.ServerConfig{"s": mcphost.InProcess(srv)},
		AllowedTools: []string{"mcp__s__*"},
	}
}

func quick(context.Context, json.RawMessage) (*mcpserver.Result, error) {
	return mcpserver.Text("ok"), nil
}

// benchRun runs a query that must succeed.
func benchRun(b *testing.B, e agent.Engine, o *agent.Options) {
	for _, err := range agent.Query(b.Context(), e, "x", o) {
		if err != nil {
			b.Error(err)
		}
	}
}

// BenchmarkToolTurns measures one of 200 sequential tool turns.
func BenchmarkToolTurns(b *testing.B) {
	const turns = 200
	e, o := benchEngine(b, &canned{turns: turns, parallel: 1}, quick)
	b.ReportAllocs()
	for b.Loop() {
		benchRun(b, e, o)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*turns), "us/turn")
}

// BenchmarkParallelCalls measures 20 parallel calls with handlers of 50 ms: what they take beyond the slowest.
func BenchmarkParallelCalls(b *testing.B) {
	const handler = 50 * time.Millisecond
	e, o := benchEngine(b, &canned{turns: 1, parallel: 20}, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		time.Sleep(handler)
		return mcpserver.Text("ok"), nil
	})
	for b.Loop() {
		benchRun(b, e, o)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)-float64(handler.Microseconds()), "us-beyond-handler")
}

// BenchmarkFirstRequest measures a query of one answer with one in-process server, from nothing to its end.
func BenchmarkFirstRequest(b *testing.B) {
	e, o := benchEngine(b, &canned{turns: 0, parallel: 1}, quick)
	b.ReportAllocs()
	for b.Loop() {
		benchRun(b, e, o)
	}
}

// BenchmarkConversations holds 1,000 conversations of 20 tool turns at once, and measures the memory of each
// while all are at their last request.
func BenchmarkConversations(b *testing.B) {
	const conversations, turns = 1000, 20
	for b.Loop() {
		c := &canned{turns: turns, parallel: 1, gate: make(chan struct{})}
		c.arrived.Add(conversations)
		e, o := benchEngine(b, c, quick)
		before := heap()
		var wg sync.WaitGroup
		for range conversations {
			wg.Go(func() { benchRun(b, e, o) })
		}
		c.arrived.Wait()
		b.ReportMetric(float64(heap()-before)/conversations/1024, "KB/conversation")
		close(c.gate)
		wg.Wait()
	}
}

// heap is the memory in use, of the heap and the stacks.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
