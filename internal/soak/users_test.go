//go:build unix

package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/modeltest"
)

const (
	turnsPerConversation = 6
	// maxPause is how long a user waits at most before the next turn.
	maxPause = 8 * time.Second
)

// A prompt is the text of a user, as JSON: the calls that the model is to make.
type prompt struct {
	Calls []promptCall `json:"calls"`
}

type promptCall struct {
	Tool string `json:"tool"`
	arguments
}

// A model makes the calls of the latest prompt, all at once, and then says that it has. A few of its responses are failures.
type model struct {
	report *report

	mu     sync.Mutex // guards the rest
	rng    *rand.Rand
	failed map[string]int // failures, by the first token of the prompt
}

func (m *model) answer(r *modeltest.Request) modeltest.Turn {
	p := latestPrompt(r)
	if len(p.Calls) == 0 {
		return modeltest.Fail(400, "invalid_request_error", "there is no prompt")
	}
	token, made := p.Calls[0].Token, false
	for _, use := range r.ToolUses() {
		made = made || strings.Contains(string(use.Input), `"`+token+`"`)
	}
	parts := []modeltest.Part{modeltest.Text("All calls have been made.")}
	if !made {
		parts = nil
		for _, c := range p.Calls {
			parts = append(parts, modeltest.ToolUse(c.Tool, c.arguments))
		}
	}
	switch m.failure(token) {
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

// latestPrompt finds the latest prompt. Later texts can be the engine's, about servers that came or went.
func latestPrompt(r *modeltest.Request) (p prompt) {
	for _, m := range r.Messages {
		for _, c := range m.Content {
			var next prompt
			if json.Unmarshal([]byte(c.Text), &next) == nil && len(next.Calls) > 0 {
				p = next
			}
		}
	}
	return p
}

// failure draws how a request fails: three in a hundred do.
func (m *model) failure(token string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rng.IntN(100) >= 3 {
		return ""
	}
	m.failed[token]++
	kind := []string{"429", "529", "cut in mid-stream"}[m.rng.IntN(3)]
	m.report.count("faults: model server " + kind)
	return kind
}

// failures is how many requests with a prompt have failed.
func (m *model) failures(token string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failed[token]
}

// A user has conversations until the test ends.
type user struct {
	id    int
	rng   *rand.Rand
	s     *soakTest
	turns int
	ended chan struct{} // closed when run returns

	mu   sync.Mutex // guards turn, and the calls in it
	turn *turn      // nil between turns
}

// run has one conversation after the other, with one turn at least.
func (u *user) run() {
	defer close(u.ended)
	for u.turns == 0 || !isClosed(u.s.end) {
		u.converse()
	}
}

// converse has one conversation. It ends after some turns, or when the user leaves.
func (u *user) converse() {
	ctx, leave := context.WithCancel(u.s.ctx)
	defer leave()
	var rules []string
	for _, name := range serverNames {
		rules = append(rules, "mcp__"+name+"__*")
	}
	c, err := agent.Open(ctx, u.s.engine, &agent.Options{
		Host: u.s.host, AllowedTools: rules, SettingSources: []agent.SettingSource{}, ToolSearch: agent.ToolSearchOff,
		Logger: u.s.log.logger().With("user", u.id),
	})
	if err != nil {
		u.s.report.fail(disturbed, "user %d: Open: %v", u.id, err)
		pause(u.s.end, time.Second)
		return
	}
	defer c.Close()
	for range turnsPerConversation {
		if !pause(u.s.end, time.Duration(u.rng.Int64N(int64(maxPause)))) && u.turns > 0 || !u.takeTurn(ctx, c, leave) {
			return
		}
	}
}

// takeTurn takes a turn. It returns false if the conversation is over.
func (u *user) takeTurn(ctx context.Context, c *agent.Client, leave func()) bool {
	t := u.newTurn(c)
	if draw := u.rng.IntN(20); draw < 3 { // two interrupt, one leaves
		stop := t.interrupt
		if draw == 2 {
			stop = leave
		}
		after := time.Duration(u.rng.IntN(600)) * time.Millisecond
		var stops sync.WaitGroup
		defer stops.Wait()
		stops.Go(func() {
			if pause(t.done, after) {
				stop()
			}
		})
	}
	err := c.Send(ctx, t.input)
	if err == nil {
		for m, readErr := range c.Response(ctx) {
			if err = readErr; err != nil {
				break
			}
			u.receive(t, m)
		}
	}
	if t.result != nil && err == nil {
		err = t.result.Err()
	}
	return u.endTurn(t, ctx.Err() != nil, err)
}

// A turn is what a user asks for and receives in one turn.
type turn struct {
	user   *user
	input  string
	token  string // of the first call
	calls  map[string]*call
	byID   map[string]*call // by the model's id of the call
	result *agent.Result
	client *agent.Client
	done   chan struct{} // closed at the end of the turn

	stopped     bool // the user tried to interrupt the turn
	interrupted bool // and did
}

// newTurn draws what the user asks for: one to three calls.
func (u *user) newTurn(c *agent.Client) *turn {
	u.turns++
	t := &turn{user: u, calls: map[string]*call{}, byID: map[string]*call{}, client: c, done: make(chan struct{})}
	var p prompt
	for i := range 1 + u.rng.IntN(3) {
		server := serverNames[u.rng.IntN(len(serverNames))]
		tool := []string{"write", "write", "write", "write", "write", "read", "read", "read", "read", "hang"}[u.rng.IntN(10)]
		a := arguments{Token: fmt.Sprintf("user%d-%d-%d", u.id, u.turns, i), Millis: u.rng.IntN(800)}
		if u.rng.IntN(40) == 0 {
			a.Chars = 120_000 // so many are stored in a file
		}
		p.Calls = append(p.Calls, promptCall{"mcp__" + server + "__" + tool, a})
		t.calls[a.Token] = u.s.faults.newCall(server, tool, a.Token)
	}
	input, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	t.input, t.token = string(input), p.Calls[0].Token
	u.s.log.retried(u.id) // in the turn before
	u.mu.Lock()
	defer u.mu.Unlock()
	u.turn = t
	return t
}

// receive takes a message of a turn.
func (u *user) receive(t *turn, m agent.Message) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch m := m.(type) {
	case *agent.Assistant:
		for _, use := range m.ToolUses() {
			var a arguments
			_ = json.Unmarshal(use.Input, &a) // without a token the call counts as unanswered
			if c := t.calls[a.Token]; c != nil {
				t.byID[use.ID] = c
			}
		}
	case *agent.User:
		for _, r := range m.ToolResults() {
			if c := t.byID[r.ToolUseID]; c != nil {
				c.answered, c.failed, c.text = true, r.IsError, r.Text()
			}
		}
	case *agent.Result:
		t.result = m
	}
}

// endTurn counts how a turn ended. It returns false if the conversation is over.
func (u *user) endTurn(t *turn, left bool, err error) bool {
	u.mu.Lock()
	u.turn = nil
	t.interrupted = t.stopped && errors.Is(err, agent.ErrInterrupted)
	u.mu.Unlock()
	close(t.done)
	for _, c := range t.calls {
		u.s.add(c, t.stopped || left)
	}
	r := u.s.report
	switch {
	case left:
		r.count(leftTurns)
		return false
	case t.interrupted:
		r.count(interruptedTurns)
	case err != nil || t.result == nil:
		r.fail(disturbed, "user %d, turn %d: result %v, error %v", u.id, u.turns, t.result, err)
		return false
	default:
		r.count("turns answered")
	}
	if failed, retried := u.s.model.failures(t.token), u.s.log.retried(u.id); !t.stopped && retried < failed {
		r.fail(unlogged, "user %d, turn %d: %d of %d failed requests to the model server", u.id, u.turns, failed-retried, failed)
	}
	return true
}

// calling returns the turn that runs, if a call in it to the server does.
func (u *user) calling(server string) *turn {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.turn == nil || u.turn.stopped {
		return nil
	}
	for _, c := range u.turn.byID {
		if c.server == server && !c.answered {
			return u.turn
		}
	}
	return nil
}

// interrupt interrupts the turn, if it has not ended.
func (t *turn) interrupt() {
	t.user.mu.Lock()
	defer t.user.mu.Unlock()
	if t.user.turn == t {
		t.stopped = true
		_ = t.client.Interrupt(t.user.s.ctx) // the error says that the turn ended meanwhile
	}
}

// pause waits, and returns false if the channel is closed meanwhile.
func pause(ch <-chan struct{}, d time.Duration) bool {
	select {
	case <-ch:
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
