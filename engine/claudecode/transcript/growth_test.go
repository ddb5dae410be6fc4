package transcript

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/growth"
)

// A stored session costs in proportion to its length, however its entries are linked.
func TestStoredSessionsGrowWithTheirLength(t *testing.T) {
	entry := func(i int, parent string) string {
		return fmt.Sprintf(`{"type":"user","uuid":"u%d","parentUuid":%q,"message":{"role":"user","content":"x"}}`+"\n", i, parent)
	}
	transcripts := map[string]func(i int) string{
		"a chain":        func(i int) string { return entry(i, fmt.Sprintf("u%d", i-1)) },
		"missing links":  func(i int) string { return entry(i, "gone") },
		"links forward":  func(i int) string { return entry(i, fmt.Sprintf("u%d", i+1)) },
		"links to self":  func(i int) string { return entry(i, fmt.Sprintf("u%d", i)) },
		"one ID for all": func(int) string { return entry(0, "u0") },
		"no JSON":        func(int) string { return "{{{{\n" },
		"subagents between": func(i int) string {
			return entry(i, "gone") + fmt.Sprintf(`{"type":"user","uuid":"s%d","isSidechain":true}`+"\n", i)
		},
	}
	for name, line := range transcripts {
		t.Run(name, func(t *testing.T) {
			growth.Check(t, 500, func(n int) int {
				var text strings.Builder
				for i := range n {
					text.WriteString(line(i))
				}
				file := text.String()
				return len(file) + growth.Bytes(func() {
					all, _ := scan(strings.NewReader(file), "x", true)
					chain, _ := branch(all, "x", false)
					for _, s := range chain {
						promptText(s.Message)
					}
				})
			})
		})
	}
}
