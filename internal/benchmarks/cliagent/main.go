//go:build linux

// Command cliagent is the program of ../agent on the Claude Code CLI. The benchmarks build and start it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/claudecode"
	"github.com/tenon-sdk/tenon/internal/benchmarks/shelf"
	"github.com/tenon-sdk/tenon/mcphost"
)

func main() {
	claude := flag.String("claude", "", "the CLI")
	warm := flag.Int("warm", 0, "measure that many questions to a cold CLI and to one from a pool")
	numbers := flag.Bool("numbers", false, "have a tool that takes integers, for whose digits the model's stream is read")
	flag.Parse()
	if err := run(context.Background(), *claude, *warm, *numbers); err != nil {
		fmt.Fprintln(os.Stderr, "cliagent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, claude string, warm int, numbers bool) error {
	// As lean as it can be: no transcript. The rest is so by itself.
	engine := claudecode.New(&claudecode.Options{Path: claude, NoPersistence: true})
	server := shelf.Server(0)
	if numbers {
		shelf.AddNumbers(server)
	}
	opts := &agent.Options{
		SettingSources: []agent.SettingSource{}, // nothing of the machine
		MCPServers:     map[string]mcphost.ServerConfig{"bench": mcphost.InProcess(server)},
		AllowedTools:   []string{"mcp__bench__*"},
		Env:            map[string]string{"ENABLE_TOOL_SEARCH": "false"}, // else its tools have to be searched for
	}
	if warm > 0 {
		return compare(ctx, engine, opts, warm)
	}
	if _, err := ask(ctx, engine, opts); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(own())
}

// ask asks a question and returns how long the answer took. The CLI is then let go of.
func ask(ctx context.Context, e agent.Engine, o *agent.Options) (took time.Duration, err error) {
	start := time.Now()
	for msg, err := range agent.Query(ctx, e, "question", o) {
		if err != nil {
			return 0, err
		}
		if _, ok := msg.(*agent.Result); ok {
			took = time.Since(start)
		}
	}
	return took, nil
}

// compare measures questions to a CLI that has to be started, and to one that waits in a pool, in turn.
func compare(ctx context.Context, engine *claudecode.Engine, opts *agent.Options, n int) error {
	var times struct{ Cold, First, AtOnce, FollowUp []float64 } // milliseconds
	for range n {
		cold, err := ask(ctx, engine, opts)
		if err != nil {
			return err
		}
		warm, err := fromPool(ctx, engine, opts)
		if err != nil {
			return err
		}
		times.Cold = append(times.Cold, ms(cold))
		times.First = append(times.First, ms(warm.first))
		times.AtOnce = append(times.AtOnce, ms(warm.atOnce))
		slices.Sort(warm.followUps)
		times.FollowUp = append(times.FollowUp, ms(warm.followUps[len(warm.followUps)/2]))
	}
	return json.NewEncoder(os.Stdout).Encode(times)
}

// warmTimes is how long the answers of a CLI from a pool took.
type warmTimes struct {
	first, atOnce time.Duration
	followUps     []time.Duration // once the pool was full again
}

// fromPool takes a CLI from a pool that is full and asks it questions: two at once, and some when the pool is full again.
func fromPool(ctx context.Context, engine *claudecode.Engine, opts *agent.Options) (times warmTimes, err error) {
	pool, err := claudecode.NewPool(ctx, engine, opts, nil)
	if err != nil {
		return times, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	if err := pool.Ready(ctx); err != nil {
		return times, err
	}
	start := time.Now()
	client, err := agent.Open(ctx, pool, nil)
	if err != nil {
		return times, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if err := turn(ctx, client); err != nil {
		return times, err
	}
	times.first, start = time.Since(start), time.Now()
	if err := turn(ctx, client); err != nil {
		return times, err
	}
	times.atOnce = time.Since(start)
	if err := pool.Ready(ctx); err != nil {
		return times, err
	}
	for range 5 {
		start = time.Now()
		if err := turn(ctx, client); err != nil {
			return times, err
		}
		times.followUps = append(times.followUps, time.Since(start))
	}
	return times, nil
}

// turn asks a question and waits for the answer.
func turn(ctx context.Context, client *agent.Client) error {
	if err := client.Send(ctx, "question"); err != nil {
		return err
	}
	for _, err := range client.Response(ctx) {
		if err != nil {
			return err
		}
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// A share is what this process alone has used, its children left out.
type share struct {
	CPU    float64 // milliseconds
	Memory int64   // bytes that are no part of any file
}

func own() share {
	var s share
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) == nil {
		s.CPU = ms(time.Duration(u.Utime.Nano() + u.Stime.Nano()))
	}
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return s
	}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "RssAnon:" {
			kb, _ := strconv.ParseInt(fields[1], 10, 64) // a number, by proc(5)
			s.Memory = kb << 10
		}
	}
	return s
}
