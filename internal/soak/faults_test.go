//go:build unix

package soak

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
)

const (
	// timeout bounds everything that has to happen, on a machine that is busy with other tests.
	timeout = 2 * time.Minute
	// breakAfter is how many calls in a row have to time out before the host asks a server for a sign of life.
	breakAfter = 20
	// maxServerCalls is how many calls the host makes to a server at once.
	maxServerCalls = 256
	// logWindow is the time in which the host logs at most a few records of a kind about a server.
	logWindow = 10 * time.Second
)

// A fault is something that goes wrong with a server.
type fault struct {
	name, server string
	// inject causes the fault, and returns an error if it had no effect.
	inject func(server string) error
	// logged is what the log has to warn about: the server, its calls, or both. If empty, the fault is harmless: no call
	// may fail by it.
	logged []about
}

// An injector injects faults, one after the other.
type injector struct {
	s       *soakTest
	rng     *rand.Rand
	memory  *mcpserver.Server
	http    map[string]*httpServer
	configs map[string]mcphost.ServerConfig
	last    map[string]time.Time // the end of the latest fault of each server
	tokens  int

	mu sync.Mutex // guards the rest
	// phases counts the beginnings and ends of each server's faults, and is odd while there is one.
	phases map[string]int
}

func (j *injector) faults() []fault {
	out := []fault{
		{name: "tools changed 200 times", server: memory, inject: j.changeTools},
		{name: "300 calls at once", server: http2026, inject: j.burst},
		{name: "replaced by SetServers", server: spare, inject: j.replace, logged: []about{aCall}},
		{name: "removed by SetServers", server: spare, inject: j.remove, logged: []about{aCall}},
	}
	for _, name := range []string{stdio2025, stdio2026} {
		out = append(out,
			fault{name: "killed", server: name, inject: j.kill, logged: []about{aServer, aCall}},
			fault{name: "stopped", server: name, inject: j.stop, logged: []about{aServer}})
	}
	for _, name := range []string{http2025, http2026} {
		out = append(out,
			fault{name: "restarted", server: name, inject: j.restart, logged: []about{aCall}},
			fault{name: "cut in mid-stream", server: name, inject: j.cut, logged: []about{aCall}},
			fault{name: "hung", server: name, inject: j.hang, logged: []about{aServer}})
	}
	for _, name := range serverNames {
		out = append(out, fault{name: "several users interrupt at once", server: name, inject: j.interrupt})
	}
	return out
}

// run injects every fault once, in random order, and begins again as long as the flag says.
func (j *injector) run() {
	for start, first := time.Now(), true; first || time.Since(start) < *length; first = false {
		waiting := j.faults()
		j.rng.Shuffle(len(waiting), func(a, b int) { waiting[a], waiting[b] = waiting[b], waiting[a] })
		for len(waiting) > 0 {
			i := slices.IndexFunc(waiting, func(f fault) bool { return len(f.logged) == 0 || time.Since(j.last[f.server]) > logWindow })
			if i < 0 {
				j.pause()
				continue
			}
			j.inject(waiting[i])
			waiting = slices.Delete(waiting, i, i+1)
		}
	}
}

// inject injects a fault and waits for the server's recovery.
func (j *injector) inject(f fault) {
	name := f.server + " " + f.name
	j.s.report.count("faults: " + name)
	harmful := len(f.logged) > 0
	if harmful {
		j.nextPhase(f.server)
	}
	before := j.s.log.warned()
	if err := errors.Join(f.inject(f.server), j.recovery(f.server)); err != nil {
		j.s.report.fail(ineffective, "%s: %v", name, err)
	}
	after := j.s.log.warned()
	for _, what := range f.logged {
		if w := (warning{f.server, what}); after[w] == before[w] {
			j.s.report.fail(unlogged, "%s: no warning about %s", name, what)
		}
	}
	if w := (warning{f.server, aServer}); !harmful && after[w] != before[w] {
		j.s.report.fail(disturbed, "%s: a warning about %s", name, aServer)
	}
	j.pause()
	if harmful {
		j.nextPhase(f.server)
		j.last[f.server] = time.Now()
	}
}

func (j *injector) pause() { time.Sleep(time.Duration(200+j.rng.IntN(600)) * time.Millisecond) }

func (j *injector) nextPhase(server string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.phases[server]++
}

// newCall returns a call that is about to be made.
func (j *injector) newCall(server, tool, token string) *call {
	j.mu.Lock()
	defer j.mu.Unlock()
	return &call{server: server, tool: tool, token: token, phase: j.phases[server]}
}

// excuses reports whether the call's server had a fault since newCall.
func (j *injector) excuses(c *call) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return c.phase%2 == 1 || c.phase != j.phases[c.server]
}

func (j *injector) token(prefix string) string {
	j.tokens++
	return fmt.Sprint(prefix, "-", j.tokens)
}

// recovery waits until a server is connected and answers.
func (j *injector) recovery(server string) (err error) {
	if !eventually(func() bool {
		st := j.status(server)
		if err = fmt.Errorf("%s: %s", st.Status, st.Error); st.Status == mcphost.StatusConnected {
			err = j.s.call(j.s.ctx, server, "read", arguments{Token: j.token("probe")}, time.Minute)
		}
		return err == nil
	}) {
		return fmt.Errorf("no recovery in %v: %w", timeout, err)
	}
	return nil
}

func (j *injector) status(server string) mcphost.ServerStatus {
	st, _ := j.s.host.ServerStatus(server)
	return st
}

// startCall makes a call that takes long, and returns when it runs.
func (j *injector) startCall(server, token string, d time.Duration) (ended <-chan error, err error) {
	args := arguments{Token: j.token(token), Millis: int(d / time.Millisecond)}
	ch := make(chan error, 1)
	go func() { ch <- j.s.call(j.s.ctx, server, "write", args, 0) }()
	if !eventually(func() bool { return j.s.ledger.calls()[args.Token] > 0 || len(ch) > 0 }) || len(ch) > 0 {
		return nil, errors.New("a call to the server does not run")
	}
	return ch, nil
}

// duringCall injects a fault while a call runs that the fault has to end.
func (j *injector) duringCall(server string, inject func() error) error {
	ended, err := j.startCall(server, "victim", time.Minute)
	if err != nil {
		return err
	}
	if err := inject(); err != nil {
		return err
	}
	err = <-ended
	var ce *mcphost.CallError
	if !errors.As(err, &ce) || !ce.Sent || errors.Is(err, mcphost.ErrTimeout) {
		return fmt.Errorf("a call that the fault had to end ended with %w", err)
	}
	return nil
}

func (j *injector) kill(server string) error {
	return j.duringCall(server, func() error { return j.signal(server, syscall.SIGKILL) })
}

func (j *injector) signal(server string, sig syscall.Signal) error {
	pid := j.status(server).PID
	if pid == 0 {
		return errors.New("the server has no process")
	}
	return syscall.Kill(pid, sig)
}

func (j *injector) restart(server string) error { return j.duringCall(server, j.http[server].restart) }

func (j *injector) cut(server string) error { return j.duringCall(server, j.http[server].cut) }

// replace puts another server in the place of a server.
func (j *injector) replace(server string) error {
	return j.duringCall(server, func() error { return j.setServer(server, inProcess(newServer(server, j.s.ledger))) })
}

// remove takes a server out and puts it back.
func (j *injector) remove(server string) error {
	config := j.configs[server]
	return errors.Join(j.duringCall(server, func() error { return j.setServer(server, nil) }), j.setServer(server, config))
}

func (j *injector) setServer(name string, config mcphost.ServerConfig) error {
	if config == nil {
		delete(j.configs, name)
	} else {
		j.configs[name] = config
	}
	_, err := j.s.host.SetServers(j.s.ctx, maps.Clone(j.configs))
	return err
}

func (j *injector) stop(server string) error {
	if err := j.signal(server, syscall.SIGSTOP); err != nil {
		return err
	}
	return errors.Join(j.unresponsive(server), j.signal(server, syscall.SIGCONT))
}

func (j *injector) hang(server string) error {
	j.http[server].hang()
	defer j.http[server].resume()
	return j.unresponsive(server)
}

// unresponsive makes calls that time out until the host finds that the server answers nothing any more.
func (j *injector) unresponsive(server string) error {
	if !eventually(func() bool {
		var calls sync.WaitGroup
		for range breakAfter { // more than once, because calls made before may still be answered
			args := arguments{Token: j.token("unanswered")}
			calls.Go(func() { _ = j.s.call(j.s.ctx, server, "read", args, hangTimeout) })
		}
		calls.Wait()
		j.pause()
		return errors.Is(j.status(server).Err, mcphost.ErrUnresponsive)
	}) {
		return fmt.Errorf("the server answers nothing, and is %s", j.status(server).Status)
	}
	return nil
}

// changeTools changes the list of tools many times at once.
func (j *injector) changeTools(server string) error {
	latest := ""
	for range 200 {
		latest = j.token("description")
		j.memory.RemoveTool("changing")
		mcpserver.MustAddTool(j.memory, &mcpserver.Tool{Name: "changing", Description: latest},
			func(context.Context, struct{}) (string, error) { return "", nil })
	}
	if !eventually(func() bool {
		return slices.ContainsFunc(j.status(server).Tools, func(t mcphost.Tool) bool { return t.Description == latest })
	}) {
		return errors.New("the host does not list the latest tool")
	}
	return nil
}

// burst makes more calls than the host makes to a server at once, and gives them up when no more run.
func (j *injector) burst(server string) error {
	ctx, cancel := context.WithCancel(j.s.ctx)
	prefix := j.token("burst")
	var calls sync.WaitGroup
	for range 300 {
		args := arguments{Token: j.token(prefix), Millis: int(timeout / time.Millisecond)}
		calls.Go(func() { _ = j.s.call(ctx, server, "read", args, 0) })
	}
	running := func() (n int) {
		for token := range j.s.ledger.calls() {
			if strings.HasPrefix(token, prefix+"-") {
				n++
			}
		}
		return n
	}
	eventually(func() bool { return running() >= maxServerCalls })
	j.pause()
	n := running()
	cancel()
	calls.Wait()
	if n != maxServerCalls {
		return fmt.Errorf("%d of the calls ran at once, want %d", n, maxServerCalls)
	}
	return nil
}

// interrupt interrupts the turns of several users at once, while others go on calling the same server.
func (j *injector) interrupt(server string) error {
	bystander, err := j.startCall(server, "bystander", time.Second)
	if err != nil {
		return err
	}
	var turns []*turn
	eventually(func() bool {
		turns = turns[:0]
		for _, u := range j.s.users {
			if turn := u.calling(server); turn != nil {
				turns = append(turns, turn)
			}
		}
		return len(turns) >= 6
	})
	turns = turns[:len(turns)/2]
	var stops sync.WaitGroup
	for _, turn := range turns {
		stops.Go(turn.interrupt)
	}
	stops.Wait()
	n := 0
	for _, turn := range turns {
		if !pause(turn.done, timeout) && turn.interrupted {
			n++
		}
	}
	<-bystander // the call counts like those of users
	if n == 0 {
		return fmt.Errorf("none of %d turns was interrupted", len(turns))
	}
	return nil
}

// eventually asks again and again, and returns false if the answer is no for too long.
func eventually(ask func() bool) bool {
	for end := time.Now().Add(timeout); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if ask() {
			return true
		}
	}
	return false
}
