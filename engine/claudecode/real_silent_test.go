package claudecode

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

// The turns of a result are the model's messages, whether or not the CLI shows them, and whether or not
// the model's stream is read: it shows nothing of a silent one.
func TestRealTurnsAreCounted(t *testing.T) {
	peers.ClaudePath(t)
	call := func(id string) modeltest.Part { return modeltest.ToolUseID(id, "mcp__a__tool0", `{"text":"x"}`) }
	silent := modeltest.Say()
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
		"too many": {turns: turns{call("t1"), call("t2")}, want: 1, o: func(o *agent.Options) { o.MaxTurns = 1 }},
		"blocked": {turns: turns{modeltest.Text("a")}, want: 0, o: func(o *agent.Options) {
			o.Hooks = &agent.Hooks{UserPromptSubmit: []agent.Hook[agent.UserPromptSubmit, agent.PromptOutput]{{
				Func: func(context.Context, *agent.UserPromptSubmit) (*agent.PromptOutput, error) {
					return &agent.PromptOutput{Block: true}, nil
				},
			}}}
		}},
	} {
		for _, stream := range []bool{true, false} {
			o := inProcess(map[string]mcpserver.Provider{"a": taking(t, textTool)})
			o.AllowedTools, o.IncludePartialMessages = []string{"mcp__a__*"}, stream
			if tt.o != nil {
				tt.o(o)
			}
			msgs, _ := ask(t, realCLI(t, modeltest.New(t, tt.turns...)), o)
			r, ok := msgs[len(msgs)-1].(*agent.Result)
			if !ok || r.NumTurns != tt.want {
				t.Errorf("%s, stream %v: %+v, want %d turns", name, stream, r, tt.want)
			}
		}
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
