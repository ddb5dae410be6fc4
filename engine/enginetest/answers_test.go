package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/modeltest"
)

var answerBehaviours = []behaviour{
	{"InitFirstResultLast", initFirstResultLast},
	{"IDsAreConsistent", idsAreConsistent},
	{"SessionIDIsTheCallers", sessionIDIsTheCallers},
	{"SystemPrompt", systemPrompt},
	{"PartialMessages", partialMessages},
	{"UsageAndCost", usageAndCost},
	{"FailedRequestIsAnErrorResult", failedRequestIsAnErrorResult},
	{"PassingFailureIsRetried", passingFailureIsRetried},
	{"MessagesAreStreamJSON", messagesAreStreamJSON},
	{"BadOptionsAreErrors", badOptionsAreErrors},
	{"CancelledBeforeTheStart", cancelledBeforeTheStart},
	{"CancelledWhileTheModelSpeaks", cancelledWhileTheModelSpeaks},
	{"BreakWhileTheModelSpeaks", breakWhileTheModelSpeaks},
	{"QueriesDoNotMix", queriesDoNotMix},
}

// D73 D80 D106
func initFirstResultLast(e *env) {
	tr, r := e.answered(e.script(modeltest.Text("pong")), "ping", nil)
	if _, ok := tr.messages[0].(*agent.SystemInit); !ok {
		e.Errorf("the first message is a %T, want an init message", tr.messages[0])
	}
	if r.Subtype != agent.SubtypeSuccess || r.IsError || r.Result != "pong" || r.NumTurns != 1 || r.Err() != nil {
		e.Errorf("result %+v", r)
	}
	if r.StopReason != "end_turn" || r.TerminalReason != agent.ReasonCompleted {
		e.Errorf("stop reason %q, terminal reason %q", r.StopReason, r.TerminalReason)
	}
	if tr.text() != "pong" {
		e.Errorf("the assistant said %q", tr.text())
	}
	if got := e.model.Last().LastUserText(); !strings.Contains(got, "ping") {
		e.Errorf("the model was asked %q", got)
	}
}

func idsAreConsistent(e *env) {
	o := e.toolbox(nil, echo)
	tr, r := e.answered(e.script(modeltest.Say(modeltest.Text("look"), callX("toolu_1", `{}`)), modeltest.Text("done")), "x", o)
	session := tr.init(e).SessionID
	seen := map[string]bool{}
	id := func(kind, sessionID, uuid string) {
		if sessionID != session || uuid == "" || seen[uuid] {
			e.Errorf("%s: session %q (want %q), uuid %q", kind, sessionID, session, uuid)
		}
		seen[uuid] = true
	}
	var first string
	for _, a := range all[*agent.Assistant](tr) {
		id("assistant", a.SessionID, a.UUID)
		if a.ParentToolUseID != "" || a.Message.ID == "" || a.Message.Role != "assistant" {
			e.Errorf("assistant message %+v", a)
		}
		if first == "" {
			first = a.Message.ID
		}
	}
	if a := all[*agent.Assistant](tr); len(a) != 3 || a[1].Message.ID != first || a[2].Message.ID == first {
		e.Errorf("one message for each block, the blocks of a response under one ID: got %d messages", len(a))
	}
	for _, u := range all[*agent.User](tr) {
		id("user", u.SessionID, u.UUID)
	}
	id("result", r.SessionID, r.UUID)
}

func sessionIDIsTheCallers(e *env) {
	const id = "7b0f2f4e-2f0c-4b0e-9d53-0c6f6a1b2c3d"
	tr, r := e.answered(e.script(modeltest.Text("x")), "x", &agent.Options{SessionID: id})
	if tr.init(e).SessionID != id || r.SessionID != id {
		e.Errorf("init has %q, result has %q", tr.init(e).SessionID, r.SessionID)
	}
}

func systemPrompt(e *env) {
	e.answered(e.script(modeltest.Text("x")), "x", &agent.Options{SystemPrompt: "Speak like a sailor.", AppendSystemPrompt: "Be brief."})
	if got := e.model.Last().SystemText(); !strings.Contains(got, "Speak like a sailor.") || !strings.Contains(got, "Be brief.") {
		e.Errorf("the system prompt is %q", got)
	}
}

func partialMessages(e *env) {
	turn := modeltest.Text("one two three").Fragments("one", " two", " three")
	tr, _ := e.answered(e.script(turn), "x", &agent.Options{IncludePartialMessages: true})
	var text strings.Builder
	for _, m := range all[*agent.StreamEvent](tr) {
		text.WriteString(m.TextDelta())
	}
	if text.String() != "one two three" || tr.text() != "one two three" {
		e.Errorf("deltas %q, message %q", text.String(), tr.text())
	}
}

func usageAndCost(e *env) {
	u := modeltest.Usage{InputTokens: 1000, OutputTokens: 200, CacheReadInputTokens: 30, CacheCreationInputTokens: 4}
	o := e.toolbox(nil, echo)
	o.Model = "claude-sonnet-4-5"
	engine := e.script(modeltest.Say(callX("toolu_1", `{}`)).Usage(u), modeltest.Say(modeltest.Text("x")).Usage(u))
	_, r := e.answered(engine, "x", o)
	if r.Usage.InputTokens != 2000 || r.Usage.OutputTokens != 400 || r.Usage.CacheReadInputTokens != 60 || r.Usage.CacheCreationInputTokens != 8 {
		e.Errorf("usage %+v", r.Usage)
	}
	m := r.ModelUsage["claude-sonnet-4-5"]
	if m.InputTokens != 2000 || m.OutputTokens != 400 || m.CostUSD <= 0 {
		e.Errorf("usage by model %+v", r.ModelUsage)
	}
	if r.TotalCostUSD < 0.011 || r.TotalCostUSD > 0.013 || r.NumTurns != 2 {
		e.Errorf("cost %v after %d turns, want about 0.012 after 2", r.TotalCostUSD, r.NumTurns)
	}
}

// always is a turn that answers every request: an engine may ask again before it believes a failure.
func always(turn modeltest.Turn) modeltest.Turn {
	return modeltest.Func(func(*modeltest.Request) modeltest.Turn { return turn })
}

// D77
func failedRequestIsAnErrorResult(e *env) {
	tr := e.ask(e.script(always(modeltest.Fail(400, "invalid_request_error", "this is not how it is done"))), "x", nil)
	r := tr.result(e)
	re := (*agent.ResultError)(nil)
	if !errors.As(tr.err, &re) || re.Result != r {
		e.Errorf("after the result: %v", tr.err)
	}
	if !r.IsError || r.APIErrorStatus != 400 || !strings.Contains(r.Result, "this is not how it is done") {
		e.Errorf("result %+v", r)
	}
}

func passingFailureIsRetried(e *env) {
	tr, r := e.answered(e.script(modeltest.Overloaded(), modeltest.Text("made it")), "x", nil)
	var retries int
	for _, m := range all[*agent.System](tr) {
		if m.Subtype == "api_retry" {
			retries++
		}
	}
	if r.Result != "made it" || retries != 1 {
		e.Errorf("result %q after %d api_retry messages", r.Result, retries)
	}
}

// Every message survives a trip through JSON.
func messagesAreStreamJSON(e *env) {
	o := e.toolbox(nil, echo)
	o.IncludePartialMessages = true
	tr, _ := e.answered(e.script(callX("toolu_1", `{"a":1}`), modeltest.Text("done")), "x", o)
	for _, m := range tr.messages {
		data, err := json.Marshal(m)
		if err != nil {
			e.Errorf("%T: %v", m, err)
			continue
		}
		back, err := agent.DecodeMessage(data)
		if err != nil {
			e.Errorf("%s: %v", data, err)
			continue
		}
		again, err := json.Marshal(back)
		if err != nil || string(again) != string(data) {
			e.Errorf("%T changes:\n%s\n%s (%v)", m, data, again, err)
		}
	}
}

// D78
func badOptionsAreErrors(e *env) {
	tr := e.ask(e.script(), "x", &agent.Options{MaxTurns: -1})
	if oe := (*agent.OptionError)(nil); !errors.As(tr.err, &oe) || len(tr.messages) != 0 {
		e.Errorf("%d messages, then %v", len(tr.messages), tr.err)
	}
}

func cancelledBeforeTheStart(e *env) {
	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	tr := e.askContext(ctx, e.script(), "x", nil)
	if !errors.Is(tr.err, context.Canceled) || len(e.model.Requests()) != 0 {
		e.Errorf("ended with %v after %d requests", tr.err, len(e.model.Requests()))
	}
}

// held is an answer that stops in the middle, and what says that it has come there and that its reader has gone.
func held() (turn modeltest.Turn, reached, gone chan struct{}) {
	reached, gone = make(chan struct{}), make(chan struct{})
	hold := modeltest.Pause(func(ctx context.Context) error {
		close(reached)
		<-ctx.Done()
		close(gone)
		return ctx.Err()
	})
	return modeltest.Say(modeltest.Text("one"), modeltest.Text("two three").Fragments("two", " three").After(1, hold)), reached, gone
}

func cancelledWhileTheModelSpeaks(e *env) {
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	turn, reached, gone := held()
	go func() {
		<-reached
		cancel()
	}()
	tr := e.askContext(ctx, e.script(turn), "x", nil)
	if !errors.Is(tr.err, context.Canceled) {
		e.Errorf("ended with %v", tr.err)
	}
	<-gone
}

func breakWhileTheModelSpeaks(e *env) {
	turn, reached, gone := held()
	for m, err := range agent.Query(e.Context(), e.script(turn), "x", alone(nil)) {
		if err != nil {
			e.Fatalf("%v", err)
		}
		if _, ok := m.(*agent.Assistant); ok {
			<-reached // the first block is here before the model has come to its pause in the second
			break
		}
	}
	<-gone // else the work goes on
}

// F32
func queriesDoNotMix(e *env) {
	const runs = 8
	o := e.toolbox(nil, echo)
	answer := modeltest.Func(func(r *modeltest.Request) modeltest.Turn {
		name := word(r.FirstUserText())
		if results := r.ToolResults(); len(results) > 0 {
			return modeltest.Text(textOf(results[0]))
		}
		return modeltest.ToolUse(toolX, map[string]string{"run": name})
	})
	engine := e.script(answer)
	type outcome struct{ want, got string }
	done := make(chan outcome)
	for i := range runs {
		go func() {
			name := "run-" + string(rune('a'+i))
			got := ""
			for m, err := range agent.Query(e.Context(), engine, name, alone(o)) {
				if r, ok := m.(*agent.Result); ok {
					got = r.Result
				}
				if err != nil {
					got = err.Error()
				}
			}
			done <- outcome{name, got}
		}()
	}
	for range runs {
		if o := <-done; !strings.Contains(o.got, `"`+o.want+`"`) {
			e.Errorf("%s was answered %s", o.want, o.got)
		}
	}
}

// word is the first word of the form run-x in a text.
func word(text string) string {
	if i := strings.Index(text, "run-"); i >= 0 && i+5 <= len(text) {
		return text[i : i+5]
	}
	return ""
}
