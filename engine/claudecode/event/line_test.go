package event

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/internal/growth"
)

func TestDecode(t *testing.T) {
	tests := []struct {
		line string
		want Line // without Message
	}{
		{`{"type":"assistant","message":{"role":"assistant","content":[]}}`, Line{}},
		{` { "a" : 1, "type" : "result" }`, Line{Type: "result"}},
		{`{"message":{"type":"inner"},"x":["type"],"type":"outer"}`, Line{Type: "outer"}},
		{`{"a":"type","b":"\"type\":\"no\"","type":"yes"}`, Line{Type: "yes"}},
		{`{"type":"keep_alive"}`, Line{}},
		{
			`{"request":{"a":1,"subtype":"can_use_tool"},"type":"control_request","request_id":"r"}`,
			Line{Request: &Request{ID: "r", Subtype: "can_use_tool", Body: json.RawMessage(`{"a":1,"subtype":"can_use_tool"}`)}},
		},
		{`{"type":"control_request","request_id":"r"}`, Line{Request: &Request{ID: "r"}}},
		{
			`{"type":"control_response","response":{"subtype":"success","request_id":"r","response":{"a":1}}}`,
			Line{Response: &Response{Subtype: "success", RequestID: "r", Response: json.RawMessage(`{"a":1}`)}},
		},
		{`{"type":"control_cancel_request","request_id":"r"}`, Line{Cancelled: "r"}},
		{`{"type":"command_lifecycle","command_uuid":"u","state":"completed"}`, Line{Lifecycle: &Lifecycle{"u", "completed"}}},
		{`{"type":"transcript_mirror","filePath":"p","entries":[1]}`, Line{Mirror: &Mirror{"p", []json.RawMessage{json.RawMessage("1")}}}},
		{`{"type":"system","subtype":"status","status":null}`, Line{Type: "system", Event: &Status{}}},
		{
			`{"type":"system","subtype":"session_state_changed","state":"idle","sdk_host_only":true}`,
			Line{Type: "system", Event: &SessionState{State: "idle", HostOnly: true}},
		},
		{`{"type":"system","subtype":"session_state_changed","state":7}`, Line{Type: "system"}},
	}
	for _, tt := range tests {
		got, err := Decode([]byte(tt.line), true)
		if err != nil {
			t.Errorf("%s: %v", tt.line, err)
			continue
		}
		if isMessage := got.Request == nil && got.Response == nil && got.Cancelled == "" && got.Mirror == nil && got.Lifecycle == nil && got.Type != "keep_alive"; isMessage != (got.Message != nil) {
			t.Errorf("%s: message %v", tt.line, got.Message)
		}
		got.Message = nil
		if tt.want.Type == "" {
			tt.want.Type = got.Type
		}
		if diff := cmp.Diff(&tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.line, diff)
		}
	}
	for _, line := range []string{
		`{"type":7}`, `{"type":""}`, `{"type":null}`, `{"type"`, `{"type":`, `{"type":"x`, `{"a":{"type":"inner"}}`, `{"type":"half","message":{"rol`,
		`["type","x"]`, `"type"`, ``, `{`, `{}`, `warning: {"type":"x"}`, `{"a":"b`,
		`{"type":"control_response"}`, `{"type":"transcript_mirror","entries":7}`,
	} {
		if got, err := Decode([]byte(line), true); err == nil {
			t.Errorf("%s: got %+v, want an error", line, got)
		}
	}
}

func TestStreamEventsAreDecodedOnDemand(t *testing.T) {
	line := []byte(`{"type":"stream_event","event":{"type":"message_stop"}}`)
	for _, streamed := range []bool{false, true} {
		got, err := Decode(line, streamed)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := got.Message.(*agent.StreamEvent); ok != streamed {
			t.Errorf("streamed %v: got %T", streamed, got.Message)
		}
	}
}

func TestToolInput(t *testing.T) {
	line := func(event string) string {
		return `{"type":"stream_event","event":` + event + `,"session_id":"s","parent_tool_use_id":null}`
	}
	tests := []struct {
		name, line string
		want       *ToolInput
	}{
		{"call", line(`{"type":"content_block_start","index":3,"content_block":{"id":"t1","type":"tool_use","input":{"id":"x"}}}`), &ToolInput{Starts: true, Index: 3, ID: "t1"}},
		{"text block", line(`{"type":"content_block_start","index":0,"content_block":{"id":"t1","type":"text"}}`), &ToolInput{Starts: true}},
		{"piece", line(`{"index":1,"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{\"a\":\"\u00e9\"}"}}`), &ToolInput{Index: 1, Piece: `{"a":"é"}`}},
		{"text", line(`{"index":1,"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}`), nil},
		{"of a subagent", `{"type":"stream_event","event":{"type":"content_block_start"},"parent_tool_use_id":"t9"}`, &ToolInput{Parent: "t9", Starts: true}},
		{"members of other types", `{"type":"stream_event","event":{"type":7,"index":"1","content_block":[],"delta":null,"message":"m"},"parent_tool_use_id":4}`, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Decode([]byte(test.line), false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.ToolInput); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A request nests deeper than the scanner goes.
func TestDecodeDeepRequest(t *testing.T) {
	const depth = 3000
	body := `{"subtype":"mcp_message","message":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `}`
	got, err := Decode([]byte(`{"type":"control_request","request_id":"r","request":`+body+`}`), false)
	if err != nil || got.Request == nil || got.Request.Subtype != "mcp_message" || string(got.Request.Body) != body {
		t.Errorf("got %v, %v", got, err)
	}
}

// On valid lines Decode finds the type that encoding/json finds.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"type":"a"}`, `{"b":{"type":"x"},"type":"y"}`, `{"a":"\"","type":"\u0041"}`, `[]`, `{"type":null}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		var want struct {
			Type json.RawMessage `json:"type"`
		}
		if json.Unmarshal([]byte(line), &want) != nil || strings.Count(strings.ToLower(line), "type") > 1 {
			return
		}
		var kind string
		_ = json.Unmarshal(want.Type, &kind)
		got, err := Decode([]byte(line), false)
		if err == nil && got.Type != kind && strings.Contains(line, `"type"`) {
			t.Errorf("%s: got type %q, want %q", line, got.Type, kind)
		}
	})
}

// Decoding a line costs in proportion to its length.
func TestDecodeGrowsWithTheLine(t *testing.T) {
	for name, line := range map[string]func(n int) string{
		"type last":  func(n int) string { return `{` + strings.Repeat(`"k":1,`, n) + `"type":"system","subtype":"x"}` },
		"types":      func(n int) string { return `{` + strings.Repeat(`"type":"x",`, n) + `"a":1}` },
		"incomplete": func(n int) string { return `{"type":"system",` + strings.Repeat(`{"type":`, n) },
		"piece": func(n int) string {
			return `{"type":"stream_event","event":{"type":"content_block_delta","delta":{"partial_json":"` + strings.Repeat("1", 8*n) + `"}}}`
		},
		"large request": func(n int) string {
			return `{"type":"control_request","request":{` + strings.Repeat(`"subtype":"x",`, n) + `"a":1}}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			growth.Check(t, 1000, func(n int) int {
				data := []byte(line(n))
				return len(data) + growth.Bytes(func() { _, _ = Decode(data, false) })
			})
		})
	}
}
