package permission

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sdk/tenon/internal/growth"
)

// A misspelt rule is reported with the nearest name; one for a server that may come later is not. fault D10
func TestReview(t *testing.T) {
	tools := []Request{
		tool("stock", "lookup"), tool("pay", "get"), tool("pay__eu", "send"), tool("everything", "echo"), tool("weather", "now"), {Tool: "ToolSearch"},
	}
	servers := NewServers(Server{Key: "stock"}, Server{Key: "pay"}, Server{Key: "pay__eu"}, Server{Key: "everything"}, Server{Key: "weather"},
		Server{Key: "slow"}, Server{Key: "a b"}, Server{Key: "a.b"}, Server{Key: "weather__x", Foreign: true})
	p := policy(t, &Options{
		Allow: []string{
			"mcp__stok__*", "mcp__stock__lokup", "mcp__pay__eu", "mcp__pay__eu__*", "mcp__stock__*", "ToolSearch", "ToolSerch", "mcp__wether",
			"mcp__slow__anything", "mcp__slo__x", "mcp__a_b__*", "mcp__weather__x__*", "mcp__pay__set*", "Bash", "mcp__pay__zzzzzzzzz", "mcp__wether__now",
		},
		Deny: []string{"mcp__nowhere_near__x", "mcp__everything__ecko", "mcp__*__delete*", "mcp__pay__del*", "mcp__stok"},
		Tools: map[string]map[string]ToolPolicy{
			"stock": {"lookup": AlwaysAllow, "drop": AlwaysDeny}, "slow": {"x": AlwaysAsk}, "elsewhere": {"x": AlwaysAsk},
		},
	}).WithServers(servers)
	var got []string
	for _, pr := range p.Review(t.Context(), tools, "slow", "a b", "a.b", "weather__x") {
		got = append(got, pr.String())
	}
	want := []string{
		`deny rule "mcp__everything__ecko": covers no tool that server "everything" has; write mcp__everything__echo`,
		`deny rule "mcp__stok": names no server that there is; write mcp__stock__*`,
		`allow rule "mcp__stok__*": names no server that there is; write mcp__stock__*`,
		`allow rule "mcp__stock__lokup": covers no tool that server "stock" has; write mcp__stock__lookup`,
		`allow rule "ToolSerch": covers no tool that there is; write ToolSearch`,
		`allow rule "mcp__wether": names no server that there is; write mcp__weather__*`,
		`allow rule "mcp__slo__x": names no server that there is; write mcp__slow__x`,
		`allow rule "mcp__a_b__*": could mean several servers (a b, a.b) and allows nothing; write it for servers whose keys are told apart by A-Z a-z 0-9 _ -`,
		`allow rule "mcp__weather__x__*": could mean several servers (weather, weather__x) and allows nothing; write it for servers whose keys are told apart by A-Z a-z 0-9 _ -`,
		`allow rule "mcp__pay__set*": covers no tool that server "pay" has; write mcp__pay__get`,
		`allow rule "mcp__pay__zzzzzzzzz": covers no tool that server "pay" has`,
		`allow rule "mcp__wether__now": names no server that there is; write mcp__weather__now`,
		`"always_deny": permission policy for tool "drop", which server "stock" does not have`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("problems (-want +got):\n%s", d)
	}
}

// Many misspelt rules and many tools whose names are almost theirs are reviewed within a bound. fault H12
func TestReviewIsBounded(t *testing.T) {
	cases := map[string]func(i int) string{
		"misspelt tools":   func(i int) string { return fmt.Sprintf("mcp__everything__a_tool_with_a_rather_long_name_%dx", i) },
		"misspelt servers": func(i int) string { return fmt.Sprintf("mcp__everythink%d__tool", i) },
		"patterns":         func(i int) string { return fmt.Sprintf("mcp__everything__*a*a*a*a*%d_x", i) },
		"many parts":       func(i int) string { return fmt.Sprintf("mcp__e__e__e__e__e__e__e__e__%d", i) },
	}
	for name, rule := range cases {
		t.Run(name, func(t *testing.T) {
			growth.AtMost(t, reviewBudget+1<<12, []int{500, 1000, 2000, 4000}, func(n int) int {
				rules, tools, servers := make([]string, n), make([]Request, n), make([]Server, n)
				for i := range n {
					rules[i] = rule(i)
					tools[i] = tool("everything", fmt.Sprintf("a_tool_with_a_rather_long_name_%d", i))
					servers[i] = Server{Key: fmt.Sprintf("everything_%d", i)}
				}
				p := policy(t, &Options{Allow: rules}).WithServers(NewServers(servers...))
				r := newReview(t.Context(), p, tools, nil)
				for _, rule := range p.rules {
					r.rule(rule)
				}
				return reviewBudget - r.left
			})
		})
	}
}

func TestReviewHeedsItsContext(t *testing.T) {
	rules := make([]string, 1000)
	for i := range rules {
		rules[i] = fmt.Sprintf("mcp__stok%d__*", i)
	}
	p := policy(t, &Options{Allow: rules}).WithServers(known("stock"))
	ctx, late := growth.EndsAfter(t, 10)
	p.Review(ctx, nil)
	if late() > 2 {
		t.Errorf("looked %d times at a context that had ended", late())
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if got := p.Review(cancelled, nil); len(got) != 0 {
		t.Errorf("got %d problems on a context that had ended, want none", len(got))
	}
}
