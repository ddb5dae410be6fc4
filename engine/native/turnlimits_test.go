package native

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

// An interrupt that comes right after an input ends its turn, however far it has come: it is not lost
// between the input and the turn.
//
// fault D1
func TestInterruptAtOnce(t *testing.T) {
	var answers atomic.Bool
	model := modeltest.New(t, modeltest.Func(func(*modeltest.Request) modeltest.Turn {
		if answers.Load() {
			return modeltest.Text("answered")
		}
		return modeltest.Say(modeltest.Pause(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })) // no turn ends by itself
	}))
	c := open(t, model, withTools(t, echoArgs, &mcpserver.Tool{Name: "w"}))
	for i := range 200 {
		if err := c.Send(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		if err := c.Interrupt(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r, _ := hear(t, c); !errors.Is(r.Err(), agent.ErrInterrupted) {
			t.Fatalf("turn %d: got %+v", i, r)
		}
	}
	answers.Store(true)
	if r, _ := say(t, c, "go on"); r.Result != "answered" {
		t.Errorf("the turn after them: %+v", r)
	}
}

// An interrupt between turns concerns none that begins later.
func TestInterruptBetweenTurns(t *testing.T) {
	model := modeltest.New(t, modeltest.Func(func(*modeltest.Request) modeltest.Turn { return modeltest.Text("answered") }))
	c := open(t, model, nil)
	for i := range 50 {
		if r, _ := say(t, c, "x"); r.Result != "answered" {
			t.Fatalf("turn %d: got %+v", i, r)
		}
		if err := c.Interrupt(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A turn ends in time wherever it is: among servers that do not connect, with a model that is silent,
// before a retry, and in a tool that ignores everything. Its conversation goes on.
//
// fault G12
func TestTurnTimeout(t *testing.T) {
	stuck := modeltest.Pause(func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	tests := []struct {
		name  string
		turn  modeltest.Turn
		tools handlerFunc
	}{
		{"silent model", modeltest.Say(modeltest.Text("half"), stuck), echoArgs},
		{"before a retry", modeltest.RateLimited(4 * 60e9), echoArgs},
		{"tool", modeltest.ToolUse("mcp__s__w", `{}`), func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := withTools(t, tt.tools, &mcpserver.Tool{Name: "w"})
				o.TurnTimeout = 20 * time.Second
				c, err := agent.Open(t.Context(), testEngine(modeltest.New(t, tt.turn, modeltest.Text("later"))), o)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				began := time.Now()
				r, msgs := say(t, c, "x")
				if took := time.Since(began); took != o.TurnTimeout {
					t.Errorf("the turn took %v", took)
				}
				if r.Subtype != agent.SubtypeErrorTurnTimeout || r.TerminalReason != agent.ReasonTurnTimeout || !r.IsError || !strings.Contains(r.Errors[0], "20s (Options.TurnTimeout)") {
					t.Errorf("result %+v", r)
				}
				if err := r.Err(); !errors.Is(err, agent.ErrTurnTimeout) || errors.Is(err, agent.ErrInterrupted) {
					t.Errorf("its error is %v", err)
				}
				if got := results(msgs); tt.name == "tool" && (len(got) != 1 || !got[0].IsError) {
					t.Errorf("the call was answered %+v", got)
				}
				if r, _ := say(t, c, "again"); r.Result != "later" {
					t.Errorf("the next turn: %+v", r)
				}
			})
		})
	}
}

// The wait for servers is part of the first turn.
func TestTurnTimeoutWhileServersConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &slowProvider{Server: serverWith(t, "w", echoArgs), release: make(chan struct{})}
		o := &agent.Options{
			MCPServers: map[string]mcphost.ServerConfig{"slow": mcphost.InProcess(p)}, AllowedTools: []string{"mcp__slow__w"}, TurnTimeout: time.Second,
		}
		c, err := agent.Open(t.Context(), testEngine(modeltest.New(t, modeltest.Text("later"))), o)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if r, _ := say(t, c, "x"); r.Subtype != agent.SubtypeErrorTurnTimeout || r.NumTurns != 0 {
			t.Errorf("result %+v", r)
		}
		close(p.release)
		synctest.Wait()
		if r, _ := say(t, c, "again"); r.Result != "later" {
			t.Errorf("the next turn: %+v", r)
		}
	})
}

// Limits hold for a conversation that goes on in another session: what it used before counts.
//
// fault G12
func TestHistoryUsage(t *testing.T) {
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	o.MaxTurns, o.HistoryUsage = 3, agent.HistoryUsage{Turns: 2, CostUSD: 0.5}
	model := modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{}`), modeltest.ToolUse("mcp__s__w", `{}`), modeltest.Text("done"))
	c := open(t, model, o)
	r, _ := say(t, c, "x")
	if r.Subtype != agent.SubtypeErrorMaxTurns || r.NumTurns != 1 {
		t.Errorf("the first turn: %+v", r)
	}
	if r.TotalCostUSD <= 0.5 {
		t.Errorf("the cost is %v, want more than what was used before", r.TotalCostUSD)
	}
	if r, _ := say(t, c, "y"); r.Result != "done" || r.NumTurns != 2 {
		t.Errorf("the turn after it: %+v", r)
	}

	model = modeltest.New(t)
	_, err := collect(t, t.Context(), testEngine(model), "x", &agent.Options{MaxBudgetUSD: 0.5, HistoryUsage: agent.HistoryUsage{CostUSD: 0.5}})
	if !errors.Is(err, agent.ErrMaxBudget) || len(model.Requests()) != 0 {
		t.Errorf("with the budget used up before: %d requests, %v", len(model.Requests()), err)
	}
}

// A session takes so many inputs and no more, whoever sends them.
//
// fault G11
func TestManyInputs(t *testing.T) {
	gate := modeltest.NewGate()
	held := modeltest.Say(modeltest.Text("one"), modeltest.Hold(gate))
	c := open(t, modeltest.New(t, held), nil)
	taken := 0
	for range 100_000 {
		switch err := c.Send(t.Context(), "x"); {
		case err == nil:
			taken++
		case !errors.Is(err, agent.ErrTooManyInputs) || !strings.Contains(err.Error(), "Options.MaxQueuedInputs"):
			t.Fatal(err)
		}
	}
	if want := agent.DefaultMaxQueuedInputs; taken < want || taken > want+1 { // and the one that is at work
		t.Errorf("%d inputs were taken, want %d", taken, want)
	}
}

// An input whose context has ended is not queued.
//
// fault F10
func TestSendWithACancelledContext(t *testing.T) {
	model := modeltest.New(t, modeltest.Text("1"))
	c := open(t, model, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Send(ctx, "never"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if r, _ := say(t, c, "x"); r.Result != "1" || r.QueuedTurnCount != 0 || strings.Contains(string(model.Last().Body), "never") {
		t.Errorf("the turn after it: %+v, sent %s", r, model.Last().Body)
	}
}
