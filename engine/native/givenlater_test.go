package native

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

// What the API alone knows to be wrong with a history costs that block, and not the conversation.
func TestRefusedBlockOfAHistory(t *testing.T) {
	history := []agent.Message{
		userSaid(pixel(), text("what is that?")), answered1("msg_1", thought("hm"), use("toolu_1"), use("toolu_2")),
		userSaid(result("toolu_1", "r"), result("toolu_2", "q")), answered1("msg_2", text("so")),
	}
	const call1 = `assistant: tool_use toolu_1 mcp__s__w {"n":12345678901234567890}`
	const call2 = `assistant: tool_use toolu_2 mcp__s__w {"n":12345678901234567890}`
	whole := []string{"user: image", "user: what is that?", "assistant: thinking hm", call1, call2, "user: tool_result toolu_1 text r", "user: tool_result toolu_2 text q", "assistant: so", "user: next"}
	tests := []struct {
		refusal string
		index   int
		change  map[int]string // of whole; with nothing, the line is gone
	}{
		{"messages.0.content.0.image.source.base64: Could not process image", 0, map[int]string{0: "user: " + transcript.TextRefused}},
		{"messages.2.content.1.tool_result.content.0.text: no", 2, map[int]string{6: "user: tool_result toolu_2 text q\n" + transcript.TextRefused}},
		{"messages.1.content.1.tool_use.caller: no", 1, map[int]string{
			3: `assistant: [A call of mcp__s__w with the input {"n":12345678901234567890}]`,
			5: "user: tool_result toolu_2 text q", 6: "user: [Its result: r]",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.refusal, func(t *testing.T) {
			model := modeltest.New(t, modeltest.Fail(400, "invalid_request_error", tt.refusal), modeltest.Text("well"), modeltest.Text("still"))
			c := open(t, model, &agent.Options{History: history})
			r, msgs := say(t, c, "next")
			if r.Result != "well" || r.IsError {
				t.Fatalf("got %+v", r)
			}
			want := append([]string(nil), whole...)
			for i, line := range tt.change {
				want[i] = line
			}
			if diff := cmp.Diff(want, sentAs(model.Last())); diff != "" {
				t.Error(diff)
			}
			got := repairsIn(t, msgs)
			if len(got) != 1 || got[0].Kind != agent.RepairRefused || got[0].Index != tt.index || !strings.Contains(got[0].Detail, tt.refusal) {
				t.Errorf("repairs %+v", got)
			}
			if r, _ := say(t, c, "and now?"); r.Result != "still" {
				t.Errorf("got %+v", r)
			}
		})
	}
}

// A refusal that is not about the history is what it is everywhere else: the new input is taken out.
func TestRefusedInputAfterAHistory(t *testing.T) {
	for _, refusal := range []string{"messages.2.content.0: no", "messages.99.content.0: no", "messages.0.content.7: no", "messages: no"} {
		model := modeltest.New(t, modeltest.Fail(400, "invalid_request_error", refusal), modeltest.Text("well"))
		c := open(t, model, &agent.Options{History: []agent.Message{said("hi"), answered1("msg_1", text("hello"))}})
		if r, _ := say(t, c, "bad"); !r.IsError {
			t.Errorf("%s: got %+v", refusal, r)
		}
		say(t, c, "good")
		if diff := cmp.Diff([]string{"user: hi", "assistant: hello", "user: good"}, sentAs(model.Last())); diff != "" {
			t.Errorf("%s: %s", refusal, diff)
		}
	}
}

// A signature that the API does not know any more costs the thoughts, and not the conversation.
func TestHistoryWithAForgedThought(t *testing.T) {
	model := modeltest.NewModel(&modeltest.Options{TB: t, Turns: []modeltest.Turn{modeltest.Text("well")}})
	model.AllowViolations()
	forged := &agent.ThinkingBlock{Thinking: "hm", Signature: "forged"}
	c := open(t, model, &agent.Options{History: []agent.Message{said("hi"), answered1("msg_1", forged, text("hello"))}})
	if r, _ := say(t, c, "next"); r.Result != "well" || r.IsError {
		t.Errorf("got %+v", r)
	}
	if diff := cmp.Diff([]string{"user: hi", "assistant: hello", "user: next"}, sentAs(model.Last())); diff != "" {
		t.Error(diff)
	}
}

// Thoughts are those of one model, by whatever name a server calls it.
func TestHistoryOfAnotherModel(t *testing.T) {
	for name, want := range map[string]bool{"claude-sonnet-5-5": true, "us.anthropic.claude-sonnet-5-5": true, "claude-opus-5-5": false, "": false} {
		answer := answered1("msg_1", thought("hm"), text("hello"))
		answer.Message.Model = name
		sent, repairs := goesOnWith(t, nil, said("hi"), answer)
		if got := sent[1] == "assistant: thinking hm"; got != want || len(repairs) != 0 {
			t.Errorf("%s: sent %q, repairs %q", name, sent, repairs)
		}
	}
}

// Everything that a model and its tools can say comes back byte by byte.
func TestHistoryKeepsEveryByte(t *testing.T) {
	h := func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		res := mcpserver.Text("a < b && c > d \u2028 \ufffd \"quoted\" \\ufffd")
		res.Content = append(res.Content, mcpserver.Image(picture(3, 2), nil).Content...)
		return res, nil
	}
	first := modeltest.New(t,
		modeltest.Say(
			modeltest.Thinking("is a < b & c?"), modeltest.RawBlock(`{"type":"redacted_thinking","data":"abc=="}`),
			modeltest.RawBlock(`{"type":"server_tool_use", "id":"srvtoolu_1","name":"web_search","input":{"query":"a<b","n":12345678901234567890}}`),
			modeltest.RawBlock(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://e.test/?a=1&b=<2>","title":"T","encrypted_content":"abc","page_age":null}]}`),
			modeltest.RawBlock(`{"type":"text","text":"cited","citations":[{"type":"web_search_result_location","url":"https://e.test/?a=1&b=2","title":"a > b","cited_text":"x","encrypted_index":"y"}]}`),
			modeltest.RawToolUse("mcp__s__w", `{ "big": 12345678901234567890, "exact": 1.50, "html": "<b>&amp;</b>", "lone": "\ud83d", "dup": 1e400 }`),
			modeltest.RawToolUse("not a name", `{"x":`),
		),
		modeltest.Text("done"), modeltest.Text("well"))
	o := withTools(t, h, &mcpserver.Tool{Name: "w"})
	o.ReplayUserMessages = true
	c := open(t, first, o)
	record := []agent.Message{}
	_, msgs := say(t, c, "what of 1 < 2 && \xff?")
	record = append(record, msgs...)
	say(t, c, "next")
	want := first.Last()

	second := modeltest.New(t, modeltest.Text("well"))
	o.History = throughJSON(t, record)
	_, msgs = say(t, open(t, second, o), "next")
	if string(want.Field("messages")) != string(second.Last().Field("messages")) {
		t.Errorf("the model is sent\n%s\nwant\n%s", second.Last().Field("messages"), want.Field("messages"))
	}
	if string(want.Field("tools")) != string(second.Last().Field("tools")) {
		t.Errorf("the tools are\n%s\nwant\n%s", second.Last().Field("tools"), want.Field("tools"))
	}
	for _, r := range repairsIn(t, msgs) {
		if r.Kind != agent.RepairRenamed {
			t.Errorf("repair %+v", r)
		}
	}
}

// The history counts as part of the context before anything is said, and counts nothing else.
func TestHistoryCountsInTheContext(t *testing.T) {
	long := strings.Repeat("word ", 10_000)
	model := modeltest.New(t, modeltest.Text("well"))
	var source string
	hooks := &agent.Hooks{SessionStart: []agent.Hook[agent.SessionStart, agent.HookOutput]{{Func: func(_ context.Context, in *agent.SessionStart) (*agent.HookOutput, error) {
		source = in.Source
		return nil, nil
	}}}}
	c := open(t, model, &agent.Options{History: []agent.Message{said(long), answered1("msg_1", text("hello"))}, MaxTurns: 1, MaxBudgetUSD: 5, Hooks: hooks})
	u, err := c.ContextUsage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if u.TotalTokens < int64(len(long))/4 {
		t.Errorf("got %+v", u)
	}
	r, _ := say(t, c, "next")
	if r.IsError || r.NumTurns != 1 || r.ResultIndex != 0 || source != "resume" {
		t.Errorf("got %+v, source %q", r, source)
	}
}

func TestHistoryOfNil(t *testing.T) {
	_, err := agent.Open(t.Context(), testEngine(modeltest.New(t)), &agent.Options{History: []agent.Message{said("x"), nil}})
	if oe := (*agent.OptionError)(nil); !errors.As(err, &oe) || oe.Field != "History[1]" {
		t.Errorf("got %v", err)
	}
}
