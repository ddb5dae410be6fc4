package event

import (
	"encoding/json"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
)

func TestOf(t *testing.T) {
	tests := []struct {
		line string
		good func(any) bool
	}{
		{`{"type":"system","subtype":"task_notification","task_id":"t","status":"completed","usage":{"total_tokens":3}}`, func(e any) bool {
			n, ok := e.(*TaskNotification)
			return ok && n.TaskID == "t" && n.Status == "completed" && n.Usage.Tokens == 3
		}},
		{`{"type":"tool_progress","tool_name":"Bash","parent_tool_use_id":null,"elapsed_time_seconds":30.5}`, func(e any) bool {
			p, ok := e.(*ToolProgress)
			return ok && p.ToolName == "Bash" && p.ParentToolUseID == "" && p.ElapsedSeconds == 30.5
		}},
		{`{"type":"system","subtype":"status","status":null}`, func(e any) bool {
			s, ok := e.(*Status)
			return ok && s.Status == ""
		}},
		{`{"type":"system","subtype":"api_retry","attempt":1,"error_status":null,"retry_delay_ms":512.5}`, func(e any) bool {
			r, ok := e.(*APIRetry)
			return ok && r.Attempt == 1 && r.ErrorStatus == 0
		}},
		{`{"type":"rate_limit_event","rate_limit_info":{"status":"allowed","resetsAt":1700000000}}`, func(e any) bool {
			r, ok := e.(*RateLimit)
			return ok && r.Info.Status == "allowed" && r.Info.ResetsAt == 1700000000
		}},
		{`{"type":"active_goal","value":null}`, func(e any) bool {
			g, ok := e.(*ActiveGoal)
			return ok && g.Value == nil
		}},
		{`{"type":"system","subtype":"brand_new"}`, func(e any) bool { return e == nil }},
		{`{"type":"brand_new"}`, func(e any) bool { return e == nil }},
		{`{"type":"assistant","message":{"role":"assistant","content":[]}}`, func(e any) bool { return e == nil }},
	}
	for _, tt := range tests {
		m, err := agent.DecodeMessage(json.RawMessage(tt.line))
		if err != nil {
			t.Fatal(err)
		}
		e, err := Of(m)
		if err != nil || !tt.good(e) {
			t.Errorf("%s: got %+v, %v", tt.line, e, err)
		}
	}
	m, err := agent.DecodeMessage(json.RawMessage(`{"type":"system","subtype":"task_started","task_id":7}`))
	if err != nil {
		t.Fatal(err)
	}
	if e, err := Of(m); err == nil || e != nil {
		t.Errorf("a known kind in an unknown form: got %v, %v", e, err)
	}
}
