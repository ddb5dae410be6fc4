package mcpserver

import (
	"context"
	"encoding/json"
	"runtime"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type benchIn struct {
	SKU   string `json:"sku" jsonschema:"stock keeping unit, eight characters"`
	Limit int    `json:"limit,omitempty"`
}

type benchOut struct {
	Quantity int    `json:"quantity"`
	Shelf    string `json:"shelf"`
}

const benchArgs = `{"sku":"AB-00017","limit":3}`

func benchFind(in benchIn) benchOut { return benchOut{Quantity: in.Limit, Shelf: in.SKU} }

// benchDirect returns a call of the tool on a server of ours.
func benchDirect(tb testing.TB, sc Scheduling) func(context.Context) {
	tb.Helper()
	s := newTestServer(tb, &Options{Scheduling: sc})
	MustAddTool(s, &Tool{Name: "lookup"}, func(_ context.Context, in benchIn) (benchOut, error) { return benchFind(in), nil })
	args := json.RawMessage(benchArgs)
	return func(ctx context.Context) {
		if r, err := s.CallTool(ctx, "lookup", args); err != nil || r.IsError {
			tb.Errorf("%+v, %v", r, err)
		}
	}
}

// benchLibrary returns a call of the same tool by the official library, client
// and server in one process.
func benchLibrary(tb testing.TB) func(context.Context) {
	tb.Helper()
	lib := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	mcp.AddTool(lib, &mcp.Tool{Name: "lookup"}, func(_ context.Context, _ *mcp.CallToolRequest, in benchIn) (*mcp.CallToolResult, benchOut, error) {
		return nil, benchFind(in), nil
	})
	near, far := mcp.NewInMemoryTransports()
	served, err := lib.Connect(context.Background(), far, nil)
	if err != nil {
		tb.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).Connect(context.Background(), near, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = session.Close()
		_ = served.Wait()
	})
	return func(ctx context.Context) {
		r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "lookup", Arguments: json.RawMessage(benchArgs)})
		if err != nil || r.IsError {
			tb.Errorf("%+v, %v", r, err)
		}
	}
}

// BenchmarkDirectCall is one validated call with typed arguments and results.
func BenchmarkDirectCall(b *testing.B) {
	for _, sc := range []Scheduling{Concurrent, Inline} {
		b.Run(sc.String(), func(b *testing.B) {
			call := benchDirect(b, sc)
			b.ReportAllocs()
			for b.Loop() {
				call(b.Context())
			}
		})
	}
}

// BenchmarkLibraryInMemory is the same call by the official library.
func BenchmarkLibraryInMemory(b *testing.B) {
	call := benchLibrary(b)
	b.ReportAllocs()
	for b.Loop() {
		call(b.Context())
	}
}

// BenchmarkDirectAgainstLibrary makes both calls in turn, and reports what ours
// costs as a part of what the library's costs. The goal is 0.1 at most.
func BenchmarkDirectAgainstLibrary(b *testing.B) {
	ours, theirs := benchDirect(b, Concurrent), benchLibrary(b)
	var oursTime, theirsTime time.Duration
	var oursBytes, theirsBytes uint64
	measure := func(call func(context.Context)) (time.Duration, uint64) {
		const batch = 20
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		for range batch {
			call(b.Context())
		}
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		return took, after.TotalAlloc - before.TotalAlloc
	}
	for b.Loop() {
		took, bytes := measure(ours)
		oursTime, oursBytes = oursTime+took, oursBytes+bytes
		took, bytes = measure(theirs)
		theirsTime, theirsBytes = theirsTime+took, theirsBytes+bytes
	}
	b.ReportMetric(float64(oursTime)/float64(theirsTime), "time-ratio")
	b.ReportMetric(float64(oursBytes)/float64(theirsBytes), "bytes-ratio")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkCallers is the same call by 16 callers at once: run it with -cpu 1,2
// to see it scale with the cores.
func BenchmarkCallers(b *testing.B) {
	call := benchDirect(b, Concurrent)
	b.ReportAllocs()
	b.SetParallelism(max(1, 16/runtime.GOMAXPROCS(0)))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			call(b.Context())
		}
	})
}

// The goal of the benchmarks, with room for a busy machine: bytes are exact, time is not asserted.
func TestADirectCallIsSmall(t *testing.T) {
	bytes := func(call func(context.Context)) float64 {
		call(t.Context()) // compile
		const n = 200
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range n {
			call(t.Context())
		}
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc-before.TotalAlloc) / n
	}
	ours, theirs := bytes(benchDirect(t, Concurrent)), bytes(benchLibrary(t))
	if ours > theirs/10 {
		t.Errorf("%.0f bytes a call, more than a tenth of the library's %.0f", ours, theirs)
	}
}
