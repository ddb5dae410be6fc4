package permission

import (
	"fmt"

	"github.com/tenon-sdk/tenon/internal/toolname"
)

// A Request is a tool call to decide.
type Request struct {
	// Tool is the full name that the model used, such as mcp__stock__lookup. If the host shortened
	// the name or made it unique, rules match the short and the original name.
	Tool string
	// Server is the server's key, not normalized. It is empty for tools that are not MCP.
	Server string
	// ToolName is the name on the server.
	ToolName string
	// Resource is set for a call of Tool, an engine's own tool, that reads or lists resources of
	// Server. ToolName is empty. Rules for Tool apply, and rules for Server that cover all its
	// tools.
	Resource bool
	// ReadOnly is the tool's readOnlyHint.
	ReadOnly bool
	// Hook is the decision of the hooks that ran before, if any.
	Hook Behavior
	// HookReason is the hook's reason, the message of a denial.
	HookReason string
}

// A Reason names the step that decided.
type Reason string

// The reasons.
const (
	// ReasonRule means a rule of [Options].
	ReasonRule Reason = "rule"
	// ReasonPolicy means the server's policy for the tool.
	ReasonPolicy Reason = "policy"
	// ReasonHook means a hook.
	ReasonHook Reason = "hook"
	// ReasonMode means the mode.
	ReasonMode Reason = "mode"
	// ReasonUnsettled means that nothing allows the call.
	ReasonUnsettled Reason = "unsettled"
)

// A Decision is the result of deciding a call.
type Decision struct {
	// Behavior is Allow, Deny or Ask. If nobody can be asked, deny with Message.
	Behavior Behavior
	// Reason is the step that decided.
	Reason Reason
	// Rule is the text of the rule that decided, if any.
	Rule string
	// Message is the text for the model and the caller if the call does not run. It names the tool
	// and allowedTools. It is empty if Behavior is Allow.
	Message string
}

// Decide decides a call. The first of these steps that applies wins:
//
//  1. a deny rule, or the server's policy always_deny: denied, whatever else holds;
//  2. a hook that denies: denied with the hook's reason;
//  3. plan mode and a tool that is not read-only: denied, allowed or not;
//  4. an ask rule, or always_ask: asked, in bypassPermissions too and whatever a hook allows;
//  5. a hook that asks or allows;
//  6. bypassPermissions: allowed;
//  7. an allow rule, or always_allow: allowed;
//  8. nothing: asked. No mode but bypassPermissions, and no hint of the tool, grants it by itself.
//
// If the result is to ask, dontAsk denies. In auto mode a classifier is asked.
func (p *Policy) Decide(c Request) Decision {
	if d, ok := p.denied(c); ok {
		return d
	}
	mode := p.Mode()
	if c.Hook == Deny {
		return Decision{Behavior: Deny, Reason: ReasonHook, Message: hookMessage(c)}
	}
	if mode == ModePlan && !c.ReadOnly {
		return Decision{Behavior: Deny, Reason: ReasonMode, Message: fmt.Sprintf(
			"Cannot call %s while in plan mode. Only read-only tools may run in it, and allowedTools does not change that.", c.Tool)}
	}
	policy := p.toolPolicy(c)
	if r, ok := p.match(Ask, c); ok || policy == AlwaysAsk {
		reason := ReasonPolicy
		if ok {
			reason = ReasonRule
		}
		return p.ask(Decision{Reason: reason, Rule: r.text, Message: askMessage(c, r.text)}, c)
	}
	switch c.Hook {
	case Allow:
		return Decision{Behavior: Allow, Reason: ReasonHook}
	case "":
	default: // ask, and whatever else a hook may have said: never run unasked
		return p.ask(Decision{Reason: ReasonHook, Message: hookMessage(c)}, c)
	}
	if mode == ModeBypassPermissions {
		return Decision{Behavior: Allow, Reason: ReasonMode}
	}
	if r, ok := p.match(Allow, c); ok {
		return Decision{Behavior: Allow, Reason: ReasonRule, Rule: r.text}
	}
	if policy == AlwaysAllow {
		return Decision{Behavior: Allow, Reason: ReasonPolicy}
	}
	return p.ask(Decision{Reason: ReasonUnsettled, Message: p.unsettledMessage(mode, c)}, c)
}

// Hidden reports whether a tool is hidden from the model, because a deny rule or its server's
// policy denies it. It uses Tool, Server, ToolName and Resource of c.
func (p *Policy) Hidden(c Request) bool {
	_, hidden := p.denied(c)
	return hidden
}

// denied is the first step.
func (p *Policy) denied(c Request) (Decision, bool) {
	r, ok := p.match(Deny, c)
	switch {
	case ok && c.Resource && r.text != c.Tool:
		return Decision{Behavior: Deny, Reason: ReasonRule, Rule: r.text, Message: fmt.Sprintf(
			"Cannot call %s for server %q. The rule %q in disallowedTools denies all of that server, and allowedTools does not override that.", c.Tool, c.Server, r.text)}, true
	case ok:
		return Decision{Behavior: Deny, Reason: ReasonRule, Rule: r.text, Message: fmt.Sprintf(
			"No such tool available: %s. The rule %q in disallowedTools denies it, and allowedTools does not override that.", c.Tool, r.text)}, true
	}
	if p.toolPolicy(c) == AlwaysDeny {
		return Decision{Behavior: Deny, Reason: ReasonPolicy, Message: fmt.Sprintf(
			"No such tool available: %s. Its server's configuration sets always_deny for it, and allowedTools does not override that.", c.Tool)}, true
	}
	return Decision{}, false
}

// ask returns the decision to ask.
func (p *Policy) ask(d Decision, c Request) Decision {
	d.Behavior = Ask
	if p.Mode() == ModeDontAsk {
		d.Behavior = Deny
		guidance := "Only what allowedTools names runs in it" + p.suggestion(c) + ". Go on by other means, or say what you could not do."
		switch d.Reason {
		case ReasonUnsettled:
			d.Reason = ReasonMode
		default:
			guidance = "The call would have to be asked about, which allowedTools does not change. Go on by other means, or say what you could not do."
		}
		d.Message = fmt.Sprintf("Permission to use %s has been denied because this run is in don't ask mode. %s", c.Tool, guidance)
	}
	return d
}

func hookMessage(c Request) string {
	switch {
	case c.HookReason != "":
		return c.HookReason
	case c.Hook == Deny:
		return fmt.Sprintf("A hook denied the call of %s, and allowedTools does not override that.", c.Tool)
	}
	return fmt.Sprintf("A hook wants the call of %s to be confirmed, which allowedTools does not change, and it has not been.", c.Tool)
}

func askMessage(c Request, rule string) string {
	why := "its server's configuration sets always_ask for it"
	if rule != "" {
		why = fmt.Sprintf("the rule %q asks about it each time", rule)
	}
	return fmt.Sprintf("Claude requested permissions to use %s, but you haven't granted it yet: %s, whatever allowedTools says.", c.Tool, why)
}

func (p *Policy) unsettledMessage(mode Mode, c Request) string {
	s := fmt.Sprintf("Claude requested permissions to use %s, but you haven't granted it yet.", c.Tool)
	if mode == ModeAuto {
		s += " Auto mode leaves this to a classifier, and none has approved it."
	}
	return s + " The program that runs this agent can allow it with allowedTools" + p.suggestion(c) + "."
}

// suggestion names the rules that would allow the call.
func (p *Policy) suggestion(c Request) string {
	s := fmt.Sprintf(": %q", p.nameFor(c))
	if c.Server == "" {
		return s
	}
	whole := toolname.Server(c.Server) + "__*"
	if r, ok := p.servers().with(c.Server).allowed(whole); ok && r.server.Key == c.Server {
		s += fmt.Sprintf(", or %q for the whole server", whole)
	}
	return s
}
