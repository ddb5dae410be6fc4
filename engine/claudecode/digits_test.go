package claudecode

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/peers"
	"github.com/tenon-sdk/tenon/mcpserver"
	"github.com/tenon-sdk/tenon/modeltest"
	"github.com/tenon-sdk/tenon/permission"
)

// A schema keeps the digits if no number in what it allows is another one as a double float. In doubt it does not.
func TestKeepsDigits(t *testing.T) {
	of := func(property string) string {
		return `{"type":"object","properties":{"a":{"type":"string"},"p":` + property + `}}`
	}
	const bounds = `"minimum":0,"maximum":9007199254740991`
	for schema, want := range map[string]bool{
		`{"type":"object","properties":{}}`:                                           true,
		`{"type":"object"}`:                                                           false, // anything goes
		`{"type":"object","additionalProperties":false}`:                              true,
		`{"type":"object","properties":{},"additionalProperties":true}`:               false,
		`{"type":"object","properties":{},"additionalProperties":{"type":"boolean"}}`: true,
		`{"type":"object","properties":{},"additionalProperties":{"type":"number"}}`:  false,
		`{"type":"object","properties":{},"patternProperties":{"^n":{}}}`:             false,
		`{"type":"object","properties":{},"unevaluatedProperties":false}`:             true,
		`{"type":"object","properties":{},"unevaluatedProperties":{}}`:                false,
		of(`{"type":"string"}`):                                                       true,
		of(`{"type":["string","null"]}`):                                              true,
		of(`{"type":[]}`):                                                             false,
		of(`{"type":"text"}`):                                                         false,
		of(`{"type":"integer"}`):                                                      false,
		of(`{"type":"number",` + bounds + `}`):                                        false, // 1.50
		of(`{"type":"integer",` + bounds + `}`):                                       true,
		of(`{"type":["integer","string"],` + bounds + `}`):                            true,
		of(`{"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":9}`):            true,
		of(`{"type":"integer","minimum":0}`):                                          false,
		of(`{"type":"integer","minimum":0,"maximum":9007199254740992}`):               false, // what is rounded to it matches
		of(`{"type":"integer","minimum":0,"maximum":1e999}`):                          false,
		of(`{"type":"integer","minimum":"0","maximum":true}`):                         false,
		of(`{}`):                                         false,
		of(`true`):                                       false,
		of(`false`):                                      true,
		of(`7`):                                          false,
		of(`{"description":"untyped"}`):                  false,
		of(`{"enum":["a",1,null,{"b":[2.5]}]}`):          true,
		of(`{"enum":[9007199254740993]}`):                false,
		of(`{"enum":"a"}`):                               false,
		of(`{"enum":[10000000000000000]}`):               false, // so does its neighbour read
		of(`{"const":9007199254740992}`):                 false,
		of(`{"type":"integer","enum":[1,2]}`):            true,
		of(`{"const":1.50}`):                             false,
		of(`{"const":"1.50"}`):                           true,
		of(`{"type":"array","items":{"type":"string"}}`): true,
		of(`{"type":"array","items":{"type":"number"}}`): false,
		of(`{"type":"array"}`):                           false,
		of(`{"type":"array","prefixItems":[{"type":"string"}],"items":false}`):  true,
		of(`{"type":"array","prefixItems":[{"type":"integer"}],"items":false}`): false,
		of(`{"type":"array","prefixItems":[{"type":"string"}]}`):                false,
		of(`{"anyOf":[{"type":"string"},{"type":"null"}]}`):                     true,
		of(`{"anyOf":[{"type":"string"},{"type":"integer"}]}`):                  false,
		of(`{"anyOf":[{"type":"string"},{"required":["x"]}]}`):                  false,
		of(`{"anyOf":[]}`):                                                                                                false,
		of(`{"oneOf":[{"type":"boolean"}]}`):                                                                              true,
		of(`{"allOf":[{"type":"string"},{"description":"x"}]}`):                                                           false, // more than a look
		of(`{"type":"object","properties":{},"anyOf":[{"required":["a"]}]}`):                                              true,
		of(`{"type":"object","properties":{},"allOf":[{"properties":{"n":{}}}]}`):                                         false,
		of(`{"type":"object","properties":{},"if":{"type":"string"},"then":{"properties":{"n":{"type":"integer"}}}}`):     false,
		of(`{"type":"object","properties":{},"dependentSchemas":{"a":{}}}`):                                               false,
		of(`{"type":"integer","anyOf":[{"minimum":0,"maximum":1}]}`):                                                      false,
		`{"type":"object","properties":{"p":{"$ref":"#/$defs/s"}},"$defs":{"s":{"type":"string"},"n":{"type":"number"}}}`: true, // unused definitions do not count
		`{"type":"object","properties":{"p":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"number"}}}`:                       false,
		`{"type":"object","properties":{"p":{"$ref":"#/$defs/none"}}}`:                                                    false,
		`{"type":"object","properties":{"p":{"$ref":"#anchor"}}}`:                                                         false,
		`{"type":"object","properties":{"p":{"$ref":"https://example.com/s"}}}`:                                           false,
		`{"type":"object","properties":{"next":{"$ref":"#"},"name":{"type":"string"}}}`:                                   true,
		`{"type":"object","properties":{"p":{"$ref":"#/$defs/a~1b%20c"}},"$defs":{"a/b c":{"type":"object","properties":{"again":{"$ref":"#/$defs/a~1b%20c"},"n":{"type":"number"}}}}}`: false,
		`{"type":"object","properties":{"p":{"type":"string","$ref":"#/$defs/r"},"q":{"$ref":"#/$defs/r"}},"$defs":{"r":{"required":["a"]}}}`:                                           false,
		branching(30): true,
		`{"type":"object","properties":{"p":{"$id":"p","$ref":"#/$defs/s","$defs":{"s":{"type":"number"}}}},"$defs":{"s":{"type":"string"}}}`:   false, // its own definition
		`{"type":"object","properties":{"p":{"$ref":"#/$defs/q/properties/r"}},"$defs":{"q":{"$id":"q","properties":{"r":{"type":"string"}}}}}`: false,
		`{"$id":"all","type":"object","properties":{"p":{"$ref":"#/$defs/s"}},"$defs":{"s":{"type":"string"}}}`:                                 true,
		strings.Repeat(`{"type":"array","items":`, schemaDepth+1) + `{"type":"string"}` + strings.Repeat(`}`, schemaDepth+1):                    false,
		`no JSON`: false, ``: false, `true`: false,
	} {
		if got := keepsDigits(json.RawMessage(schema)); got != want {
			t.Errorf("%s: %v, want %v", schema, got, want)
		}
	}
}

// branching is a schema whose references, followed one by one, would be 2^n many.
func branching(n int) string {
	defs := `"d0":{"type":"string"}`
	for i := range n {
		defs += fmt.Sprintf(`,"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%[2]d"}}}`, i+1, i)
	}
	return fmt.Sprintf(`{"type":"object","properties":{"p":{"$ref":"#/$defs/d%d"}},"$defs":{%s}}`, n, defs)
}

// taking is a server with tools of these schemas.
func taking(t *testing.T, schemas ...string) *mcpserver.Server {
	t.Helper()
	s := mcpserver.New("taking", nil)
	for i, schema := range schemas {
		addTaking(t, s, fmt.Sprintf("tool%d", i), schema)
	}
	return s
}

func addTaking(t *testing.T, s *mcpserver.Server, name, schema string) {
	t.Helper()
	err := s.AddTool(&mcpserver.Tool{Name: name, InputSchema: json.RawMessage(schema)}, func(_ context.Context, args json.RawMessage) (*mcpserver.Result, error) {
		return mcpserver.Text("got " + string(args)), nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

const (
	textTool   = `{"type":"object","properties":{"text":{"type":"string"}}}`
	numberTool = `{"type":"object","properties":{"id":{"type":"integer"}}}`
)

// The model's stream is asked for where digits may be lost on the way to this process, and where it is
// not known in time whether they may.
func TestStreamIsReadForDigits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failing := &lister{Server: echo(t), list: func(context.Context, int) ([]*mcp.Tool, error) { return nil, errors.New("no list today") }}
		tests := map[string]struct {
			o    *agent.Options
			want bool
		}{
			"no servers":      {&agent.Options{}, false},
			"texts":           {inProcess(map[string]mcpserver.Provider{"a": taking(t, textTool), "b": taking(t)}), false},
			"an integer":      {inProcess(map[string]mcpserver.Provider{"a": taking(t, textTool), "b": taking(t, textTool, numberTool)}), true},
			"anything":        {inProcess(map[string]mcpserver.Provider{"a": taking(t, `{"type":"object"}`)}), true},
			"wanted":          {&agent.Options{IncludePartialMessages: true}, true},
			"output of texts": {&agent.Options{OutputSchema: json.RawMessage(textTool)}, false},
			"output":          {&agent.Options{OutputSchema: json.RawMessage(numberTool)}, true},
			"a list in time":  {inProcess(map[string]mcpserver.Provider{"a": slow(t, listWait-1)}), false},
			"a late list":     {inProcess(map[string]mcpserver.Provider{"a": slow(t, listWait+1)}), true},
			"a list never":    {inProcess(map[string]mcpserver.Provider{"a": slow(t, time.Hour)}), true},
			"no list":         {inProcess(map[string]mcpserver.Provider{"a": failing}), true},
		}
		for name, tt := range tests {
			s := sessionOf(t, tt.o)
			if got := s.needsStream(t.Context()); got != tt.want {
				t.Errorf("%s: %v, want %v", name, got, tt.want)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		off := inProcess(map[string]mcpserver.Provider{"a": taking(t, textTool)})
		off.Env = map[string]string{manifestsOff: "1"} // nobody is asked
		if !sessionOf(t, off).needsStream(t.Context()) {
			t.Error("tools that were not asked for count as harmless")
		}
	})
}

// A server is asked once for both: whether its tools need the stream, and its manifest.
func TestServersAreAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		lists := map[string]int{}
		counted := func(name string, d time.Duration) mcpserver.Provider {
			return &lister{Server: echo(t), list: func(ctx context.Context, call int) ([]*mcp.Tool, error) {
				mu.Lock()
				lists[name] = call
				mu.Unlock()
				return slow(t, d).list(ctx, call)
			}}
		}
		s := sessionOf(t, inProcess(map[string]mcpserver.Provider{"quick": counted("quick", 0), "slow": counted("slow", 2*listWait)}))
		s.needsStream(t.Context())
		got := s.servers.manifests(t.Context())
		if len(got) != 2 || lists["quick"] != 1 || lists["slow"] != 1 {
			t.Errorf("%d manifests after these lists: %v", len(got), lists)
		}
	})
}

// What the CLI may have rounded on its way to a tool that came too late for the stream is not taken for what was meant.
func TestUnsafeIntegers(t *testing.T) {
	for args, want := range map[string]string{
		`{}`: "", `{"a":1,"b":[9007199254740991,-9007199254740991],"c":0.30000000000000004,"d":"12345678901234567890"}`: "",
		`{"id":9007199254740992}`:                      "id",
		`{"id":-12345678901234567000}`:                 "id",
		`{"a":{"b":[1,{"c":1.2345678901234568e+24}]}}`: "a.b[1].c",
		`[10000000000000000]`:                          "[0]",
		`no JSON 12345678901234567890`:                 "",
	} {
		if path, number := unsafeInteger(json.RawMessage(args)); path != want || (number == "") != (want == "") {
			t.Errorf("%s: %q, %q, want the place %q", args, path, number, want)
		}
	}
}

// A program hands on what it was told: that makes an integer that the CLI may have rounded no more certain.
// What it puts there itself is.
func TestHandedOnIntegersStayUncertain(t *testing.T) {
	const told = `{"id":12345678901234567000,"note":"a"}`
	for given, certain := range map[string]bool{
		told:                                     false,
		`{"note":"b","id":12345678901234567000}`: false,
		`{"id":12345678901234567168}`:            false, // what a float64 is in full
		`{"id":1.2345678901234567e+19}`:          false,
		`{"list":[12345678901234567000]}`:        false,
		`{"id":12345678901234567890}`:            true,
		`{"id":98765432109876543210}`:            true,
	} {
		answers := map[string]func(s *session) (any, error){
			"a verdict": func(s *session) (any, error) {
				s.opts.CanUseTool = func(context.Context, *agent.ToolRequest) (*permission.PromptResult, error) {
					return &permission.PromptResult{Behavior: permission.Allow, UpdatedInput: json.RawMessage(given)}, nil
				}
				return s.canUseTool(t.Context(), json.RawMessage(`{"tool_name":"t","tool_use_id":"call","input":`+told+`}`))
			},
			"a hook": func(s *session) (any, error) {
				s.hooks = map[string]hookFunc{"h": func(context.Context, json.RawMessage) (*hookReply, error) {
					return &hookReply{Specific: &hookSpecifics{UpdatedInput: json.RawMessage(given)}}, nil
				}}
				return s.hookCallback(t.Context(), json.RawMessage(`{"callback_id":"h","input":{"tool_use_id":"call","tool_input":`+told+`}}`))
			},
			"a raw hook": func(s *session) (any, error) {
				s.rawHooks = map[string]rawHookFunc{"h": func(context.Context, json.RawMessage) (json.RawMessage, error) {
					return json.RawMessage(`{"hookSpecificOutput":{"updatedInput":` + given + `}}`), nil
				}}
				return s.hookCallback(t.Context(), json.RawMessage(`{"callback_id":"h","input":{"tool_use_id":"call","tool_input":`+told+`}}`))
			},
		}
		for by, answer := range answers {
			s := sessionOf(t, &agent.Options{})
			if _, err := answer(s); err != nil {
				t.Error(err)
			}
			var rounded any
			if err := json.Unmarshal([]byte(given), &rounded); err != nil {
				t.Fatal(err)
			}
			cli, err := json.Marshal(rounded)
			if err != nil {
				t.Fatal(err)
			}
			args := s.args.call("call", cli)
			g := &guest{s: s, name: "a"}
			refused := g.refuseRounded(t.Context(), mcpserver.Call{Name: "t", Arguments: args, Meta: map[string]any{toolUseIDKey: "call"}}) != nil
			if refused == certain {
				t.Errorf("%s gives %s, the call has %s: refused %v", by, given, args, refused)
			}
		}
	}
}

// The calls of a session that is opened with tools for texts alone cost no stream, and a tool that joins
// later and takes integers gets those that are certain; a call with another is refused, and said to be.
func TestRealLateIntegers(t *testing.T) {
	peers.ClaudePath(t)
	server := taking(t, textTool)
	m := modeltest.New(t,
		modeltest.ToolUseID("first", "mcp__a__tool0", `{"text":"12345678901234567890"}`), modeltest.Text("one"),
		modeltest.ToolUseID("small", "mcp__a__late", `{"id":9007199254740991}`),
		modeltest.ToolUseID("big", "mcp__a__late", `{"id":12345678901234567890}`), modeltest.Text("two"))
	var log bytes.Buffer
	o := inProcess(map[string]mcpserver.Provider{"a": server})
	o.AllowedTools = []string{"mcp__a__*"}
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	e, _ := realWith(t, m, &Options{})
	e.Engine.(*Engine).listWait = time.Minute //nolint:forcetypeassert // realWith sees to it
	client, err := agent.Open(t.Context(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	turn := func() map[string]*agent.ToolResultBlock {
		t.Helper()
		if err := client.Send(t.Context(), "go on"); err != nil {
			t.Fatal(err)
		}
		results := map[string]*agent.ToolResultBlock{}
		for msg, err := range client.Response(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if u, ok := msg.(*agent.User); ok {
				for _, r := range u.ToolResults() {
					results[r.ToolUseID] = r
				}
			}
		}
		return results
	}
	if got := turn()["first"]; got == nil || got.Text() != `got {"text":"12345678901234567890"}` {
		t.Errorf("the first call: %+v", got)
	}
	addTaking(t, server, "late", numberTool)
	untilListed(t, client, "a", "late")
	late := turn()
	if got := late["small"]; got == nil || got.IsError || got.Text() != `got {"id":9007199254740991}` {
		t.Errorf("a small integer: %+v", got)
	}
	if got := late["big"]; got == nil || !got.IsError || !strings.Contains(got.Text(), "argument id is 12345678901234567000") || !strings.Contains(got.Text(), "as a string") {
		t.Errorf("a big integer: %+v", got)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"Options.IncludePartialMessages", "server=a", "tool=late", "argument=id"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %q: %s", want, log.String())
		}
	}
	if requests := m.Requests(); !slices.ContainsFunc(requests, func(r *modeltest.Request) bool { _, ok := r.Tool("mcp__a__late"); return ok }) {
		t.Errorf("none of %d requests offers the late tool", len(requests))
	}
}
