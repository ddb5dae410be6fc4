package native

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

func open(t *testing.T, m *modeltest.Model, o *agent.Options) *agent.Client {
	t.Helper()
	c, err := agent.Open(t.Context(), testEngine(m), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestCutOffAnswer(t *testing.T) {
	for stop, tag := range map[string]string{modeltest.StopMaxTokens: "max_tokens", modeltest.StopContextWindow: "context_window"} {
		model := modeltest.New(t, modeltest.Say(modeltest.Text("half an")).Stop(stop), modeltest.Text("whole"))
		c := open(t, model, nil)
		r, msgs := say(t, c, "x")
		if r.Result != "half an" || string(r.StopReason) != stop || r.IsError {
			t.Errorf("%s: %+v", stop, r)
		}
		if diff := cmp.Diff([]string{tag}, tags(msgs)); diff != "" {
			t.Errorf("%s: %s", stop, diff)
		}
		if r, _ := say(t, c, "go on"); r.Result != "whole" {
			t.Errorf("%s: %+v", stop, r)
		}
	}
}

func TestPauseTurn(t *testing.T) {
	search := `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}`
	model := modeltest.New(t,
		modeltest.Say(modeltest.Text("looking"), modeltest.RawBlock(search)).Stop(modeltest.StopPauseTurn),
		modeltest.Say(modeltest.RawBlock(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`), modeltest.Text("found")))
	model.AllowViolations() // of how it stands in the middle of a server tool the script knows nothing
	c := open(t, model, nil)
	r, msgs := say(t, c, "x")
	if r.Result != "found" || r.NumTurns != 2 || r.IsError {
		t.Fatalf("got %+v", r)
	}
	second := model.Requests()[1].Messages
	if len(second) != 2 || second[1].Role != "assistant" || len(second[1].Content) != 2 {
		t.Errorf("the paused answer did not go back as it was: %+v", second)
	}
	// Blocks of kinds without a type of their own are whole.
	var kinds []string
	for _, m := range msgs {
		if a, ok := m.(*agent.Assistant); ok {
			for _, b := range a.Message.Content {
				if u, ok := b.(*agent.UnknownBlock); ok {
					kinds = append(kinds, u.Type)
				}
			}
		}
	}
	if diff := cmp.Diff([]string{"server_tool_use", "web_search_tool_result"}, kinds); diff != "" {
		t.Error(diff)
	}
}

func TestEndlessPauses(t *testing.T) {
	pause := modeltest.Func(func(*modeltest.Request) modeltest.Turn {
		return modeltest.Say(modeltest.Text("wait")).Stop(modeltest.StopPauseTurn)
	})
	model := modeltest.New(nil, pause)
	r, _ := say(t, open(t, model, nil), "x")
	if r.Subtype != agent.SubtypeErrorDuringExecution || len(model.Requests()) != maxPaused+1 {
		t.Errorf("%d requests, %+v", len(model.Requests()), r)
	}
}

// An answer without content is an answer, and the conversation stays valid after it.
func TestEmptyAnswers(t *testing.T) {
	model := modeltest.New(t, modeltest.Say(), modeltest.Text(" \n"), modeltest.Say(modeltest.Thinking("hm")), modeltest.Text("well"))
	c := open(t, model, nil)
	for _, want := range []string{"", " \n", "", "well"} {
		if r, _ := say(t, c, "x"); r.Result != want || r.IsError {
			t.Errorf("got %+v, want %q", r, want)
		}
	}
}

func TestEmptyInputIsRefused(t *testing.T) {
	c := open(t, modeltest.New(t), nil)
	for _, text := range []string{"", " \n\t"} {
		if err := c.Send(t.Context(), text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	if err := c.SendInput(t.Context(), nil); err == nil {
		t.Error("a nil input was taken")
	}
}

func TestInvalidUTF8NeverReachesTheModel(t *testing.T) {
	model := modeltest.New(t, modeltest.Text("ok"))
	c := open(t, model, &agent.Options{SystemPrompt: "be \xff good"})
	raw := json.RawMessage(`{"type":"text","text":"lone \ud83d and \udc00 and whole \ud83d\ude00"}`)
	in := &agent.Input{Content: agent.Content{
		&agent.TextBlock{Text: "a\xffb"}, &agent.TextBlock{Text: "  "}, &agent.UnknownBlock{Type: "text", Raw: raw},
	}}
	if err := c.SendInput(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	hear(t, c)
	got := model.Last().LastUserText()
	if want := "a\uFFFDb\nlone \uFFFD and \uFFFD and whole 😀"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPartialMessages(t *testing.T) {
	turn := modeltest.Say(modeltest.Thinking("hm"), modeltest.Text("one two").Fragments("one", " two"))
	msgs, err := collect(t, t.Context(), testEngine(modeltest.New(t, turn)), "x", &agent.Options{IncludePartialMessages: true})
	if err != nil {
		t.Fatal(err)
	}
	var text string
	var order []string
	for _, m := range msgs {
		switch m := m.(type) {
		case *agent.StreamEvent:
			var e struct{ Type string }
			if err := json.Unmarshal(m.Event, &e); err != nil {
				t.Error(err)
			}
			order = append(order, e.Type)
			text += m.TextDelta()
			if m.APIMessageID == "" {
				t.Errorf("%s without api_message_id", e.Type)
			}
		case *agent.Assistant:
			order = append(order, "assistant")
			if m.Message.StopReason != "" {
				t.Errorf("stop reason %q on a streamed block", m.Message.StopReason)
			}
		}
	}
	got := regexp.MustCompile(`(content_block_delta )+`).ReplaceAllString(strings.Join(order, " "), "delta* ")
	want := "message_start content_block_start delta* assistant content_block_stop " +
		"content_block_start delta* assistant content_block_stop message_delta message_stop"
	if got != want || text != "one two" {
		t.Errorf("got %q and\n%s, want\n%s", text, got, want)
	}
}

func TestNoPartialMessagesUnasked(t *testing.T) {
	msgs, err := collect(t, t.Context(), testEngine(modeltest.New(t, modeltest.Text("x"))), "x", nil)
	if err != nil || last[*agent.StreamEvent](msgs) != nil {
		t.Errorf("got a stream event, or %v", err)
	}
}

// Each request begins with the bytes of the one before, but for the breakpoints.
func TestPromptCaching(t *testing.T) {
	model := modeltest.New(t, modeltest.Text("1"), modeltest.Text("2"), modeltest.Text("3"), modeltest.Text("4"))
	c := open(t, model, &agent.Options{SystemPrompt: "be brief", AppendSystemPrompt: "and kind"})
	for range 4 {
		say(t, c, "x")
	}
	mark := []byte(`,"cache_control":{"type":"ephemeral"}`)
	var before []byte
	for i, r := range model.Requests() {
		if n := bytes.Count(r.Body, mark); n != min(i+2, 3) {
			t.Errorf("request %d has %d breakpoints", i+1, n)
		}
		body := bytes.ReplaceAll(r.Body, mark, nil)
		if i > 0 && !bytes.HasPrefix(body, bytes.TrimSuffix(before, []byte("]}"))) {
			t.Errorf("request %d does not begin like the one before:\n%s\n%s", i+1, before, body)
		}
		before = body
		if got := r.SystemText(); got != "be brief\nand kind" {
			t.Errorf("system prompt %q", got)
		}
	}
	model.Add(modeltest.Text("5"))
	e := New(&Options{APIKey: "test", HTTPClient: model.Client(), DisablePromptCaching: true})
	if _, err := collect(t, t.Context(), e, "x", &agent.Options{SystemPrompt: "x"}); err != nil || bytes.Contains(model.Last().Body, mark) {
		t.Errorf("breakpoints although switched off, or %v", err)
	}
}

func TestThinkingAndEffort(t *testing.T) {
	tests := []struct {
		o               agent.Options
		thinking, extra string
		maxTokens       int
	}{
		{agent.Options{}, "", "", 32000},
		{agent.Options{MaxTokens: 100}, "", "", 100},
		{agent.Options{Model: "some-local-model"}, "", "", 8192},
		{agent.Options{Thinking: &agent.Thinking{Type: "adaptive", Display: "summarized"}, Effort: "high"}, `{"type":"adaptive","display":"summarized"}`, `{"effort":"high"}`, 32000},
		{agent.Options{Thinking: &agent.Thinking{Type: "disabled"}}, `{"type":"disabled"}`, "", 32000},
		{agent.Options{Thinking: &agent.Thinking{Type: "enabled", BudgetTokens: 40000}}, `{"type":"enabled","budget_tokens":40000}`, "", 72000},
	}
	for _, tt := range tests {
		model := modeltest.New(t, modeltest.Text("x"))
		if _, err := collect(t, t.Context(), testEngine(model), "x", &tt.o); err != nil {
			t.Error(err)
		}
		r := model.Last()
		if string(r.Field("thinking")) != tt.thinking || string(r.Field("output_config")) != tt.extra || r.MaxTokens != tt.maxTokens {
			t.Errorf("%+v: thinking %s, output_config %s, max_tokens %d", tt.o, r.Field("thinking"), r.Field("output_config"), r.MaxTokens)
		}
	}
}

// Thoughts go back to the model that had them, and to no other.
func TestThoughtsAndModels(t *testing.T) {
	model := modeltest.New(t, modeltest.Say(modeltest.Thinking("deep"), modeltest.Text("1")), modeltest.Text("2"), modeltest.Text("3"), modeltest.Text("4"))
	c := open(t, model, &agent.Options{Model: "claude-opus-5-5"})
	for _, m := range []string{"claude-opus-5-5", "claude-opus-5-5", "claude-sonnet-5-5", "claude-opus-5-5"} {
		if err := c.SetModel(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		say(t, c, "x")
	}
	var thoughts []int
	for _, r := range model.Requests() {
		thoughts = append(thoughts, bytes.Count(r.Body, []byte(`"type":"thinking"`)))
	}
	if diff := cmp.Diff([]int{0, 1, 0, 1}, thoughts); diff != "" {
		t.Error(diff)
	}
}

// When the API refuses the thoughts as they were sent, they are sent otherwise.
func TestRefusedThoughts(t *testing.T) {
	model := modeltest.New(t, modeltest.Say(modeltest.Thinking("deep"), modeltest.Text("1")),
		modeltest.Fail(400, "invalid_request_error", "messages.1.content.0: this `thinking` block is not valid here"),
		modeltest.Fail(400, "invalid_request_error", "messages.1.content.0: this `thinking` block is not valid here"),
		modeltest.Text("2"))
	c := open(t, model, nil)
	say(t, c, "x")
	if r, _ := say(t, c, "y"); r.Result != "2" || r.NumTurns != 1 {
		t.Errorf("got %+v", r)
	}
	if bytes.Contains(model.Last().Body, []byte(`"thinking"`)) {
		t.Error("the thought was sent to the end")
	}
}

func TestQueuedInputsAreTurnsOfTheirOwn(t *testing.T) {
	model := modeltest.New(t, modeltest.Text("1"), modeltest.Text("2"))
	c := open(t, model, nil)
	for _, id := range []string{"a", "b"} {
		if err := c.SendInput(t.Context(), &agent.Input{Content: agent.TextContent("say " + id), UUID: id}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.EndInput(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for m, err := range c.Messages(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *agent.SystemInit:
			got = append(got, "init")
		case *agent.Result:
			got = append(got, m.Result+" "+strings.Join(m.UserMessageUUIDs, ","))
		}
	}
	if diff := cmp.Diff([]string{"init", "1 a", "init", "2 b"}, got); diff != "" {
		t.Error(diff)
	}
	if err := c.Send(t.Context(), "more"); err == nil {
		t.Error("an input was taken after EndInput")
	}
}

func TestInterruptWhileTheModelSpeaks(t *testing.T) {
	gate := modeltest.NewGate()
	model := modeltest.New(t,
		modeltest.Say(modeltest.Thinking("hm"), modeltest.Text("whole"), modeltest.Text("half of it").Fragments("half", " of it").After(1, modeltest.Hold(gate))),
		modeltest.Text("yes?"))
	c := open(t, model, nil)
	if err := c.Send(t.Context(), "talk"); err != nil {
		t.Fatal(err)
	}
	<-gate.Reached()
	if err := c.Interrupt(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, msgs := hear(t, c)
	if r.Subtype != agent.SubtypeErrorDuringExecution || r.TerminalReason != agent.ReasonAbortedStreaming || !errors.Is(r.Err(), agent.ErrInterrupted) {
		t.Errorf("got %+v", r)
	}
	if a := last[*agent.Assistant](msgs); !a.Aborted || a.Text() != "half" {
		t.Errorf("last assistant message %+v", a)
	}
	if u := last[*agent.User](msgs); u == nil || !u.IsSynthetic || u.Message.Content.Text() != "[Request interrupted by user]" {
		t.Errorf("user message %+v", u)
	}
	if r, _ := say(t, c, "hello"); r.Result != "yes?" {
		t.Errorf("got %+v", r)
	}
	var texts []string
	for _, m := range model.Last().Messages {
		for _, b := range m.Content {
			texts = append(texts, m.Role+": "+b.Text)
		}
	}
	// The thought is kept as well: the program has heard it.
	want := []string{"user: talk", "assistant: ", "assistant: whole", "assistant: half", "user: [Request interrupted by user]", "user: hello"}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Error(diff)
	}
}

func TestInterruptWhileWaitingToRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := agent.Open(t.Context(), testEngine(modeltest.New(t, modeltest.RateLimited(4*60e9), modeltest.Text("later"))), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.Send(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := c.Interrupt(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r, _ := hear(t, c); r.TerminalReason != agent.ReasonAbortedStreaming {
			t.Errorf("got %+v", r)
		}
		if r, _ := say(t, c, "again"); r.Result != "later" {
			t.Errorf("got %+v", r)
		}
	})
}

func TestInterruptWithoutATurn(t *testing.T) {
	c := open(t, modeltest.New(t, modeltest.Text("1")), nil)
	for range 2 {
		if err := c.Interrupt(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if r, _ := say(t, c, "x"); r.Result != "1" {
		t.Errorf("got %+v", r)
	}
}

func TestCloseStopsEverything(t *testing.T) {
	gate := modeltest.NewGate()
	c := open(t, modeltest.New(t, modeltest.Say(modeltest.Text("a b c").After(1, modeltest.Hold(gate)))), nil)
	if err := c.Send(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	<-gate.Reached()
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	ctx := t.Context()
	_, setErr := c.SetMCPServers(ctx, nil)
	_, statusErr := c.MCPStatus(ctx)
	for name, err := range map[string]error{
		"Send": c.Send(ctx, "x"), "EndInput": c.EndInput(), "Interrupt": c.Interrupt(ctx), "SetModel": c.SetModel(ctx, "m"),
		"SetPermissionMode": c.SetPermissionMode(ctx, "plan"), "Reconnect": c.ReconnectMCPServer(ctx, "a"),
		"SetEnabled": c.SetMCPServerEnabled(ctx, "a", true), "SetMCPServers": setErr, "MCPStatus": statusErr,
	} {
		if !errors.Is(err, agent.ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
	for _, err := range c.Messages(ctx) {
		if !errors.Is(err, agent.ErrClosed) {
			t.Errorf("Messages after Close: %v", err)
		}
	}
}

// A session that nobody reads pauses, answers about its servers all the same, and can be closed.
//
// fault F21
func TestUnreadSession(t *testing.T) {
	words := strings.Repeat("word ", 1000)
	gate := modeltest.NewGate()
	model := modeltest.New(t, modeltest.Say(modeltest.Hold(gate), modeltest.Text(words)))
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	o.IncludePartialMessages = true
	c := open(t, model, o)
	if err := c.Send(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	<-gate.Reached() // the servers were waited for
	gate.Open()
	if status, err := c.MCPStatus(t.Context()); err != nil || len(status) != 1 || status[0].Name != "s" || status[0].ToolCount != 1 {
		t.Errorf("the status is %+v, %v", status, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.MCPStatus(t.Context()); !errors.Is(err, agent.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Leaving the loop ends the request that runs.
//
// fault F20
func TestBreakStopsTheWork(t *testing.T) {
	gone := make(chan struct{})
	turn := modeltest.Say(modeltest.Text("a"), modeltest.Pause(func(ctx context.Context) error {
		<-ctx.Done()
		close(gone)
		return ctx.Err()
	}))
	for m := range agent.Query(t.Context(), testEngine(modeltest.New(t, turn)), "x", nil) {
		if _, ok := m.(*agent.Assistant); ok {
			break
		}
	}
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Fatal("the request still runs a minute after the loop was left")
	}
}

func TestReceiveAfterTheEnd(t *testing.T) {
	s, err := testEngine(modeltest.New(t)).Open(t.Context(), &agent.Options{SessionID: "x", MaxToolConcurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.EndInput(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.Receive(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want EOF", err)
		}
	}
}

// A server that does not stream although it was asked to is understood all the same.
func TestUnstreamedResponse(t *testing.T) {
	body := `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"all at once"}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":2}}`
	e := New(&Options{APIKey: "test", HTTPClient: answering("application/json", body)})
	msgs, err := collect(t, t.Context(), e, "x", nil)
	if r := last[*agent.Result](msgs); err != nil || r.Result != "all at once" || r.Usage.InputTokens != 3 {
		t.Errorf("%+v, %v", r, err)
	}
}
