package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

var hookBehaviours = []behaviour{
	{"PreToolUse", preToolUse},
	{"PreToolUseDenies", preToolUseDenies},
	{"PreToolUseAllows", preToolUseAllows},
	{"PreToolUseChangesTheInput", preToolUseChangesTheInput},
	{"LaterHooksSeeTheChange", laterHooksSeeTheChange},
	{"Matcher", hookMatcher},
	{"FailingHook", failingHook},
	{"PostToolUseChangesTheOutput", postToolUseChangesTheOutput},
	{"PostToolUseFailure", postToolUseFailure},
	{"UserPromptSubmit", userPromptSubmit},
	{"StopMakesTheModelGoOn", stopMakesTheModelGoOn},
}

// pre is a list of one PreToolUse hook.
func pre(f func(*agent.PreToolUse) (*agent.PreToolUseOutput, error)) *agent.Hooks {
	return &agent.Hooks{PreToolUse: []agent.Hook[agent.PreToolUse, agent.PreToolUseOutput]{{
		Func: func(_ context.Context, in *agent.PreToolUse) (*agent.PreToolUseOutput, error) { return f(in) },
	}}}
}

func preToolUse(e *env) {
	var got *agent.PreToolUse
	tr, r, c := e.oneCall(nil, func(o *agent.Options) {
		o.Hooks = pre(func(in *agent.PreToolUse) (*agent.PreToolUseOutput, error) {
			got = in
			return nil, nil
		})
	})
	e.wantRun(tr, r, c)
	if got == nil || got.HookEventName != "PreToolUse" || got.ToolName != toolX || got.ToolUseID != "toolu_1" || !sameJSON(got.ToolInput, json.RawMessage(`{"a":1}`)) || got.SessionID != r.SessionID {
		e.Errorf("the hook was told %+v", got)
	}
}

func preToolUseDenies(e *env) {
	tr, _, c := e.oneCall(nil, func(o *agent.Options) {
		o.Hooks = pre(func(*agent.PreToolUse) (*agent.PreToolUseOutput, error) {
			return &agent.PreToolUseOutput{Decision: permission.Deny, Reason: "not while I watch"}, nil
		})
	})
	if got := tr.toolResult(e, "toolu_1"); !got.IsError || c.n.Load() != 0 || !strings.Contains(got.Text(), "not while I watch") {
		e.Errorf("ran %d times, result %q", c.n.Load(), got.Text())
	}
}

// Of several hooks on a call each sees what those before it have made of the input, and the tool gets what
// the last one saw.
//
// fault A3
func laterHooksSeeTheChange(e *env) {
	var saw []string
	change := func(to string) agent.Hook[agent.PreToolUse, agent.PreToolUseOutput] {
		return agent.Hook[agent.PreToolUse, agent.PreToolUseOutput]{Func: func(_ context.Context, in *agent.PreToolUse) (*agent.PreToolUseOutput, error) {
			saw = append(saw, string(in.ToolInput))
			if to == "" {
				return nil, nil
			}
			return &agent.PreToolUseOutput{Decision: permission.Allow, UpdatedInput: json.RawMessage(to)}, nil
		}}
	}
	tr, r, c := e.oneCall(nil, func(o *agent.Options) {
		o.Hooks = &agent.Hooks{PreToolUse: []agent.Hook[agent.PreToolUse, agent.PreToolUseOutput]{change(`{"a":2}`), change(`{"a":3}`), change("")}}
	})
	e.wantRun(tr, r, c)
	if want := []string{`{"a":1}`, `{"a":2}`, `{"a":3}`}; !slices.Equal(saw, want) {
		e.Errorf("the hooks saw %q, want %q", saw, want)
	}
	if got := tr.toolResult(e, "toolu_1").Text(); got != `ran with {"a":3}` {
		e.Errorf("the tool %s", got)
	}
}

func preToolUseAllows(e *env) {
	tr, r, c := e.oneCall(nil, func(o *agent.Options) {
		o.AllowedTools = nil
		o.Hooks = pre(func(*agent.PreToolUse) (*agent.PreToolUseOutput, error) {
			return &agent.PreToolUseOutput{Decision: permission.Allow}, nil
		})
	})
	e.wantRun(tr, r, c)
}

// D97: what a hook gives the call counts as it stands, its digits included.
func preToolUseChangesTheInput(e *env) {
	for _, input := range []string{`{"a":3}`, `{"n":12345678901234567890,"f":1.50}`} {
		tr, r, c := e.oneCall(nil, func(o *agent.Options) {
			o.Hooks = pre(func(*agent.PreToolUse) (*agent.PreToolUseOutput, error) {
				return &agent.PreToolUseOutput{Decision: permission.Allow, UpdatedInput: json.RawMessage(input)}, nil
			})
		})
		e.wantRun(tr, r, c)
		if got := tr.toolResult(e, "toolu_1").Text(); got != "ran with "+input {
			e.Errorf("with %s: %s", input, got)
		}
	}
}

func hookMatcher(e *env) {
	var called atomic.Int32
	hook := func(matcher string) agent.Hook[agent.PreToolUse, agent.PreToolUseOutput] {
		return agent.Hook[agent.PreToolUse, agent.PreToolUseOutput]{Matcher: matcher, Func: func(context.Context, *agent.PreToolUse) (*agent.PreToolUseOutput, error) {
			called.Add(1)
			return nil, nil
		}}
	}
	e.oneCall(nil, func(o *agent.Options) {
		o.Hooks = &agent.Hooks{PreToolUse: []agent.Hook[agent.PreToolUse, agent.PreToolUseOutput]{
			hook("mcp__t__.*"), hook("mcp__other__.*"), hook("mcp__t__x|Bash"),
		}}
	})
	if called.Load() != 2 {
		e.Errorf("%d hooks were called, want 2", called.Load())
	}
}

func failingHook(e *env) {
	for _, closed := range []bool{false, true} {
		tr, _, c := e.oneCall(nil, func(o *agent.Options) {
			o.Hooks = pre(func(*agent.PreToolUse) (*agent.PreToolUseOutput, error) { return nil, errors.New("hook is broken") })
			o.Hooks.PreToolUse[0].FailClosed = closed
		})
		if ran := c.n.Load() == 1; ran == closed {
			e.Errorf("fail closed %v: ran %v, result %q", closed, ran, tr.toolResult(e, "toolu_1").Text())
		}
	}
}

func postToolUseChangesTheOutput(e *env) {
	var got *agent.PostToolUse
	e.oneCall(nil, func(o *agent.Options) {
		o.Hooks = &agent.Hooks{PostToolUse: []agent.Hook[agent.PostToolUse, agent.PostToolUseOutput]{{
			Func: func(_ context.Context, in *agent.PostToolUse) (*agent.PostToolUseOutput, error) {
				got = in
				return &agent.PostToolUseOutput{UpdatedOutput: agent.Content{&agent.TextBlock{Text: "redacted"}}}, nil
			},
		}}}
	})
	if sent := textOf(e.sent("toolu_1")); sent != "redacted" {
		e.Errorf("the model was sent %q", sent)
	}
	if got == nil || got.ToolName != toolX || !strings.Contains(string(got.ToolResponse), "ran with") {
		e.Errorf("the hook was told %+v", got)
	}
}

func postToolUseFailure(e *env) {
	var got *agent.PostToolUseFailure
	o := e.toolbox(nil, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		return nil, errors.New("shelf is empty")
	})
	o.Hooks = &agent.Hooks{
		PostToolUseFailure: []agent.Hook[agent.PostToolUseFailure, agent.HookOutput]{{
			Func: func(_ context.Context, in *agent.PostToolUseFailure) (*agent.HookOutput, error) {
				got = in
				return nil, nil
			},
		}},
		PostToolUse: []agent.Hook[agent.PostToolUse, agent.PostToolUseOutput]{{
			Func: func(context.Context, *agent.PostToolUse) (*agent.PostToolUseOutput, error) {
				e.Error("PostToolUse was called for a failure")
				return nil, nil
			},
		}},
	}
	e.answered(e.script(callX("toolu_1", `{}`), modeltest.Text("x")), "x", o)
	if got == nil || !strings.Contains(got.Error, "shelf is empty") {
		e.Errorf("the hook was told %+v", got)
	}
}

func userPromptSubmit(e *env) {
	o := &agent.Options{Hooks: &agent.Hooks{UserPromptSubmit: []agent.Hook[agent.UserPromptSubmit, agent.PromptOutput]{{
		Func: func(_ context.Context, in *agent.UserPromptSubmit) (*agent.PromptOutput, error) {
			return &agent.PromptOutput{HookOutput: agent.HookOutput{AdditionalContext: "It is " + in.Prompt + " o'clock."}}, nil
		},
	}}}}
	e.answered(e.script(modeltest.Text("x")), "four", o)
	if got := told(e.model.Last()); !strings.Contains(got, "It is four o'clock.") {
		e.Errorf("the model was told %q", got)
	}
}

// told is every text of a conversation, whoever said it: engines put what they add in different places.
func told(r *modeltest.Request) string {
	var texts []string
	for _, m := range r.Messages {
		for _, c := range m.Content {
			texts = append(texts, textOf(c))
		}
	}
	return strings.Join(texts, "\n")
}

func stopMakesTheModelGoOn(e *env) {
	var active []bool
	o := &agent.Options{Hooks: &agent.Hooks{Stop: []agent.Hook[agent.Stop, agent.StopOutput]{{
		Func: func(_ context.Context, in *agent.Stop) (*agent.StopOutput, error) {
			active = append(active, in.StopHookActive)
			return &agent.StopOutput{Block: !in.StopHookActive, Reason: "say it louder"}, nil
		},
	}}}}
	_, r := e.answered(e.script(modeltest.Text("hello"), modeltest.Text("HELLO")), "x", o)
	if r.Result != "HELLO" || len(active) != 2 || active[0] || !active[1] {
		e.Errorf("result %q, hooks saw %v", r.Result, active)
	}
	if got := e.model.Last().LastUserText(); !strings.Contains(got, "say it louder") {
		e.Errorf("the model was told %q", got)
	}
}
