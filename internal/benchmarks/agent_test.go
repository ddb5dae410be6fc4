//go:build linux

package benchmarks

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/tenon-sdk/tenon/internal/peers"
)

//go:embed testdata/agent.mjs
var typescript string

// contest are the two sides, and the network that they share with the model.
type contest struct {
	b      *testing.B
	net    *peers.Loopback
	binary string
	script peers.Command
	claude string
	env    map[string]string
}

func newContest(b *testing.B) *contest {
	b.Helper()
	return &contest{
		b: b, net: peers.NewLoopback(b), binary: build(b, "agent"),
		script: peers.Script(b, typescript), claude: peers.ClaudePath(b), env: peers.ClaudeEnv(b, ""),
	}
}

// ours returns a run of the program on the native engine.
func (c *contest) ours(m *model, queries int, delay time.Duration, args ...string) cost {
	c.b.Helper()
	args = append([]string{"-queries", strconv.Itoa(queries), "-delay", delay.String()}, args...)
	return measure(c.b, c.net.Wrap(peers.Command{Path: c.binary, Args: args, Env: c.environment(m)}))
}

// theirs returns a run of the same program on the TypeScript SDK and the CLI.
func (c *contest) theirs(m *model, queries int, delay time.Duration) cost {
	c.b.Helper()
	script := c.script
	script.Args = append(script.Args[:1:1], c.claude, strconv.Itoa(queries), strconv.FormatInt(delay.Milliseconds(), 10))
	script.Env = c.environment(m)
	return measure(c.b, c.net.Wrap(script))
}

func (c *contest) environment(m *model) map[string]string {
	c.env["ANTHROPIC_BASE_URL"] = m.url
	return c.env
}

// timed is a run with what the model saw of it.
type timed struct {
	cost
	first    time.Duration // from the start to the first request
	turns    time.Duration // from the first request to the last
	between  time.Duration // from the end of the first answer to the next request
	model    time.Duration // in which the model was at work, of turns
	requests int
}

func (m *model) timed(c cost) timed {
	asked, answered, busy := m.take()
	t := timed{cost: c, requests: len(asked), model: busy}
	if len(asked) > 0 {
		t.first, t.turns = asked[0].Sub(c.started), asked[len(asked)-1].Sub(asked[0])
	}
	if len(asked) > 1 {
		t.between = asked[1].Sub(answered[0])
	}
	return t
}

// rounds measures both sides alternately, after a run of each that is not counted.
func (c *contest) rounds(n int, m *model, queries int, delay time.Duration) (ours, theirs []timed) {
	c.b.Helper()
	a := func() timed { return m.timed(c.ours(m, queries, delay)) }
	z := func() timed { return m.timed(c.theirs(m, queries, delay)) }
	a()
	z()
	return alternate(n, a, z)
}

func cpu(t timed) float64 { return ms(t.cpu) }
func mb(t timed) float64  { return float64(t.memory) / (1 << 20) }

// BenchmarkAgent measures a program from its start to the first request, and 200 tool turns in one conversation.
func BenchmarkAgent(b *testing.B) {
	c := newContest(b)
	start := script{turns: 0, parallel: 1}.serve(b, c.net)
	ours, theirs := c.rounds(7, start, 1, 0)
	table.add(b, row{work: "start and one answer: CPU", unit: "ms", ours: each(ours, cpu), theirs: each(theirs, cpu)})
	first := func(t timed) float64 { return ms(t.first) }
	table.add(b, row{work: "start to first request: wall", unit: "ms", ours: each(ours, first), theirs: each(theirs, first), goal: 0.05})
	table.add(b, row{work: "start and one answer: memory", unit: "MB", ours: each(ours, mb), theirs: each(theirs, mb), goal: 0.12})
	oursStart, theirsStart := median(each(ours, cpu)), median(each(theirs, cpu))

	const turns = 200
	long := script{turns: turns, parallel: 1}.serve(b, c.net)
	a := func() timed { return long.timed(c.ours(long, 1, 0)) }
	z := func() timed { return long.timed(c.theirs(long, 1, 0)) }
	ours, theirs = alternate(3, a, z)
	perTurn := func(start float64) func(timed) float64 {
		return func(t timed) float64 { return (cpu(t) - start) / turns }
	}
	table.add(b, row{
		work: "one of 200 tool turns: CPU", unit: "ms",
		ours: each(ours, perTurn(oursStart)), theirs: each(theirs, perTurn(theirsStart)), goal: 0.06,
	})
	wall := func(t timed) float64 { return ms(t.turns) / turns }
	table.add(b, row{work: "one of 200 tool turns: wall", unit: "ms", ours: each(ours, wall), theirs: each(theirs, wall), goal: 0.06})
	inModel := func(t timed) float64 { return ms(t.model) / turns }
	table.add(b, row{work: "of which the model", unit: "ms", ours: each(ours, inModel), theirs: each(theirs, inModel)})
}

// BenchmarkParallelCalls measures 20 parallel read-only calls whose handlers take 50 ms.
func BenchmarkParallelCalls(b *testing.B) {
	const handler = 50 * time.Millisecond
	c := newContest(b)
	m := script{turns: 1, parallel: 20}.serve(b, c.net)
	ours, theirs := c.rounds(5, m, 1, handler)
	all := func(t timed) float64 { return ms(t.between) }
	table.add(b, row{work: "20 parallel calls of 50 ms", unit: "ms", ours: each(ours, all), theirs: each(theirs, all)})
	table.add(b, row{
		work: "the same, beyond the handler", unit: "ms", goal: 10,
		ours: each(ours, func(t timed) float64 { return ms(t.between - handler) }), note: "-",
	})
}

// BenchmarkConcurrentQueries measures 8 queries at once, each of one answer.
func BenchmarkConcurrentQueries(b *testing.B) {
	c := newContest(b)
	m := script{turns: 0, parallel: 1}.serve(b, c.net)
	ours, theirs := c.rounds(3, m, 8, 0)
	table.add(b, row{work: "8 concurrent queries: CPU", unit: "ms", ours: each(ours, cpu), theirs: each(theirs, cpu), goal: 0.02})
	wall := func(t timed) float64 { return ms(t.wall) }
	table.add(b, row{work: "8 concurrent queries: wall", unit: "ms", ours: each(ours, wall), theirs: each(theirs, wall)})
	table.add(b, row{work: "8 concurrent queries: memory", unit: "MB", ours: each(ours, mb), theirs: each(theirs, mb)})
}

// BenchmarkConversations measures 1,000 conversations of 20 tool turns in one process, at their last request.
func BenchmarkConversations(b *testing.B) {
	const conversations, turns, rounds = 1000, 20, 3
	net, binary := peers.NewLoopback(b), build(b, "agent")
	var each, beyond, cpu []float64
	for range rounds {
		m := script{turns: turns, parallel: 1, hold: conversations}.serve(b, net)
		c := measure(b, net.Wrap(peers.Command{
			Path: binary, Args: []string{"-queries", strconv.Itoa(conversations), "-hold", strconv.Itoa(turns)},
			Env: map[string]string{"ANTHROPIC_BASE_URL": m.url, "ANTHROPIC_API_KEY": "test"},
		}))
		var held struct{ Bytes float64 }
		if err := json.Unmarshal(c.out, &held); err != nil {
			b.Fatalf("%v: %s", err, c.out)
		}
		each = append(each, held.Bytes/conversations/1024)
		beyond = append(beyond, (held.Bytes-float64(m.history.Load()))/conversations/1024)
		cpu = append(cpu, ms(c.cpu)/(conversations*turns))
	}
	what := fmt.Sprintf("each of %d conversations", conversations)
	table.add(b, row{work: what + ": memory", unit: "KB", ours: each, note: "-"})
	table.add(b, row{work: what + ": beyond its history", unit: "KB", ours: beyond, goal: 150, note: "-"})
	table.add(b, row{work: what + ": CPU a turn", unit: "ms", ours: cpu, note: "-"})
}
