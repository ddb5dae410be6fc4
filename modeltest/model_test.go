package modeltest

import (
	"strings"
	"testing"
)

func TestAnswersInOrder(t *testing.T) {
	m := New(t, Text("one"), Say(Text("two"), ToolUse("lookup", map[string]any{"sku": "A"})))
	if got := post(t, m, basic).body; !strings.Contains(got, `"content":[{"type":"text","text":"one"}],"stop_reason":"end_turn"`) {
		t.Errorf("first answer: %s", got)
	}
	got := post(t, m, basic).body
	if !strings.Contains(got, `{"type":"tool_use","id":"toolu_000001","name":"lookup","input":{"sku":"A"}}],"stop_reason":"tool_use"`) {
		t.Errorf("second answer: %s", got)
	}
	if m.Left() != 0 {
		t.Errorf("%d turns left, want none", m.Left())
	}
}

func TestExhaustedScriptSaysSo(t *testing.T) {
	m := New(t, Text("one"))
	post(t, m, basic)
	r := post(t, m, basic)
	const want = `invalid_request_error: modeltest: the script is exhausted: it has no turn left for request 2 (1 messages, last user text "Hello")`
	if got := r.errorText(t); r.StatusCode != 400 || got != want {
		t.Errorf("got %d %s, want 400 %s", r.StatusCode, got, want)
	}
}
