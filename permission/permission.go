// Package permission decides whether a tool call may run.
//
// The decision is one pure function, [Policy.Decide]: rules that deny, then the verdict of a
// hook, rules that ask, the mode, rules that allow, and last the question to whoever can answer
// it. The package does no I/O and holds no state: a [Policy] never changes, and an update makes
// a new one.
//
//	policy, problems := permission.NewPolicy(&permission.Options{Allow: []string{"mcp__stock__*"}})
//	for _, p := range problems {
//		logger.Warn("permission rule", "problem", p)
//	}
//	d := policy.Decide(permission.Request{Tool: "mcp__stock__lookup", Server: "stock", ToolName: "lookup"})
//	if d.Behavior == permission.Allow { … }
//
// It sits below the hosts and engines: it knows the form of tool names and nothing else.
package permission

import "fmt"

// A Mode is the stance of a run towards calls that no rule settles.
type Mode string

// The modes, by the names that Claude Code gives them.
const (
	// ModeDefault asks about each call that no rule settles.
	ModeDefault Mode = "default"
	// ModeAcceptEdits is the default mode for MCP tools: it approves file edits only, and no MCP tool is one.
	ModeAcceptEdits Mode = "acceptEdits"
	// ModePlan runs read-only tools that are allowed and refuses all that are not read-only.
	ModePlan Mode = "plan"
	// ModeBypassPermissions runs everything that no rule denies or asks about.
	ModeBypassPermissions Mode = "bypassPermissions"
	// ModeDontAsk runs what the rules allow and refuses the rest without asking.
	ModeDontAsk Mode = "dontAsk"
	// ModeAuto leaves calls that no rule settles to a classifier, which stands where a person would be asked.
	ModeAuto Mode = "auto"
)

const modeList = "default, acceptEdits, plan, bypassPermissions, dontAsk or auto"

// ParseMode reads a mode. The empty string and "manual" mean [ModeDefault].
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case "", "manual":
		return ModeDefault, nil
	case ModeDefault, ModeAcceptEdits, ModePlan, ModeBypassPermissions, ModeDontAsk, ModeAuto:
		return m, nil
	}
	return "", fmt.Errorf("permission: unknown mode %q, want %s", s, modeList)
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
