//go:build unix

package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/modeltest"
)

const (
	// turnsOfConversation is how many turns a user takes before it begins anew.
	turnsOfConversation = 6
	// thinking is how long a user waits at most before its next turn.
	thinking = 8 * time.Second
)

// A plan is an input: the calls that the model is to make.
type plan struct {
	Calls []plannedCall `json:"calls"`
}

type plannedCall struct {
	Tool string `json:"tool"`
	work
}

// A brain is a model that makes the calls of the latest plan, all at once, and then says that it has. A few of its
// answers are failures, or break off.
type brain struct {
	tally *tally

	mu     sync.Mutex // guards the rest
	rng    *rand.Rand
	inARow map[string]int // failures, by request
	failed map[string]int // failures, by the first token of the plan
}

func (b *brain) answer(r *modeltest.Request) modeltest.Turn {
	p := latestPlan(r)
	if len(p.Calls) == 0 {
		return modeltest.Fail(400, "invalid_request_error", "the soak's model found no plan")
	}
	token, made := p.Calls[0].Token, false
	for _, use := range r.ToolUses() {
		made = made || strings.Contains(string(use.Input), `"`+token+`"`)
	}
	parts := []modeltest.Part{modeltest.Text("All done, as far as it could be.")}
	if !made {
		parts = parts[:0]
		for _, c := range p.Calls {
			parts = append(parts, modeltest.ToolUse(c.Tool, c.work))
		}
	}
	switch b.failure(token, made) {
	case "429":
		return modeltest.RateLimited(0)
	case "529":
		return modeltest.Overloaded()
	case "cut in mid-stream":
		last := &parts[len(parts)-1]
		*last = last.After(1, modeltest.Cut())
	}
	return modeltest.Say(parts...)
}

// latestPlan finds the plan of the latest input. Later texts can be the engine's, about servers that came or went.
func latestPlan(r *modeltest.Request) (p plan) {
	for _, m := range r.Messages {
		for _, c := range m.Content {
			var next plan
			if json.Unmarshal([]byte(c.Text), &next) == nil && len(next.Calls) > 0 {
				p = next
			}
		}
	}
	return p
}

// failure draws how a request fails, if it does: three in a hundred, and no more than two in a row.
func (b *brain) failure(token string, made bool) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	request := fmt.Sprint(token, made)
	if b.inARow[request] >= 2 || b.rng.IntN(100) >= 3 {
		delete(b.inARow, request)
		return ""
	}
	b.inARow[request]++
	b.failed[token]++
	kind := []string{"429", "529", "cut in mid-stream"}[b.rng.IntN(3)]
	b.tally.count("faults: model, " + kind)
	return kind
}

// failures is how often requests of a plan failed.
func (b *brain) failures(token string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed[token]
}

// A user talks to the model until the test is over.
type user struct {
	id    int
	rng   *rand.Rand
	s     *soak
	turns int

	mu        sync.Mutex // guards the rest
	calling   map[string]bool
	interrupt func() // nil unless a turn runs
	stopped   bool
}

// live has one conversation after the other, one turn at least.
func (u *user) live() {
	for u.turns == 0 || !isClosed(u.s.over) {
		u.converse()
	}
}

// converse is one conversation. It ends after some turns, or when the user leaves.
func (u *user) converse() {
	ctx, leave := context.WithCancel(u.s.ctx)
	defer leave()
	var rules []string
	for _, name := range serverNames {
		rules = append(rules, "mcp__"+name+"__*")
	}
	c, err := agent.Open(ctx, u.s.engine, &agent.Options{
		Host: u.s.host, AllowedTools: rules, SettingSources: []agent.SettingSource{}, ToolSearch: agent.ToolSearchOff,
		Logger: slog.New(u.s.log).With("user", u.id),
	})
	if err != nil {
		u.s.tally.wrong(disturbed, "user %d: Open: %v", u.id, err)
		pause(u.s.over, time.Second)
		return
	}
	defer c.Close()
	for range turnsOfConversation {
		if !pause(u.s.over, time.Duration(u.rng.Int64N(int64(thinking)))) && u.turns > 0 || !u.turn(ctx, c, leave) {
			return
		}
	}
}

// turn is one turn. It reports false if the conversation is over.
func (u *user) turn(ctx context.Context, c *agent.Client, leave func()) bool {
	u.turns++
	t := u.plan()
	u.begin(func() { _ = c.Interrupt(ctx) })
	left := false
	if draw := u.rng.IntN(20); draw < 3 { // two interrupt, one leaves
		var leaving sync.WaitGroup
		defer leaving.Wait()
		left = draw == 2
		after := time.Duration(u.rng.IntN(600)) * time.Millisecond
		leaving.Go(func() {
			pause(ctx.Done(), after)
			if left {
				leave()
			} else {
				u.stop()
			}
		})
	}
	err := c.Send(ctx, t.input)
	if err == nil {
		for m, readErr := range c.Response(ctx) {
			if err = readErr; err != nil {
				break
			}
			u.see(t, m)
		}
	}
	t.stopped = u.end() || left
	u.s.add(t.calls, t.stopped)
	return u.judge(t, left, err)
}

// judge counts how a turn ended. It reports false if the conversation is over.
func (u *user) judge(t *turn, left bool, err error) bool {
	n := &u.s.tally
	if t.result != nil && err == nil {
		err = t.result.Err()
	}
	switch {
	case left:
		n.count("turns: left by their user")
		return false
	case t.stopped && errors.Is(err, agent.ErrInterrupted):
		n.count("turns: interrupted")
	case err != nil:
		n.wrong(disturbed, "user %d, turn %d failed: %v", u.id, u.turns, err)
		return false
	case t.result == nil:
		n.wrong(disturbed, "user %d, turn %d has no result", u.id, u.turns)
		return false
	default:
		n.count("turns: answered")
	}
	if failures := u.s.brain.failures(t.token); !t.stopped && u.s.log.retries(u.id) < failures {
		n.wrong(unlogged, "user %d, turn %d: the model failed %d times", u.id, u.turns, failures)
	}
	return true
}

// A turn is what a user hears in one turn.
type turn struct {
	input, token string
	calls        map[string]*call // by token
	byID         map[string]*call // by the model's id of the call
	result       *agent.Result
	stopped      bool
}

// plan draws what the user wants: one to three calls.
func (u *user) plan() *turn {
	t := &turn{calls: map[string]*call{}, byID: map[string]*call{}}
	var p plan
	for i := range 1 + u.rng.IntN(3) {
		server := serverNames[u.rng.IntN(len(serverNames))]
		w := work{Millis: u.rng.IntN(800)}
		tool := []string{"once", "once", "once", "once", "once", "look", "look", "look", "look", "hang"}[u.rng.IntN(10)]
		if u.rng.IntN(40) == 0 {
			w.Chars = 120_000 // kept in a file
		}
		w.Token = fmt.Sprintf("%s-u%d-%d-%d", tool, u.id, u.turns, i)
		p.Calls = append(p.Calls, plannedCall{"mcp__" + server + "__" + tool, w})
		t.calls[w.Token] = u.s.chaos.call(server, w.Token)
	}
	input, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	t.input, t.token = string(input), p.Calls[0].Token
	u.s.log.retries(u.id) // of the turn before
	return t
}

func (u *user) see(t *turn, m agent.Message) {
	switch m := m.(type) {
	case *agent.Assistant:
		for _, use := range m.ToolUses() {
			var w work
			_ = json.Unmarshal(use.Input, &w) // the token is empty then, and the call is missed at the end
			if c := t.calls[w.Token]; c != nil {
				t.byID[use.ID] = c
				u.calls(c.server)
			}
		}
	case *agent.User:
		for _, r := range m.ToolResults() {
			if c := t.byID[r.ToolUseID]; c != nil {
				c.heard, c.failed, c.text = true, r.IsError, r.Text()
			}
		}
	case *agent.Result:
		t.result = m
	}
}

// begin, calls and end note what the user is doing, for those who interrupt it.
func (u *user) begin(interrupt func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calling, u.interrupt, u.stopped = map[string]bool{}, interrupt, false
}

func (u *user) calls(server string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calling[server] = true
}

func (u *user) end() (stopped bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.interrupt = nil
	return u.stopped
}

// isCalling reports whether a turn with a call of this server runs.
func (u *user) isCalling(server string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.interrupt != nil && !u.stopped && u.calling[server]
}

// stop interrupts the turn that runs, if one does.
func (u *user) stop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.interrupt != nil {
		u.stopped = true
		u.interrupt()
	}
}

// pause waits, and reports false if the channel is closed.
func pause(over <-chan struct{}, d time.Duration) bool {
	select {
	case <-over:
		return false
	case <-time.After(d):
		return true
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
