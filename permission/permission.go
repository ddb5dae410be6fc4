// Package permission decides whether a tool call may run.
//
// The decision is a function without side effects, [Policy.Decide]: deny rules, hooks, ask rules,
// the mode, allow rules, and finally asking. A [Policy] never changes; an update returns a new one.
//
//	policy, problems := permission.NewPolicy(&permission.Options{Allow: []string{"mcp__stock__*"}})
//	for _, p := range problems {
//		logger.Warn("permission rule", "problem", p)
//	}
//	d := policy.Decide(permission.Request{Tool: "mcp__stock__lookup", Server: "stock", ToolName: "lookup"})
//	if d.Behavior == permission.Allow { … }
package permission

import "fmt"

// A Mode says what happens to calls that no rule decides.
type Mode string

// The modes, with Claude Code's names.
const (
	// ModeDefault asks about them.
	ModeDefault Mode = "default"
	// ModeAcceptEdits is [ModeDefault] for MCP tools. It allows edits of files, which no MCP tool
	// is known to make.
	ModeAcceptEdits Mode = "acceptEdits"
	// ModePlan runs allowed tools that are read-only and denies all others.
	ModePlan Mode = "plan"
	// ModeBypassPermissions allows them.
	ModeBypassPermissions Mode = "bypassPermissions"
	// ModeDontAsk denies them.
	ModeDontAsk Mode = "dontAsk"
	// ModeAuto asks a classifier in place of a person.
	ModeAuto Mode = "auto"
)

const modeList = "default, acceptEdits, plan, bypassPermissions, dontAsk or auto"

// ParseMode parses a mode. "" and "manual" mean [ModeDefault].
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case "", "manual":
		return ModeDefault, nil
	case ModeDefault, ModeAcceptEdits, ModePlan, ModeBypassPermissions, ModeDontAsk, ModeAuto:
		return m, nil
	}
	return "", fmt.Errorf("permission: unknown mode %q, want %s", s, modeList)
}

// A Behavior is the effect of a rule or a decision.
type Behavior string

// The behaviors.
const (
	Allow Behavior = "allow"
	Deny  Behavior = "deny"
	Ask   Behavior = "ask"
)

// A ToolPolicy is a server's setting for one of its tools.
type ToolPolicy string

// The policies for a tool.
const (
	// AlwaysAllow acts like an allow rule for the tool.
	AlwaysAllow ToolPolicy = "always_allow"
	// AlwaysAsk asks about every call, in every mode and whatever rules allow it.
	AlwaysAsk ToolPolicy = "always_ask"
	// AlwaysDeny hides and denies the tool.
	AlwaysDeny ToolPolicy = "always_deny"
)
