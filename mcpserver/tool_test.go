package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// T01
func TestAToolWithNothingButAName(t *testing.T) {
	s := newTestServer(t, nil)
	MustAddTool(s, &Tool{Name: "now"}, func(context.Context, struct{}) (string, error) { return "noon", nil })
	for _, args := range []string{``, `{}`, `null`} {
		wantText(t, s, "now", args, "noon", false)
	}
	wantFailure(t, s, "now", `{"zone":"UTC"}`, "/zone")
	addRaw(t, s, "raw", returns(Text("r"), nil))
	wantText(t, s, "raw", ``, "r", false)
	wantText(t, s, "raw", `{"any":1}`, "r", false)
}

// R47 R48 R49 T05 T06 T08 T09 T17 T18 T45
func TestListTools(t *testing.T) {
	s := newTestServer(t, nil)
	yes, no := true, false
	err := errors.Join(
		s.AddTool(&Tool{
			Name: "full", Title: "Full", Description: "All there is.", InputSchema: json.RawMessage(`{"type":"object","properties":{"b":{},"a":{}}}`),
			OutputSchema: json.RawMessage(`{"type":"object"}`), ReadOnly: true, Idempotent: true, Destructive: &no, OpenWorld: &yes,
			Icons: []mcp.Icon{{Source: "data:,"}}, Meta: mcp.Meta{"x": 1}, SearchHint: "everything", AlwaysLoad: &yes,
			MaxResultSize: 500, Concurrency: Serial,
		}, returns(Text(""), nil)),
		s.AddTool(&Tool{Name: "bare"}, returns(Text(""), nil)),
		AddTool(s, &Tool{Name: "typed"}, func(context.Context, struct {
			A int `json:"a"`
		},
		) (string, error) {
			return "", nil
		}),
		AddTool(s, &Tool{Name: "empty"}, func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }),
		AddTool(s, &Tool{Name: "any"}, func(context.Context, any) (any, error) { return 1, nil }),
	)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"_meta":{"anthropic/alwaysLoad":true,"anthropic/maxResultSizeChars":500,"anthropic/searchHint":"everything","tenon/concurrency":"serial","x":1},` +
			`"annotations":{"destructiveHint":false,"idempotentHint":true,"openWorldHint":true,"readOnlyHint":true},` +
			`"description":"All there is.","inputSchema":{"type":"object","properties":{"b":{},"a":{}}},"name":"full","outputSchema":{"type":"object"},` +
			`"title":"Full","icons":[{"src":"data:,"}]}`,
		`{"inputSchema":{"type":"object"},"name":"bare"}`,
		`{"inputSchema":{"properties":{"a":{"type":"integer"}},"additionalProperties":false,"type":"object","required":["a"]},"name":"typed"}`,
		`{"inputSchema":{"properties":{},"additionalProperties":false,"type":"object"},"name":"empty"}`,
		`{"inputSchema":{"type":"object"},"name":"any"}`,
	}
	tools := s.ListTools()
	if len(tools) != len(want) {
		t.Fatalf("%d tools, want %d", len(tools), len(want))
	}
	for i, tool := range tools {
		if got := jsonOf(t, tool); got != want[i] {
			t.Errorf("tool %d: got\n%s\nwant\n%s", i, got, want[i])
		}
		if _, ok := tool.InputSchema.(json.RawMessage); !ok {
			t.Errorf("tool %d: the input schema is a %T", i, tool.InputSchema)
		}
	}
}

// T05 T46
func TestRegistrationTakesACopy(t *testing.T) {
	s := newTestServer(t, nil)
	yes := true
	tool := &Tool{
		Name: "t", Description: "before", InputSchema: json.RawMessage(`{"type":"object","required":["a"]}`), OpenWorld: &yes,
		Meta: mcp.Meta{"k": "before"}, Icons: []mcp.Icon{{Source: "before"}},
		OutputSchema: json.RawMessage(`{"type":"object","required":["c"]}`),
	}
	if err := s.AddTool(tool, returns(Structured(map[string]int{"c": 1}), nil)); err != nil {
		t.Fatal(err)
	}
	before := jsonOf(t, s.ListTools())
	tool.Name, tool.Description, yes = "u", "after", false
	tool.Meta["k"], tool.Icons[0].Source = "after", "after"
	copy(tool.InputSchema, `{"type":"object","required":["b"]}`)
	copy(tool.OutputSchema, `{"type":"object","required":["d"]}`)
	if after := jsonOf(t, s.ListTools()); after != before {
		t.Errorf("the list changed from\n%s\nto\n%s", before, after)
	}
	wantFailure(t, s, "t", `{}`, "/a:")
	wantText(t, s, "t", `{"a":1}`, `{"c":1}`, false)
}

// D87 D88 D89 D90: one warning for a tool whose input schema cannot be used, with
// the code and the text that other SDKs have, the error, and what to check; its
// siblings stay.
func TestWarningAboutAnInputSchema(t *testing.T) {
	tests := []struct {
		name, why string
		add       func(s *Server) error
	}{
		{"string", `"string"`, func(s *Server) error {
			return s.AddTool(&Tool{Name: "string", InputSchema: json.RawMessage(`{"type":"string"}`)}, returns(Text("x"), nil))
		}},
		{"dangling", "#/$defs/nosuch leads nowhere", func(s *Server) error {
			return s.AddTool(&Tool{Name: "dangling", InputSchema: json.RawMessage(`{"properties":{"a":{"$ref":"#/$defs/nosuch"}}}`)}, returns(Text("x"), nil))
		}},
		{"chan", "field C of type chan int", func(s *Server) error {
			return AddTool(s, &Tool{Name: "chan"}, func(context.Context, struct{ C chan int }) (string, error) { return "", nil })
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			s := newTestServer(t, &Options{Logger: slog.New(slog.NewJSONHandler(&out, nil))})
			addRaw(t, s, "before", returns(Text("x"), nil))
			if err := tt.add(s); err == nil {
				t.Fatal("it is taken")
			}
			addRaw(t, s, "after", returns(Text("x"), nil))
			if tools := s.ListTools(); len(tools) != 2 {
				t.Errorf("the list is %s", jsonOf(t, tools))
			}
			var warning struct{ Level, Msg, Code string }
			if err := json.Unmarshal(out.Bytes(), &warning); err != nil { // one line and no more
				t.Fatalf("%s: %v", out.Bytes(), err)
			}
			begin := fmt.Sprintf(`Tool %q on SDK MCP server %q was left out of the server's tool list, because its input schema cannot be converted to JSON Schema: `, tt.name, s.Name())
			if warning.Level != "WARN" || warning.Code != "CLAUDE_SDK_MCP_TOOL_SCHEMA_UNCONVERTIBLE" || !strings.HasPrefix(warning.Msg, begin) ||
				!strings.Contains(warning.Msg, tt.why) || !strings.Contains(warning.Msg, "Check that ") {
				t.Errorf("warning %+v", warning)
			}
		})
	}
}

// R63 D87 D88 T12 R09
func TestOneBadRegistrationIsLeftOut(t *testing.T) {
	var log logBuffer
	s := newTestServer(t, &Options{Logger: log.logger()})
	ok := returns(Text("first"), nil)
	raw := func(name, input, output string) error {
		return s.AddTool(&Tool{Name: name, InputSchema: json.RawMessage(input), OutputSchema: json.RawMessage(output)}, ok)
	}
	addRaw(t, s, "good", ok)
	tests := []struct {
		name, says string
		err        error
	}{
		{"good", "the name is taken", s.AddTool(&Tool{Name: "good"}, returns(Text("second"), nil))},
		{"", "no name", s.AddTool(&Tool{}, ok)},
		{"", "nil", s.AddTool(nil, ok)},
		{"nohandler", "no handler", s.AddTool(&Tool{Name: "nohandler"}, nil)},
		{"nohandler", "no handler", s.AddRawTool(&Tool{Name: "nohandler"}, nil)},
		{"nohandler", "no handler", AddTool[struct{}, string](s, &Tool{Name: "nohandler"}, nil)},
		{"a b", `character ' '`, s.AddTool(&Tool{Name: "a b"}, ok)},
		{strings.Repeat("n", 129), "129 characters", s.AddTool(&Tool{Name: strings.Repeat("n", 129)}, ok)},
		{"notjson", "not valid JSON", raw("notjson", `{`, ``)},
		{"list", "must be a JSON object", raw("list", `[]`, ``)},
		{"string", `"string"`, raw("string", `{"type":"string"}`, ``)},
		{"types", `must have the type "object"`, raw("types", `{"type":["object","null"]}`, ``)},
		{"invalid", "/properties/a/type", raw("invalid", `{"type":"object","properties":{"a":{"type":"strnig"}}}`, ``)},
		{"null properties", "character ' '", raw("null properties", `{"type":"object"}`, ``)},
		{"nullprops", "/properties", raw("nullprops", `{"type":"object","properties":null}`, ``)},
		{"draft4", "draft-04", raw("draft4", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object"}`, ``)},
		{"draft6out", "draft-06", raw("draft6out", `{}`, `{"$schema":"http://json-schema.org/draft-06/schema#"}`)},
		{"badout", "output schema", raw("badout", `{}`, `{"minimum":"x"}`)},
		{"dangling", "#/$defs/nosuch leads nowhere", raw("dangling", `{"properties":{"a":{"$ref":"#/$defs/nosuch"}}}`, ``)},
		{"header", "x-mcp-header", raw("header", `{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}`, ``)},
		{"chan", "field C of type chan int", AddTool(s, &Tool{Name: "chan"}, func(context.Context, struct{ C chan int }) (string, error) { return "", nil })},
		{"funcout", "field F of type func()", AddTool(s, &Tool{Name: "funcout"}, func(context.Context, struct{}) (struct{ F func() }, error) {
			return struct{ F func() }{}, nil
		})},
		{"notobject", "want a struct or a map", AddTool(s, &Tool{Name: "notobject"}, func(context.Context, []int) (string, error) { return "", nil })},
		{"depth", "MaxSchemaDepth", s.AddTool(&Tool{Name: "depth", MaxSchemaDepth: -1}, ok)},
		{"meta", "_meta", s.AddTool(&Tool{Name: "meta", Meta: mcp.Meta{"f": func() {}}}, ok)},
	}
	rejected := s.Rejected()
	if len(rejected) != len(tests) {
		t.Fatalf("%d rejections, want %d: %v", len(rejected), len(tests), rejected)
	}
	for i, tt := range tests {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.says) {
			t.Errorf("%q: got %v, want an error with %q", tt.name, tt.err, tt.says)
			continue
		}
		r := rejected[i]
		if r.Kind != KindTool || r.Name != tt.name || !errors.Is(tt.err, r.Err) {
			t.Errorf("rejection %d is %+v, want that of %q", i, r, tt.name)
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != len(tests) {
		t.Errorf("%d warnings, want %d", n, len(tests))
	}
	if tools := s.ListTools(); len(tools) != 1 || tools[0].Name != "good" {
		t.Errorf("the list is %s", jsonOf(t, tools))
	}
	wantText(t, s, "good", `{}`, "first", false)
}

func TestMustAddToolPanics(t *testing.T) {
	s := newTestServer(t, nil)
	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), `"a b"`) {
			t.Errorf("recovered %v", r)
		}
	}()
	MustAddTool(s, &Tool{Name: "a b"}, func(context.Context, struct{}) (string, error) { return "", nil })
}

func TestInputSchemasThatSayLess(t *testing.T) {
	s := newTestServer(t, nil)
	for i, tt := range []struct{ schema, listed string }{
		{`null`, `{"type":"object"}`},
		{`{}`, `{"type":"object"}`},
		{` { } `, `{"type":"object"}`},
		{`{"properties":{"a":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"type":"string"}}}`},
		{`{"oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]}`},
	} {
		name := fmt.Sprint("t", i)
		if err := s.AddTool(&Tool{Name: name, InputSchema: json.RawMessage(tt.schema)}, returns(Text("ok"), nil)); err != nil {
			t.Errorf("%s: %v", tt.schema, err)
			continue
		}
		if got := jsonOf(t, s.ListTools()[i].InputSchema); got != tt.listed {
			t.Errorf("%s is listed as %s, want %s", tt.schema, got, tt.listed)
		}
	}
	wantFailure(t, s, "t4", `{}`, "matches none of the 2 allowed forms")
	wantFailure(t, s, "t4", `{"a":1,"b":2}`, "must match exactly one")
	wantText(t, s, "t4", `{"a":1}`, "ok", false)
}

func TestToolsComeAndGo(t *testing.T) {
	s := newTestServer(t, nil)
	list := func() string {
		var names []string
		for _, tool := range s.ListTools() {
			names = append(names, tool.Name)
		}
		return strings.Join(names, " ")
	}
	for _, name := range []string{"c", "a", "b"} {
		addRaw(t, s, name, returns(Text(name), nil))
	}
	if got := list(); got != "c a b" {
		t.Errorf("in the order of registration: %s", got)
	}
	s.RemoveTool("a", "nobody")
	wantFailure(t, s, "a", `{}`, "Tool 'a' not found")
	addRaw(t, s, "a", returns(Text("new"), nil))
	if got := list(); got != "c b a" {
		t.Errorf("after remove and add: %s", got)
	}
	wantText(t, s, "a", `{}`, "new", false)
}

// T19
func TestTheRequestInTheContext(t *testing.T) {
	s := newTestServer(t, nil)
	var got *Request
	addRaw(t, s, "look", func(ctx context.Context, _ json.RawMessage) (*Result, error) {
		got = RequestFrom(context.WithValue(ctx, testKey{}, "y"))
		return Text(""), nil
	})
	client := &mcp.Implementation{Name: "host"}
	ss := s.NewSession(&SessionOptions{ID: "s1", Client: client})
	defer ss.Close()
	caps := &mcp.ClientCapabilities{}
	if _, err := ss.CallTool(t.Context(), Call{
		Name: "look", RequestID: `"id-1"`, ProgressToken: 7, Meta: mcp.Meta{"k": "v"}, ClientCapabilities: caps, ProtocolVersion: "2025-11-25",
	}); err != nil {
		t.Fatal(err)
	}
	if got.Kind != KindTool || got.Name != "look" || got.SessionID != "s1" || got.RequestID != `"id-1"` || got.ProgressToken != 7 ||
		got.Meta["k"] != "v" || got.Client != client || got.ClientCapabilities != caps || got.ProtocolVersion != "2025-11-25" {
		t.Errorf("got %+v", got)
	}
	callText(t, s, "look", ``)
	if got.SessionID != "" || got.RequestID != "" || got.Name != "look" {
		t.Errorf("direct call: got %+v", got)
	}
	if r := RequestFrom(t.Context()); r == nil || r.Name != "" {
		t.Errorf("outside of calls: got %+v", r)
	}
}

// T23
func TestAHandlerMayStartWorkAndEndsWithItsContext(t *testing.T) {
	s := newTestServer(t, nil)
	ended := make(chan error, 1)
	addRaw(t, s, "work", func(ctx context.Context, _ json.RawMessage) (*Result, error) {
		part := make(chan string)
		go func() {
			select {
			case part <- "done":
			case <-ctx.Done():
				ended <- ctx.Err()
			}
		}()
		if RequestFrom(ctx).RequestID == "wait" {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return Text(<-part), nil
	})
	wantText(t, s, "work", `{}`, "done", false)
	ctx, cancel := context.WithCancel(t.Context())
	ss := s.NewSession(nil)
	defer ss.Close()
	answered := make(chan error, 1)
	go func() {
		_, err := ss.CallTool(ctx, Call{Name: "work", RequestID: "wait"})
		answered <- err
	}()
	cancel()
	if err := <-answered; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
}

func TestToolTimeouts(t *testing.T) {
	s := newTestServer(t, &Options{Timeout: 5 * time.Second})
	if err := s.AddTool(&Tool{Name: "own", Timeout: time.Second}, returns(Text(""), nil)); err != nil {
		t.Fatal(err)
	}
	if err := s.AddTool(&Tool{Name: "none", Timeout: NoTimeout}, returns(Text(""), nil)); err != nil {
		t.Fatal(err)
	}
	addRaw(t, s, "inherits", returns(Text(""), nil))
	ss := s.NewSession(&SessionOptions{Timeout: 2 * time.Second})
	defer ss.Close()
	for name, want := range map[string][2]time.Duration{
		"own": {time.Second, time.Second}, "none": {NoTimeout, NoTimeout},
		"inherits": {5 * time.Second, 2 * time.Second}, "nobody": {5 * time.Second, 2 * time.Second},
	} {
		if got := [2]time.Duration{s.ToolTimeout(name), ss.ToolTimeout(name)}; got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
