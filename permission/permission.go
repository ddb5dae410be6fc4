// Package permission decides whether a tool call may run.
//
// The decision is one pure function, [Policy.Decide]: rules that deny, then the verdict of a
// hook, rules that ask, the mode, rules that allow, and last the question to whoever can answer
// it. The package does no I/O and holds no state: a [Policy] never changes, and an update makes
// a new one.
//
//	policy, problems := permission.NewPolicy(&permission.Options{Allow: []string{"mcp__stock__*"}})
//	for _, p := range problems {
//		log.Warn("permission rule", "problem", p)
//	}
//	d := policy.Decide(permission.Request{Tool: "mcp__stock__lookup", Server: "stock", ToolName: "lookup"})
//	if d.Behavior == permission.Allow { … }
//
// It sits below the hosts and engines: it knows the form of tool names and nothing else.
package permission

import (
	"fmt"
)

// A Mode is the stance of a run towards calls that no rule settles.
type Mode string

// The modes, by the names that Claude Code gives them.
const (
	// ModeDefault asks about each call that no rule settles.
	ModeDefault Mode = "default"
	// ModeAcceptEdits is the default mode for MCP tools: it approves file edits only, and no MCP tool is one.
	ModeAcceptEdits Mode = "acceptEdits"
	// ModePlan runs read-only tools that are allowed and refuses every other.
	ModePlan Mode = "plan"
	// ModeBypassPermissions runs everything that no rule denies or asks about.
	ModeBypassPermissions Mode = "bypassPermissions"
	// ModeDontAsk runs what the rules allow and refuses the rest without asking.
	ModeDontAsk Mode = "dontAsk"
	// ModeAuto leaves calls that no rule settles to a classifier, which stands where a person would be asked.
	ModeAuto Mode = "auto"
)

// ParseMode reads a mode. The empty string and "manual" mean [ModeDefault].
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case "", "manual":
		return ModeDefault, nil
	case ModeDefault, ModeAcceptEdits, ModePlan, ModeBypassPermissions, ModeDontAsk, ModeAuto:
		return m, nil
	}
	return "", fmt.Errorf("permission: unknown mode %q, want default, acceptEdits, plan, bypassPermissions, dontAsk or auto", s)
}

// A Behavior is what a rule or a decision does with a call.
type Behavior string

// The behaviors.
const (
	Allow Behavior = "allow"
	Deny  Behavior = "deny"
	Ask   Behavior = "ask"
)

// A ToolPolicy is a server's own setting for one of its tools.
type ToolPolicy string

// The policies that a server's configuration can give one of its tools.
const (
	// AlwaysAllow runs the tool as if a rule allowed it.
	AlwaysAllow ToolPolicy = "always_allow"
	// AlwaysAsk asks about every call, in every mode and whatever the rules allow.
	AlwaysAsk ToolPolicy = "always_ask"
	// AlwaysDeny removes the tool.
	AlwaysDeny ToolPolicy = "always_deny"
)

// Options are what a [Policy] is made of. The zero value, like a nil pointer, denies nothing and
// allows nothing: every call is asked about.
type Options struct {
	// Allow, Deny and Ask are rules, each in one of the forms that [ParseRule] reads.
	Allow, Deny, Ask []string
	// Mode is the stance towards what no rule settles. Empty means [ModeDefault].
	Mode Mode
	// Tools are per-tool policies: registration key of the server, then the tool's own name.
	Tools map[string]map[string]ToolPolicy
}

// A Problem is a rule, mode, policy or update that cannot do what it says.
type Problem struct {
	// Rule is the text at fault, as it was given.
	Rule string
	// Behavior is the list that it stood in; empty for a mode or a policy.
	Behavior Behavior
	// Message says what is wrong.
	Message string
	// Instead says what to write; empty if there is nothing to suggest.
	Instead string
}

// A Policy decides calls. It is immutable and safe for concurrent use; a nil Policy is that of nil [Options].
type Policy struct {
	mode Mode
}

// NewPolicy makes a policy. What is faulty is left out and reported; the rest holds.
func NewPolicy(o *Options) (*Policy, []Problem) {
	if o == nil {
		o = &Options{}
	}
	return &Policy{mode: o.Mode}, nil
}

// A Request is a call to decide.
type Request struct {
	// Tool is the full name, as the model wrote it: mcp__stock__lookup.
	Tool string
	// Server is the registration key of the tool's server, not normalised; empty for a tool that is not MCP.
	Server string
	// ToolName is the tool's own name on its server.
	ToolName string
	// ReadOnly is the tool's readOnlyHint.
	ReadOnly bool
	// Hook is the verdict of the hooks that ran before; empty when none had one.
	Hook Behavior
	// HookReason is what the hook said, for the message of a denial.
	HookReason string
}

// A Decision is what to do with a call.
type Decision struct {
	// Behavior is Allow, Deny, or Ask: ask whoever can answer; when there is nobody, deny with Message.
	Behavior Behavior
	// Reason says which step decided.
	Reason Reason
	// Rule is the rule that decided, as it was given; empty if none did.
	Rule string
	// Message is what the model and the caller read when the call does not run. It names the tool
	// and allowedTools. Empty when Behavior is Allow.
	Message string
}

// A Reason is the step of a decision that settled it.
type Reason string

// Decide decides one call.
func (p *Policy) Decide(r Request) Decision {
	return Decision{Behavior: Ask, Message: "not implemented yet"}
}

// Hidden reports whether a tool is to be kept from the model: a rule or its server's policy denies it.
func (p *Policy) Hidden(r Request) bool { return false }
