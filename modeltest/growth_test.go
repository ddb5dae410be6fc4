package modeltest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/growth"
)

// A request costs in proportion to its size, whatever is in it.
func TestRequestsGrowWithTheBody(t *testing.T) {
	list := func(n int, f func(i int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = f(i)
		}
		return strings.Join(parts, ",")
	}
	call := func(i int) string { return fmt.Sprintf(`{"type":"tool_use","id":"t%d","name":"a","input":{}}`, i) }
	answer := func(i int) string { return fmt.Sprintf(`{"type":"tool_result","tool_use_id":"t%d","content":"x"}`, i) }
	schema := func(s string) string { return tools(`{"name":"a","input_schema":` + s + `}`) }
	deferred := `{"name":"a","defer_loading":true,"input_schema":{"type":"object","properties":{},"description":"` + strings.Repeat("x", 100_000) + `"}}`
	for name, body := range map[string]func(n int) string{
		"calls":            func(n int) string { return messages(user(hi), assistant(list(n, call)), user(list(n, answer))) },
		"calls unanswered": func(n int) string { return messages(user(hi), assistant(list(n, call)), user(hi)) },
		"messages":         func(n int) string { return messages(list(n, func(int) string { return user(hi) })) },
		"texts":            func(n int) string { return messages(user(list(n, func(int) string { return hi }))) },
		"properties": func(n int) string {
			return schema(`{"type":"object","properties":{` + list(n, func(i int) string { return fmt.Sprintf(`"p%d":{}`, i) }) + `}}`)
		},
		"a long key": func(n int) string {
			return schema(`{"type":"object","$defs":{"` + strings.Repeat("k", n) + `":{"items":{"anyOf":[` + list(n/4, func(int) string { return `{}` }) + `]}}}}`)
		},
		"brackets": func(n int) string {
			return messages(user(`{"type":"text","text":"x","a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`))
		},
		"referred tools": func(n int) string {
			return set(messages(user(hi), assistant(call(0)), user(`{"type":"tool_result","tool_use_id":"t0","cache_control":{"type":"ephemeral"},"content":[`+
				list(n, func(int) string { return `{"type":"tool_reference","tool_name":"a"}` })+`]}`)), "tools", `[`+deferred+`,{"name":"b","input_schema":{"type":"object"}}]`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			growth.Check(t, 1000, func(n int) int {
				b := body(n)
				return growth.Bytes(func() { post(t, Offline(), b) })
			})
		})
	}
}
