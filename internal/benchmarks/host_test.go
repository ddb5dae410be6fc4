//go:build linux

package benchmarks

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"runtime/metrics"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/mcphost"
)

// A reach is a way to reach servers, for both sides.
type reach struct {
	name      string
	config    func(i int) mcphost.ServerConfig
	transport func(i int) mcp.Transport
}

func reaches(b *testing.B) []reach {
	b.Helper()
	binary := build(b, "server")
	base := peers.Start(b, peers.Command{Path: binary, Args: []string{"-http"}}).WaitFor(b, `http://\S+`)[0]
	url := func(i int) string { return fmt.Sprintf("%s/%d", base, i) }
	return []reach{
		{
			"stdio", func(int) mcphost.ServerConfig { return mcphost.Stdio{Command: binary} },
			func(int) mcp.Transport { return &mcp.CommandTransport{Command: exec.Command(binary)} },
		},
		{
			"HTTP", func(i int) mcphost.ServerConfig { return mcphost.HTTP{URL: url(i)} },
			func(i int) mcp.Transport { return &mcp.StreamableClientTransport{Endpoint: url(i)} },
		},
	}
}

// host connects a host to n servers, which must all come up.
func (r reach) host(b *testing.B, n int) *mcphost.Host {
	b.Helper()
	servers := map[string]mcphost.ServerConfig{}
	for i := range n {
		servers[fmt.Sprintf("s%d", i)] = r.config(i)
	}
	h, err := mcphost.New(&mcphost.Options{Servers: servers})
	if err != nil {
		b.Fatal(err)
	}
	h.Start(b.Context())
	if err := h.Ready(b.Context()); err != nil {
		b.Fatal(err)
	}
	if len(h.Tools()) != n {
		b.Fatalf("%d tools, want %d: %+v", len(h.Tools()), n, h.Status())
	}
	return h
}

// session connects the library's client to one server, and lists its tools as a host does.
func (r reach) session(b *testing.B, i int) *mcp.ClientSession {
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	s, err := client.Connect(b.Context(), r.transport(i), nil)
	if err != nil {
		b.Error(err)
		return nil
	}
	if _, err := s.ListTools(b.Context(), nil); err != nil {
		b.Error(err)
	}
	return s
}

// used is the processor time of this process and of the children that it has waited for.
func used() time.Duration {
	var total time.Duration
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil { // fails for a wrong pointer only
			total += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return total
}

// BenchmarkConnect measures connecting 50 servers at once.
func BenchmarkConnect(b *testing.B) {
	const servers, rounds = 50, 7
	goals := map[string]float64{"stdio": 1.15, "HTTP": 1.3}
	for _, r := range reaches(b) {
		ours := func() cost {
			start, before := time.Now(), used()
			h := r.host(b, servers)
			wall := time.Since(start)
			if err := h.Close(); err != nil {
				b.Error(err)
			}
			return cost{wall: wall, cpu: used() - before}
		}
		theirs := func() cost {
			start, before := time.Now(), used()
			sessions := make([]*mcp.ClientSession, servers)
			var wg sync.WaitGroup
			for i := range servers {
				wg.Go(func() { sessions[i] = r.session(b, i) })
			}
			wg.Wait()
			wall := time.Since(start)
			for _, s := range sessions {
				wg.Go(func() {
					if s != nil {
						_ = s.Close() // of a child that was told to end, the signal
					}
				})
			}
			wg.Wait()
			return cost{wall: wall, cpu: used() - before}
		}
		ours()
		theirs()
		a, z := alternate(rounds, ours, theirs)
		add(b, fmt.Sprintf("connecting %d %s servers", servers, r.name), "ms", goals[r.name], 1, a, z)
	}
}

// add adds a row for the processor time and one for the wall time, each divided by n.
func add(b *testing.B, work, unit string, goal float64, n int, ours, theirs []cost) {
	b.Helper()
	scale := map[string]float64{"ms": 1e6, "us": 1e3}[unit] * float64(n)
	cpu := func(c cost) float64 { return float64(c.cpu) / scale }
	wall := func(c cost) float64 { return float64(c.wall) / scale }
	table.add(b, row{work: work + ": CPU", unit: unit, ours: each(ours, cpu), theirs: each(theirs, cpu), goal: goal})
	table.add(b, row{work: work + ": wall", unit: unit, ours: each(ours, wall), theirs: each(theirs, wall), goal: goal})
}

// BenchmarkCall measures a call, by the host and by the library's own client, to the same server.
func BenchmarkCall(b *testing.B) {
	const calls, rounds = 50, 101
	for _, r := range reaches(b) {
		h, s := r.host(b, 1), r.session(b, 0)
		batch := func(call func() (isError bool, err error)) func() cost {
			return func() cost {
				start, before := time.Now(), used()
				for range calls {
					if isError, err := call(); isError || err != nil {
						b.Fatal(isError, err)
					}
				}
				return cost{wall: time.Since(start), cpu: used() - before}
			}
		}
		ours := batch(func() (bool, error) {
			res, err := h.Call(b.Context(), "mcp__s0__text", json.RawMessage(`{"bytes":100}`), nil)
			return err == nil && res.IsError, err
		})
		theirs := batch(func() (bool, error) {
			res, err := s.CallTool(b.Context(), &mcp.CallToolParams{Name: "text", Arguments: json.RawMessage(`{"bytes":100}`)})
			return err == nil && res.IsError, err
		})
		ours()
		theirs()
		a, z := alternate(rounds, ours, theirs)
		add(b, "a call over "+r.name, "us", 1.1, calls, a, z)
		_, _ = h.Close(), s.Close()
	}
}

// BenchmarkLargeResults measures texts of 20 MB over stdio, and what a line of 200 MB costs.
func BenchmarkLargeResults(b *testing.B) {
	r := reaches(b)[0]
	h := r.host(b, 1)
	defer h.Close()
	call := func(bytes int) (int, error) {
		res, err := h.Call(b.Context(), "mcp__s0__text", json.RawMessage(fmt.Sprintf(`{"bytes":%d}`, bytes)), nil)
		if err != nil {
			return 0, err
		}
		return len(res.Text()), nil
	}
	pid := func() int { return h.Status()[0].PID }
	server := pid()
	var took, grown []float64
	for range 5 {
		start := time.Now()
		peak := heapPeak(b.Context(), func() {
			if n, err := call(20 << 20); err != nil || n != 20<<20 {
				b.Fatalf("a text of 20 MB: %d bytes, %v", n, err)
			}
		})
		took, grown = append(took, ms(time.Since(start))), append(grown, peak)
	}
	library := r.session(b, 0)
	_, err := library.CallTool(b.Context(), &mcp.CallToolParams{Name: "text", Arguments: json.RawMessage(`{"bytes":20971520}`)})
	_ = library.Close() // of a session that has failed, the failure
	note := "arrives"
	if err != nil {
		note = "the session ends"
	}
	table.add(b, row{work: "20 MB text over stdio: wall", unit: "ms", ours: took, note: note})
	table.add(b, row{work: "20 MB text over stdio: heap", unit: "MB", ours: grown, note: "-"})

	peak := heapPeak(b.Context(), func() {
		if _, err = call(200 << 20); err == nil {
			b.Fatal("a line of 200 MB was taken")
		}
	})
	if n, err := call(100); err != nil || n != 100 || pid() != server {
		b.Fatalf("the call after it: %d bytes, %v, server %d was %d", n, err, pid(), server)
	}
	b.Logf("a line of 200 MB: %s", strings.TrimSpace(err.Error()))
	table.add(b, row{work: "200 MB line over stdio: heap", unit: "MB", ours: []float64{peak}, note: "the call fails, the next one works"})
}

// heapPeak returns by how many MB the heap grows while f runs.
func heapPeak(ctx context.Context, f func()) float64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	heap := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	before := heap()
	ctx, stop := context.WithCancel(ctx)
	peak := make(chan uint64)
	go func() {
		ticker := time.NewTicker(2 * time.Millisecond)
		defer ticker.Stop()
		highest := before
		for {
			select {
			case <-ticker.C:
				highest = max(highest, heap())
			case <-ctx.Done():
				peak <- highest
				return
			}
		}
	}()
	f()
	stop()
	return float64(<-peak-before) / (1 << 20)
}
