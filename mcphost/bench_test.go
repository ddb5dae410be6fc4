package mcphost

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The benchmarks here run this package and the official library's client
// alternately, A B A B, against the same servers in one run, and report the
// medians of both and their ratio: only that can be compared between machines.

// versus runs ours and theirs alternately and reports the medians.
func versus(b *testing.B, ours, theirs func() time.Duration) {
	b.Helper()
	var a, c, cpuA, cpuC []time.Duration
	for b.Loop() {
		before := cpuTime()
		a = append(a, ours())
		between := cpuTime()
		c = append(c, theirs())
		cpuA, cpuC = append(cpuA, between-before), append(cpuC, cpuTime()-between)
	}
	ma, mc := median(a), median(c)
	b.ReportMetric(float64(median(cpuA))/float64(max(1, median(cpuC))), "cpu-ratio")
	b.ReportMetric(float64(ma.Microseconds()), "ours-us")
	b.ReportMetric(float64(mc.Microseconds()), "library-us")
	b.ReportMetric(float64(ma)/float64(mc), "ratio")
	b.ReportMetric(0, "ns/op")
}

func median(ds []time.Duration) time.Duration {
	slices.Sort(ds)
	return ds[len(ds)/2]
}

func timed(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// libraryConnect connects the library's client, lists the tools, and returns the session.
func libraryConnect(b *testing.B, t mcp.Transport) *mcp.ClientSession {
	c := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	s, err := c.Connect(context.Background(), t, nil)
	if err != nil {
		b.Error(err)
		return nil
	}
	if _, err := s.ListTools(context.Background(), nil); err != nil {
		b.Error(err)
	}
	return s
}

func libraryCommand() *mcp.CommandTransport {
	cmd := exec.Command(child("library").Command)
	cmd.Env = childEnv(child("library"), os.LookupEnv)
	return &mcp.CommandTransport{Command: cmd, TerminateDuration: 100 * time.Millisecond}
}

// calm waits until the children of the round before are gone, which must not
// weigh on the next.
func calm() {
	for len(childProcesses()) > 0 {
		<-time.After(5 * time.Millisecond)
	}
}

func benchConnect(b *testing.B, n int, cfg func(i int) ServerConfig, transport func(i int) mcp.Transport) {
	versus(b,
		func() time.Duration {
			calm()
			servers := map[string]ServerConfig{}
			for i := range n {
				servers[fmt.Sprintf("s%d", i)] = cfg(i)
			}
			h, err := New(&Options{Servers: servers, CloseGrace: 100 * time.Millisecond})
			if err != nil {
				b.Fatal(err)
			}
			defer h.Close()
			d := timed(func() {
				h.Start(b.Context())
				if err := h.Ready(b.Context()); err != nil {
					b.Fatal(err)
				}
			})
			for _, s := range h.Status() {
				if s.Status != StatusConnected {
					b.Fatalf("%s is %s: %v", s.Name, s.Status, s.Err)
				}
			}
			return d
		},
		func() time.Duration {
			calm()
			sessions := make([]*mcp.ClientSession, n)
			d := timed(func() {
				var wg sync.WaitGroup
				for i := range n {
					wg.Go(func() { sessions[i] = libraryConnect(b, transport(i)) })
				}
				wg.Wait()
			})
			var wg sync.WaitGroup
			for _, s := range sessions {
				wg.Go(func() { _ = s.Close() })
			}
			wg.Wait()
			return d
		})
}

func BenchmarkConnect50Stdio(b *testing.B) {
	benchConnect(b, 50, func(int) ServerConfig { return child("library") }, func(int) mcp.Transport { return libraryCommand() })
}

func BenchmarkConnect10Stdio(b *testing.B) {
	benchConnect(b, 10, func(int) ServerConfig { return child("library") }, func(int) mcp.Transport { return libraryCommand() })
}

func BenchmarkConnect50HTTP(b *testing.B) {
	url := serve(b, libraryHTTP(b, nil)).URL
	benchConnect(b, 50, func(int) ServerConfig { return HTTP{URL: url} }, func(int) mcp.Transport { return &mcp.StreamableClientTransport{Endpoint: url} })
}

// benchCall compares single calls: many of each kind a round, since one is short.
func benchCall(b *testing.B, cfg ServerConfig, t mcp.Transport, tool, args string) {
	const batch = 20
	h := newHost(b, map[string]ServerConfig{"s": cfg})
	connected(b, h)
	s := libraryConnect(b, t)
	defer s.Close()
	raw := json.RawMessage(args)
	versus(b,
		func() time.Duration {
			return timed(func() {
				for range batch {
					if res, err := h.Call(b.Context(), "mcp__s__"+tool, raw, nil); err != nil || res.IsError {
						b.Fatal(res, err)
					}
				}
			}) / batch
		},
		func() time.Duration {
			return timed(func() {
				for range batch {
					if res, err := s.CallTool(b.Context(), &mcp.CallToolParams{Name: tool, Arguments: raw}); err != nil || res.IsError {
						b.Fatal(res, err)
					}
				}
			}) / batch
		})
}

func BenchmarkCallStdio(b *testing.B) {
	benchCall(b, child("library"), libraryCommand(), "echo", `{"text":"hello"}`)
}

func BenchmarkCallHTTP(b *testing.B) {
	url := serve(b, libraryHTTP(b, nil)).URL
	benchCall(b, HTTP{URL: url}, &mcp.StreamableClientTransport{Endpoint: url}, "echo", `{"text":"hello"}`)
}

func BenchmarkCallStdio1MB(b *testing.B) {
	benchCall(b, child("library"), libraryCommand(), "big", `{"bytes":1048576}`)
}

func BenchmarkCallSSE(b *testing.B) {
	lib := libraryServer()
	url := serve(b, mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return lib }, nil)).URL
	benchCall(b, SSE{URL: url}, &mcp.SSEClientTransport{Endpoint: url}, "echo", `{"text":"hello"}`)
}

// A call to a server in this process, beside the library's in-memory transport.
func BenchmarkCallInProcess(b *testing.B) {
	h := newHost(b, map[string]ServerConfig{"s": InProcess(calculator(nil))})
	connected(b, h)
	lib := mcp.NewServer(&mcp.Implementation{Name: "calc", Version: "1"}, nil)
	mcp.AddTool(lib, &mcp.Tool{Name: "add"}, func(_ context.Context, _ *mcp.CallToolRequest, in numbers) (*mcp.CallToolResult, map[string]int, error) {
		return nil, map[string]int{"sum": in.A + in.B}, nil
	})
	ct, st := mcp.NewInMemoryTransports()
	ss, err := lib.Connect(b.Context(), st, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer ss.Close()
	s := libraryConnect(b, ct)
	defer s.Close()
	args := json.RawMessage(`{"a":1,"b":2}`)
	const batch = 100
	versus(b,
		func() time.Duration {
			return timed(func() {
				for range batch {
					if res, err := h.Call(b.Context(), "mcp__s__add", args, nil); err != nil || res.IsError {
						b.Fatal(res, err)
					}
				}
			}) / batch
		},
		func() time.Duration {
			return timed(func() {
				for range batch {
					if res, err := s.CallTool(b.Context(), &mcp.CallToolParams{Name: "add", Arguments: args}); err != nil || res.IsError {
						b.Fatal(res, err)
					}
				}
			}) / batch
		})
}

// What one call in process costs in memory.
func BenchmarkInProcessAllocations(b *testing.B) {
	h := newHost(b, map[string]ServerConfig{"s": InProcess(calculator(nil))})
	connected(b, h)
	args := json.RawMessage(`{"a":1,"b":2}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Call(b.Context(), "mcp__s__add", args, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// A result of 20 MB over stdio.
func BenchmarkResult20MB(b *testing.B) {
	h := newHost(b, map[string]ServerConfig{"s": child("huge")})
	connected(b, h)
	b.SetBytes(20 << 20)
	b.ReportAllocs()
	for b.Loop() {
		res, err := h.Call(b.Context(), "mcp__s__echo", []byte(`{"bytes":20971520}`), nil)
		if err != nil || len(plainText(res)) != 20<<20 {
			b.Fatal(err)
		}
	}
}

// Merging the lists of 200 servers with 50 tools each.
func BenchmarkCatalog(b *testing.B) {
	var servers []listedServer
	for i := range 200 {
		s := listedServer{name: fmt.Sprintf("server-%d", i)}
		for j := range 50 {
			s.tools = append(s.tools, Tool{Server: s.name, Name: fmt.Sprintf("tool_%d", j)})
		}
		servers = append(servers, s)
	}
	for b.Loop() {
		newCatalog(servers, DefaultNameLimit)
	}
}
