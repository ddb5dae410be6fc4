package kit

import (
	"encoding/json"
	"testing"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/permission"
)

func TestVerdict(t *testing.T) {
	var v Verdict
	input := json.RawMessage(`{"a":1}`)
	take := func(o *agent.PreToolUseOutput, want string, wantChanged bool, d permission.Behavior, reason string) {
		t.Helper()
		after, changed := v.Take(o, input)
		if string(after) != want || changed != wantChanged || v.Decision != d || v.Reason() != reason {
			t.Errorf("input %s, changed %t; %q for %q", after, changed, v.Decision, v.Reason())
		}
	}
	take(&agent.PreToolUseOutput{}, `{"a":1}`, false, "", "")
	take(&agent.PreToolUseOutput{Decision: permission.Ask, Reason: "first"}, `{"a":1}`, false, permission.Ask, "first")
	take(&agent.PreToolUseOutput{Decision: permission.Allow, Reason: "fine", UpdatedInput: json.RawMessage(` {}`)}, ` {}`, true, permission.Ask, "first")
	take(&agent.PreToolUseOutput{Decision: permission.Ask, Reason: "second"}, `{"a":1}`, false, permission.Ask, "first; second")
	for _, bad := range []string{`null`, `[1]`, `{"a"`, `{} {}`} {
		v = Verdict{}
		take(&agent.PreToolUseOutput{Decision: permission.Allow, UpdatedInput: json.RawMessage(bad)}, `{"a":1}`, false, permission.Deny,
			"A PreToolUse hook changed the input to something that is not a JSON object.")
	}
}
