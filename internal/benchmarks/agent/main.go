// Command agent is a small program on the native engine, as a user would write it: one in-process server of three
// tools, questions to the model that ANTHROPIC_BASE_URL names. The benchmarks build and start it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
)

func main() {
	queries := flag.Int("queries", 1, "how many questions to ask at once")
	delay := flag.Duration("delay", 0, "how long a tool takes")
	hold := flag.Int("hold", 0, "measure memory when each query has had this many tool results and the model holds its last answer")
	flag.Parse()
	if err := run(context.Background(), *queries, *hold, *delay); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

type lookupIn struct {
	SKU string `json:"sku"`
}

type lookupOut struct {
	Quantity int    `json:"quantity"`
	Shelf    string `json:"shelf"`
}

// server has three tools, the first of which the model calls.
func server(delay time.Duration) *mcpserver.Server {
	s := mcpserver.New("bench", nil)
	mcpserver.MustAddTool(s, &mcpserver.Tool{Name: "lookup", Description: "Find an article on the shelves", ReadOnly: true},
		func(ctx context.Context, _ lookupIn) (lookupOut, error) {
			select {
			case <-time.After(delay):
			case <-ctx.Done():
			}
			return lookupOut{Quantity: 7, Shelf: "C3"}, ctx.Err()
		})
	for _, name := range []string{"order", "count"} {
		mcpserver.MustAddTool(s, &mcpserver.Tool{Name: name, Description: "Another tool"},
			func(_ context.Context, in lookupIn) (string, error) { return in.SKU, nil })
	}
	return s
}

func run(ctx context.Context, queries, hold int, delay time.Duration) error {
	engine := native.New(nil)
	opts := &agent.Options{
		MCPServers:   map[string]mcphost.ServerConfig{"bench": mcphost.InProcess(server(delay))},
		AllowedTools: []string{"mcp__bench__*"},
	}
	var before uint64
	if hold > 0 { // one conversation beforehand, so that what is made once is not counted
		if err := query(ctx, engine, opts, "first", func() {}); err != nil {
			return err
		}
		before = memory()
	}
	var wg, held sync.WaitGroup
	errs := make([]error, queries)
	result := func() {}
	if hold > 0 {
		held.Add(queries * hold)
		result = held.Done
	}
	for i := range queries {
		wg.Go(func() { errs[i] = query(ctx, engine, opts, fmt.Sprintf("question %d", i), result) })
	}
	if hold > 0 {
		held.Wait()
		if err := get(ctx, "/held"); err != nil { // answers when every conversation waits for its last answer
			return err
		}
		fmt.Printf("{\"bytes\": %d}\n", int64(memory()-before))
		if err := get(ctx, "/release"); err != nil {
			return err
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

// query asks one question, and tells of each tool result.
func query(ctx context.Context, e agent.Engine, o *agent.Options, text string, result func()) error {
	for msg, err := range agent.Query(ctx, e, text, o) {
		if err != nil {
			return err
		}
		if m, ok := msg.(*agent.User); ok {
			for range m.ToolResults() {
				result()
			}
		}
	}
	return nil
}

// get asks the benchmark, which is where the model is.
func get(ctx context.Context, path string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, os.Getenv("ANTHROPIC_BASE_URL")+path, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// memory is what is in use, of the heap and the stacks, in bytes.
func memory() uint64 {
	runtime.GC()
	runtime.GC() // what pools let go of in the first round
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
