package permission

import (
	"strings"
	"testing"
)

func policy(t *testing.T, o *Options) *Policy {
	t.Helper()
	p, problems := NewPolicy(o)
	for _, pr := range problems {
		t.Errorf("problem: %v", pr)
	}
	return p
}

// The table of host-behaviour section 3: what the CLI does, with the texts that requirements add.
func TestDecide(t *testing.T) {
	read := tool("srv", "read")
	readOnly := read
	readOnly.ReadOnly = true
	withHook := func(b Behavior) Request { c := read; c.Hook = b; return c }
	roHook := func(b Behavior) Request { c := readOnly; c.Hook = b; return c }
	tools := func(tp ToolPolicy) map[string]map[string]ToolPolicy {
		return map[string]map[string]ToolPolicy{"srv": {"read": tp}}
	}
	all := []string{"mcp__srv__*"}
	tests := []struct {
		name   string
		o      Options
		call   Request
		want   Behavior
		reason Reason
		rule   string
	}{
		// D37: without permission a tool is seen and cannot be called.
		{"default, nothing allows", Options{}, read, Ask, ReasonUnsettled, ""},
		{"manual is default", Options{Mode: "manual"}, read, Ask, ReasonUnsettled, ""},
		{"read-only hint grants nothing", Options{}, readOnly, Ask, ReasonUnsettled, ""},
		// D03 D42
		{"exact rule", Options{Allow: []string{"mcp__srv__read"}}, read, Allow, ReasonRule, "mcp__srv__read"},
		{"wildcard rule", Options{Allow: all}, read, Allow, ReasonRule, "mcp__srv__*"},
		{"server rule", Options{Allow: []string{"mcp__srv"}}, read, Allow, ReasonRule, "mcp__srv"},
		{"first rule that covers it", Options{Allow: []string{"mcp__x__*", "mcp__srv__r*", "mcp__srv"}}, read, Allow, ReasonRule, "mcp__srv__r*"},
		// D45
		{"another server's wildcard", Options{Allow: []string{"mcp__other__*"}}, read, Ask, ReasonUnsettled, ""},
		// D43
		{"acceptEdits approves no MCP tool", Options{Mode: ModeAcceptEdits}, read, Ask, ReasonUnsettled, ""},
		{"acceptEdits, allowed", Options{Mode: ModeAcceptEdits, Allow: all}, read, Allow, ReasonRule, "mcp__srv__*"},
		// D44: bypass runs everything but what is denied or asked about.
		{"bypass", Options{Mode: ModeBypassPermissions}, read, Allow, ReasonMode, ""},
		{"bypass, deny rule", Options{Mode: ModeBypassPermissions, Deny: []string{"mcp__*"}}, read, Deny, ReasonRule, "mcp__*"},
		{"bypass, ask rule", Options{Mode: ModeBypassPermissions, Ask: []string{"mcp__srv__read"}}, read, Ask, ReasonRule, "mcp__srv__read"},
		{"bypass, always_ask", Options{Mode: ModeBypassPermissions, Allow: all, Tools: tools(AlwaysAsk)}, read, Ask, ReasonPolicy, ""},
		{"bypass, always_deny", Options{Mode: ModeBypassPermissions, Allow: all, Tools: tools(AlwaysDeny)}, read, Deny, ReasonPolicy, ""},
		{"deny beats allow", Options{Allow: all, Deny: []string{"mcp__srv"}}, read, Deny, ReasonRule, "mcp__srv"},
		{"deny beats ask", Options{Ask: all, Deny: all}, read, Deny, ReasonRule, "mcp__srv__*"},
		{"ask beats allow", Options{Allow: all, Ask: []string{"mcp__*__read"}}, read, Ask, ReasonRule, "mcp__*__read"},
		{"always_allow", Options{Tools: tools(AlwaysAllow)}, read, Allow, ReasonPolicy, ""},
		{"always_allow of another tool", Options{Tools: map[string]map[string]ToolPolicy{"srv": {"write": AlwaysAllow}}}, read, Ask, ReasonUnsettled, ""},
		{"always_allow of another server", Options{Tools: map[string]map[string]ToolPolicy{"x": {"read": AlwaysAllow}}}, read, Ask, ReasonUnsettled, ""},
		{"ask rule beats always_allow", Options{Ask: all, Tools: tools(AlwaysAllow)}, read, Ask, ReasonRule, "mcp__srv__*"},
		{"deny rule beats always_allow", Options{Deny: all, Tools: tools(AlwaysAllow)}, read, Deny, ReasonRule, "mcp__srv__*"},
		{"dontAsk", Options{Mode: ModeDontAsk}, read, Deny, ReasonMode, ""},
		{"dontAsk, allowed", Options{Mode: ModeDontAsk, Allow: all}, read, Allow, ReasonRule, "mcp__srv__*"},
		{"dontAsk, ask rule", Options{Mode: ModeDontAsk, Allow: all, Ask: all}, read, Deny, ReasonRule, "mcp__srv__*"},
		{"dontAsk, hook allows", Options{Mode: ModeDontAsk}, withHook(Allow), Allow, ReasonHook, ""},
		{"dontAsk, hook asks", Options{Mode: ModeDontAsk, Allow: all}, withHook(Ask), Deny, ReasonHook, ""},
		{"plan, not read-only, allowed", Options{Mode: ModePlan, Allow: all}, read, Deny, ReasonMode, ""},
		{"plan, read-only, allowed", Options{Mode: ModePlan, Allow: all}, readOnly, Allow, ReasonRule, "mcp__srv__*"},
		{"plan, read-only, not allowed", Options{Mode: ModePlan}, readOnly, Ask, ReasonUnsettled, ""},
		{"plan, read-only, ask rule", Options{Mode: ModePlan, Ask: all}, readOnly, Ask, ReasonRule, "mcp__srv__*"},
		{"plan, not read-only, ask rule", Options{Mode: ModePlan, Ask: all}, read, Deny, ReasonMode, ""},
		{"plan, not read-only, hook allows", Options{Mode: ModePlan}, withHook(Allow), Deny, ReasonMode, ""},
		{"plan, read-only, hook allows", Options{Mode: ModePlan}, roHook(Allow), Allow, ReasonHook, ""},
		{"auto", Options{Mode: ModeAuto}, read, Ask, ReasonUnsettled, ""},
		{"auto, allowed", Options{Mode: ModeAuto, Allow: all}, read, Allow, ReasonRule, "mcp__srv__*"},
		{"hook allows", Options{}, withHook(Allow), Allow, ReasonHook, ""},
		{"hook allows, deny rule", Options{Deny: all}, withHook(Allow), Deny, ReasonRule, "mcp__srv__*"},
		{"hook allows, ask rule", Options{Ask: all}, withHook(Allow), Ask, ReasonRule, "mcp__srv__*"},
		{"hook allows, always_ask", Options{Tools: tools(AlwaysAsk)}, withHook(Allow), Ask, ReasonPolicy, ""},
		{"hook denies, allowed", Options{Allow: all}, withHook(Deny), Deny, ReasonHook, ""},
		{"hook denies, bypass", Options{Mode: ModeBypassPermissions}, withHook(Deny), Deny, ReasonHook, ""},
		{"hook denies, ask rule", Options{Ask: all}, withHook(Deny), Deny, ReasonHook, ""},
		{"hook asks, allowed", Options{Allow: all}, withHook(Ask), Ask, ReasonHook, ""},
		{"hook asks, bypass", Options{Mode: ModeBypassPermissions}, withHook(Ask), Ask, ReasonHook, ""},
		{"hook says what is not known", Options{Mode: ModeBypassPermissions}, withHook("defer"), Ask, ReasonHook, ""},
		{"not MCP, allowed", Options{Allow: []string{"ToolSearch"}}, Request{Tool: "ToolSearch"}, Allow, ReasonRule, "ToolSearch"},
		{"not MCP, denied", Options{Deny: []string{"ToolSearch"}}, Request{Tool: "ToolSearch"}, Deny, ReasonRule, "ToolSearch"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := policy(t, &tt.o).Decide(tt.call)
			if d.Behavior != tt.want || d.Reason != tt.reason || d.Rule != tt.rule {
				t.Errorf("got %s by %s (rule %q), want %s by %s (rule %q)", d.Behavior, d.Reason, d.Rule, tt.want, tt.reason, tt.rule)
			}
			// D86: what does not run says which tool it is and what allowedTools has to do with it.
			if (d.Behavior == Allow) != (d.Message == "") {
				t.Errorf("%s with message %q", d.Behavior, d.Message)
			}
			if d.Message != "" && (!strings.Contains(d.Message, tt.call.Tool) || !strings.Contains(d.Message, "allowedTools")) {
				t.Errorf("message %q does not name the tool and allowedTools", d.Message)
			}
			hidden := d.Behavior == Deny && (len(tt.o.Deny) > 0 || d.Reason == ReasonPolicy)
			if got := policy(t, &tt.o).Hidden(tt.call); got != hidden {
				t.Errorf("Hidden: got %v, want %v", got, hidden)
			}
		})
	}
}

func TestMessages(t *testing.T) {
	c := tool("my.server", "write")
	hooked := c
	hooked.Hook, hooked.HookReason = Deny, "not on Fridays"
	tests := []struct {
		name string
		o    Options
		call Request
		want string
	}{
		{"default", Options{}, c, `Claude requested permissions to use mcp__my_server__write, but you haven't granted it yet. The program that runs this agent can allow it with allowedTools: "mcp__my_server__write", or "mcp__my_server__*" for the whole server.`},
		{"plan", Options{Mode: ModePlan}, c, "Cannot call mcp__my_server__write while in plan mode. Only read-only tools may run in it, and allowedTools does not change that."},
		{"dontAsk", Options{Mode: ModeDontAsk}, c, `Permission to use mcp__my_server__write has been denied because this run is in don't ask mode. Only what allowedTools names runs in it: "mcp__my_server__write", or "mcp__my_server__*" for the whole server. Go on by other means, or say what you could not do.`},
		{"denied", Options{Deny: []string{"mcp__my_server"}}, c, `No such tool available: mcp__my_server__write. The rule "mcp__my_server" in disallowedTools denies it, and allowedTools does not override that.`},
		{"a hook's reason, verbatim", Options{}, hooked, "not on Fridays"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := policy(t, &tt.o).Decide(tt.call).Message; got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestNilPolicyAsks(t *testing.T) {
	var p *Policy
	if d := p.Decide(tool("srv", "read")); d.Behavior != Ask {
		t.Errorf("got %s, want ask", d.Behavior)
	}
	if p.Hidden(tool("srv", "read")) || p.Mode() != ModeDefault || p.Rules(Allow) != nil || p.Review(t.Context(), nil) != nil {
		t.Error("a nil policy hides, allows or reports something")
	}
}

func BenchmarkDecide(b *testing.B) {
	o := Options{}
	for range 300 {
		o.Allow = append(o.Allow, "mcp__another_server__a_tool_of_it")
	}
	p, _ := NewPolicy(&o)
	c := tool("github", "create_pull_request")
	b.ReportAllocs()
	for b.Loop() {
		p.Decide(c)
	}
}
