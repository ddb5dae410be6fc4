package claudecode

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

// The turns of a result are the model's messages, whether or not the CLI shows them, and whether or not
// the model's stream is read: it shows nothing of a silent one.
func TestRealTurnsAreCounted(t *testing.T) { //nolint:tparallel // beside each other, not beside other tests
	peers.ClaudePath(t)
	call := func(id string) modeltest.Part { return modeltest.ToolUseID(id, "mcp__a__tool0", `{"text":"x"}`) }
	silent := modeltest.Say()
	cut := func() modeltest.Turn { return modeltest.Say().Stop("max_tokens") }
	onStop := func(first agent.StopOutput) func(o *agent.Options) {
		return func(o *agent.Options) {
			var once sync.Once
			o.Hooks = &agent.Hooks{Stop: []agent.Hook[agent.Stop, agent.StopOutput]{{
				Func: func(context.Context, *agent.Stop) (out *agent.StopOutput, _ error) {
					once.Do(func() { out = &first })
					return out, nil
				},
			}}}
		}
	}
	type turns = []modeltest.Turn
	for name, tt := range map[string]struct {
		turns turns
		want  int
		o     func(o *agent.Options)
	}{
		"text":                   {turns: turns{modeltest.Text("a")}, want: 1},
		"silent, then text":      {turns: turns{silent, modeltest.Text("a")}, want: 2},
		"silent to the end":      {turns: turns{silent, silent}, want: 2},
		"calls":                  {turns: turns{modeltest.Say(call("t1"), call("t2")), call("t3"), modeltest.Text("a")}, want: 3},
		"call, silent, text":     {turns: turns{call("t1"), silent, modeltest.Text("a")}, want: 3},
		"call, silent to an end": {turns: turns{call("t1"), silent, silent}, want: 3},
		"structured": {turns: turns{call("t1"), modeltest.ToolUseID("s", "StructuredOutput", `{"text":"x"}`)}, want: 2, o: func(o *agent.Options) {
			o.OutputSchema = json.RawMessage(textTool)
		}},
		"thoughts, then text":  {turns: turns{modeltest.Thinking("a"), modeltest.Text("b")}, want: 2},
		"thoughts to the end":  {turns: turns{modeltest.Thinking("a"), modeltest.Thinking("b")}, want: 2},
		"cut short":            {turns: turns{modeltest.Say().Stop("max_tokens"), modeltest.Text("b")}, want: 2},
		"cut short for ever":   {turns: turns{cut(), cut(), cut(), cut()}, want: 4},
		"refused, then text":   {turns: turns{modeltest.Say().Stop("refusal"), modeltest.Text("b")}, want: 2},
		"paused":               {turns: turns{modeltest.Say().Stop("pause_turn")}, want: 1},
		"asked again":          {turns: turns{modeltest.Say(modeltest.Break("overloaded_error", "Overloaded")), modeltest.Text("b")}, want: 1},
		"silent, then kept on": {turns: turns{silent, silent, modeltest.Text("b")}, want: 3, o: onStop(agent.StopOutput{Block: true, Reason: "go on"})},
		"silent, then stopped": {turns: turns{silent, silent}, want: 2, o: onStop(agent.StopOutput{HookOutput: agent.HookOutput{Stop: true}})},
		"no output": {turns: turns{silent, silent, silent}, want: 3, o: func(o *agent.Options) {
			o.OutputSchema = json.RawMessage(textTool)
		}},
		"silent and dear": {turns: turns{silent}, want: 1, o: func(o *agent.Options) { o.MaxBudgetUSD = 1e-7 }},
		"dear":            {turns: turns{call("t1")}, want: 1, o: func(o *agent.Options) { o.MaxBudgetUSD = 1e-7 }},
		"too many":        {turns: turns{call("t1"), call("t2")}, want: 1, o: func(o *agent.Options) { o.MaxTurns = 1 }},
		"blocked": {turns: turns{modeltest.Text("a")}, want: 0, o: func(o *agent.Options) {
			o.Hooks = &agent.Hooks{UserPromptSubmit: []agent.Hook[agent.UserPromptSubmit, agent.PromptOutput]{{
				Func: func(context.Context, *agent.UserPromptSubmit) (*agent.PromptOutput, error) {
					return &agent.PromptOutput{Block: true}, nil
				},
			}}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			streams := []bool{false}
			if strings.HasPrefix(name, "silent") || name == "asked again" { // in which the stream misleads
				streams = append(streams, true)
			}
			for _, stream := range streams {
				o := inProcess(map[string]mcpserver.Provider{"a": taking(t, textTool)})
				o.AllowedTools, o.IncludePartialMessages = []string{"mcp__a__*"}, stream
				if tt.o != nil {
					tt.o(o)
				}
				msgs, _ := ask(t, realCLI(t, modeltest.New(t, tt.turns...)), o)
				r, ok := msgs[len(msgs)-1].(*agent.Result)
				if !ok || r.NumTurns != tt.want {
					t.Errorf("stream %v: %+v, want %d turns", stream, r, tt.want)
				}
			}
		})
	}
}

// So it is with one that was interrupted before it had come to anything.
func TestRealInterruptedAnswerIsCounted(t *testing.T) {
	peers.ClaudePath(t)
	for _, stream := range []bool{true, false} {
		begun := make(chan struct{})
		hold := modeltest.Pause(func(ctx context.Context) error {
			close(begun)
			<-ctx.Done()
			return ctx.Err()
		})
		m := modeltest.New(t, modeltest.Say(modeltest.Text("half way").Fragments("half", " way").After(1, hold)), modeltest.Text("again"))
		c, err := agent.Open(t.Context(), realCLI(t, m), &agent.Options{IncludePartialMessages: stream})
		if err != nil {
			t.Fatal(err)
		}
		turn := func() (last agent.Message) {
			if err := c.Send(t.Context(), "go"); err != nil {
				t.Fatal(err)
			}
			for msg := range c.Response(t.Context()) {
				last = msg
				if e, ok := msg.(*agent.StreamEvent); ok && e.TextDelta() == "half" {
					if err := c.Interrupt(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
			return last
		}
		if !stream {
			go func() {
				<-begun
				_ = c.Interrupt(t.Context()) // what comes of it is looked at
			}()
		}
		if r, ok := turn().(*agent.Result); !ok || r.NumTurns != 1 || r.TerminalReason != agent.ReasonAbortedStreaming {
			t.Errorf("stream %v: the interrupted turn: %+v", stream, r)
		}
		if r, ok := turn().(*agent.Result); !ok || r.NumTurns != 1 || r.Result != "again" {
			t.Errorf("stream %v: the turn after it: %+v", stream, r)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// An input that reads like the CLI's own words is not taken for them, and a request that is interrupted
// before its answer begins is a question all the same.
func TestRealTurnsAreNotMistaken(t *testing.T) {
	peers.ClaudePath(t)
	for _, stream := range []bool{true, false} {
		m := modeltest.New(t, modeltest.Text("fine"), modeltest.Overloaded(), modeltest.Text("again"))
		c, err := agent.Open(t.Context(), realCLI(t, m), &agent.Options{IncludePartialMessages: stream, ReplayUserMessages: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, prompt := range []string{retries[0] + " What is that?", "go on", "go on"} {
			if err := c.Send(t.Context(), prompt); err != nil {
				t.Fatal(err)
			}
			for msg, err := range c.Response(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				switch msg := msg.(type) {
				case *agent.System:
					if msg.Subtype == "api_retry" {
						if err := c.Interrupt(t.Context()); err != nil {
							t.Error(err)
						}
					}
				case *agent.Result:
					if msg.NumTurns != 1 {
						t.Errorf("%q, stream %v: %+v, want 1 turn", prompt, stream, msg)
					}
				}
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
