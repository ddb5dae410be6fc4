package enginetest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/modeltest"
)

var inputBehaviours = []behaviour{
	{"Empty", emptyInputs},
	{"TooMany", tooManyInputs},
	{"InterruptAtOnce", interruptAtOnce},
	{"TurnTimeout", turnTimeout},
}

// An input with nothing in it is refused in the same way everywhere, and costs nothing.
//
// fault D9
func emptyInputs(e *env) {
	engine := e.script(modeltest.Text("answered"))
	c := e.open(engine, nil)
	inputs := map[string]*agent.Input{
		"nil":         nil,
		"zero":        {},
		"no text":     agent.Text(""),
		"white space": agent.Text(" \n\t\u00a0"),
		"no blocks":   {Content: agent.Content{}},
		"blank texts": {Content: agent.Content{&agent.TextBlock{Text: " "}, &agent.TextBlock{}}},
		"nil block":   {Content: agent.Content{nil}},
		"typed nil":   {Content: agent.Content{&agent.TextBlock{Text: "x"}, (*agent.ImageBlock)(nil)}},
	}
	for name, in := range inputs {
		if err := c.SendInput(e.Context(), in); !errors.Is(err, agent.ErrEmptyInput) {
			e.Errorf("SendInput with %s: %v", name, err)
		}
		for m, err := range agent.QueryInput(e.Context(), engine, in, alone(nil)) {
			if m != nil || !errors.Is(err, agent.ErrEmptyInput) {
				e.Errorf("QueryInput with %s: %v, %v", name, m, err)
			}
		}
	}
	if err := c.Send(e.Context(), ""); !errors.Is(err, agent.ErrEmptyInput) {
		e.Errorf("Send of nothing: %v", err)
	}
	e.send(c, "x")
	if r := e.hear(c).result(e); r.Result != "answered" || len(e.model.Requests()) != 1 {
		e.Errorf("after them: %d requests, result %+v", len(e.model.Requests()), r)
	}
}

// So many inputs wait and no more; those that were taken are answered, and then there is room again.
//
// fault G11
func tooManyInputs(e *env) {
	gate := modeltest.NewGate()
	answer := modeltest.Func(func(*modeltest.Request) modeltest.Turn { return modeltest.Text("answered") })
	c := e.open(e.script(modeltest.Say(modeltest.Text("one"), modeltest.Hold(gate)), answer), &agent.Options{MaxQueuedInputs: 3})
	var err error
	taken := 0
	for ; err == nil && taken <= 10; taken++ {
		err = c.Send(e.Context(), "x")
	}
	if taken--; !errors.Is(err, agent.ErrTooManyInputs) || taken < 3 || taken > 4 { // and the one that is at work
		e.Fatalf("after %d inputs: %v", taken, err)
	}
	gate.Open()
	for {
		r := e.hear(c).result(e)
		if r.IsError {
			e.Errorf("got %+v", r)
		}
		if r.QueuedTurnCount == 0 {
			break
		}
	}
	e.send(c, "y")
	if r := e.hear(c).result(e); r.IsError {
		e.Errorf("the turn after them: %+v", r)
	}
}

// An interrupt that comes right after an input ends its turn: it is not lost between the input and the
// turn, and the session goes on.
//
// fault D1
func interruptAtOnce(e *env) {
	answer := modeltest.Func(func(*modeltest.Request) modeltest.Turn { return modeltest.Text("answered") })
	c := e.open(e.script(answer), nil)
	for i := range 20 {
		e.send(c, "x")
		if err := c.Interrupt(e.Context()); err != nil {
			e.Fatal(err)
		}
		if r := e.hear(c).result(e); !errors.Is(r.Err(), agent.ErrInterrupted) {
			e.Errorf("turn %d: got %+v", i, r)
		}
	}
	e.send(c, "go on")
	if r := e.hear(c).result(e); r.Result != "answered" {
		e.Errorf("the turn after them: %+v", r)
	}
}

// A turn that takes too long ends, says so, and the conversation goes on.
//
// fault G12
func turnTimeout(e *env) {
	silent := modeltest.Pause(func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	c := e.open(e.script(modeltest.Say(modeltest.Text("half"), silent), modeltest.Text("answered")), &agent.Options{TurnTimeout: 2 * time.Second})
	e.send(c, "x")
	r := e.hear(c).result(e)
	if err := r.Err(); !errors.Is(err, agent.ErrTurnTimeout) || errors.Is(err, agent.ErrInterrupted) || r.TerminalReason != agent.ReasonTurnTimeout || !strings.Contains(err.Error(), "2s") {
		e.Errorf("got %v, %+v", err, r)
	}
	e.send(c, "y")
	if r := e.hear(c).result(e); r.Result != "answered" {
		e.Errorf("the turn after it: %+v", r)
	}
}
