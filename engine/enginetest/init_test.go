package enginetest

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

var initBehaviours = []behaviour{
	{"First", initIsFirst},
	{"ToolLeftOut", toolLeftOut},
	{"DefaultModel", defaultModel},
}

// The init message comes before any other, whatever there is to say before the first turn: of a faulty
// rule, and by a hook on the start of the session.
//
// fault I2
func initIsFirst(e *env) {
	o := e.toolbox(nil, echo)
	o.AllowedTools = append(o.AllowedTools, "mcp__*", "mcp__t__x(rm:*)", "(")
	o.Hooks = &agent.Hooks{SessionStart: []agent.Hook[agent.SessionStart, agent.HookOutput]{
		{Func: func(context.Context, *agent.SessionStart) (*agent.HookOutput, error) {
			return &agent.HookOutput{SystemMessage: "hello from the hook"}, nil
		}},
		{Func: func(context.Context, *agent.SessionStart) (*agent.HookOutput, error) { panic("oops") }},
	}}
	tr, _ := e.answered(e.script(modeltest.Text("x")), "x", o)
	if _, ok := tr.messages[0].(*agent.SystemInit); !ok {
		e.Errorf("the first message is %T %+v", tr.messages[0], tr.messages[0])
	}
}

// A tool that cannot be registered is left out, and both the init message and the operator's log name it.
//
// fault I4
// D112
func toolLeftOut(e *env) {
	o := &agent.Options{Tools: []mcpserver.Definition{
		mcpserver.DefineRaw(&mcpserver.Tool{Name: "x", InputSchema: json.RawMessage(`{"type":"object"}`)}, echo),
		mcpserver.DefineRaw(&mcpserver.Tool{Name: "endless", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/nowhere"}}}`)}, echo),
	}}
	log := &lockedBuffer{}
	o.Logger = slog.New(slog.NewTextHandler(log, nil))
	tr, _ := e.answered(e.script(modeltest.Text("x")), "x", o)
	errs := tr.init(e).MCPServerErrors
	if !slices.ContainsFunc(errs, func(err agent.MCPServerError) bool {
		return err.Name == agent.ToolsServer && strings.Contains(err.Message, "endless")
	}) {
		e.Errorf("the init message has the errors %+v", errs)
	}
	if !strings.Contains(log.String(), "endless") {
		e.Errorf("the log has %q", log.String())
	}
}

// Without a model of the program's the engine's default answers, which the init message names; the variable
// ANTHROPIC_MODEL comes before it, and the program's own word before that.
//
// fault D15
func defaultModel(e *env) {
	const variable, option = "claude-opus-5-5", "claude-haiku-5-5"
	for _, tt := range []struct{ variable, option, want string }{{"", "", ""}, {variable, "", variable}, {variable, option, option}} {
		o := &agent.Options{Model: tt.option, Env: map[string]string{"ANTHROPIC_MODEL": tt.variable}}
		tr, _ := e.answered(e.script(modeltest.Text("x")), "x", o)
		said, asked := tr.init(e).Model, e.model.Last().Model
		if said != asked || asked == "" || tt.want != "" && asked != tt.want {
			e.Errorf("with the variable %q and the option %q, init names %q, and %q is asked", tt.variable, tt.option, said, asked)
		}
	}
}

// A lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
