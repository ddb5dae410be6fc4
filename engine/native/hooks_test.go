package native

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/engine/native/internal/transcript"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

type preHook = agent.Hook[agent.PreToolUse, agent.PreToolUseOutput]

// pre is a PreToolUse hook that says the same each time.
func pre(out agent.PreToolUseOutput) preHook {
	return preHook{Func: func(context.Context, *agent.PreToolUse) (*agent.PreToolUseOutput, error) { return &out, nil }}
}

// hookedCall runs one call of a tool w under hooks.
func hookedCall(t *testing.T, h *agent.Hooks) (*agent.Result, []agent.Message, *modeltest.Model) {
	t.Helper()
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	o.Hooks = h
	model := modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{"a":1}`), modeltest.Text("x"))
	r, msgs := answered(t, model, o)
	return r, msgs, model
}

// The strictest hook decides, the last changed input stands, the contexts are joined.
func TestHooksAreMerged(t *testing.T) {
	allow := agent.PreToolUseOutput{Decision: permission.Allow, UpdatedInput: json.RawMessage(`{"a":2}`), HookOutput: agent.HookOutput{AdditionalContext: "first"}}
	later := agent.PreToolUseOutput{UpdatedInput: json.RawMessage(`{"a":3}`), HookOutput: agent.HookOutput{AdditionalContext: "second"}}
	_, msgs, model := hookedCall(t, &agent.Hooks{PreToolUse: []preHook{pre(allow), pre(later)}})
	if got := results(msgs)[0].Text(); got != `{"a":3}` {
		t.Errorf("the tool got %s", got)
	}
	if got := model.Last().LastUserText(); !strings.Contains(got, "first") || !strings.Contains(got, "second") {
		t.Errorf("the model was told %q", got)
	}
	deny := agent.PreToolUseOutput{Decision: permission.Deny, Reason: "because"}
	for _, hooks := range [][]preHook{{pre(allow), pre(deny)}, {pre(deny), pre(allow)}} {
		if _, msgs, _ := hookedCall(t, &agent.Hooks{PreToolUse: hooks}); !results(msgs)[0].IsError || !strings.Contains(results(msgs)[0].Text(), "because") {
			t.Errorf("got %+v", results(msgs)[0])
		}
	}
	if _, msgs, _ := hookedCall(t, &agent.Hooks{PreToolUse: []preHook{pre(agent.PreToolUseOutput{UpdatedInput: json.RawMessage(`[]`)})}}); !results(msgs)[0].IsError {
		t.Error("a changed input that is no object was used")
	}
}

// Hooks on a call run one after the other, and one that runs out of time blocks what it guards.
func TestHookTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(d time.Duration) preHook {
			return preHook{Timeout: 5 * time.Second, Func: func(ctx context.Context, _ *agent.PreToolUse) (*agent.PreToolUseOutput, error) {
				select {
				case <-time.After(d):
				case <-ctx.Done():
				}
				return nil, ctx.Err()
			}}
		}
		began := time.Now()
		_, msgs, _ := hookedCall(t, &agent.Hooks{PreToolUse: []preHook{slow(3 * time.Second), slow(3 * time.Second)}})
		if took := time.Since(began); took != 6*time.Second || results(msgs)[0].IsError {
			t.Errorf("two hooks of 3 s took %v: %+v", took, results(msgs)[0])
		}
		_, msgs, _ = hookedCall(t, &agent.Hooks{PreToolUse: []preHook{slow(time.Hour)}})
		if got := results(msgs)[0]; !got.IsError || !strings.Contains(got.Text(), "ran out of time") {
			t.Errorf("after the time limit: %+v", got)
		}
	})
}

// The hook on a failed call is told how long the call took, as the one on a call that succeeded.
//
// fault G13
func TestHooksAreToldTheDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var took []int64
		o := withTools(t, func(_ context.Context, args json.RawMessage) (*mcpserver.Result, error) {
			time.Sleep(3 * time.Second)
			if strings.Contains(string(args), "fail") {
				return nil, errors.New("no")
			}
			return mcpserver.Text("yes"), nil
		}, &mcpserver.Tool{Name: "w"})
		o.Hooks = &agent.Hooks{
			PostToolUse: []agent.Hook[agent.PostToolUse, agent.PostToolUseOutput]{{Func: func(_ context.Context, in *agent.PostToolUse) (*agent.PostToolUseOutput, error) {
				took = append(took, in.DurationMS)
				return nil, nil
			}}},
			PostToolUseFailure: []agent.Hook[agent.PostToolUseFailure, agent.HookOutput]{{Func: func(_ context.Context, in *agent.PostToolUseFailure) (*agent.HookOutput, error) {
				took = append(took, in.DurationMS)
				return nil, nil
			}}},
		}
		answered(t, modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{}`), modeltest.ToolUse("mcp__s__w", `{"fail":1}`), modeltest.Text("x")), o)
		if diff := cmp.Diff([]int64{3000, 3000}, took); diff != "" {
			t.Error(diff)
		}
	})
}

func TestFailingHooksAreReported(t *testing.T) {
	broken := preHook{Func: func(context.Context, *agent.PreToolUse) (*agent.PreToolUseOutput, error) { panic("oops") }}
	_, msgs, _ := hookedCall(t, &agent.Hooks{PreToolUse: []preHook{broken}})
	if diff := cmp.Diff([]string{"hook_callback_failed"}, tags(msgs)); diff != "" || results(msgs)[0].IsError {
		t.Errorf("%s: %+v", diff, results(msgs)[0])
	}
}

// A hook can end the turn: the call is not made, and the conversation stays valid.
func TestHookStopsTheTurn(t *testing.T) {
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	o.Hooks = &agent.Hooks{PreToolUse: []preHook{pre(agent.PreToolUseOutput{HookOutput: agent.HookOutput{Stop: true, StopReason: "enough"}})}}
	model := modeltest.New(t, modeltest.Say(modeltest.ToolUse("mcp__s__w", `{}`), modeltest.ToolUse("mcp__s__w", `{}`)), modeltest.Text("later"))
	c := open(t, model, o)
	r, msgs := say(t, c, "x")
	if r.TerminalReason != agent.ReasonHookStopped || !r.IsError || !strings.Contains(r.Errors[0], "enough") {
		t.Errorf("got %+v", r)
	}
	if got := results(msgs); len(got) != 2 || !got[0].IsError || !got[1].IsError {
		t.Errorf("the calls were answered %+v", got)
	}
	if r, _ := say(t, c, "y"); r.Result != "later" {
		t.Errorf("got %+v", r)
	}
}

func TestPromptHookBlocks(t *testing.T) {
	block := func(_ context.Context, in *agent.UserPromptSubmit) (*agent.PromptOutput, error) {
		return &agent.PromptOutput{Block: strings.Contains(in.Prompt, "secret"), Reason: "no secrets"}, nil
	}
	model := modeltest.New(t, modeltest.Text("fine"))
	c := open(t, model, &agent.Options{Hooks: &agent.Hooks{UserPromptSubmit: []agent.Hook[agent.UserPromptSubmit, agent.PromptOutput]{{Func: block}}}})
	if r, _ := say(t, c, "the secret is 7"); r.TerminalReason != agent.ReasonHookStopped || !strings.Contains(r.Errors[0], "no secrets") {
		t.Errorf("got %+v", r)
	}
	if r, _ := say(t, c, "hello"); r.Result != "fine" || strings.Contains(string(model.Last().Body), "secret") {
		t.Errorf("got %+v, sent %s", r, model.Last().Body)
	}
}

func TestStopHookCannotLoopForEver(t *testing.T) {
	again := func(context.Context, *agent.Stop) (*agent.StopOutput, error) {
		return &agent.StopOutput{Block: true, Reason: "again"}, nil
	}
	model := modeltest.New(t, modeltest.Func(func(*modeltest.Request) modeltest.Turn { return modeltest.Text("done") }))
	c := open(t, model, &agent.Options{Hooks: &agent.Hooks{Stop: []agent.Hook[agent.Stop, agent.StopOutput]{{Func: again}}}})
	if r, _ := say(t, c, "x"); r.TerminalReason != agent.ReasonStopHookPrevented || len(model.Requests()) != maxContinued+1 {
		t.Errorf("%d requests, %+v", len(model.Requests()), r)
	}
}

func TestSessionHooks(t *testing.T) {
	var ended atomic.Int32
	h := &agent.Hooks{
		SessionStart: []agent.Hook[agent.SessionStart, agent.HookOutput]{{Func: func(_ context.Context, in *agent.SessionStart) (*agent.HookOutput, error) {
			return &agent.HookOutput{AdditionalContext: "model " + in.Model + " from " + in.Source}, nil
		}}},
		SessionEnd: []agent.Hook[agent.SessionEnd, agent.HookOutput]{{Func: func(context.Context, *agent.SessionEnd) (*agent.HookOutput, error) {
			ended.Add(1)
			panic("at the end") // is nobody's problem
		}}},
	}
	model := modeltest.New(t, modeltest.Text("x"), modeltest.Text("y"))
	c := open(t, model, &agent.Options{Model: "claude-opus-5", Hooks: h})
	say(t, c, "a")
	if got := model.Last().LastUserText(); !strings.Contains(got, "model claude-opus-5 from startup") {
		t.Errorf("the model was told %q", got)
	}
	say(t, c, "b")
	if got := model.Last().LastUserText(); got != "b" {
		t.Errorf("the second turn has %q", got)
	}
	if err := c.Close(); err != nil || ended.Load() != 1 {
		t.Errorf("SessionEnd was called %d times, %v", ended.Load(), err)
	}
}

func TestBatchAndRequestHooks(t *testing.T) {
	var batch *agent.PostToolBatch
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	o.AllowedTools = nil
	o.Hooks = &agent.Hooks{
		PostToolBatch: []agent.Hook[agent.PostToolBatch, agent.HookOutput]{{Func: func(_ context.Context, in *agent.PostToolBatch) (*agent.HookOutput, error) {
			batch = in
			return nil, nil
		}}},
		PermissionRequest: []agent.Hook[agent.PermissionRequest, agent.PermissionRequestOutput]{{Func: func(_ context.Context, in *agent.PermissionRequest) (*agent.PermissionRequestOutput, error) {
			if strings.Contains(string(in.ToolInput), "2") {
				return nil, nil // nobody else can be asked
			}
			return &agent.PermissionRequestOutput{Verdict: agent.Allow()}, nil
		}}},
	}
	_, msgs := answered(t, modeltest.New(t, modeltest.Say(modeltest.ToolUse("mcp__s__w", `{"n":1}`), modeltest.ToolUse("mcp__s__w", `{"n":2}`)), modeltest.Text("x")), o)
	if got := results(msgs); got[0].IsError || !got[1].IsError {
		t.Errorf("got %+v and %+v", got[0], got[1])
	}
	if batch == nil || len(batch.ToolCalls) != 2 || !strings.Contains(string(batch.ToolCalls[0].ToolResponse), "text") {
		t.Errorf("the hook was told %+v", batch)
	}
}

func TestPostToolUseFeedback(t *testing.T) {
	_, _, model := hookedCall(t, &agent.Hooks{PostToolUse: []agent.Hook[agent.PostToolUse, agent.PostToolUseOutput]{{
		Func: func(context.Context, *agent.PostToolUse) (*agent.PostToolUseOutput, error) {
			return &agent.PostToolUseOutput{Feedback: "look closer"}, nil
		},
	}}})
	if got := model.Last().LastUserText(); !strings.Contains(got, "look closer") {
		t.Errorf("the model was told %q", got)
	}
}

// A notification is told of beside the question, which does not wait for it.
func TestNotification(t *testing.T) {
	asked := make(chan struct{})
	var heard []agent.Notification
	hook := func(matcher string) agent.Hook[agent.Notification, agent.HookOutput] {
		return agent.Hook[agent.Notification, agent.HookOutput]{Matcher: matcher, Func: func(_ context.Context, in *agent.Notification) (*agent.HookOutput, error) {
			<-asked
			heard = append(heard, *in)
			return &agent.HookOutput{AdditionalContext: "a person was told"}, nil
		}}
	}
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	o.AllowedTools = nil
	o.Hooks = &agent.Hooks{Notification: []agent.Hook[agent.Notification, agent.HookOutput]{hook("permission_.*"), hook("idle_prompt")}}
	o.CanUseTool = func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) {
		close(asked)
		return agent.Allow(), nil
	}
	model := modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{}`), modeltest.Text("x"))
	answered(t, model, o)
	if len(heard) != 1 || heard[0].Type != "permission_prompt" || !strings.Contains(heard[0].Message, "mcp__s__w") || heard[0].HookEventName != "Notification" {
		t.Errorf("the hooks heard %+v", heard)
	}
	if got := model.Last().LastUserText(); !strings.Contains(got, "a person was told") {
		t.Errorf("the model was told %q", got)
	}
}

// Matchers of events without a tool look at what the event is about.
func TestMatchersOfSessionEvents(t *testing.T) {
	var heard []string
	start := func(matcher string) agent.Hook[agent.SessionStart, agent.HookOutput] {
		return agent.Hook[agent.SessionStart, agent.HookOutput]{Matcher: matcher, Func: func(context.Context, *agent.SessionStart) (*agent.HookOutput, error) {
			heard = append(heard, "start "+matcher)
			return nil, nil
		}}
	}
	end := func(matcher string) agent.Hook[agent.SessionEnd, agent.HookOutput] {
		return agent.Hook[agent.SessionEnd, agent.HookOutput]{Matcher: matcher, Func: func(context.Context, *agent.SessionEnd) (*agent.HookOutput, error) {
			heard = append(heard, "end "+matcher)
			return nil, nil
		}}
	}
	o := &agent.Options{Hooks: &agent.Hooks{
		SessionStart: []agent.Hook[agent.SessionStart, agent.HookOutput]{start("resume"), start("startup|resume")},
		SessionEnd:   []agent.Hook[agent.SessionEnd, agent.HookOutput]{end("logout"), end("oth.*")},
	}}
	answered(t, modeltest.New(t, modeltest.Text("x")), o)
	if diff := cmp.Diff([]string{"start startup|resume", "end oth.*"}, heard); diff != "" {
		t.Error(diff)
	}
}

// A hook's output that the API would refuse costs neither the turn nor the rest of it, and is reported.
func TestFaultyHookOutput(t *testing.T) {
	for name, bad := range map[string]agent.Block{
		"no image":      imageOf("image/png", []byte("no image")),
		"no source":     &agent.UnknownBlock{Type: "document", Raw: json.RawMessage(`{"type":"document"}`)},
		"no JSON":       &agent.UnknownBlock{Type: "x", Raw: json.RawMessage(`{bad`)},
		"unknown":       &agent.UnknownBlock{Type: "x", Raw: json.RawMessage(`{"type":"x"}`)},
		"a call":        &agent.ToolUseBlock{ID: "a", Name: "b"},
		"a thought":     &agent.ThinkingBlock{Thinking: "x"},
		"a result":      result("a", "b"),
		"nothing":       nil,
		"other fields":  &agent.TextBlock{Text: "x", Extra: agent.Fields{"a": json.RawMessage(`1`)}},
		"wide":          imageOf("image/png", picture(transcript.MaxImageSide+1, 1)),
		"a wrong image": &agent.UnknownBlock{Type: "image", Raw: json.RawMessage(`{"type":"image","source":7}`)},
	} {
		t.Run(name, func(t *testing.T) {
			o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
			o.Hooks = &agent.Hooks{PostToolUse: []agent.Hook[agent.PostToolUse, agent.PostToolUseOutput]{{Func: func(context.Context, *agent.PostToolUse) (*agent.PostToolUseOutput, error) {
				return &agent.PostToolUseOutput{UpdatedOutput: agent.Content{bad, &agent.TextBlock{Text: "fine"}}}, nil
			}}}}
			r, msgs := answered(t, modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{}`), modeltest.Text("x")), o)
			if r.IsError || !strings.HasSuffix(results(msgs)[0].Text(), "fine") {
				t.Errorf("result %+v, of the call %+v", r, results(msgs)[0])
			}
			if got := tags(msgs); len(got) != 1 || got[0] != "hook_output" {
				t.Errorf("told %q", got)
			}
		})
	}
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	o.ToolSearch = agent.ToolSearchOn
	o.Hooks = &agent.Hooks{PostToolUse: []agent.Hook[agent.PostToolUse, agent.PostToolUseOutput]{{Func: func(context.Context, *agent.PostToolUse) (*agent.PostToolUseOutput, error) {
		return &agent.PostToolUseOutput{UpdatedOutput: agent.Content{transcript.Reference("mcp__s__none")}}, nil
	}}}}
	if r, msgs := answered(t, modeltest.New(t, modeltest.ToolUse("mcp__s__w", `{}`), modeltest.Text("x")), o); r.IsError || results(msgs)[0].Text() != "[tool mcp__s__none]" {
		t.Errorf("a reference: %+v, of the call %+v", r, results(msgs)[0])
	}
}
