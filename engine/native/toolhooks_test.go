package native

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

// A guard is a server with a tool that hooks call.
type guard struct {
	mu    sync.Mutex
	heard []string
	says  map[string]string // by tool
}

// hooked runs one call of tool w of server s, with a hook on an event that calls a tool of a guard.
func (g *guard) hooked(t *testing.T, settings string, set ...func(*agent.Options)) (*agent.Result, []agent.Message, *modeltest.Model) {
	t.Helper()
	o := withTools(t, echoArgs, &mcpserver.Tool{Name: "w"})
	srv := mcpserver.New("guard", nil)
	for tool, says := range g.says {
		err := srv.AddTool(&mcpserver.Tool{Name: tool, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, args json.RawMessage) (*mcpserver.Result, error) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.heard = append(g.heard, tool+" "+string(args))
			if says == "fail" {
				return nil, fmt.Errorf("the guard is asleep")
			}
			return mcpserver.Text(says), nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	o.MCPServers["guard"] = mcphost.InProcess(srv)
	o.Settings = settings
	for _, set := range set {
		set(o)
	}
	model := modeltest.New(t, modeltest.ToolUseID("toolu_1", "mcp__s__w", `{"path":"/a","n":7,"list":["x","y"]}`), modeltest.Text("done"))
	r, msgs := answered(t, model, o)
	return r, msgs, model
}

func onEvent(event, hook string) string {
	return fmt.Sprintf(`{"hooks": {%q: [{"hooks": [{"type": "mcp_tool", "server": "guard", %s}]}]}}`, event, hook)
}

// D103: when its event fires, the hook calls the tool, with what the event is about.
func TestToolHookIsCalled(t *testing.T) {
	input := `"tool": "check", "input": {"path": "${tool_input.path}", "all": "${tool_input.n} of ${tool_input.list.1} in ${tool_name}${nothing.there}", "fixed": [1, true, "${hook_event_name}"]}`
	g := &guard{says: map[string]string{"check": "fine by me"}}
	_, msgs, _ := g.hooked(t, onEvent("PreToolUse", input))
	want := []string{`check {"all":"7 of y in mcp__s__w","fixed":[1,true,"PreToolUse"],"path":"/a"}`}
	if diff := cmp.Diff(want, g.heard); diff != "" {
		t.Error(diff)
	}
	if got := results(msgs); got[0].IsError {
		t.Errorf("result %+v", got[0])
	}
}

// The program's hooks see the input that the tool gets, whatever a hook of a settings file has made of it,
// and their denial is final.
//
// fault A3
func TestProgramHooksSeeWhatFilesChanged(t *testing.T) {
	changed := `{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"path":"/etc"}}}`
	request := `{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow", "updatedInput": {"path":"/etc"}}}}`
	for event, says := range map[string]string{"PreToolUse": changed, "PermissionRequest": request} {
		for _, decision := range []permission.Behavior{"", permission.Allow, permission.Deny} {
			t.Run(event+" "+string(decision), func(t *testing.T) {
				var saw []string
				g := &guard{says: map[string]string{"x": says}}
				_, msgs, _ := g.hooked(t, onEvent(event, `"tool": "x"`), func(o *agent.Options) {
					if event == "PermissionRequest" {
						o.AllowedTools = nil
					}
					o.Hooks = &agent.Hooks{PreToolUse: []preHook{{Func: func(_ context.Context, in *agent.PreToolUse) (*agent.PreToolUseOutput, error) {
						saw = append(saw, string(in.ToolInput))
						if !strings.Contains(string(in.ToolInput), "etc") {
							return nil, nil
						}
						return &agent.PreToolUseOutput{Decision: decision, Reason: "not there"}, nil
					}}}}
				})
				if len(saw) == 0 || saw[len(saw)-1] != `{"path":"/etc"}` {
					t.Errorf("the program's hook saw %q", saw)
				}
				got := results(msgs)[0]
				if denied := decision == permission.Deny; got.IsError != denied || denied && !strings.Contains(got.Text(), "not there") || !denied && got.Text() != `{"path":"/etc"}` {
					t.Errorf("result %+v %s", got, got.Text())
				}
			})
		}
	}
}

// A hook of a settings file that asks for confirmation of an input that it changed leads to the program,
// which is asked about the changed input.
func TestProgramIsAskedAboutWhatFilesChanged(t *testing.T) {
	says := `{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow", "updatedInput": {"path":"/etc"}}}}`
	var asked string
	g := &guard{says: map[string]string{"x": says}}
	_, msgs, _ := g.hooked(t, onEvent("PermissionRequest", `"tool": "x"`), func(o *agent.Options) {
		o.AllowedTools = nil
		o.CanUseTool = func(_ context.Context, r *agent.ToolRequest) (*permission.PromptResult, error) {
			asked = string(r.Input)
			return agent.Deny("no"), nil
		}
		o.Hooks = &agent.Hooks{PreToolUse: []preHook{{Func: func(_ context.Context, in *agent.PreToolUse) (*agent.PreToolUseOutput, error) {
			if strings.Contains(string(in.ToolInput), "etc") {
				return &agent.PreToolUseOutput{Decision: permission.Ask}, nil
			}
			return nil, nil
		}}}}
	})
	if got := results(msgs)[0]; !got.IsError || got.Text() != "no" || asked != `{"path":"/etc"}` {
		t.Errorf("asked about %s, result %s", asked, got.Text())
	}
}

// Between a settings file and the program, whoever denies has the last word.
//
// fault A2
func TestDenialsOfFilesAndProgram(t *testing.T) {
	verdict := func(behavior string) string {
		return `{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "` + behavior + `", "message": "says the file"}}}`
	}
	deny := agent.PermissionRequestOutput{Verdict: agent.Deny("says the program")}
	tests := []struct {
		name, file, want string
		hooks            []agent.Hook[agent.PermissionRequest, agent.PermissionRequestOutput]
	}{
		{"the file denies what the program would allow", "deny", "says the file", nil},
		{"the program's hook denies what the file allows", "allow", "says the program", []agent.Hook[agent.PermissionRequest, agent.PermissionRequestOutput]{
			{Func: func(context.Context, *agent.PermissionRequest) (*agent.PermissionRequestOutput, error) {
				return &deny, nil
			}},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := &guard{says: map[string]string{"x": verdict(tt.file)}}
			_, msgs, _ := g.hooked(t, onEvent("PermissionRequest", `"tool": "x"`), func(o *agent.Options) {
				o.AllowedTools, o.Hooks = nil, &agent.Hooks{PermissionRequest: tt.hooks}
				o.CanUseTool = func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) { return agent.Allow(), nil }
			})
			if got := results(msgs)[0]; !got.IsError || got.Text() != tt.want {
				t.Errorf("result %q, want %q", got.Text(), tt.want)
			}
		})
	}
}

// D103: what the tool answers decides, as the output of a hook does.
func TestToolHookDecides(t *testing.T) {
	pre := func(decision, more string) string {
		return `{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "` + decision + `", "permissionDecisionReason": "because"` + more + `}}`
	}
	tests := []struct {
		name, event, hook, says string
		result, sent            string // in the tool's result, and in what the model is told last
		isError                 bool
	}{
		{"deny", "PreToolUse", `"tool": "x"`, pre("deny", ""), "because", "", true},
		{"ask, and nobody is there", "PreToolUse", `"tool": "x"`, pre("ask", ""), "because", "", true},
		{"changed input", "PreToolUse", `"tool": "x"`, pre("allow", `, "updatedInput": {"changed":true}`), `{"changed":true}`, "", false},
		{"context", "PreToolUse", `"tool": "x"`, `{"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "mind the gap"}}`, "/a", "mind the gap", false},
		{"the older form", "PreToolUse", `"tool": "x"`, `{"decision": "block", "reason": "no way"}`, "no way", "", true},
		{"plain text says nothing", "PreToolUse", `"tool": "x"`, `hello`, "/a", "", false},
		{"failed open", "PreToolUse", `"tool": "x"`, `fail`, "/a", "", false},
		{"failed closed", "PreToolUse", `"tool": "x", "onFailure": "block"`, `fail`, "asleep", "", true},
		{"no output, closed", "PreToolUse", `"tool": "x", "onFailure": "block"`, `hello`, "no output of a hook", "", true},
		{"nonsense, closed", "PreToolUse", `"tool": "x", "onFailure": "block"`, pre("perhaps", ""), "perhaps", "", true},
		{"for another event, closed", "PreToolUse", `"tool": "x", "onFailure": "block"`, `{"hookSpecificOutput": {"hookEventName": "Stop"}}`, "Stop", "", true},
		{"no such tool, closed", "PreToolUse", `"tool": "y", "onFailure": "block"`, `{}`, "y", "", true},
		{"not for this tool", "PreToolUse", `"tool": "x", "if": "mcp__s__other"`, pre("deny", ""), "/a", "", false},
		{"for this tool", "PreToolUse", `"tool": "x", "if": "mcp__s__*"`, pre("deny", ""), "because", "", true},
		{"changed output", "PostToolUse", `"tool": "x"`, `{"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": "redacted"}}`, "redacted", "", false},
		{"feedback", "PostToolUse", `"tool": "x"`, `{"decision": "block", "reason": "look again"}`, "/a", "look again", false},
		{"prompt", "UserPromptSubmit", `"tool": "x"`, `it is four`, "/a", "", false},
		{"batch", "PostToolBatch", `"tool": "x"`, `{"hookSpecificOutput": {"hookEventName": "PostToolBatch", "additionalContext": "that was all"}}`, "/a", "that was all", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := &guard{says: map[string]string{"x": tt.says}}
			_, msgs, model := g.hooked(t, onEvent(tt.event, tt.hook))
			got := results(msgs)[0]
			if got.IsError != tt.isError || !strings.Contains(got.Text(), tt.result) {
				t.Errorf("result %q, error %v", got.Text(), got.IsError)
			}
			if !strings.Contains(model.Last().LastUserText(), tt.sent) {
				t.Errorf("the model was told %q", model.Last().LastUserText())
			}
			if tt.event == "UserPromptSubmit" && !strings.Contains(model.Requests()[0].FirstUserText(), tt.says) {
				t.Errorf("the model was told %q", model.Requests()[0].FirstUserText())
			}
		})
	}
}

func TestToolHookAnswersAQuestion(t *testing.T) {
	g := &guard{says: map[string]string{"x": `{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow", "updatedInput": {"b":1}}}}`}}
	settings := `{"permissions": {"ask": ["mcp__s__w"]}, "hooks": {"PermissionRequest": [{"matcher": "mcp__s__.*", "hooks": [{"type": "mcp_tool", "server": "guard", "tool": "x", "timeout": 5}]}]}}`
	_, msgs, _ := g.hooked(t, settings)
	if got := results(msgs)[0]; got.IsError || got.Text() != `{"b":1}` {
		t.Errorf("result %+v", got)
	}
}

// The hooks on the whole session run while their servers are there, at its end too.
func TestToolHooksOfTheSession(t *testing.T) {
	g := &guard{says: map[string]string{"begin": "welcome", "end": "", "stop": "{}"}}
	hook := func(tool string) string {
		return fmt.Sprintf(`[{"hooks": [{"type": "mcp_tool", "server": "guard", "tool": %q, "once": true}]}]`, tool)
	}
	_, _, model := g.hooked(t, fmt.Sprintf(`{"hooks": {"SessionStart": %s, "SessionEnd": %s, "Stop": %s}}`, hook("begin"), hook("end"), hook("stop")))
	if diff := cmp.Diff([]string{"begin {}", "stop {}", "end {}"}, g.heard); diff != "" {
		t.Error(diff)
	}
	if got := model.Last().FirstUserText(); !strings.Contains(got, "welcome") {
		t.Errorf("the model was told %q", got)
	}
}

func TestDisabledToolHooks(t *testing.T) {
	g := &guard{says: map[string]string{"x": "fail"}}
	_, msgs, _ := g.hooked(t, `{"disableAllHooks": true, "hooks": {"PreToolUse": [{"hooks": [{"type": "mcp_tool", "server": "guard", "tool": "x", "onFailure": "block"}]}]}}`)
	if got := results(msgs)[0]; got.IsError || len(g.heard) != 0 {
		t.Errorf("result %+v, the guard heard %q", got, g.heard)
	}
	if errs := last[*agent.SystemInit](msgs).MCPServerErrors; len(errs) != 1 || !strings.Contains(errs[0].Message, "disableAllHooks") {
		t.Errorf("init says %+v", errs)
	}
}

// slowServer is an MCP server over HTTP, with one tool, that takes its time to connect.
func slowServer(takes time.Duration) *http.Client {
	ready := time.Now().Add(takes)
	answers := map[string]string{
		"initialize": `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"slow","version":"1"}}`,
		"tools/list": `"result":{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`,
		"ping":       `"result":{}`,
	}
	return &http.Client{Transport: roundTripFunc(func(r *http.Request) (*http.Response, error) {
		select {
		case <-time.After(time.Until(ready)):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		w := httptest.NewRecorder()
		var message struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case json.NewDecoder(r.Body).Decode(&message) != nil || message.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		default:
			answer, ok := answers[message.Method]
			if !ok {
				answer = `"error":{"code":-32601,"message":"no such method"}`
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, message.ID, answer)
		}
		return w.Result(), nil
	})}
}

// D22: a hook names its server when it is bound to a prompt, a tool call, a question, or an event of subagents,
// tasks, elicitations or worktrees, and the first turn then waits for it.
func TestHooksNameTheirServers(t *testing.T) {
	events := map[string]bool{"Notification": false, "Stop": false, "PreCompact": false, "": false}
	for _, event := range []string{
		"UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "PermissionRequest", "PermissionDenied",
		"SubagentStart", "SubagentStop", "TaskCreated", "TaskCompleted", "Elicitation", "ElicitationResult", "WorktreeCreate", "WorktreeRemove",
	} {
		events[event] = true
	}
	for event, named := range events {
		synctest.Test(t, func(t *testing.T) {
			o := &agent.Options{
				MCPServers: map[string]mcphost.ServerConfig{"guard": mcphost.HTTP{
					URL: "http://guard.test/mcp", HTTPClient: slowServer(time.Second), Common: mcphost.Common{Source: "project"},
				}},
				SettingSources: []agent.SettingSource{},
			}
			if event != "" {
				o.Settings = onEvent(event, `"tool": "x"`)
			}
			e := testEngine(modeltest.New(t, modeltest.Text("x")))
			e.opts.BaseURL = "https://api.anthropic.com"
			msgs, err := collect(t, t.Context(), e, "x", o)
			if err != nil {
				t.Fatal(err)
			}
			if got := last[*agent.SystemInit](msgs).MCPServers[0].Status; (got == "connected") != named {
				t.Errorf("%s: the server is %s", event, got)
			}
		})
	}
}
