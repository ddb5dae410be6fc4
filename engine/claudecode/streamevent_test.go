package claudecode

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadStreamEvent(t *testing.T) {
	line := func(event string) string {
		return `{"type":"stream_event","event":` + event + `,"session_id":"s","parent_tool_use_id":null}`
	}
	tests := []struct {
		name, line string
		want       streamEvent
	}{
		{"call", line(`{"type":"content_block_start","index":3,"content_block":{"id":"t1","type":"tool_use","input":{"id":"x"}}}`), streamEvent{kind: "content_block_start", index: 3, call: "t1"}},
		{"text block", line(`{"type":"content_block_start","index":0,"content_block":{"id":"t1","type":"text"}}`), streamEvent{kind: "content_block_start"}},
		{"arguments", line(`{"index":1,"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{\"a\":\"\u00e9\"}"}}`), streamEvent{kind: "content_block_delta", index: 1, input: `{"a":"é"}`}},
		{"of a subagent", `{"event":{"type":"message_stop"},"parent_tool_use_id":"t9"}`, streamEvent{parent: "t9", kind: "message_stop"}},
		{"members of other types", `{"event":{"type":7,"index":"1","content_block":[],"delta":null,"message":"m"},"parent_tool_use_id":4}`, streamEvent{}},
		{"no object", `[1]`, streamEvent{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, readStreamEvent([]byte(test.line)), cmp.AllowUnexported(streamEvent{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadCall(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"n":1.50},"_meta":{"claudecode/toolUseId":"t1"}}}`
	tests := []struct{ name, raw, id, arguments string }{
		{"call", call, "t1", `{"n":1.50}`},
		{"without arguments", `{"method":"tools/call","params":{"_meta":{"claudecode/toolUseId":"t1"}}}`, "t1", ""},
		{"another method", strings.Replace(call, "tools/call", "tools/list", 1), "", ""},
		{"without an ID", `{"method":"tools/call","params":{"name":"tools/call","arguments":{}}}`, "", ""},
		{"an ID that is none", `{"method":"tools/call","params":{"_meta":{"claudecode/toolUseId":5}}}`, "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			id, arguments, ok := readCall(json.RawMessage(test.raw))
			if ok != (test.id != "") || ok && (id != test.id || string(arguments) != test.arguments) {
				t.Errorf("got %q, %s, %v", id, arguments, ok)
			}
		})
	}
}

// Where the short way says that nothing is lost, the long way says so as well.
func TestSmallNumbersAreLossless(t *testing.T) {
	for _, raw := range []string{
		`{"a":1,"b":-0,"c":[123456789012345,"1.5"],"d":"x1e5"}`, `0`, `-1`, `"AB-000000000000000001"`, `{"a":999999999999999,"a":1}`, `null`,
	} {
		slow := exactNumbers(json.RawMessage(raw)) == exactNumbers(mustRound(t, raw))
		if smallNumbers(json.RawMessage(raw)) && !slow {
			t.Errorf("%s passes as small and is not lossless", raw)
		}
		if got := lossless(json.RawMessage(raw)); got != slow {
			t.Errorf("lossless(%s) is %v, want %v", raw, got, slow)
		}
	}
	for _, raw := range []string{`9007199254740993`, `1.50`, `1e3`, `{"a":12345678901234567890}`, `{`, ``} {
		if lossless(json.RawMessage(raw)) {
			t.Errorf("%s passes as lossless", raw)
		}
	}
}

func mustRound(t *testing.T, raw string) json.RawMessage {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestResponseIsOneLine(t *testing.T) {
	for raw, want := range map[string]string{
		`{"id":1}`:                       `{"mcp_response":{"id":1}}`,
		"{\n  \"id\": 1,\r\n \"a\":[ ]}": `{"mcp_response":{"id":1,"a":[]}}`,
	} {
		if got, err := marshalResult(mcpResponse(raw)); err != nil || string(got) != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
}

// A call whose arguments nest deeper than the scanner goes is answered like any other: nobody waits for it.
func TestDeepCallIsAnswered(t *testing.T) {
	const depth = 3000
	arguments := `{"a":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`
	line := `{"type":"control_request","request_id":"r1","request":{"subtype":"mcp_message","server_name":"s","message":{"jsonrpc":"2.0","id":1,` +
		`"method":"tools/call","params":{"name":"a","arguments":` + arguments + `,"_meta":{"claudecode/toolUseId":"t1"}}}}}`
	c := newChannel(t.Context())
	defer c.end(nil)
	c.handle = func(_ context.Context, subtype string, request json.RawMessage) (any, error) {
		q, err := readMCPMessage(request)
		if id, got, ok := readCall(q.Message); err != nil || subtype != "mcp_message" || q.Server != "s" || !ok || id != "t1" || string(got) != arguments {
			t.Errorf("read %q of %q: %q, %v, %v", subtype, q.Server, id, ok, err)
		}
		return mcpResponse("{}"), nil
	}
	if !c.take("control_request", []byte(line)) {
		t.Fatal("the request passes for noise")
	}
	if got := string(<-c.out.lines); !strings.Contains(got, `"request_id":"r1"`) {
		t.Errorf("got %s", got)
	}
}
