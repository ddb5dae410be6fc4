package kit

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenon-sdk/tenon/agent"
	"github.com/tenon-sdk/tenon/permission"
)

// A Verdict is the combined decision of hooks before a call: the strictest one, with the reasons of all hooks
// that made it. The zero value has no decision.
type Verdict struct {
	Decision permission.Behavior
	reasons  map[permission.Behavior][]string
}

// Add adds a decision with its reason.
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

// Take adds the output of a hook. It returns the input after the hook, and whether the hook has changed it. A
// changed input that is not a JSON object denies the call.
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

// Reason returns the reasons for the decision.
func (v *Verdict) Reason() string { return strings.Join(v.reasons[v.Decision], "; ") }

// Stricter returns the stricter of two decisions: deny, ask, allow, none. Unknown decisions rank as deny.
func Stricter(a, b permission.Behavior) permission.Behavior {
	order := []permission.Behavior{permission.Ask, permission.Allow, ""}
	if slices.Index(order, b) < slices.Index(order, a) {
		return b
	}
	return a
}

// IsObject reports whether raw is a JSON object.
func IsObject(raw json.RawMessage) bool {
	return json.Valid(raw) && strings.HasPrefix(strings.TrimSpace(string(raw)), "{")
}
