//go:build unix

package soak

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenon-sdk/tenon/engine/native"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/modeltest"
)

const users = 200

// A call is a call and what its caller was told of it.
type call struct {
	server, tool, token string
	phase               int // see injector.phases, before the call was made
	answered, failed    bool
	text                string // of the result or the error
	stopped             bool   // its caller gave it up
	excused             bool   // its server had a fault
}

// A soakTest is what all users and faults of the test share.
type soakTest struct {
	ctx    context.Context
	end    chan struct{} // closed when users begin no more turns
	host   *mcphost.Host
	engine *native.Engine
	model  *model
	faults *injector
	users  []*user
	log    *logCounter
	ledger ledger
	report *report

	mu    sync.Mutex // guards the rest
	calls []*call
}

// Two hundred users on one host, whose servers and whose model server fail at random, notice only the faults of the servers
// that they call.
func TestSoak(t *testing.T) {
	t.Logf("-length %v -seed %d", *length, *seed)
	start, before := time.Now(), countResources(t)
	random := func(n int) *rand.Rand { return rand.New(rand.NewPCG(*seed, uint64(n))) }
	s := &soakTest{
		end: make(chan struct{}), ledger: ledger(filepath.Join(t.TempDir(), "ledger")),
		log:    &logCounter{warnings: map[warning]int{}, retries: map[int]int{}},
		report: &report{counts: map[string]int{}, failures: map[string][]string{}},
	}
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	s.model = &model{report: s.report, rng: random(0), failed: map[string]int{}}
	server := modeltest.NewModel(&modeltest.Options{KeepRequests: -1, Turns: []modeltest.Turn{modeltest.Func(s.model.answer)}})
	s.engine = native.New(&native.Options{APIKey: "any", HTTPClient: server.Client()})
	s.faults = newInjector(s, random(1))
	s.connect(t)
	for i := range users {
		s.users = append(s.users, &user{id: 1 + i, rng: random(2 + i), s: s, ended: make(chan struct{})})
	}
	for _, u := range s.users {
		go u.run()
	}
	s.faults.run()
	close(s.end)
	s.wait(cancel)
	if err := s.host.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	for _, server := range s.faults.http {
		server.close()
	}
	for _, v := range server.Violations() {
		s.report.fail(refused, "%v", v)
	}
	s.check(s.ledger.calls())
	before.check(s.report, s.ledger.count("process"))
	s.report.print(t, time.Since(start))
}

func newInjector(s *soakTest, rng *rand.Rand) *injector {
	j := &injector{
		s: s, rng: rng, memory: newServer(memory, s.ledger), last: map[string]time.Time{}, phases: map[string]int{},
		http: map[string]*httpServer{http2025: newHTTPServer(http2025, s.ledger), http2026: newHTTPServer(http2026, s.ledger)},
	}
	j.configs = map[string]mcphost.ServerConfig{
		memory: inProcess(j.memory), spare: inProcess(newServer(spare, s.ledger)),
		stdio2025: stdio(stdio2025, s.ledger), stdio2026: stdio(stdio2026, s.ledger),
		http2025: mcphost.HTTP{URL: j.http[http2025].URL, Common: common()},
		http2026: mcphost.HTTP{URL: j.http[http2026].URL, Common: common()},
	}
	return j
}

// connect starts the host and checks which versions of the protocol its servers speak.
func (s *soakTest) connect(t *testing.T) {
	var err error
	s.host, err = mcphost.New(&mcphost.Options{
		Servers: maps.Clone(s.faults.configs), Logger: s.log.logger(),
		CallTimeout: timeout, BreakAfter: breakAfter, MaxServerCalls: maxServerCalls,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.host.Start(s.ctx)
	if err := s.host.Ready(s.ctx); err != nil {
		t.Fatal(err)
	}
	for name, version := range map[string]string{stdio2025: "2025-06-18", stdio2026: "2026-07-28", http2025: "2025-11-25", http2026: "2026-07-28"} {
		if st, _ := s.host.ServerStatus(name); st.Status != mcphost.StatusConnected || st.ProtocolVersion != version {
			t.Errorf("%s is %s and speaks %s, want %s: %s", name, st.Status, st.ProtocolVersion, version, st.Error)
		}
	}
}

// wait waits for the last turns of all users, and cancels those that do not end.
func (s *soakTest) wait(cancel func()) {
	deadline := time.Now().Add(timeout)
	for _, u := range s.users {
		if pause(u.ended, time.Until(deadline)) && !isClosed(u.ended) {
			s.report.fail(stuck, "user %d", u.id)
		}
	}
	cancel()
	for _, u := range s.users {
		pause(u.ended, timeout)
	}
}

// call calls a tool as a program without a model does.
func (s *soakTest) call(ctx context.Context, server, tool string, a arguments, limit time.Duration) error {
	args, err := json.Marshal(a)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*timeout)
	defer cancel()
	c := s.faults.newCall(server, tool, a.Token)
	res, err := s.host.CallServer(ctx, server, tool, args, &mcphost.CallOptions{Timeout: limit})
	if err == nil && res.IsError {
		err = errors.New(res.Text())
	}
	c.answered = !errors.Is(ctx.Err(), context.DeadlineExceeded)
	if c.failed = err != nil; c.failed {
		c.text = err.Error()
	} else {
		c.text = res.Text()
	}
	s.add(c, errors.Is(ctx.Err(), context.Canceled))
	return err
}

// add takes a call that has ended.
func (s *soakTest) add(c *call, stopped bool) {
	c.stopped, c.excused = stopped, s.faults.excuses(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, c)
}

// check compares what callers were told with how often the servers ran their calls.
func (s *soakTest) check(ran map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		n := ran[c.token]
		fail := func(row string) {
			s.report.fail(row, "%s on %s, %s, run %d times: %.300q", c.tool, c.server, c.token, n, c.text)
		}
		if n > 1 && !(c.tool == "read" && c.excused && n == 2) { // a read may be repeated
			fail(twice)
		}
		told := strings.Contains(c.text, "may have run")
		switch {
		case c.stopped:
			s.report.count("calls given up by their users")
		case !c.answered, !c.failed && (n == 0 || !strings.Contains(c.text, "done "+c.token)):
			fail(unanswered)
		case !c.failed:
			s.report.count(answeredCalls)
		case n > 0 && !told:
			fail(unspoken)
		case c.tool == "hang": // not even made if the server is too busy within its limit
			s.report.count("calls of the tool that never answers")
		case !c.excused:
			fail(disturbed)
		case told:
			s.report.count(failedCalls)
		default:
			s.report.count("calls not made because of a fault of their server")
		}
	}
}
