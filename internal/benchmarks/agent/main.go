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
	"github.com/tenon-sdk/tenon/internal/benchmarks/shelf"
	"github.com/tenon-sdk/tenon/mcphost"
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

func run(ctx context.Context, queries, hold int, delay time.Duration) error {
	engine := native.New(nil)
	opts := &agent.Options{
		SettingSources: []agent.SettingSource{}, // nothing of the machine
		MCPServers:     map[string]mcphost.ServerConfig{"bench": mcphost.InProcess(shelf.Server(delay))},
		AllowedTools:   []string{"mcp__bench__*"},
		ToolSearch:     agent.ToolSearchOff, // the script does not search
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
