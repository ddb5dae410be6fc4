package native

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

// Each reason for which the model stops is a result of its own, and the conversation goes on after it.
func TestStopReasons(t *testing.T) {
	half, whole := modeltest.Text("half an"), modeltest.Text("whole")
	tests := []struct {
		reason  string
		turns   []modeltest.Turn
		isError bool
		result  string
		why     string   // the terminal reason
		stop    string   // the stop reason of the result
		tags    []string // of the warnings
		next    []string // what the model is sent in the next turn, before that turn's input
	}{
		{"end_turn", []modeltest.Turn{whole}, false, "whole", agent.ReasonCompleted, "end_turn", nil, []string{"user: x", "assistant: whole"}},
		{"stop_sequence", []modeltest.Turn{modeltest.Say(half).Stop(modeltest.StopSequence)}, false, "half an", agent.ReasonCompleted, "stop_sequence", nil, []string{"user: x", "assistant: half an"}},
		{"max_tokens", []modeltest.Turn{modeltest.Say(half).Stop(modeltest.StopMaxTokens)}, false, "half an", agent.ReasonCompleted, "max_tokens", []string{"max_tokens"}, []string{"user: x", "assistant: half an"}},
		{
			"model_context_window_exceeded",
			[]modeltest.Turn{modeltest.Say(half).Stop(modeltest.StopContextWindow)},
			false, "half an", agent.ReasonCompleted, "model_context_window_exceeded",
			[]string{"context_window"},
			[]string{"user: x", "assistant: half an"},
		},
		{
			"refusal",
			[]modeltest.Turn{modeltest.Say(half).Stop(modeltest.StopRefusal)},
			true, transcript.TextModelRefused, agent.ReasonModelError, "refusal", nil, nil,
		},
		{
			"pause_turn",
			[]modeltest.Turn{modeltest.Say(half).Stop(modeltest.StopPauseTurn), whole},
			false, "whole", agent.ReasonCompleted, "end_turn", nil,
			[]string{"user: x", "assistant: half an", "assistant: whole"},
		},
		{
			"tool_use",
			[]modeltest.Turn{modeltest.ToolUseID("toolu_1", "mcp__s__w", `{"n":1}`), whole},
			false, "whole", agent.ReasonCompleted, "end_turn", nil,
			[]string{"user: x", `assistant: tool_use toolu_1 mcp__s__w {"n":1}`, `user: tool_result toolu_1 text {"n":1}`, "assistant: whole"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			model := modeltest.New(t, append(slices.Clone(tt.turns), modeltest.Text("go on"))...)
			o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
			o.ToolSearch = agent.ToolSearchOff
			c := open(t, model, o)
			r, msgs := say(t, c, "x")
			if r.IsError != tt.isError || r.Result != tt.result || r.TerminalReason != tt.why || string(r.StopReason) != tt.stop || r.Subtype != agent.SubtypeSuccess {
				t.Errorf("got %+v", r)
			}
			if diff := cmp.Diff(tt.tags, tags(msgs)); diff != "" {
				t.Error(diff)
			}
			if r, _ := say(t, c, "y"); r.Result != "go on" || r.IsError {
				t.Errorf("the next turn: %+v", r)
			}
			if diff := cmp.Diff(append(slices.Clone(tt.next), "user: y"), sentAs(model.Last())); diff != "" {
				t.Errorf("the next turn:\n%s", diff)
			}
		})
	}
}

// When the window is full the API refuses the next request by its length: that input is taken out again,
// the reason says what is the matter, and a shorter one is answered.
func TestConversationThatFillsTheContextWindow(t *testing.T) {
	model := modeltest.New(t, modeltest.Say(modeltest.Text("half an")).Stop(modeltest.StopContextWindow),
		modeltest.Fail(400, "invalid_request_error", "prompt is too long: 200001 tokens > 200000 maximum"), modeltest.Text("short"))
	c := open(t, model, nil)
	if r, _ := say(t, c, "x"); r.StopReason != "model_context_window_exceeded" || r.IsError {
		t.Errorf("got %+v", r)
	}
	if r, _ := say(t, c, "much more"); r.TerminalReason != agent.ReasonPromptTooLong || !r.IsError || r.Err() == nil {
		t.Errorf("got %+v", r)
	}
	if r, _ := say(t, c, "less"); r.Result != "short" || r.IsError {
		t.Errorf("got %+v", r)
	}
	if diff := cmp.Diff([]string{"user: x", "assistant: half an", "user: less"}, sentAs(model.Last())); diff != "" {
		t.Error(diff)
	}
}
