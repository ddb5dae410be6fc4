package enginetest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
)

var toolBehaviours = []behaviour{
	{"RoundTrip", toolRoundTrip},
	{"AreOffered", toolsAreOffered},
	{"WithoutAServer", toolsWithoutAServer},
	{"ArgumentsArriveUnchanged", argumentsArriveUnchanged},
	{"NoInputIsAnEmptyObject", noInputIsAnEmptyObject},
	{"SeveralCalls", severalCalls},
	{"ReadOnlyCallsRunTogether", readOnlyCallsRunTogether},
	{"OtherCallsRunInOrder", otherCallsRunInOrder},
	{"Error", toolError},
	{"Panic", toolPanic},
	{"ErrorResult", toolErrorResult},
	{"Unknown", unknownTool},
	{"InvalidArguments", invalidArguments},
	{"Image", imageResult},
	{"Structured", structuredResult},
	{"Empty", emptyResult},
	{"Huge", hugeResult},
	{"Unicode", unicodeResult},
	{"ManyTurns", manyTurns},
	{"CancelReachesTheTool", cancelReachesTheTool},
	{"BreakReachesTheTool", breakReachesTheTool},
	{"ToolThatIgnoresItsContext", toolThatIgnoresItsContext},
}

// D09 D70
func toolRoundTrip(e *env) {
	o := e.toolbox(&mcpserver.Tool{Description: "Looks things up"}, func(_ context.Context, args json.RawMessage) (*mcpserver.Result, error) {
		return mcpserver.Text("4 left of " + string(args)), nil
	})
	tr, r := e.answered(e.script(modeltest.Say(modeltest.Text("Let me look."), callX("toolu_1", `{"sku":"AB"}`)), modeltest.Text("There are 4.")), "How many?", o)
	if r.Result != "There are 4." || r.NumTurns != 2 {
		e.Errorf("result %+v", r)
	}
	var uses []*agent.ToolUseBlock
	for _, a := range all[*agent.Assistant](tr) {
		uses = append(uses, a.ToolUses()...)
	}
	if len(uses) != 1 || uses[0].Name != toolX || !uses[0].IsMCP() || uses[0].ID != "toolu_1" || string(uses[0].Input) != `{"sku":"AB"}` {
		e.Errorf("tool calls %+v", uses)
	}
	want := `4 left of {"sku":"AB"}`
	if got := tr.toolResult(e, "toolu_1"); got.Text() != want || got.IsError {
		e.Errorf("the program heard %+v", got)
	}
	if got := e.sent("toolu_1"); textOf(got) != want || got.IsError {
		e.Errorf("the model was sent %+v", got)
	}
}

// D38 D46 D104 D105
func toolsAreOffered(e *env) {
	load := true
	o := e.toolbox(&mcpserver.Tool{Description: "Does x", AlwaysLoad: &load}, echo)
	tr, _ := e.answered(e.script(modeltest.Text("x")), "x", o)
	init := tr.init(e)
	if !contains(init.Tools, toolX) {
		e.Errorf("init has the tools %q", init.Tools)
	}
	if len(init.MCPServers) != 1 || init.MCPServers[0].Name != "t" || init.MCPServers[0].Status != "connected" || init.MCPServers[0].Source != "sdk" {
		e.Errorf("init has the servers %+v", init.MCPServers)
	}
	tool, ok := e.model.Last().Tool(toolX)
	if !ok || !strings.HasPrefix(tool.Description, "Does x") {
		e.Errorf("the model was offered %+v (%v)", tool, ok)
	}
}

func toolsWithoutAServer(e *env) {
	type sum struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	add := func(_ context.Context, in sum) (string, error) { return strconv.Itoa(in.A + in.B), nil }
	broken := json.RawMessage(`{"type":"array"}`)
	o := &agent.Options{
		Tools: []mcpserver.Definition{
			mcpserver.Define(&mcpserver.Tool{Name: "add", ReadOnly: true}, add),
			mcpserver.DefineRaw(&mcpserver.Tool{Name: "broken", InputSchema: broken}, mcpserver.RawHandler(echo)),
			mcpserver.DefineRaw(&mcpserver.Tool{Name: "echo"}, echo),
		},
		AllowedTools: []string{"mcp__tools__*"},
	}
	engine := e.script(
		modeltest.Say(modeltest.ToolUseID("toolu_1", "mcp__tools__add", `{"a":2,"b":3}`), modeltest.ToolUseID("toolu_2", "mcp__tools__echo", `{"c":4}`)),
		modeltest.Text("five"))
	tr, _ := e.answered(engine, "x", o)
	if got := tr.toolResult(e, "toolu_1"); got.IsError || got.Text() != "5" {
		e.Errorf("the sum is %+v", got)
	}
	if got := tr.toolResult(e, "toolu_2"); got.IsError || got.Text() != `{"c":4}` {
		e.Errorf("the echo is %+v", got)
	}
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

// D97
func argumentsArriveUnchanged(e *env) {
	const args = `{"n":12345678901234567890,"f":1.50,"s":"<a & b> \"q\" 日本語 😀","list":[1,null,{"deep":true}],"empty":{}}`
	var got json.RawMessage
	o := e.toolbox(nil, func(_ context.Context, in json.RawMessage) (*mcpserver.Result, error) {
		got = in
		return mcpserver.Text("ok"), nil
	})
	e.answered(e.script(callX("toolu_1", args), modeltest.Text("x")), "x", o)
	if !sameJSON(got, json.RawMessage(args)) {
		e.Errorf("the tool got %s, want %s", got, args)
	}
}

// sameJSON reports whether two texts are the same JSON, numbers by their digits.
func sameJSON(a, b json.RawMessage) bool {
	norm := func(raw json.RawMessage) string {
		d := json.NewDecoder(strings.NewReader(string(raw)))
		d.UseNumber()
		var v any
		if d.Decode(&v) != nil {
			return "not JSON: " + string(raw)
		}
		out, _ := json.Marshal(v)
		return string(out)
	}
	return norm(a) == norm(b)
}

func noInputIsAnEmptyObject(e *env) {
	var got string
	o := e.toolbox(nil, func(_ context.Context, in json.RawMessage) (*mcpserver.Result, error) {
		got = string(in)
		return mcpserver.Text("ok"), nil
	})
	tr, _ := e.answered(e.script(modeltest.RawToolUse(toolX), modeltest.Text("x")), "x", o)
	if got != "{}" || len(tr.toolResults()) != 1 {
		e.Errorf("the tool got %q, there are %d results", got, len(tr.toolResults()))
	}
}

func severalCalls(e *env) {
	o := e.toolbox(nil, echo)
	engine := e.script(modeltest.Say(callX("toolu_1", `{"n":1}`), callX("toolu_2", `{"n":2}`), callX("toolu_3", `{"n":3}`)), modeltest.Text("x"))
	tr, r := e.answered(engine, "x", o)
	for id, want := range map[string]string{"toolu_1": `{"n":1}`, "toolu_2": `{"n":2}`, "toolu_3": `{"n":3}`} {
		if got := textOf(e.sent(id)); got != want {
			e.Errorf("%s: the model was sent %s", id, got)
		}
	}
	if len(tr.toolResults()) != 3 || r.NumTurns != 2 {
		e.Errorf("%d results, %d turns", len(tr.toolResults()), r.NumTurns)
	}
}

func readOnlyCallsRunTogether(e *env) {
	var both sync.WaitGroup
	both.Add(2)
	o := e.toolbox(&mcpserver.Tool{ReadOnly: true}, func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
		both.Done()
		met := make(chan struct{})
		go func() {
			both.Wait()
			close(met)
		}()
		select {
		case <-met:
			return mcpserver.Text("met"), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	tr, _ := e.answered(e.script(modeltest.Say(callX("toolu_1", `{}`), callX("toolu_2", `{}`)), modeltest.Text("x")), "x", o)
	for _, id := range []string{"toolu_1", "toolu_2"} {
		if got := tr.toolResult(e, id).Text(); got != "met" {
			e.Errorf("%s: %s", id, got)
		}
	}
}

func otherCallsRunInOrder(e *env) {
	var running, most atomic.Int32
	var mu sync.Mutex
	var order []string
	o := e.toolbox(nil, func(_ context.Context, args json.RawMessage) (*mcpserver.Result, error) {
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer running.Add(-1)
		mu.Lock()
		defer mu.Unlock()
		order = append(order, string(args))
		return mcpserver.Text("ok"), nil
	})
	e.answered(e.script(modeltest.Say(callX("toolu_1", `{"n":1}`), callX("toolu_2", `{"n":2}`), callX("toolu_3", `{"n":3}`)), modeltest.Text("x")), "x", o)
	if got := strings.Join(order, ""); got != `{"n":1}{"n":2}{"n":3}` || most.Load() != 1 {
		e.Errorf("order %s, at most %d at once", got, most.Load())
	}
}

// failed runs one call of a tool that fails and returns what the model was sent.
func (e *env) failed(h handler) string {
	e.Helper()
	o := e.toolbox(nil, h)
	tr, r := e.answered(e.script(callX("toolu_1", `{}`), modeltest.Text("went on")), "x", o)
	if r.Result != "went on" || !tr.toolResult(e, "toolu_1").IsError || !e.sent("toolu_1").IsError {
		e.Errorf("result %q, tool result %+v, sent %+v", r.Result, tr.toolResult(e, "toolu_1"), e.sent("toolu_1"))
	}
	if len(r.PermissionDenials) != 0 {
		e.Errorf("permission denials %+v", r.PermissionDenials)
	}
	return textOf(e.sent("toolu_1"))
}

func toolError(e *env) {
	text := e.failed(func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		return nil, errors.New("shelf is empty")
	})
	if !strings.Contains(text, "shelf is empty") {
		e.Errorf("the model was sent %q", text)
	}
}

func toolPanic(e *env) {
	text := e.failed(func(context.Context, json.RawMessage) (*mcpserver.Result, error) { panic("secret detail") })
	if text == "" || strings.Contains(text, "secret detail") {
		e.Errorf("the model was sent %q", text)
	}
}

func toolErrorResult(e *env) {
	text := e.failed(func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		return mcpserver.Errorf("no article %d", 7), nil
	})
	if text != "no article 7" {
		e.Errorf("the model was sent %q", text)
	}
}

func unknownTool(e *env) {
	o := e.toolbox(nil, echo)
	tr, r := e.answered(e.script(modeltest.ToolUseID("toolu_1", "mcp__t__y", `{}`), modeltest.Text("went on")), "x", o)
	if got := tr.toolResult(e, "toolu_1"); !got.IsError || !strings.Contains(got.Text(), "mcp__t__y") || r.Result != "went on" {
		e.Errorf("tool result %+v, answer %q", got, r.Result)
	}
}

func invalidArguments(e *env) {
	ran := false
	t := &mcpserver.Tool{InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}
	o := e.toolbox(t, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		ran = true
		return mcpserver.Text("ok"), nil
	})
	tr, _ := e.answered(e.script(callX("toolu_1", `{"n":"seven"}`), modeltest.Text("x")), "x", o)
	if got := tr.toolResult(e, "toolu_1"); !got.IsError || ran || !strings.Contains(got.Text(), "n") {
		e.Errorf("tool result %+v, handler ran: %v", got, ran)
	}
}

// pixel is a PNG of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="

func imageResult(e *env) {
	data, err := base64.StdEncoding.DecodeString(pixel)
	if err != nil {
		e.Fatal(err)
	}
	o := e.toolbox(nil, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		return mcpserver.Image(data, nil), nil
	})
	e.answered(e.script(callX("toolu_1", `{}`), modeltest.Text("x")), "x", o)
	var kinds []string
	for _, c := range e.sent("toolu_1").Content {
		kinds = append(kinds, c.Type)
	}
	if !contains(kinds, "image") {
		e.Errorf("the model was sent %q", kinds)
	}
}

func structuredResult(e *env) {
	o := e.toolbox(nil, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		return mcpserver.Structured(map[string]int{"quantity": 4}), nil
	})
	e.answered(e.script(callX("toolu_1", `{}`), modeltest.Text("x")), "x", o)
	if got := textOf(e.sent("toolu_1")); !strings.Contains(got, "quantity") || !strings.Contains(got, "4") {
		e.Errorf("the model was sent %q", got)
	}
}

func emptyResult(e *env) {
	o := e.toolbox(nil, func(context.Context, json.RawMessage) (*mcpserver.Result, error) { return &mcpserver.Result{}, nil })
	e.answered(e.script(callX("toolu_1", `{}`), modeltest.Text("x")), "x", o)
	if got := textOf(e.sent("toolu_1")); got == "" {
		e.Error("the model was sent nothing")
	}
}

// F26
func hugeResult(e *env) {
	const size = 5_000_000
	o := e.toolbox(nil, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		return mcpserver.Text(strings.Repeat("0123456789", size/10)), nil
	})
	_, r := e.answered(e.script(callX("toolu_1", `{}`), modeltest.Text("survived")), "x", o)
	if got := textOf(e.sent("toolu_1")); len(got) == 0 || len(got) > size/10 || r.Result != "survived" {
		e.Errorf("the model was sent %d characters, the answer is %q", len(got), r.Result)
	}
}

func unicodeResult(e *env) {
	const text = "<b>&amp; \u2028 日本語 😀 \u0000 end"
	o := e.toolbox(nil, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		return mcpserver.Text(text + "\xff\xfe"), nil
	})
	e.answered(e.script(callX("toolu_1", `{}`), modeltest.Text("x")), "x", o)
	if got := textOf(e.sent("toolu_1")); !strings.HasPrefix(got, "<b>&amp; \u2028 日本語 😀") {
		e.Errorf("the model was sent %q", got)
	}
}

func manyTurns(e *env) {
	const turns = 12
	o := e.toolbox(nil, echo)
	var script []modeltest.Turn
	for range turns {
		script = append(script, modeltest.ToolUse(toolX, `{}`))
	}
	tr, r := e.answered(e.script(append(script, modeltest.Text("x"))...), "x", o)
	if len(tr.toolResults()) != turns || r.NumTurns != turns+1 {
		e.Errorf("%d results, %d turns", len(tr.toolResults()), r.NumTurns)
	}
}

// blocking is a handler that waits for the end of its context, and what says that it runs and that it has ended.
func blocking() (h handler, running, ended chan struct{}) {
	running, ended = make(chan struct{}), make(chan struct{})
	return func(ctx context.Context, _ json.RawMessage) (*mcpserver.Result, error) {
		close(running)
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	}, running, ended
}

func cancelReachesTheTool(e *env) {
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	h, running, ended := blocking()
	o := e.toolbox(nil, h)
	go func() {
		<-running
		cancel()
	}()
	tr := e.askContext(ctx, e.script(callX("toolu_1", `{}`)), "x", o)
	if !errors.Is(tr.err, context.Canceled) {
		e.Errorf("ended with %v", tr.err)
	}
	<-ended
}

func breakReachesTheTool(e *env) {
	h, running, ended := blocking()
	o := e.toolbox(nil, h)
	for m, err := range agent.Query(e.Context(), e.script(callX("toolu_1", `{}`)), "x", alone(o)) {
		if err != nil {
			e.Fatal(err)
		}
		if a, ok := m.(*agent.Assistant); ok && len(a.ToolUses()) > 0 {
			<-running
			break
		}
	}
	<-ended
}

func toolThatIgnoresItsContext(e *env) {
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	running, release := make(chan struct{}), make(chan struct{})
	done := make(chan struct{})
	o := e.toolbox(nil, func(context.Context, json.RawMessage) (*mcpserver.Result, error) {
		defer close(done)
		close(running)
		<-release
		return mcpserver.Text("too late"), nil
	})
	go func() {
		<-running
		cancel()
	}()
	tr := e.askContext(ctx, e.script(callX("toolu_1", `{}`)), "x", o)
	if !errors.Is(tr.err, context.Canceled) {
		e.Errorf("ended with %v", tr.err)
	}
	close(release)
	<-done
}
