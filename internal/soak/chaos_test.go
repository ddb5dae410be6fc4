//go:build unix

package soak

import (
	"context"
	"encoding/json"
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
	// patience is how long anything that has to happen may take on a machine that does much else.
	patience = 5 * time.Minute
	// breakAfter is how many calls in a row have to time out before the host doubts a server.
	breakAfter = 20
	// logWindow is in which time the host logs a few records of a kind about a server, and no more.
	logWindow = 10 * time.Second
	// victim is in the token of a call that a fault has to hit.
	victim = "victim"
)

// A fault is something that goes wrong with a server.
type fault struct {
	kind, server string
	inject       func(server string)
	// harmless says that no call may fail by it, and that there is nothing to log.
	harmless bool
}

// A chaos injects faults, one after the other.
type chaos struct {
	s       *soak
	rng     *rand.Rand
	mem     *mcpserver.Server
	webs    map[string]*web
	configs map[string]mcphost.ServerConfig
	began   chan string          // tokens of victims
	last    map[string]time.Time // when the latest fault of a server was over
	calls   int

	mu sync.Mutex // guards the rest
	// begun and ended count the faults of each server that were at work.
	begun, ended map[string]int
}

func (c *chaos) faults() []fault {
	out := []fault{
		{kind: "list changed 200 times", server: inProcess, inject: c.changes, harmless: true},
		{kind: "300 calls at once", server: newWeb, inject: c.burst, harmless: true},
		{kind: "replaced by SetServers", server: spare, inject: c.replace},
		{kind: "removed by SetServers", server: spare, inject: c.remove},
	}
	for _, name := range []string{oldStdio, newStdio} {
		out = append(out, fault{kind: "killed", server: name, inject: c.kill}, fault{kind: "stopped", server: name, inject: c.stop})
	}
	for _, name := range []string{oldWeb, newWeb} {
		out = append(out,
			fault{kind: "restarted", server: name, inject: func(server string) { c.hit(server, c.webs[server].restart) }},
			fault{kind: "cut in mid-stream", server: name, inject: func(server string) { c.hit(server, c.webs[server].cut) }},
			fault{kind: "hung", server: name, inject: func(server string) { c.silence(server, c.webs[server].hang()) }})
	}
	for _, name := range serverNames {
		out = append(out, fault{kind: "interrupted by its users at once", server: name, inject: c.interrupts, harmless: true})
	}
	return out
}

// run injects each fault in turn, in any order, and begins again as long as the flag says.
func (c *chaos) run() {
	for start, first := time.Now(), true; first || time.Since(start) < *length; first = false {
		waiting := c.faults()
		c.rng.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
		for len(waiting) > 0 {
			i := slices.IndexFunc(waiting, func(f fault) bool { return f.harmless || time.Since(c.last[f.server]) > logWindow })
			if i < 0 {
				c.rest()
				continue
			}
			c.inject(waiting[i])
			waiting = slices.Delete(waiting, i, i+1)
		}
	}
}

func (c *chaos) inject(f fault) {
	what := fmt.Sprintf("%s, %s", f.server, f.kind)
	c.s.tally.count("faults: " + what)
	if f.harmless {
		f.inject(f.server)
		c.rest()
		return
	}
	c.note(c.begun, f.server)
	records := c.s.log.about(f.server)
	f.inject(f.server)
	if err := c.recovered(f.server); err != nil {
		c.s.tally.wrong(gone, "%s: %v", what, err)
	}
	c.rest()
	if c.s.log.about(f.server) == records {
		c.s.tally.wrong(unlogged, "%s", what)
	}
	c.note(c.ended, f.server)
	c.last[f.server] = time.Now()
}

func (c *chaos) rest() { pause(nil, time.Duration(200+c.rng.IntN(600))*time.Millisecond) }

func (c *chaos) note(counts map[string]int, server string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts[server]++
}

// call begins the account of a call.
func (c *chaos) call(server, token string) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &call{server: server, token: token, ended: c.ended[server]}
}

// excuses reports whether a fault of the call's server was at work since the call's account began.
func (c *chaos) excuses(k *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun[k.server] > k.ended
}

// make calls a tool as a program does that has no model.
func (c *chaos) make(server, tool, kind string, w work, o *mcphost.CallOptions) error {
	c.mu.Lock()
	c.calls++
	w.Token = fmt.Sprintf("%s-%s-%d", tool, kind, c.calls)
	c.mu.Unlock()
	args, err := json.Marshal(w)
	if err != nil {
		return err
	}
	k := c.call(server, w.Token)
	ctx, cancel := context.WithTimeoutCause(c.s.ctx, patience, errors.New("nothing was heard of the call"))
	defer cancel()
	res, err := c.s.host.CallServer(ctx, server, tool, args, o)
	k.heard = true
	switch {
	case ctx.Err() != nil:
		k.failed, k.text = true, context.Cause(ctx).Error()
	case err != nil:
		k.failed, k.text = true, err.Error()
	default:
		k.failed, k.text = res.IsError, res.Text()
	}
	if kind != "probe" { // those fail until the server is well
		c.s.add(map[string]*call{w.Token: k}, false)
	}
	if k.failed {
		return errors.New(k.text)
	}
	return nil
}

// hit injects a fault while a call runs, which it has to end.
func (c *chaos) hit(server string, inject func()) {
	failed := make(chan error, 1)
	go func() {
		failed <- c.make(server, "once", victim, work{Millis: int(2 * patience / time.Millisecond)}, nil)
	}()
	select {
	case <-c.began:
	case err := <-failed:
		c.s.tally.wrong(gone, "%s: the victim of a fault failed before it: %v", server, err)
		return
	}
	inject()
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "may have run") {
		c.s.tally.wrong(untold, "the victim of a fault on %s was told %v", server, err)
	}
}

// silence makes calls that time out until the host finds that the server answers nothing any more, and lets it go on then.
func (c *chaos) silence(server string, goOn func()) {
	if !eventually(func() bool {
		var calls sync.WaitGroup
		for range breakAfter { // more than once, since calls that ran before may yet be answered
			calls.Go(func() { _ = c.make(server, "look", "silence", work{}, &mcphost.CallOptions{Timeout: hangLimit}) })
		}
		calls.Wait()
		pause(nil, time.Second)
		return c.status(server).Status != mcphost.StatusConnected
	}) {
		c.s.tally.wrong(gone, "%s answers nothing, and its status is %s", server, c.status(server).Status)
	}
	goOn()
}

func (c *chaos) kill(server string) { c.signal(server, syscall.SIGKILL) }

func (c *chaos) stop(server string) {
	c.signal(server, syscall.SIGSTOP)
	c.silence(server, func() { c.signal(server, syscall.SIGCONT) })
}

func (c *chaos) signal(server string, sig syscall.Signal) {
	if err := syscall.Kill(c.status(server).PID, sig); err != nil {
		c.s.tally.wrong(gone, "%s has no process: %v", server, err)
	}
}

func (c *chaos) status(server string) mcphost.ServerStatus {
	st, _ := c.s.host.ServerStatus(server)
	return st
}

// changes changes the list of tools many times at once.
func (c *chaos) changes(string) {
	for i := range 200 {
		name := fmt.Sprint("extra", i%3)
		c.mem.RemoveTool(name)
		mcpserver.MustAddTool(c.mem, &mcpserver.Tool{Name: name}, func(context.Context, struct{}) (string, error) { return "", nil })
	}
}

// burst makes more calls at once than a server is sent at once.
func (c *chaos) burst(server string) {
	var calls sync.WaitGroup
	for range 300 {
		calls.Go(func() { _ = c.make(server, "look", "burst", work{Millis: 20}, nil) })
	}
	calls.Wait()
}

// interrupts interrupts all users that are calling a server, as soon as there are a few.
func (c *chaos) interrupts(server string) {
	var busy []*user
	eventually(func() bool {
		busy = busy[:0]
		for _, u := range c.s.users {
			if u.isCalling(server) {
				busy = append(busy, u)
			}
		}
		return len(busy) >= 4
	})
	var stops sync.WaitGroup
	for _, u := range busy {
		stops.Go(u.stop)
	}
	stops.Wait()
}

// replace puts another server in the place of the spare one.
func (c *chaos) replace(server string) {
	c.hit(server, func() { c.setServers(server, local(toolServer(server, c.s.ledger, c.began))) })
}

// remove takes a server out and puts it back.
func (c *chaos) remove(server string) {
	config := c.configs[server]
	c.hit(server, func() { c.setServers(server, nil) })
	c.setServers(server, config)
}

func (c *chaos) setServers(server string, config mcphost.ServerConfig) {
	c.configs[server] = config
	want := maps.Clone(c.configs)
	if config == nil {
		delete(want, server)
	}
	if _, err := c.s.host.SetServers(c.s.ctx, want); err != nil {
		c.s.tally.wrong(gone, "SetServers: %v", err)
	}
}

// recovered waits until a server is connected and answers.
func (c *chaos) recovered(server string) (err error) {
	if !eventually(func() bool {
		st := c.status(server)
		if err = fmt.Errorf("%s: %s", st.Status, st.Error); st.Status == mcphost.StatusConnected {
			err = c.make(server, "look", "probe", work{}, &mcphost.CallOptions{Timeout: time.Minute})
		}
		return err == nil
	}) {
		return fmt.Errorf("not well after %v: %w", patience, err)
	}
	return nil
}

// eventually asks again and again, and reports false if the answer is no for too long.
func eventually(ask func() bool) bool {
	for end := time.Now().Add(patience); time.Now().Before(end); pause(nil, 20*time.Millisecond) {
		if ask() {
			return true
		}
	}
	return false
}
