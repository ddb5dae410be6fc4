package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

var clientBehaviours = []behaviour{
	{"ManyTurns", clientManyTurns},
	{"EndInput", endInput},
	{"InterruptDuringATool", interruptDuringATool},
	{"InterruptWhileTheModelSpeaks", interruptWhileTheModelSpeaks},
	{"InterruptWithoutATurn", interruptWithoutATurn},
	{"MessageWhileAToolRuns", messageWhileAToolRuns},
	{"SetModel", setModel},
	{"SetPermissionMode", setPermissionMode},
	{"CloseDuringATool", closeDuringATool},
	{"CloseTwice", closeTwice},
	{"ContextUsage", contextUsage},
	{"ReplaysInputs", replaysInputs},
	{"ErrorResultDoesNotEndTheConversation", errorResultDoesNotEndTheConversation},
}

func clientManyTurns(e *env) {
	c := e.open(e.script(modeltest.Text("one"), modeltest.Text("two")), nil)
	for i, want := range []string{"one", "two"} {
		e.send(c, "question "+want)
		tr := e.hear(c)
		if r := tr.result(e); r.Result != want {
			e.Errorf("result %+v, want %s", r, want)
		}
		if len(all[*agent.SystemInit](tr)) != 1 {
			e.Errorf("turn %d has %d init messages", i+1, len(all[*agent.SystemInit](tr)))
		}
	}
	second := e.model.Last()
	if !strings.Contains(second.FirstUserText(), "question one") || !strings.Contains(second.LastUserText(), "question two") {
		e.Errorf("the second request holds %q … %q", second.FirstUserText(), second.LastUserText())
	}
}

func endInput(e *env) {
	c := e.open(e.script(modeltest.Text("one")), nil)
	e.send(c, "x")
	if err := c.EndInput(); err != nil {
		e.Fatal(err)
	}
	results := 0
	for m, err := range c.Messages(e.Context()) {
		if err != nil {
			e.Fatal(err)
		}
		if _, ok := m.(*agent.Result); ok {
			results++
		}
	}
	if results != 1 {
		e.Errorf("%d results, want 1", results)
	}
}

// What the program says comes back as it is taken into the conversation, if it asks for that.
func replaysInputs(e *env) {
	const id = "3f0c2a52-6f0e-4d0a-9a3c-6f1de1c0a001"
	for _, wanted := range []bool{true, false} {
		c := e.open(e.script(modeltest.Text("one"), modeltest.Text("two")), &agent.Options{ReplayUserMessages: wanted})
		if err := c.SendInput(e.Context(), &agent.Input{Content: agent.TextContent("first"), UUID: id}); err != nil {
			e.Fatal(err)
		}
		tr := e.hear(c)
		e.send(c, "second")
		var got []string
		for _, m := range append(tr.messages, e.hear(c).messages...) {
			switch m := m.(type) {
			case *agent.User:
				if m.IsReplay {
					got = append(got, m.Message.Content.Text())
				}
				if m.IsReplay && (m.Message.Content.Text() == "first") != (m.UUID == id) {
					e.Errorf("the replay has the UUID %q: %+v", m.UUID, m)
				}
			case *agent.Assistant:
				got = append(got, m.Text())
			}
		}
		want := []string{"first", "one", "second", "two"}
		if !wanted {
			want = []string{"one", "two"}
		}
		if !slices.Equal(got, want) {
			e.Errorf("heard %q, want %q", got, want)
		}
	}
}

func interruptDuringATool(e *env) {
	h, running, ended := blocking()
	c := e.open(e.script(callX("toolu_1", `{}`), modeltest.Text("hello again")), e.toolbox(nil, h))
	e.send(c, "x")
	interrupted := make(chan error, 1)
	go func() {
		<-running
		interrupted <- c.Interrupt(e.Context())
	}()
	tr := e.hear(c)
	<-ended
	if err := <-interrupted; err != nil {
		e.Error(err)
	}
	r := tr.result(e)
	if r.Subtype != agent.SubtypeErrorDuringExecution || r.TerminalReason != agent.ReasonAbortedTools || !errors.Is(r.Err(), agent.ErrInterrupted) {
		e.Errorf("result %+v", r)
	}
	e.send(c, "are you there?")
	if r := e.hear(c).result(e); r.Result != "hello again" {
		e.Errorf("after the interrupt: %+v", r)
	}
	if sent := e.sent("toolu_1"); !sent.IsError {
		e.Errorf("the interrupted call was answered %+v", sent)
	}
}

func interruptWhileTheModelSpeaks(e *env) {
	turn, reached, gone := held()
	c := e.open(e.script(turn, modeltest.Text("hello again")), nil)
	e.send(c, "x")
	interrupted := make(chan error, 1)
	go func() {
		<-reached
		interrupted <- c.Interrupt(e.Context())
	}()
	r := e.hear(c).result(e)
	<-gone
	if err := <-interrupted; err != nil || r.TerminalReason != agent.ReasonAbortedStreaming || !errors.Is(r.Err(), agent.ErrInterrupted) {
		e.Errorf("result %+v, %v", r, err)
	}
	e.send(c, "are you there?")
	if r := e.hear(c).result(e); r.Result != "hello again" {
		e.Errorf("after the interrupt: %+v", r)
	}
}

func interruptWithoutATurn(e *env) {
	c := e.open(e.script(modeltest.Text("one"), modeltest.Text("two")), nil)
	e.send(c, "x")
	e.hear(c)
	if err := c.Interrupt(e.Context()); err != nil {
		e.Error(err)
	}
	e.send(c, "y")
	if r := e.hear(c).result(e); r.Result != "two" {
		e.Errorf("result %+v", r)
	}
}

func messageWhileAToolRuns(e *env) {
	running, release := make(chan struct{}), make(chan struct{})
	o := e.toolbox(nil, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		close(running)
		<-release
		return mcpserver.Text("done"), nil
	})
	c := e.open(e.script(callX("toolu_1", `{}`), modeltest.Text("both")), o)
	e.send(c, "first thing")
	go func() {
		<-running
		if err := c.Send(e.Context(), "second thing"); err != nil {
			e.Error(err)
		}
		close(release)
	}()
	if r := e.hear(c).result(e); r.Result != "both" {
		e.Errorf("result %+v", r)
	}
	if got := e.model.Last().LastUserText(); !strings.Contains(got, "second thing") {
		e.Errorf("the model was last told %q", got)
	}
}

func setModel(e *env) {
	c := e.open(e.script(modeltest.Text("one"), modeltest.Text("two")), &agent.Options{Model: "claude-sonnet-4-5"})
	e.send(c, "x")
	e.hear(c)
	if err := c.SetModel(e.Context(), "claude-haiku-4-5"); err != nil {
		e.Fatal(err)
	}
	e.send(c, "y")
	tr := e.hear(c)
	if got := e.model.Last().Model; !strings.HasPrefix(got, "claude-haiku-4-5") || !strings.HasPrefix(tr.init(e).Model, "claude-haiku-4-5") {
		e.Errorf("asked %q, init has %q", got, tr.init(e).Model)
	}
}

func setPermissionMode(e *env) {
	c := &counter{}
	cl := e.open(e.script(callX("toolu_1", `{}`), modeltest.Text("one"), callX("toolu_2", `{}`), modeltest.Text("two")), e.toolbox(nil, c.handle))
	e.send(cl, "x")
	e.hear(cl)
	if err := cl.SetPermissionMode(e.Context(), permission.ModePlan); err != nil {
		e.Fatal(err)
	}
	e.send(cl, "y")
	tr := e.hear(cl)
	if !tr.toolResult(e, "toolu_2").IsError || c.n.Load() != 1 || tr.init(e).PermissionMode != "plan" {
		e.Errorf("ran %d times, init has the mode %q", c.n.Load(), tr.init(e).PermissionMode)
	}
}

func contextUsage(e *env) {
	o := e.toolbox(&mcpserver.Tool{Description: strings.Repeat("Looks things up on the shelves. ", 50)}, echo)
	o.SystemPrompt = "Be brief."
	turn := modeltest.Say(modeltest.Text("one")).Usage(modeltest.Usage{InputTokens: 5000, OutputTokens: 10})
	c := e.open(e.script(turn), o)
	e.send(c, "x")
	e.hear(c)
	u, err := c.ContextUsage(e.Context())
	if err != nil {
		e.Fatal(err)
	}
	// An engine may not count a tool as loaded before it was called, and then it says no size.
	if len(u.MCPTools) != 1 || u.MCPTools[0].Name != toolX || u.MCPTools[0].ServerName != "t" || u.MCPTools[0].IsLoaded && u.MCPTools[0].Tokens < 100 {
		e.Errorf("the tools of servers take %+v", u.MCPTools)
	}
	used := map[string]int64{}
	for _, category := range u.Categories {
		used[category.ID] += category.Tokens
	}
	if used[agent.ContextMessages] == 0 || u.TotalTokens == 0 || u.MaxTokens == 0 || u.Model == "" {
		e.Errorf("usage %+v", u)
	}
}

func closeDuringATool(e *env) {
	h, running, ended := blocking()
	c := e.open(e.script(callX("toolu_1", `{}`)), e.toolbox(nil, h))
	e.send(c, "x")
	closed := make(chan error, 1)
	go func() {
		<-running
		closed <- c.Close()
	}()
	var last error
	for _, err := range c.Messages(e.Context()) {
		last = err
	}
	if err := <-closed; err != nil {
		e.Error(err)
	}
	<-ended
	if !errors.Is(last, agent.ErrClosed) {
		e.Errorf("the reader ended with %v", last)
	}
}

func closeTwice(e *env) {
	c := e.open(e.script(), nil)
	done := make(chan error)
	for range 3 {
		go func() { done <- c.Close() }()
	}
	for range 3 {
		if err := <-done; err != nil {
			e.Error(err)
		}
	}
	if err := c.Send(e.Context(), "x"); !errors.Is(err, agent.ErrClosed) {
		e.Errorf("Send after Close: %v", err)
	}
}

func errorResultDoesNotEndTheConversation(e *env) {
	answer := modeltest.Func(func(r *modeltest.Request) modeltest.Turn {
		if strings.Contains(r.LastUserText(), "again") { // what failed may stand before it
			return modeltest.Text("better")
		}
		return modeltest.Fail(400, "invalid_request_error", "no")
	})
	c := e.open(e.script(answer), nil)
	e.send(c, "x")
	if r := e.hear(c).result(e); !r.IsError {
		e.Errorf("result %+v", r)
	}
	e.send(c, "again")
	if r := e.hear(c).result(e); r.Result != "better" || r.IsError {
		e.Errorf("result %+v", r)
	}
}
