package kit

import (
	"encoding/json"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/permission"
)

// A Verdict is what hooks before a call say of it together: the strictest decision counts, with the reasons of all hooks
// that came to it. The zero value is a verdict without a decision.
type Verdict struct {
	Decision permission.Behavior
	reasons  map[permission.Behavior][]string
}

// Add adds a decision; one of "" has no effect but for its reason.
func (v *Verdict) Add(d permission.Behavior, reason string) {
	v.Decision = Stricter(v.Decision, d)
	if reason == "" {
		return
	}
	if v.reasons == nil {
		v.reasons = map[permission.Behavior][]string{}
	}
	v.reasons[d] = append(v.reasons[d], reason)
}

// Take adds what a hook says. It returns the input as the hook leaves it, and whether the hook changed it. An input that
// is not a JSON object is not taken: the call is denied.
func (v *Verdict) Take(o *agent.PreToolUseOutput, input json.RawMessage) (after json.RawMessage, changed bool) {
	v.Add(o.Decision, o.Reason)
	switch {
	case o.UpdatedInput == nil:
		return input, false
	case IsObject(o.UpdatedInput):
		return o.UpdatedInput, true
	}
	v.Add(permission.Deny, "A PreToolUse hook changed the input to something that is not a JSON object.")
	return input, false
}

// Reason is the reasons for the decision.
func (v *Verdict) Reason() string { return strings.Join(v.reasons[v.Decision], "; ") }

// Stricter is the stricter of two decisions: deny, ask, allow, none.
func Stricter(a, b permission.Behavior) permission.Behavior {
	rank := func(d permission.Behavior) int {
		switch d {
		case "":
			return 0
		case permission.Allow:
			return 1
		case permission.Ask:
			return 2
		}
		return 3 // deny, and whatever else a hook may have said
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}

// IsObject reports whether raw is a JSON object.
func IsObject(raw json.RawMessage) bool {
	return json.Valid(raw) && strings.HasPrefix(strings.TrimSpace(string(raw)), "{")
}
