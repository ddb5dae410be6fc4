package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

var limitBehaviours = []behaviour{
	{"MaxTurns", maxTurns},
	{"MaxTurnsIsEnough", maxTurnsIsEnough},
	{"MaxBudget", maxBudget},
	{"CallLimitOfTheServer", callLimitOfTheServer},
	{"CallLimitOfTheEnvironment", callLimitOfTheEnvironment},
}

// What the model said on the way to an error is no answer. D77 D80 D106
func maxTurns(e *env) {
	o := e.toolbox(nil, echo)
	o.MaxTurns = 2
	tr := e.ask(e.script(callX("toolu_1", `{}`), modeltest.Say(modeltest.Text("one more"), callX("toolu_2", `{}`))), "x", o)
	r := tr.result(e)
	if r.Result != "" || tr.text() == "" {
		e.Errorf("the result has the answer %q; what was said on the way is %q", r.Result, tr.text())
	}
	if r.Subtype != agent.SubtypeErrorMaxTurns || !r.IsError || r.TerminalReason != agent.ReasonMaxTurns || !errors.Is(tr.err, agent.ErrMaxTurns) {
		e.Errorf("result %+v, then %v", r, tr.err)
	}
	if n := len(e.model.Requests()); n != 2 {
		e.Errorf("the model was asked %d times, want 2", n)
	}
	if !strings.Contains(tr.err.Error(), "2") {
		e.Errorf("the error does not say the limit: %v", tr.err)
	}
}

func maxTurnsIsEnough(e *env) {
	o := e.toolbox(nil, echo)
	o.MaxTurns = 2
	if _, r := e.answered(e.script(callX("toolu_1", `{}`), modeltest.Text("just so")), "x", o); r.Result != "just so" {
		e.Errorf("result %+v", r)
	}
}

func maxBudget(e *env) {
	o := e.toolbox(nil, echo)
	o.Model, o.MaxBudgetUSD = "claude-sonnet-4-5", 0.01
	dear := modeltest.Usage{InputTokens: 10_000, OutputTokens: 1000}
	tr := e.ask(e.script(modeltest.Say(callX("toolu_1", `{}`)).Usage(dear)), "x", o)
	r := tr.result(e)
	if r.Subtype != agent.SubtypeErrorMaxBudget || r.TerminalReason != agent.ReasonBudgetExhausted || !errors.Is(tr.err, agent.ErrMaxBudget) || r.TotalCostUSD < 0.04 {
		e.Errorf("result %+v, then %v", r, tr.err)
	}
	if n := len(e.model.Requests()); n != 1 {
		e.Errorf("the model was asked %d times, want 1", n)
	}
}

// hangs is a tool that ends with its context, and says why.
func hangs(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A server in this process has a limit of its own. // D93
func callLimitOfTheServer(e *env) {
	s := mcpserver.New("t", &mcpserver.Options{Timeout: 200 * time.Millisecond})
	e.add(s, &mcpserver.Tool{Name: "x"}, hangs)
	tr, r := e.answered(e.script(callX("toolu_1", `{}`), modeltest.Text("went on")), "x", allowed(s, "t"))
	if got := tr.toolResult(e, "toolu_1"); !got.IsError || !strings.Contains(got.Text(), "timed out after 200ms") || r.Result != "went on" {
		e.Errorf("result %q, then %q", got.Text(), r.Result)
	}
}

// The run's own variables count, not only those of the process. D92 D101
func callLimitOfTheEnvironment(e *env) {
	for name, tt := range map[string]struct{ value, want string }{
		"MCP_TOOL_TIMEOUT":          {"150", "timed out after 150ms"},
		"CLAUDE_AGENT_TOOL_TIMEOUT": {"0", "timed out after 1 seconds"},
	} {
		o := e.toolbox(nil, hangs)
		o.Env = map[string]string{name: tt.value}
		tr, r := e.answered(e.script(callX("toolu_1", `{}`), modeltest.Text("went on")), "x", o)
		if got := tr.toolResult(e, "toolu_1"); !got.IsError || !strings.Contains(got.Text(), tt.want) || r.Result != "went on" {
			e.Errorf("with %s=%s: result %q, then %q", name, tt.value, got.Text(), r.Result)
		}
	}
}
