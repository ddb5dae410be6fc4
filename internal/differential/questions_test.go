package differential

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/permission"
)

// eliciting is a tool that asks the user by p and returns what it got.
func eliciting(p mcp.ElicitParams) handler {
	return func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
		res, err := mcpserver.RequestFrom(ctx).Elicit(ctx, &p)
		if err != nil {
			return nil, err
		}
		content, err := json.Marshal(res.Content)
		return mcpserver.Text(res.Action + " " + string(content)), err
	}
}

// form are options with a tool that asks for a colour, and answer is what the program says.
func form(answer func() (*mcp.ElicitResult, error)) func(*world) *agent.Options {
	return elicited(mcp.ElicitParams{Message: "which?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"colour":{"type":"string"}}}`)}, answer)
}

func elicited(p mcp.ElicitParams, answer func() (*mcp.ElicitResult, error)) func(*world) *agent.Options {
	return with(serving(mcpserver.Tool{}, eliciting(p)), func(w *world, o *agent.Options) {
		if answer == nil {
			return
		}
		o.OnElicitation = func(_ context.Context, server string, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			question, _ := json.Marshal(p)
			w.add("elicited", "%s %s", server, canonical(question))
			return answer()
		}
	})
}

func says(r *mcp.ElicitResult, err error) func() (*mcp.ElicitResult, error) {
	return func() (*mcp.ElicitResult, error) { return r, err }
}

var questionScripts = []script{
	{name: "form is filled in", turns: once, options: form(says(&mcp.ElicitResult{Action: "accept", Content: map[string]any{"colour": "blue"}}, nil))},
	{name: "form is declined", turns: once, options: form(says(&mcp.ElicitResult{Action: "decline"}, nil))},
	{name: "form is cancelled", turns: once, options: form(says(&mcp.ElicitResult{Action: "cancel"}, nil))},
	{name: "form is not answered", turns: once, options: form(says(nil, nil))},
	{name: "form fails", turns: once, options: form(says(nil, errors.New("no screen")))},
	{name: "form panics", turns: once, options: form(func() (*mcp.ElicitResult, error) { panic("no screen") })},
	{name: "form for nobody", turns: once, options: form(nil)},
	{name: "link", turns: once, options: elicited(mcp.ElicitParams{Message: "log in", Mode: "url", URL: "https://h.example/x", ElicitationID: "e-1"}, says(&mcp.ElicitResult{Action: "accept"}, nil))},
	{name: "question of an annotated tool", turns: once, options: func(w *world) *agent.Options {
		s := mcpserver.New("t", nil)
		no := false
		w.tool(s, mcpserver.Tool{Name: "x", Title: "Exes", Destructive: &no, Idempotent: true}, echo)
		return &agent.Options{
			MCPServers: map[string]mcphost.ServerConfig{"t": mcphost.InProcess(s)},
			CanUseTool: func(_ context.Context, r *agent.ToolRequest) (*permission.PromptResult, error) {
				hints, _ := json.Marshal(r.Annotations)
				w.add("asked", "%q %q %t %s", r.Title, r.Tool, r.ReadOnly, canonical(hints))
				return agent.Allow(), nil
			},
		}
	}},
	{name: "notification hook", turns: once, options: with(with(echoing, asked(agent.Allow(), nil)), func(w *world, o *agent.Options) {
		note := func(in *agent.Notification) string {
			return in.HookEventName + " " + in.Type + " " + in.Title + " " + in.Message
		}
		o.Hooks = &agent.Hooks{Notification: hook(w, "Notification", &agent.HookOutput{SystemMessage: "look up"}, nil, note)}
	})},
	{name: "notification hook that stops", turns: once, options: with(with(echoing, asked(agent.Allow(), nil)), func(w *world, o *agent.Options) {
		note := func(in *agent.Notification) string { return in.Type }
		o.Hooks = &agent.Hooks{Notification: hook(w, "Notification", &agent.HookOutput{Stop: true, StopReason: "enough"}, nil, note)}
	})},
	{name: "permission hook that stops", turns: once, options: with(with(echoing, asked(agent.Allow(), nil)), func(w *world, o *agent.Options) {
		note := func(in *agent.PermissionRequest) string { return in.ToolName }
		out := &agent.PermissionRequestOutput{HookOutput: agent.HookOutput{Stop: true, StopReason: "enough"}}
		o.Hooks = &agent.Hooks{PermissionRequest: hook(w, "PermissionRequest", out, nil, note)}
	})},
	{name: "session hook of another kind", turns: once, options: with(echoing, func(w *world, o *agent.Options) {
		note := func(in *agent.SessionStart) string { return in.Source }
		o.Hooks = &agent.Hooks{SessionStart: hook(w, "SessionStart", &agent.HookOutput{SystemMessage: "hello"}, nil, note)}
		other := hook(w, "SessionStart of a resumed one", (*agent.HookOutput)(nil), nil, note)
		other[0].Matcher = "resume"
		o.Hooks.SessionStart = append(o.Hooks.SessionStart, other...)
	})},
}
