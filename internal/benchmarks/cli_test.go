//go:build linux

package benchmarks

import (
	"encoding/json"
	"strconv"
	"testing"

	"github.com/tenon-sdk/tenon/internal/peers"
)

// cli returns a run of the program on the CLI, driven by engine/claudecode.
func (c *contest) cli(binary string, m *model, args ...string) cost {
	c.b.Helper()
	args = append([]string{"-claude", c.claude}, args...)
	return measure(c.b, c.net.Wrap(peers.Command{Path: binary, Args: args, Env: c.environment(m)}))
}

// BenchmarkCLI measures the same program on the same CLI, driven by engine/claudecode and by the TypeScript SDK.
func BenchmarkCLI(b *testing.B) {
	c := newCLIContest(b)
	binary := build(b, "cliagent")
	start := script{turns: 0, parallel: 1}.serve(b, c.net)
	one := func(m *model) (a, z func() timed) {
		return func() timed { return m.timed(c.cli(binary, m)) }, func() timed { return m.timed(c.theirs(m, 1, 0)) }
	}
	a, z := one(start)
	a()
	z()
	ours, theirs := alternate(7, a, z)
	first := func(t timed) float64 { return ms(t.first) }
	table.add(b, row{work: "CLI: start to first request: wall", unit: "ms", ours: each(ours, first), theirs: each(theirs, first), goal: 0.8})
	table.add(b, row{work: "CLI: start and one answer: CPU", unit: "ms", ours: each(ours, cpu), theirs: each(theirs, cpu), goal: 0.8})
	table.add(b, row{work: "CLI: start and one answer: memory", unit: "MB", ours: each(ours, mb), theirs: each(theirs, mb), goal: 0.8})
	const turns = 200
	long := script{turns: turns, parallel: 1}.serve(b, c.net)
	a, z = one(long)
	ours, theirs = alternate(3, a, z)
	wall := func(t timed) float64 { return ms(t.turns) / turns }
	table.add(b, row{work: "CLI: one of 200 tool turns: wall", unit: "ms", ours: each(ours, wall), theirs: each(theirs, wall), goal: 1})
	table.add(b, row{work: "CLI: 200 tool turns, start included: CPU", unit: "ms", ours: each(ours, cpu), theirs: each(theirs, cpu), goal: 1})
	memory := func(t timed) float64 { return float64(ownShare(b, t).Memory) / (1 << 20) }
	table.add(b, row{work: "CLI: our process after 200 calls: memory", unit: "MB", ours: each(ours, memory), goal: 10, note: "-"})
}

// BenchmarkCLIShare measures what a call costs in our process alone, beside the least program that
// hosts the CLI, and with a tool beside it that takes integers, for which the model's stream is read.
// All are woken by each line, which on a virtual machine is most of it.
func BenchmarkCLIShare(b *testing.B) {
	c := newCLIContest(b)
	const turns = 200
	short, long := script{turns: 0, parallel: 1}.serve(b, c.net), script{turns: turns, parallel: 1}.serve(b, c.net)
	// Of two runs the start is subtracted.
	share := func(program string, args ...string) func() float64 {
		binary := build(b, program)
		return func() float64 {
			start := ownShare(b, timed{cost: c.cli(binary, short, args...)})
			return (ownShare(b, timed{cost: c.cli(binary, long, args...)}).CPU - start.CPU) / turns
		}
	}
	const rounds = 5
	ours, least := alternate(rounds, share("cliagent"), share("clifloor"))
	table.add(b, row{work: "CLI: our share of a call: CPU; theirs is the least program", unit: "ms", ours: ours, theirs: least})
	beyond := make([]float64, len(ours))
	for i := range ours {
		beyond[i] = ours[i] - least[i]
	}
	table.add(b, row{work: "CLI: our share of a call: CPU", unit: "ms", ours: ours, goal: 0.5, note: "-"})
	table.add(b, row{work: "CLI: of which beyond the least program", unit: "ms", ours: beyond, goal: 0.5, note: "-"})
	numbers, texts := alternate(rounds, share("cliagent", "-numbers"), share("cliagent"))
	table.add(b, row{work: "CLI: our share beside a tool that takes integers; theirs is ours without", unit: "ms", ours: numbers, theirs: texts})
}

// BenchmarkCLIPool measures the first question to a CLI from a pool, one that follows at once, while the pool starts
// another CLI, and the median of five that follow later, beside one to a CLI that has to be started, all with
// engine/claudecode.
func BenchmarkCLIPool(b *testing.B) {
	c := newCLIContest(b)
	m := script{turns: 0, parallel: 1}.serve(b, c.net)
	run := c.cli(build(b, "cliagent"), m, "-warm", strconv.Itoa(7))
	var times struct{ Cold, First, AtOnce, FollowUp []float64 }
	if err := json.Unmarshal(run.out, &times); err != nil {
		b.Fatalf("%v: %s", err, run.out)
	}
	table.add(b, row{work: "CLI: a follow-up from the pool, beside a cold question", unit: "ms", ours: times.FollowUp, theirs: times.Cold, goal: 0.1})
	table.add(b, row{work: "CLI: the same while the pool starts another", unit: "ms", ours: times.AtOnce, theirs: times.Cold})
	table.add(b, row{work: "CLI: the first question to the pool, beside a cold one", unit: "ms", ours: times.First, theirs: times.Cold})
}

// newCLIContest is a contest without the program on the native engine.
func newCLIContest(b *testing.B) *contest {
	b.Helper()
	return &contest{
		b: b, net: peers.NewLoopback(b), script: peers.Script(b, typescript), claude: peers.ClaudePath(b), env: peers.ClaudeEnv(b, ""),
	}
}

type ownCost struct {
	CPU    float64 // milliseconds
	Memory int64   // bytes
}

// ownShare is what our program said that it has used itself.
func ownShare(b *testing.B, t timed) ownCost {
	b.Helper()
	var s ownCost
	if err := json.Unmarshal(t.out, &s); err != nil {
		b.Fatalf("%v: %s", err, t.out)
	}
	return s
}
