package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcphost"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

var permissionBehaviours = []behaviour{
	{"NotAllowed", notAllowed},
	{"Allowed", allowedByRule},
	{"AllowedServerOnly", allowedServerOnly},
	{"RuleNamesOneServer", ruleNamesOneServer},
	{"Disallowed", disallowed},
	{"AskBeatsAllow", askBeatsAllow},
	{"AcceptEdits", acceptEdits},
	{"Bypass", bypass},
	{"Plan", plan},
	{"DontAsk", dontAsk},
	{"CallbackAllows", callbackAllows},
	{"CallbackChangesTheInput", callbackChangesTheInput},
	{"CallbackDenies", callbackDenies},
	{"CallbackDeniesAndInterrupts", callbackDeniesAndInterrupts},
	{"CallbackFails", callbackFails},
	{"CallbackIsNotAskedNeedlessly", callbackIsNotAskedNeedlessly},
	{"CallbackAllowsFromNowOn", callbackAllowsFromNowOn},
	{"PromptTool", promptTool},
	{"PromptToolDenies", promptToolDenies},
	{"DeniedCallDoesNotStopTheOthers", deniedCallDoesNotStopTheOthers},
}

// A counter counts the calls of a tool.
type counter struct{ n atomic.Int32 }

func (c *counter) handle(_ context.Context, args json.RawMessage) (*mcpserver.Result, error) {
	c.n.Add(1)
	return mcpserver.Text("ran with " + string(args)), nil
}

// oneCall runs one call of the toolbox's tool under options that change does the rest to.
func (e *env) oneCall(t *mcpserver.Tool, change func(*agent.Options)) (*transcript, *agent.Result, *counter) {
	e.Helper()
	c := &counter{}
	o := e.toolbox(t, c.handle)
	change(o)
	tr, r := e.answered(e.script(callX("toolu_1", `{"a":1}`), modeltest.Text("went on")), "x", o)
	if r.Result != "went on" {
		e.Errorf("the answer is %q", r.Result)
	}
	return tr, r, c
}

// wantRun checks that the call ran once.
func (e *env) wantRun(tr *transcript, r *agent.Result, c *counter) {
	e.Helper()
	if got := tr.toolResult(e, "toolu_1"); got.IsError || c.n.Load() != 1 || len(r.PermissionDenials) != 0 {
		e.Errorf("ran %d times, result %q, denials %+v", c.n.Load(), got.Text(), r.PermissionDenials)
	}
}

// wantDenied checks that the call did not run and is listed as denied.
func (e *env) wantDenied(tr *transcript, r *agent.Result, c *counter) {
	e.Helper()
	got := tr.toolResult(e, "toolu_1")
	if !got.IsError || c.n.Load() != 0 || got.Text() == "" {
		e.Errorf("ran %d times, result %q", c.n.Load(), got.Text())
	}
	if d := r.PermissionDenials; len(d) != 1 || d[0].ToolName != toolX || d[0].ToolUseID != "toolu_1" || !sameJSON(d[0].ToolInput, json.RawMessage(`{"a":1}`)) {
		e.Errorf("permission denials %+v", d)
	}
	if sent := e.sent("toolu_1"); !sent.IsError || textOf(sent) != got.Text() {
		e.Errorf("the model was sent %q, the program heard %q", textOf(sent), got.Text())
	}
}

// D37 D86
func notAllowed(e *env) {
	tr, r, c := e.oneCall(nil, func(o *agent.Options) { o.AllowedTools = nil })
	e.wantDenied(tr, r, c)
	if got := tr.toolResult(e, "toolu_1").Text(); !strings.Contains(got, toolX) || !strings.Contains(got, "allowedTools") {
		e.Errorf("the text does not name the tool and allowedTools: %q", got)
	}
	if !contains(tr.init(e).Tools, toolX) {
		e.Error("the model does not see the tool")
	}
}

// D03 D40 D42
func allowedByRule(e *env) {
	for _, rule := range []string{"mcp__t__x", "mcp__t__*", "mcp__t"} {
		tr, r, c := e.oneCall(nil, func(o *agent.Options) { o.AllowedTools = []string{rule} })
		e.wantRun(tr, r, c)
	}
}

// D45
func allowedServerOnly(e *env) {
	tr, r, c := e.oneCall(nil, func(o *agent.Options) { o.AllowedTools = []string{"mcp__other__*", "mcp__t__y"} })
	e.wantDenied(tr, r, c)
}

// A rule is about the server that it names, whatever the tools of another are called. fault A6
func ruleNamesOneServer(e *env) {
	tests := []struct {
		rule         string
		euSend, send bool // eu__send of pay, send of pay__eu
	}{
		{"mcp__pay__eu__*", false, true},
		{"mcp__pay__eu", false, true},
		{"mcp__pay__eu__send", false, true},
		{"mcp__pay__*", true, false},
		{"mcp__pay", true, false},
	}
	for _, tt := range tests {
		for _, of := range []struct {
			server, tool string
			runs         bool
		}{{"pay", "eu__send", tt.euSend}, {"pay__eu", "send", tt.send}} {
			c := &counter{}
			o := &agent.Options{MCPServers: map[string]mcphost.ServerConfig{}, AllowedTools: []string{tt.rule}}
			for _, key := range []string{"pay", "pay__eu"} {
				s := server(key)
				name := "other"
				if key == of.server {
					name = of.tool
				}
				e.add(s, &mcpserver.Tool{Name: name}, c.handle)
				o.MCPServers[key] = mcphost.InProcess(s)
			}
			call := modeltest.Func(func(r *modeltest.Request) modeltest.Turn {
				if len(r.ToolResults()) > 0 {
					return modeltest.Text("went on")
				}
				name := "mcp__" + of.server + "__" + of.tool
				if i := slices.IndexFunc(r.ToolNames(), func(n string) bool { return strings.HasPrefix(n, name+"_") }); i >= 0 {
					name = r.ToolNames()[i] // one that reads as another server's ends in a hash
				}
				return modeltest.ToolUseID("toolu_1", name, `{}`)
			})
			tr, _ := e.answered(e.script(call), "x", o)
			got := tr.toolResult(e, "toolu_1")
			if ran := c.n.Load() == 1 && !got.IsError; ran != of.runs {
				e.Errorf("with the rule %s, tool %s of server %s: ran %v, want %v: %q", tt.rule, of.tool, of.server, ran, of.runs, got.Text())
			}
		}
	}
}

func disallowed(e *env) {
	tr, r, c := e.oneCall(nil, func(o *agent.Options) {
		o.DisallowedTools = []string{"mcp__t__x"}
		o.PermissionMode = permission.ModeBypassPermissions
	})
	if got := tr.toolResult(e, "toolu_1"); !got.IsError || c.n.Load() != 0 || !strings.Contains(got.Text(), toolX) {
		e.Errorf("ran %d times, result %q", c.n.Load(), got.Text())
	}
	if contains(tr.init(e).Tools, toolX) {
		e.Error("the tool is among the tools of init")
	}
	if _, ok := e.model.Last().Tool(toolX); ok || len(r.PermissionDenials) != 0 {
		e.Errorf("offered to the model: %v, denials %+v", ok, r.PermissionDenials)
	}
}

func askBeatsAllow(e *env) {
	tr, r, c := e.oneCall(nil, func(o *agent.Options) { o.AskTools = []string{"mcp__t__x"} })
	e.wantDenied(tr, r, c)
}

// D43
func acceptEdits(e *env) {
	tr, r, c := e.oneCall(nil, func(o *agent.Options) {
		o.AllowedTools = nil
		o.PermissionMode = permission.ModeAcceptEdits
	})
	e.wantDenied(tr, r, c)
	if got := tr.init(e).PermissionMode; got != string(permission.ModeAcceptEdits) {
		e.Errorf("init has the mode %q", got)
	}
}

// D44
func bypass(e *env) {
	tr, r, c := e.oneCall(nil, func(o *agent.Options) {
		o.AllowedTools = nil
		o.PermissionMode = permission.ModeBypassPermissions
	})
	e.wantRun(tr, r, c)
}

func plan(e *env) {
	mode := func(o *agent.Options) { o.PermissionMode = permission.ModePlan }
	tr, _, c := e.oneCall(nil, mode)
	if got := tr.toolResult(e, "toolu_1"); !got.IsError || c.n.Load() != 0 {
		e.Errorf("a tool that is not read-only ran %d times in plan mode: %q", c.n.Load(), got.Text())
	}
	tr, r, c := e.oneCall(&mcpserver.Tool{ReadOnly: true}, mode)
	e.wantRun(tr, r, c)
}

func dontAsk(e *env) {
	tr, r, c := e.oneCall(nil, func(o *agent.Options) {
		o.AllowedTools = nil
		o.PermissionMode = permission.ModeDontAsk
		o.CanUseTool = func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) {
			e.Error("asked in don't ask mode")
			return agent.Allow(), nil
		}
	})
	e.wantDenied(tr, r, c)
}

func callbackAllows(e *env) {
	var asked *agent.ToolRequest
	tr, r, c := e.oneCall(nil, func(o *agent.Options) {
		o.AllowedTools = nil
		o.CanUseTool = func(_ context.Context, q *agent.ToolRequest) (*permission.PromptResult, error) {
			asked = q
			return agent.Allow(), nil
		}
	})
	e.wantRun(tr, r, c)
	if asked == nil || asked.ToolName != toolX || asked.Server != "t" || asked.Tool != "x" || asked.Source != "sdk" || asked.ToolUseID != "toolu_1" || !sameJSON(asked.Input, json.RawMessage(`{"a":1}`)) {
		e.Errorf("asked %+v", asked)
	}
	if got := tr.toolResult(e, "toolu_1").Text(); got != `ran with {"a":1}` {
		e.Errorf("the input changed: %s", got)
	}
}

func callbackChangesTheInput(e *env) {
	for _, input := range []string{`{"a":2}`, `{}`, `{"n":12345678901234567890,"f":1.50}`} {
		tr, r, c := e.oneCall(nil, func(o *agent.Options) {
			o.AllowedTools = nil
			o.CanUseTool = func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) {
				v := agent.Allow()
				v.UpdatedInput = json.RawMessage(input)
				return v, nil
			}
		})
		e.wantRun(tr, r, c)
		if got := tr.toolResult(e, "toolu_1").Text(); got != "ran with "+input {
			e.Errorf("with %s: %s", input, got)
		}
	}
}

func callbackDenies(e *env) {
	tr, r, c := e.oneCall(nil, func(o *agent.Options) {
		o.AllowedTools = nil
		o.CanUseTool = func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) {
			return agent.Deny("Not on a Sunday."), nil
		}
	})
	e.wantDenied(tr, r, c)
	if got := tr.toolResult(e, "toolu_1").Text(); got != "Not on a Sunday." {
		e.Errorf("the text is %q", got)
	}
}

func callbackDeniesAndInterrupts(e *env) {
	c := &counter{}
	o := e.toolbox(nil, c.handle)
	o.AllowedTools = nil
	o.CanUseTool = func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) {
		v := agent.Deny("Stop it.")
		v.Interrupt = true
		return v, nil
	}
	tr := e.ask(e.script(modeltest.Say(callX("toolu_1", `{}`), callX("toolu_2", `{}`))), "x", o)
	r := tr.result(e)
	if r.Subtype != agent.SubtypeErrorDuringExecution || r.TerminalReason != agent.ReasonAbortedTools || c.n.Load() != 0 {
		e.Errorf("ran %d times, result %+v", c.n.Load(), r)
	}
	if !errors.Is(tr.err, agent.ErrInterrupted) {
		e.Errorf("ended with %v", tr.err)
	}
}

func callbackFails(e *env) {
	for name, f := range map[string]agent.CanUseToolFunc{
		"error": func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) {
			return nil, errors.New("broken")
		},
		"panic":      func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) { panic("broken") },
		"no verdict": func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) { return nil, nil },
		"nonsense": func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) {
			return &permission.PromptResult{Behavior: "perhaps"}, nil
		},
	} {
		tr, _, c := e.oneCall(nil, func(o *agent.Options) { o.AllowedTools, o.CanUseTool = nil, f })
		if got := tr.toolResult(e, "toolu_1"); !got.IsError || c.n.Load() != 0 {
			e.Errorf("%s: ran %d times, result %q", name, c.n.Load(), got.Text())
		}
	}
}

func callbackIsNotAskedNeedlessly(e *env) {
	tr, r, c := e.oneCall(nil, func(o *agent.Options) {
		o.CanUseTool = func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) {
			e.Error("asked about a tool that is allowed")
			return agent.Deny("no"), nil
		}
	})
	e.wantRun(tr, r, c)
}

func callbackAllowsFromNowOn(e *env) {
	var asked atomic.Int32
	c := &counter{}
	o := e.toolbox(nil, c.handle)
	o.AllowedTools = nil
	o.CanUseTool = func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) {
		asked.Add(1)
		v := agent.Allow()
		v.UpdatedPermissions = []permission.Update{{
			Type: permission.AddRules, Rules: []permission.UpdateRule{{ToolName: toolX}}, Behavior: permission.Allow, Destination: permission.DestinationSession,
		}}
		return v, nil
	}
	e.answered(e.script(callX("toolu_1", `{}`), callX("toolu_2", `{}`), modeltest.Text("x")), "x", o)
	if asked.Load() != 1 || c.n.Load() != 2 {
		e.Errorf("asked %d times, ran %d times", asked.Load(), c.n.Load())
	}
}

// prompted runs one call that a prompt tool is asked about.
func (e *env) prompted(verdict string) (tr *transcript, r *agent.Result, c *counter, question string) {
	e.Helper()
	c = &counter{}
	s := server("t")
	e.add(s, &mcpserver.Tool{Name: "x"}, c.handle)
	e.add(s, &mcpserver.Tool{Name: "ask"}, func(_ context.Context, args json.RawMessage) (*mcpserver.Result, error) {
		question = string(args)
		return mcpserver.Text(verdict), nil
	})
	o := allowed(s, "t")
	o.AllowedTools = nil
	o.PermissionPromptTool = "mcp__t__ask"
	tr, r = e.answered(e.script(callX("toolu_1", `{"a":1}`), modeltest.Text("went on")), "x", o)
	if contains(tr.init(e).Tools, "mcp__t__ask") {
		e.Error("the prompt tool is among the tools of init")
	}
	if _, ok := e.model.Last().Tool("mcp__t__ask"); ok {
		e.Error("the prompt tool is offered to the model")
	}
	return tr, r, c, question
}

// D102
func promptTool(e *env) {
	tr, r, c, question := e.prompted(`{"behavior":"allow","updatedInput":{"a":2}}`)
	e.wantRun(tr, r, c)
	if got := tr.toolResult(e, "toolu_1").Text(); got != `ran with {"a":2}` {
		e.Errorf("the result is %s", got)
	}
	if !sameJSON(json.RawMessage(question), json.RawMessage(`{"tool_name":"mcp__t__x","input":{"a":1},"tool_use_id":"toolu_1"}`)) {
		e.Errorf("the prompt tool was asked %s", question)
	}
}

func promptToolDenies(e *env) {
	tr, r, c, _ := e.prompted(`{"behavior":"deny","message":"Not today."}`)
	e.wantDenied(tr, r, c)
	if got := tr.toolResult(e, "toolu_1").Text(); got != "Not today." {
		e.Errorf("the text is %q", got)
	}
	for _, bad := range []string{`yes`, `{"behavior":"perhaps"}`, `{"behavior":"deny"}`} {
		if tr, _, c, _ := e.prompted(bad); c.n.Load() != 0 || !tr.toolResult(e, "toolu_1").IsError {
			e.Errorf("%s let the call run", bad)
		}
	}
}

func deniedCallDoesNotStopTheOthers(e *env) {
	c := &counter{}
	s := server("t")
	e.add(s, &mcpserver.Tool{Name: "x"}, c.handle)
	e.add(s, &mcpserver.Tool{Name: "y"}, c.handle)
	o := allowed(s, "t")
	o.AllowedTools = []string{"mcp__t__y"}
	tr, _ := e.answered(e.script(modeltest.Say(callX("toolu_1", `{}`), modeltest.ToolUseID("toolu_2", "mcp__t__y", `{}`)), modeltest.Text("x")), "x", o)
	if !tr.toolResult(e, "toolu_1").IsError || tr.toolResult(e, "toolu_2").IsError || c.n.Load() != 1 {
		e.Errorf("ran %d times, results %q and %q", c.n.Load(), tr.toolResult(e, "toolu_1").Text(), tr.toolResult(e, "toolu_2").Text())
	}
}
