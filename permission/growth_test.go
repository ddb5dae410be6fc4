package permission

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/growth"
)

// Rules are read in proportion to their length, whatever is in them.
func TestParsingGrowsWithTheRule(t *testing.T) {
	for name, unit := range map[string]string{"stars": "*", "underscores": "_", "separators": "__a", "brackets": "(", "other letters": "é", "commas": ",", "dots": "mcp__."} {
		t.Run(name, func(t *testing.T) {
			growth.Check(t, 1<<12, func(n int) int {
				text := mcpPrefix + strings.Repeat(unit, n)
				return growth.Bytes(func() {
					for _, b := range []Behavior{Allow, Deny} {
						_, _ = ParseRule(text, b)
					}
					SplitList(text)
				})
			})
		})
	}
}

// Many rules are found by their names: a decision costs the same however many there are, and what is made of them
// once grows with their number.
func TestMatchingGrowsWithTheRules(t *testing.T) {
	forms := map[string]func(i int) string{
		"exact":    func(i int) string { return fmt.Sprintf("mcp__s%d__tool", i) },
		"servers":  func(i int) string { return fmt.Sprintf("mcp__s%d", i) },
		"patterns": func(i int) string { return fmt.Sprintf("mcp__s__x%d*", i) },
		"parts":    func(i int) string { return fmt.Sprintf("mcp__s__s__s__s__s__s__%d", i) },
	}
	for name, rule := range forms {
		t.Run(name, func(t *testing.T) {
			made := func(n int) (*Options, *Servers) {
				o, keys := &Options{}, make([]string, n)
				for i := range n {
					o.Allow, o.Deny, o.Ask = append(o.Allow, rule(i)), append(o.Deny, rule(i)), append(o.Ask, rule(i))
					keys[i] = fmt.Sprintf("s%d", i)
				}
				return o, known(append(keys, "s", "s__s", "s__s__s")...)
			}
			growth.Check(t, 1000, func(n int) int {
				o, servers := made(n)
				return growth.Bytes(func() {
					p, _ := NewPolicy(o)
					p.WithServers(servers)
				})
			})
			growth.AtMost(t, 1<<14, []int{1000, 4000}, func(n int) int {
				o, servers := made(n)
				p, _ := NewPolicy(o)
				p = p.WithServers(servers)
				return growth.Bytes(func() { p.Decide(tool("s", "a_tool_of_it")) })
			})
		})
	}
}
