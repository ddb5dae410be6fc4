package native

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

var (
	randomRuns = flag.Int("native.runs", 0, "how many random conversations TestRandom has; 0: TENON_RANDOM_RUNS, else 200")
	randomSeed = flag.Uint64("native.seed", 0, "run the one random conversation with this seed")
)

// TestRandom holds random conversations: tools and requests that fail in every way, interrupts, inputs
// and changes at any moment. Whatever happens, no request is one that the API would refuse, every turn
// has its result, and nothing is left running.
func TestRandom(t *testing.T) {
	runs := *randomRuns
	if n, err := strconv.Atoi(os.Getenv("TENON_RANDOM_RUNS")); runs == 0 && err == nil {
		runs = n
	}
	if runs == 0 {
		runs = 200
	}
	if testing.Short() {
		runs = min(runs, 50)
	}
	first, last := uint64(1), uint64(runs)
	if *randomSeed != 0 {
		first, last = *randomSeed, *randomSeed
	}
	requests := 0
	for seed := first; seed <= last && !t.Failed(); seed++ {
		synctest.Test(t, func(t *testing.T) { requests += randomConversation(t, seed) })
	}
	t.Logf("%d requests in %d conversations", requests, last-first+1)
}

// A chance is a source of random decisions.
type chance struct {
	mu sync.Mutex
	r  *rand.Rand
}

// one picks an index; each has the chance of its weight.
func (c *chance) one(weights ...int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := 0
	for _, w := range weights {
		sum += w
	}
	n := c.r.IntN(sum)
	for i, w := range weights {
		if n -= w; n < 0 {
			return i
		}
	}
	return 0
}

func (c *chance) n(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.r.IntN(n)
}

// A scene is one random conversation.
type scene struct {
	*chance
	t      *testing.T
	seed   uint64
	client atomic.Pointer[agent.Client] // nil between conversations; a hook that was given up on may still look
	record []agent.Message              // what the program has heard
	calm   bool                         // nothing more goes wrong
	quiet  bool                         // nobody says anything but the test, and the servers stay as they are
}

func newScene(t *testing.T, seed uint64) *scene {
	return &scene{chance: &chance{r: rand.New(rand.NewPCG(seed, 7))}, t: t, seed: seed}
}

// randomConversation is one conversation; every third goes on with what an earlier one has left, damaged
// in any way.
func randomConversation(t *testing.T, seed uint64) int {
	s := newScene(t, seed)
	requests := 0
	var history []agent.Message
	if s.n(3) == 0 {
		o := s.options()
		o.ReplayUserMessages = s.n(2) == 0
		requests = s.converse(o, 1+s.n(3))
		history = s.damaged(s.record)
	}
	o := s.options()
	o.History = history
	return requests + s.converse(o, 1+s.n(6))
}

// converse holds a conversation and returns how many requests it took.
func (s *scene) converse(o *agent.Options, inputs int) int {
	t, seed := s.t, s.seed
	model := modeltest.New(nil, modeltest.Func(s.turn))
	c, err := agent.Open(t.Context(), testEngine(model), o)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	s.client.Store(c)
	for i := range inputs {
		if err := c.Send(t.Context(), fmt.Sprintf("input %d", i)); err != nil && !errors.Is(err, agent.ErrClosed) {
			t.Errorf("seed %d: Send: %v", seed, err)
		}
	}
	closed := s.one(9, 1) == 1
	if closed {
		time.AfterFunc(time.Duration(s.n(5000))*time.Millisecond, func() { _ = c.Close() })
	} else if err := c.EndInput(); err != nil {
		t.Errorf("seed %d: EndInput: %v", seed, err)
	}
	s.read(c, closed)
	if err := c.Close(); err != nil {
		t.Errorf("seed %d: Close: %v", seed, err)
	}
	for _, v := range model.Violations() {
		t.Errorf("seed %d: request %d would have been refused: %s\n%s", seed, v.Request.Number(), v.Message, v.Request.Body)
	}
	s.client.Store(nil)
	return len(model.Requests())
}

// read reads the conversation to its end and checks its form.
func (s *scene) read(c *agent.Client, closed bool) {
	open := 0                    // turns that have begun and not ended
	calls := map[string]string{} // the calls without a result, and the message that each was in
	for m, err := range c.Messages(s.t.Context()) {
		if err != nil {
			if !closed || !errors.Is(err, agent.ErrClosed) {
				s.t.Errorf("seed %d: %v", s.seed, err)
			}
			return
		}
		s.record = append(s.record, m)
		switch m := m.(type) {
		case *agent.SystemInit:
			open++
		case *agent.Assistant:
			maps.DeleteFunc(calls, func(_, uuid string) bool { return slices.Contains(m.Supersedes, uuid) })
			for _, u := range m.ToolUses() {
				calls[u.ID] = m.UUID
			}
		case *agent.User:
			for _, r := range m.ToolResults() {
				if calls[r.ToolUseID] == "" || len(r.Content) == 0 {
					s.t.Errorf("seed %d: a result of no call, a second one, or an empty one: %+v", s.seed, r)
				}
				delete(calls, r.ToolUseID)
			}
		case *agent.Result:
			open--
			if len(calls) > 0 {
				s.t.Errorf("seed %d: calls without a result at the end of a turn: %v", s.seed, calls)
			}
			if m.IsError != (m.Err() != nil) {
				s.t.Errorf("seed %d: %+v", s.seed, m)
			}
		}
		if open < 0 || open > 1 {
			s.t.Errorf("seed %d: %d turns at once", s.seed, open)
		}
		if _, err := json.Marshal(m); err != nil {
			s.t.Errorf("seed %d: %v", s.seed, err)
		}
	}
	if open != 0 {
		s.t.Errorf("seed %d: a turn without a result", s.seed)
	}
}

func (s *scene) options() *agent.Options {
	srv := mcpserver.New("s", nil)
	for _, tool := range []*mcpserver.Tool{{Name: "read", ReadOnly: true}, {Name: "look", ReadOnly: true}, {Name: "write"}, {Name: "ask"}} {
		tool.InputSchema = json.RawMessage(`{"type":"object","properties":{"do":{"type":"integer"}}}`)
		if err := srv.AddTool(tool, s.tool); err != nil {
			s.t.Fatal(err)
		}
	}
	o := &agent.Options{
		MCPServers:             map[string]mcphost.ServerConfig{"s": mcphost.InProcess(srv)},
		AllowedTools:           []string{"mcp__s__read", "mcp__s__look", "mcp__s__write"},
		CanUseTool:             s.canUseTool,
		IncludePartialMessages: s.n(2) == 0,
		MaxToolConcurrency:     1 + s.n(3),
	}
	if s.n(5) == 0 {
		o.MaxTurns = 1 + s.n(6)
	}
	if s.n(5) == 0 {
		o.MaxBudgetUSD = 0.05
	}
	if s.n(3) == 0 {
		o.SystemPrompt = "be good"
	}
	if s.n(3) == 0 {
		o.Hooks = s.hooks()
	}
	if s.n(6) == 0 {
		o.OutputSchema = json.RawMessage(`{"type":"object","properties":{"do":{"type":"integer"}},"required":["do"]}`)
	}
	return o
}

// hooks are hooks that say anything at any point.
func (s *scene) hooks() *agent.Hooks {
	say := func() (agent.HookOutput, error) {
		s.act()
		if s.calm {
			return agent.HookOutput{}, nil
		}
		switch s.one(30, 2, 1, 1, 1) {
		case 1:
			return agent.HookOutput{AdditionalContext: "by the way"}, nil
		case 2:
			return agent.HookOutput{Stop: true, StopReason: "enough"}, nil
		case 3:
			return agent.HookOutput{}, errors.New("hook fails")
		case 4:
			panic("hook panics")
		}
		return agent.HookOutput{SystemMessage: "hello"}, nil
	}
	return &agent.Hooks{
		PreToolUse: []agent.Hook[agent.PreToolUse, agent.PreToolUseOutput]{{
			FailClosed: s.n(2) == 0,
			Func: func(context.Context, *agent.PreToolUse) (*agent.PreToolUseOutput, error) {
				out, err := say()
				decision := []permission.Behavior{"", permission.Allow, permission.Deny, permission.Ask}[s.one(6, 1, 1, 1)]
				return &agent.PreToolUseOutput{HookOutput: out, Decision: decision, UpdatedInput: []json.RawMessage{nil, json.RawMessage(`{}`), json.RawMessage(`7`)}[s.one(8, 1, 1)]}, err
			},
		}},
		PostToolUse: []agent.Hook[agent.PostToolUse, agent.PostToolUseOutput]{{
			Func: func(context.Context, *agent.PostToolUse) (*agent.PostToolUseOutput, error) {
				out, err := say()
				return &agent.PostToolUseOutput{HookOutput: out, Feedback: []string{"", "well done"}[s.n(2)], UpdatedOutput: []agent.Content{nil, {}, agent.TextContent("new")}[s.one(6, 1, 1)]}, err
			},
		}},
		PostToolBatch: []agent.Hook[agent.PostToolBatch, agent.HookOutput]{{
			Func: func(context.Context, *agent.PostToolBatch) (*agent.HookOutput, error) {
				out, err := say()
				return &out, err
			},
		}},
		UserPromptSubmit: []agent.Hook[agent.UserPromptSubmit, agent.PromptOutput]{{
			Func: func(context.Context, *agent.UserPromptSubmit) (*agent.PromptOutput, error) {
				out, err := say()
				return &agent.PromptOutput{HookOutput: out, Block: !s.calm && s.n(8) == 0, Reason: "not this"}, err
			},
		}},
		Stop: []agent.Hook[agent.Stop, agent.StopOutput]{{
			Func: func(context.Context, *agent.Stop) (*agent.StopOutput, error) {
				out, err := say()
				return &agent.StopOutput{HookOutput: out, Block: !s.calm && s.n(3) == 0, Reason: "go on"}, err
			},
		}},
	}
}

// act does something to the conversation from the middle of it.
func (s *scene) act() {
	c := s.client.Load()
	if c == nil || s.calm {
		return
	}
	ctx := s.t.Context()
	var err error
	what := s.one(90, 3, 3, 1, 1, 1)
	if s.quiet && (what == 2 || what == 5) {
		return
	}
	switch what {
	case 1:
		err = c.Interrupt(ctx)
	case 2:
		err = c.Send(ctx, "by the way")
		if err != nil && strings.Contains(err.Error(), "EndInput") {
			err = nil
		}
	case 3:
		err = c.SetModel(ctx, []string{"", "claude-opus-5-5", "claude-haiku-4-5"}[s.n(3)])
	case 4:
		err = c.SetPermissionMode(ctx, []permission.Mode{"default", "plan", "bypassPermissions", "dontAsk"}[s.n(4)])
	case 5:
		err = c.SetMCPServerEnabled(ctx, "s", s.n(2) == 0)
	}
	if err != nil && !errors.Is(err, agent.ErrClosed) && !errors.Is(err, mcphost.ErrClosed) && !errors.Is(err, context.Canceled) {
		s.t.Errorf("seed %d: %v", s.seed, err)
	}
}

// tool is every tool: it fails in every way.
func (s *scene) tool(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
	s.act()
	switch s.one(8, 2, 1, 1, 1, 1, 2, 1, 1) {
	case 1:
		return nil, errors.New("failed")
	case 2:
		panic("tool panics")
	case 3:
		return mcpserver.Text(strings.Repeat("x", s.n(200_000))), nil
	case 4:
		return &mcpserver.Result{}, nil
	case 5:
		return mcpserver.Text("bad \xff\xfe \x00 text"), nil
	case 6:
		select {
		case <-time.After(time.Duration(s.n(3000)) * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case 7:
		return mcpserver.Text(" \n "), nil
	case 8:
		return mcpserver.Errorf(" "), nil
	}
	return mcpserver.Text("fine"), nil
}

func (s *scene) canUseTool(ctx context.Context, _ *agent.ToolRequest) (*permission.PromptResult, error) {
	s.act()
	switch s.one(4, 3, 1, 1, 1, 1) {
	case 1:
		return agent.Deny("no"), nil
	case 2:
		v := agent.Deny("no, and stop")
		v.Interrupt = true
		return v, nil
	case 3:
		return nil, errors.New("cannot say")
	case 4:
		panic("callback panics")
	case 5:
		v := agent.Allow()
		v.UpdatedInput = json.RawMessage(`{"do":1}`)
		return v, nil
	}
	return agent.Allow(), nil
}

// turn is what the model says.
func (s *scene) turn(*modeltest.Request) modeltest.Turn {
	s.act()
	if s.calm {
		return modeltest.Text("calm")
	}
	switch s.one(45, 1, 1, 1, 1, 1) {
	case 1:
		return modeltest.RateLimited(time.Duration(s.n(20)) * time.Second)
	case 2:
		return modeltest.Overloaded()
	case 3:
		return modeltest.Fail(500, "api_error", "down")
	case 4:
		return modeltest.Fail(400, "invalid_request_error", "messages: not this one")
	case 5:
		return modeltest.Fail(413, "request_too_large", "too large")
	}
	usage := modeltest.Usage{InputTokens: s.n(2000), OutputTokens: 1 + s.n(100)}
	return modeltest.Say(s.parts()...).Stop(s.stop()).Usage(usage)
}

func (s *scene) parts() []modeltest.Part {
	var parts []modeltest.Part
	if s.n(4) == 0 {
		parts = append(parts, modeltest.Thinking("let me think"))
	}
	for range s.n(3) {
		parts = append(parts, modeltest.Text([]string{"some text", " ", "", "日本語 😀", "trailing \n"}[s.one(6, 1, 1, 1, 1)]))
	}
	for range s.one(2, 5, 3, 1, 1, 1) {
		parts = append(parts, s.call())
	}
	act := modeltest.Pause(func(context.Context) error { s.act(); return nil })
	switch s.one(10, 3, 1, 1) {
	case 1:
		parts = append(parts, act)
	case 2:
		parts = append(parts, modeltest.Break("overloaded_error", "Overloaded"))
	case 3:
		parts = append(parts, modeltest.Cut())
	}
	if len(parts) > 0 && s.n(4) == 0 {
		parts[0] = parts[0].After(s.n(3), act)
	}
	return parts
}

func (s *scene) call() modeltest.Part {
	name := "mcp__s__" + []string{"read", "look", "write", "ask", "nothing"}[s.one(4, 4, 4, 3, 1)]
	if s.n(12) == 0 {
		name = "StructuredOutput"
	}
	switch s.one(12, 1, 1, 1, 1, 1) {
	case 1:
		return modeltest.RawToolUse(name)
	case 2:
		return modeltest.RawToolUse(name, `{"do":`)
	case 3:
		return modeltest.RawToolUse(name, `[1]`)
	case 4:
		return modeltest.ToolUse(name, `{"do":"not a number"}`)
	case 5:
		return modeltest.ToolUse(name, `{"s":"lone \ud83d surrogate"}`)
	}
	return modeltest.ToolUse(name, `{"do":1}`)
}

// stop is a stop reason; empty leaves it to the model.
func (s *scene) stop() string {
	return []string{"", modeltest.StopMaxTokens, modeltest.StopRefusal, modeltest.StopPauseTurn, modeltest.StopContextWindow, modeltest.StopSequence}[s.one(30, 2, 1, 1, 1, 1)]
}
