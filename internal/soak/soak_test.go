//go:build unix

package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tenon-sdk/tenon/engine/native"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

const users = 200

// What must never be, as the table has it.
const (
	refused   = "requests refused by the strict model"
	twice     = "calls that ran twice"
	notAtAll  = "calls that were answered and did not run, or were never answered"
	untold    = "calls that ran and failed, and their user was not told so"
	disturbed = "users disturbed by another's fault"
	stuck     = "conversations that stood still"
	gone      = "servers that did not do what the fault was to make them do, or did not come back"
	unlogged  = "faults that are not in the log"
	leaks     = "goroutines, processes and files that stayed"
)

var never = []string{refused, twice, notAtAll, untold, disturbed, stuck, gone, unlogged, leaks}

// A tally has the rows of the table. It is safe for concurrent use.
type tally struct {
	mu     sync.Mutex // guards the rest
	counts map[string]int
	wrongs map[string][]string // by the row of never
}

func (n *tally) count(row string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts[row]++
}

func (n *tally) wrong(row, format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wrongs[row] = append(n.wrongs[row], fmt.Sprintf(format, args...))
}

// A logbook counts the records that it is written to as JSON. It is safe for concurrent use.
type logbook struct {
	slog.Handler
	mu      sync.Mutex // guards the rest
	servers map[string]int
	models  map[int]int // requests that a user's engine made again, since they were last asked for
}

func newLogbook() *logbook {
	b := &logbook{servers: map[string]int{}, models: map[int]int{}}
	b.Handler = slog.NewJSONHandler(b, nil)
	return b
}

// Write takes one record.
func (b *logbook) Write(line []byte) (int, error) {
	var rec struct {
		Msg    string
		Server string
		User   int
	}
	if err := json.Unmarshal(line, &rec); err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.servers[rec.Server]++
	if rec.Msg == "request to the model failed, trying again" {
		b.models[rec.User]++
	}
	return len(line), nil
}

// about counts the records that name a server.
func (b *logbook) about(server string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.servers[server]
}

// retries counts the requests that a user's engine made again, and begins anew.
func (b *logbook) retries(user int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.models[user]
	delete(b.models, user)
	return n
}

// A call is what became of a call, as whoever made it heard.
type call struct {
	server, token string
	ended         int // the faults of its server that had ended when its account began
	heard, failed bool
	text          string
	stopped       bool // its user interrupted the turn, or left it
	excused       bool // a fault of its server was at work
}

// A soak is one run of the test.
type soak struct {
	ctx    context.Context
	over   chan struct{} // closed when no turn is to begin any more
	host   *mcphost.Host
	engine *native.Engine
	brain  *brain
	chaos  *chaos
	users  []*user
	log    *logbook
	ledger ledger
	tally  tally

	mu    sync.Mutex // guards the rest
	calls []*call
}

// add takes the calls of a turn that is over.
func (s *soak) add(calls map[string]*call, stopped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range calls {
		k.stopped, k.excused = stopped, s.chaos.excuses(k)
		s.calls = append(s.calls, k)
	}
}

// Two hundred users on one host, whose servers and whose model fail at random, notice nothing but the faults of what they
// use themselves. See the package comment for what is counted.
func TestSoak(t *testing.T) {
	t.Logf("-length %v -seed %d", *length, *seed)
	rng := func(n int) *rand.Rand { return rand.New(rand.NewPCG(*seed, uint64(n))) }
	began, before := time.Now(), takeStock(t)
	s := &soak{
		over: make(chan struct{}), log: newLogbook(), ledger: ledger(filepath.Join(t.TempDir(), "ledger")),
		tally: tally{counts: map[string]int{}, wrongs: map[string][]string{}},
	}
	var leave context.CancelFunc
	s.ctx, leave = context.WithCancel(t.Context())
	defer leave()
	s.brain = &brain{tally: &s.tally, rng: rng(0), inARow: map[string]int{}, failed: map[string]int{}}
	model := modeltest.NewModel(&modeltest.Options{KeepRequests: -1, Turns: []modeltest.Turn{modeltest.Func(s.brain.answer)}})
	s.engine = native.New(&native.Options{APIKey: "any", HTTPClient: model.Client()})
	s.chaos = newChaos(s, rng(1))
	s.connect(t)
	var living sync.WaitGroup
	for i := range users {
		u := &user{id: i, rng: rng(2 + i), s: s}
		s.users = append(s.users, u)
	}
	for _, u := range s.users {
		living.Go(u.live)
	}
	s.chaos.run()
	close(s.over) // nothing is at fault any more
	s.await(&living, leave)
	if err := s.host.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	for _, w := range s.chaos.webs {
		w.close()
	}
	for _, v := range model.Violations() {
		s.tally.wrong(refused, "%v", v)
	}
	ran, pids := s.ledger.read(t)
	s.judge(ran)
	before.compare(&s.tally, pids)
	s.tally.report(t, time.Since(began))
}

func newChaos(s *soak, rng *rand.Rand) *chaos {
	c := &chaos{s: s, rng: rng, webs: map[string]*web{}, began: make(chan string), last: map[string]time.Time{}, begun: map[string]int{}, ended: map[string]int{}}
	tools := func(name string) *mcpserver.Server { return toolServer(name, s.ledger, c.began) }
	for _, name := range []string{oldWeb, newWeb} {
		c.webs[name] = serveWeb(name, tools(name))
	}
	c.mem = tools(inProcess)
	c.configs = map[string]mcphost.ServerConfig{
		inProcess: local(c.mem), spare: local(tools(spare)),
		oldStdio: stdio(oldStdio, s.ledger), newStdio: stdio(newStdio, s.ledger),
		oldWeb: mcphost.HTTP{URL: c.webs[oldWeb].server.URL, Common: common()},
		newWeb: mcphost.HTTP{URL: c.webs[newWeb].server.URL, Common: common()},
	}
	return c
}

// connect starts the host and checks that its servers speak what they are there for.
func (s *soak) connect(t *testing.T) {
	var err error
	s.host, err = mcphost.New(&mcphost.Options{
		Servers: maps.Clone(s.chaos.configs), Logger: slog.New(s.log),
		ConnectTimeout: patience, CallTimeout: patience, BreakAfter: breakAfter,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.host.Start(s.ctx)
	if err := s.host.Ready(s.ctx); err != nil {
		t.Fatal(err)
	}
	for name, version := range map[string]string{oldStdio: "2025-06-18", newStdio: "2026-07-28", oldWeb: "2025-11-25", newWeb: "2026-07-28"} {
		if st, _ := s.host.ServerStatus(name); st.Status != mcphost.StatusConnected || st.ProtocolVersion != version {
			t.Errorf("%s is %s and speaks %s, want %s: %s", name, st.Status, st.ProtocolVersion, version, st.Error)
		}
	}
}

// await waits for the last turns of all users. Those that do not end stand still, and are made to leave.
func (s *soak) await(living *sync.WaitGroup, leave func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		living.Wait()
	}()
	if pause(ended, patience) {
		for _, u := range s.users {
			u.mu.Lock()
			if u.interrupt != nil {
				s.tally.wrong(stuck, "user %d, with calls of %v", u.id, slices.Sorted(maps.Keys(u.calling)))
			}
			u.mu.Unlock()
		}
	}
	leave()
	<-ended
}

// judge compares what was heard of the calls with what the servers did.
func (s *soak) judge(ran map[string]int) {
	n := &s.tally
	for _, k := range s.calls {
		what := fmt.Sprintf("%s on %s, ran %d times: %.300q", k.token, k.server, ran[k.token], k.text)
		tool, _, _ := strings.Cut(k.token, "-")
		told := strings.Contains(k.text, "may have run")
		n.count(k.row(tool, told))
		if ran[k.token] > 1 && (tool != "look" || !k.excused || ran[k.token] > 2) {
			n.wrong(twice, "%s", what)
		}
		switch {
		case k.stopped:
		case !k.heard, !k.failed && (ran[k.token] == 0 || !strings.Contains(k.text, "done "+k.token)):
			n.wrong(notAtAll, "%s", what)
		case !k.failed:
		case ran[k.token] > 0 && !told:
			n.wrong(untold, "%s", what)
		case !k.excused && (tool != "hang" || !strings.Contains(k.text, "timed out")):
			n.wrong(disturbed, "%s", what)
		}
	}
}

// row is the row of the table that a call is counted in.
func (k *call) row(tool string, told bool) string {
	switch {
	case k.stopped:
		return "calls: in turns that were interrupted or left"
	case !k.failed:
		return "calls: answered"
	case tool == "hang" && strings.Contains(k.text, "timed out"):
		return "calls: of the tool that never answers, timed out"
	case told:
		return "calls: failed by a fault of their server, and may have run"
	}
	return "calls: failed by a fault of their server, and not made"
}

// report prints the table, and fails the test by what is wrong in it.
func (n *tally) report(t *testing.T, took time.Duration) {
	var b strings.Builder
	row := func(name string, value any) { fmt.Fprintf(&b, "\n  %-84s %8v", name, value) }
	row("length", took.Round(time.Second))
	row("users", users)
	for _, name := range slices.Sorted(maps.Keys(n.counts)) {
		row(name, n.counts[name])
	}
	for _, name := range never {
		row(name, len(n.wrongs[name]))
		for _, text := range n.wrongs[name][:min(len(n.wrongs[name]), 5)] {
			t.Errorf("%s: %s", name, text)
		}
	}
	t.Log(b.String())
	for _, name := range []string{"calls: answered", "calls: failed by a fault of their server, and may have run", "turns: interrupted"} {
		if n.counts[name] == 0 {
			t.Errorf("%s: none, which shows nothing", name)
		}
	}
}

// A stock is what a process holds.
type stock struct {
	goroutines  goleak.Option
	descriptors int
	temporary   string // the folder of temporary files
}

func takeStock(t *testing.T) *stock {
	l, err := net.Listen("tcp", "127.0.0.1:0") // from now on the runtime has the descriptors that it keeps
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return &stock{goleak.IgnoreCurrent(), descriptors(), dir}
}

// descriptors counts the open files of this process.
func descriptors() int {
	entries, _ := os.ReadDir("/dev/fd") // there is none on some systems
	return len(entries)
}

// compare counts what there is now and was not before, once it had time to go.
func (st *stock) compare(n *tally, pids map[string]int) {
	var left []string
	eventually(func() bool {
		left = nil
		if err := goleak.Find(st.goroutines); err != nil {
			left = append(left, err.Error())
		}
		if more := descriptors() - st.descriptors; more > 0 {
			left = append(left, fmt.Sprintf("%d open files more", more))
		}
		if files, err := os.ReadDir(st.temporary); err != nil || len(files) > 0 {
			left = append(left, fmt.Sprintf("temporary files: %v %v", files, err))
		}
		for pid := range pids {
			if id, err := strconv.Atoi(pid); err != nil || syscall.Kill(id, 0) == nil {
				left = append(left, "process "+pid)
			}
		}
		return len(left) == 0
	})
	for _, what := range left {
		n.wrong(leaks, "%s", what)
	}
}
