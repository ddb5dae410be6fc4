package differential

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

// asked sets a callback that answers with a copy of verdict; what it is asked goes into the record.
func asked(verdict *permission.PromptResult, err error) func(*world, *agent.Options) {
	return func(w *world, o *agent.Options) {
		o.AllowedTools = nil
		o.CanUseTool = func(_ context.Context, r *agent.ToolRequest) (*permission.PromptResult, error) {
			w.add("asked", "%s %s/%s source=%s id=%s readonly=%v %s", r.ToolName, r.Server, r.Tool, r.Source, r.ToolUseID, r.ReadOnly, canonical(r.Input))
			suggestions, _ := json.Marshal(r.Suggestions)
			w.add("suggested", "%s", suggestions)
			return verdict, err
		}
	}
}

// mode sets a permission mode, without rules.
func mode(m permission.Mode) func(*world, *agent.Options) {
	return func(_ *world, o *agent.Options) { o.AllowedTools, o.PermissionMode = nil, m }
}

var readOnly = serving(mcpserver.Tool{ReadOnly: true}, echo)

var permissionScripts = []script{
	{name: "not allowed", turns: once, options: with(echoing, func(_ *world, o *agent.Options) { o.AllowedTools = nil })},
	{name: "disallowed", turns: once, options: with(echoing, func(_ *world, o *agent.Options) { o.DisallowedTools = []string{"mcp__t__x"} })},
	{name: "disallowed server", turns: once, options: with(echoing, func(_ *world, o *agent.Options) { o.DisallowedTools = []string{"mcp__t"} })},
	{name: "ask rule without anyone to ask", turns: once, options: with(echoing, func(_ *world, o *agent.Options) { o.AskTools = []string{"mcp__t__x"} })},
	{name: "ask rule", turns: once, options: with(with(echoing, asked(agent.Allow(), nil)), func(_ *world, o *agent.Options) {
		o.AskTools, o.AllowedTools = []string{"mcp__t__x"}, []string{"mcp__t"}
	})},
	{name: "callback allows", turns: once, options: with(echoing, asked(agent.Allow(), nil))},
	{name: "callback denies", turns: once, options: with(echoing, asked(agent.Deny("Not on a Sunday."), nil))},
	{name: "callback changes the input", turns: once, options: with(echoing, asked(&permission.PromptResult{Behavior: permission.Allow, UpdatedInput: json.RawMessage(`{"a":2}`)}, nil))},
	{name: "callback empties the input", turns: once, options: with(echoing, asked(&permission.PromptResult{Behavior: permission.Allow, UpdatedInput: json.RawMessage(`{}`)}, nil))},
	{name: "callback interrupts", turns: turns(modeltest.Say(x("toolu_1", `{}`), x("toolu_2", `{}`))), options: with(echoing, asked(&permission.PromptResult{Behavior: permission.Deny, Message: "Stop.", Interrupt: true}, nil))},
	{name: "callback fails", turns: once, options: with(echoing, asked(nil, errors.New("broken")))},
	{name: "callback allows from now on", turns: turns(x("toolu_1", `{}`), x("toolu_2", `{}`), modeltest.Text("done")), options: with(echoing, asked(&permission.PromptResult{
		Behavior: permission.Allow, UpdatedPermissions: []permission.Update{{
			Type: permission.AddRules, Rules: []permission.UpdateRule{{ToolName: "mcp__t__x"}}, Behavior: permission.Allow, Destination: permission.DestinationSession,
		}},
	}, nil))},
	{name: "callback changes the mode", turns: turns(x("toolu_1", `{}`), x("toolu_2", `{}`), modeltest.Text("done")), options: with(echoing, asked(&permission.PromptResult{
		Behavior: permission.Allow, UpdatedPermissions: []permission.Update{{Type: permission.SetMode, Mode: permission.ModeDontAsk, Destination: permission.DestinationSession}},
	}, nil))},
	{name: "plan mode", turns: once, options: with(echoing, mode(permission.ModePlan))},
	{name: "plan mode, read-only", turns: once, options: with(readOnly, mode(permission.ModePlan))},
	{name: "don't ask mode", turns: once, options: with(echoing, mode(permission.ModeDontAsk))},
	{name: "accept edits mode", turns: once, options: with(echoing, mode(permission.ModeAcceptEdits))},
	{name: "bypass mode", turns: once, options: with(echoing, mode(permission.ModeBypassPermissions))},
	{name: "prompt tool", turns: once, options: prompting(`{"behavior":"allow","updatedInput":{"a":2}}`)},
	{name: "prompt tool denies", turns: once, options: prompting(`{"behavior":"deny","message":"Not today."}`)},
	{name: "prompt tool talks nonsense", turns: once, options: prompting(`perhaps`)},
}

// prompting are options with a tool that is asked in the callback's place.
func prompting(verdict string) func(*world) *agent.Options {
	return func(w *world) *agent.Options {
		s := mcpserver.New("t", nil)
		w.tool(s, mcpserver.Tool{Name: "x"}, echo)
		w.tool(s, mcpserver.Tool{Name: "ask"}, returns(mcpserver.Text(verdict)))
		return &agent.Options{MCPServers: map[string]mcphost.ServerConfig{"t": mcphost.InProcess(s)}, PermissionPromptTool: "mcp__t__ask"}
	}
}

// hook is a list of one hook that notes its input and returns out.
func hook[In, Out any](w *world, event string, out *Out, err error, note func(*In) string) []agent.Hook[In, Out] {
	return []agent.Hook[In, Out]{{Func: func(_ context.Context, in *In) (*Out, error) {
		w.add("hook "+event, "%s", note(in))
		return out, err
	}}}
}

// pre sets a PreToolUse hook.
func pre(out *agent.PreToolUseOutput, err error) func(*world, *agent.Options) {
	return func(w *world, o *agent.Options) {
		o.Hooks = &agent.Hooks{PreToolUse: hook(w, "PreToolUse", out, err, func(in *agent.PreToolUse) string {
			return in.HookEventName + " " + in.ToolName + " " + in.ToolUseID + " " + canonical(in.ToolInput) + " " + string(in.PermissionMode)
		})}
	}
}

// post sets a PostToolUse hook.
func post(out *agent.PostToolUseOutput) func(*world, *agent.Options) {
	return func(w *world, o *agent.Options) {
		o.Hooks = &agent.Hooks{PostToolUse: hook(w, "PostToolUse", out, nil, func(in *agent.PostToolUse) string {
			return in.ToolName + " " + in.ToolUseID + " " + canonical(in.ToolInput) + " " + canonical(in.ToolResponse)
		})}
	}
}

var hookScripts = []script{
	{name: "pre hook says nothing", turns: once, options: with(echoing, pre(nil, nil))},
	{name: "pre hook denies", turns: once, options: with(echoing, pre(&agent.PreToolUseOutput{Decision: permission.Deny, Reason: "not while I watch"}, nil))},
	{name: "pre hook asks", turns: once, options: with(with(echoing, asked(agent.Allow(), nil)), func(w *world, o *agent.Options) {
		o.AllowedTools = []string{"mcp__t"}
		pre(&agent.PreToolUseOutput{Decision: permission.Ask, Reason: "are you sure?"}, nil)(w, o)
	})},
	{name: "pre hook allows", turns: once, options: with(with(echoing, mode("")), pre(&agent.PreToolUseOutput{Decision: permission.Allow}, nil))},
	{name: "pre hook changes the input", turns: once, options: with(echoing, pre(&agent.PreToolUseOutput{Decision: permission.Allow, UpdatedInput: json.RawMessage(`{"a":3}`)}, nil))},
	{name: "pre hook changes the input and decides nothing", turns: once, options: with(echoing, pre(&agent.PreToolUseOutput{UpdatedInput: json.RawMessage(`{"a":3}`)}, nil))},
	{name: "pre hook stops the turn", turns: once, options: with(echoing, pre(&agent.PreToolUseOutput{HookOutput: agent.HookOutput{Stop: true, StopReason: "enough"}}, nil))},
	{name: "pre hook adds context", turns: once, options: with(echoing, pre(&agent.PreToolUseOutput{HookOutput: agent.HookOutput{AdditionalContext: "mind the gap"}}, nil))},
	{name: "pre hook fails", turns: once, options: with(echoing, pre(nil, errors.New("hook is broken")))},
	{name: "post hook replaces", turns: once, options: with(echoing, post(&agent.PostToolUseOutput{UpdatedOutput: agent.Content{&agent.TextBlock{Text: "redacted"}}}))},
	{name: "post hook says something", turns: once, options: with(echoing, post(&agent.PostToolUseOutput{Feedback: "look again"}))},
	{name: "failure hook", turns: once, options: with(serving(mcpserver.Tool{}, returns(mcpserver.Errorf("empty"))), func(w *world, o *agent.Options) {
		o.Hooks = &agent.Hooks{PostToolUseFailure: hook(w, "PostToolUseFailure", (*agent.HookOutput)(nil), nil, func(in *agent.PostToolUseFailure) string {
			return in.ToolName + " " + in.Error
		})}
	})},
	{name: "batch hook", turns: turns(modeltest.Say(x("toolu_1", `{}`), x("toolu_2", `{}`)), modeltest.Text("done")), options: with(echoing, func(w *world, o *agent.Options) {
		o.Hooks = &agent.Hooks{PostToolBatch: hook(w, "PostToolBatch", (*agent.HookOutput)(nil), nil, func(in *agent.PostToolBatch) string {
			var ids string
			for _, c := range in.ToolCalls {
				ids += c.ToolUseID + " " + c.ToolName + " " + canonical(c.ToolInput) + ";"
			}
			return ids
		})}
	})},
	{name: "permission hook", turns: once, options: with(with(echoing, asked(agent.Deny("no"), nil)), func(w *world, o *agent.Options) {
		o.Hooks = &agent.Hooks{PermissionRequest: hook(w, "PermissionRequest", &agent.PermissionRequestOutput{Verdict: agent.Allow()}, nil, func(in *agent.PermissionRequest) string {
			return in.ToolName + " " + canonical(in.ToolInput)
		})}
	})},
	{name: "prompt hook blocks", turns: turns(modeltest.Text("x")), options: promptHook(&agent.PromptOutput{Block: true, Reason: "not that"})},
	{name: "prompt hook adds context", turns: turns(modeltest.Text("x")), options: promptHook(&agent.PromptOutput{HookOutput: agent.HookOutput{AdditionalContext: "it is late"}})},
	{name: "stop hook goes on", turns: turns(modeltest.Text("hello"), modeltest.Text("HELLO")), options: func(w *world) *agent.Options {
		return &agent.Options{Hooks: &agent.Hooks{Stop: []agent.Hook[agent.Stop, agent.StopOutput]{{Func: func(_ context.Context, in *agent.Stop) (*agent.StopOutput, error) {
			w.add("hook Stop", "active=%v %s", in.StopHookActive, in.LastAssistantMessage)
			return &agent.StopOutput{Block: !in.StopHookActive, Reason: "louder"}, nil
		}}}}}
	}},
	{name: "session hooks", turns: turns(modeltest.Text("x")), options: func(w *world) *agent.Options {
		return &agent.Options{Hooks: &agent.Hooks{
			SessionStart: hook(w, "SessionStart", &agent.HookOutput{AdditionalContext: "the office is closed"}, nil, func(in *agent.SessionStart) string { return in.Source }),
			SessionEnd:   hook(w, "SessionEnd", (*agent.HookOutput)(nil), nil, func(in *agent.SessionEnd) string { return in.Reason }),
		}}
	}},
}

func promptHook(out *agent.PromptOutput) func(*world) *agent.Options {
	return func(w *world) *agent.Options {
		return &agent.Options{Hooks: &agent.Hooks{UserPromptSubmit: hook(w, "UserPromptSubmit", out, nil, func(in *agent.UserPromptSubmit) string { return in.Prompt })}}
	}
}
