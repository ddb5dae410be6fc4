package permission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A mode that there is not changes nothing; the policy that was stays as it is either way.
// fault F14
func TestWithModeRefusesNonsense(t *testing.T) {
	p := policy(t, &Options{Mode: ModePlan, Deny: []string{"mcp__a__x"}})
	for _, m := range []Mode{"yolo", "Plan", "default ", "accept-edits", "bypass"} {
		next, err := p.WithMode(m)
		if next != nil || err == nil {
			t.Errorf("%q: got %v, %v; want an error and no policy", m, next, err)
		}
		const want = `, want default, acceptEdits, plan, bypassPermissions, dontAsk or auto`
		if d := cmp.Diff(`permission: unknown mode "`+string(m)+`"`+want, err.Error()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
	for m, want := range map[Mode]Mode{
		"": ModeDefault, "manual": ModeDefault, ModeDefault: ModeDefault, ModeAcceptEdits: ModeAcceptEdits, ModePlan: ModePlan,
		ModeBypassPermissions: ModeBypassPermissions, ModeDontAsk: ModeDontAsk, ModeAuto: ModeAuto,
	} {
		next, err := p.WithMode(m)
		if err != nil || next.Mode() != want || p.Mode() != ModePlan || next == p {
			t.Errorf("%q: got %v, %v, and the policy before is in mode %s", m, next, err, p.Mode())
		}
		if d := next.Decide(tool("a", "x")); d.Behavior != Deny || d.Rule == "" {
			t.Errorf("%q: the rule is lost: %s", m, d.Behavior)
		}
	}
}

// The nearest name is the one with the fewest edits, of several the first by the alphabet; one that is too far is none.
// fault F14
func TestNearestName(t *testing.T) {
	for _, tt := range []struct {
		text  string
		names []string
		want  string
	}{
		{"mcp__stok", []string{"mcp__stack", "mcp__stock", "mcp__stick"}, "mcp__stock"},
		{"mcp__stck", []string{"mcp__stock", "mcp__stick", "mcp__stack"}, "mcp__stack"},
		{"mcp__stck", []string{"mcp__stack", "mcp__stick", "mcp__stock"}, "mcp__stack"},
		{"mcp__abcd", []string{"mcp__abxx"}, "mcp__abxx"},                            // two edits
		{"mcp__abcd", []string{"mcp__axxx"}, ""},                                     // three
		{"mcp__abcdefghijklm", []string{"mcp__abcdefghijxyz"}, "mcp__abcdefghijxyz"}, // three of eighteen
		{"mcp__abcdefghijkl", []string{"mcp__abcdefghixyz"}, ""},                     // three of seventeen
		{"Bsh", []string{"Bash"}, "Bash"},
		{"Bs", []string{"Bash"}, ""},
		{"ToolSrch", []string{"ToolSearch"}, "ToolSearch"},
		{"ToolSerc*", []string{"ToolSearch"}, "ToolSearch"},
		{"mcp__stock", nil, ""},
		{"", []string{"a"}, ""},
	} {
		r := &review{left: reviewBudget}
		if got := r.nearest(tt.text, tt.names); got != tt.want {
			t.Errorf("nearest to %q of %q is %q, want %q", tt.text, tt.names, got, tt.want)
		}
	}
}

// Why a call is asked about is in the text for the model: the rule, or the server's configuration.
func TestAskingSaysWhy(t *testing.T) {
	p := policy(t, &Options{Ask: []string{"mcp__a__x"}, Tools: map[string]map[string]ToolPolicy{"a": {"y": AlwaysAsk}}})
	for name, want := range map[string]string{
		"x": `Claude requested permissions to use mcp__a__x, but you haven't granted it yet: the rule "mcp__a__x" asks about it each time, whatever allowedTools says.`,
		"y": `Claude requested permissions to use mcp__a__y, but you haven't granted it yet: its server's configuration sets always_ask for it, whatever allowedTools says.`,
	} {
		if d := cmp.Diff(want, p.Decide(tool("a", name)).Message); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// A rule about arguments was reported when it was parsed; a review does not repeat it, and goes on.
func TestReviewLeavesRulesAboutArguments(t *testing.T) {
	p, _ := NewPolicy(&Options{Deny: []string{"mcp__stok__x(a)", "Bsh(ls)", "mcp__stok"}})
	var got []string
	for _, pr := range p.WithServers(NewServers(Server{Key: "stock"})).Review(t.Context(), []Request{tool("stock", "x"), {Tool: "Bash"}}) {
		got = append(got, pr.Rule)
	}
	if d := cmp.Diff([]string{"mcp__stok"}, got); d != "" {
		t.Errorf("reviewed (-want +got):\n%s", d)
	}
}
