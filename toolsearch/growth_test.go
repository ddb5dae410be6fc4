package toolsearch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/growth"
)

// repeated are n tools of one server whose names and texts are as like each other as can be.
func repeated(n int) []Tool {
	tools := make([]Tool, n)
	for i := range tools {
		tools[i] = tool("s", fmt.Sprintf("aaaa_%d", i), "a a aa aaa aaaa aaaab aaaac "+fmt.Sprint("word", i))
	}
	return tools
}

// long are queries of n words that were made to be expensive.
var long = map[string]func(n int) string{
	"required words, all alike": func(n int) string { return strings.Repeat("+a ", n) },
	"required words":            func(n int) string { return joined(n, func(i int) string { return fmt.Sprintf("+a%d", i) }) },
	"words that are in all":     func(n int) string { return joined(n, func(i int) string { return strings.Repeat("a", 1+i%4) }) },
	"words that are misspelt":   func(n int) string { return joined(n, func(i int) string { return "aaaa" + string(rune('d'+i%20)) }) },
	"names that no tool has": func(n int) string {
		return "select:" + strings.Join(strings.Fields(joined(n, func(i int) string { return fmt.Sprint(i) })), ",")
	},
	"a name that many tools have": func(n int) string { return "select:" + strings.Repeat("same,", n) },
	"one word":                    func(n int) string { return strings.Repeat("a", n) },
	"characters without blanks":   func(n int) string { return strings.Repeat("文件", n) },
	"a server":                    func(n int) string { return "s" + strings.Repeat("_", n) },
}

func joined(n int, f func(i int) string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = f(i)
	}
	return strings.Join(list, " ")
}

// A query costs what its first words cost, however long it is, and in proportion to the tools. fault H7
func TestSearchGrowsWithTheTools(t *testing.T) {
	work := func(x *Index, text string) int {
		q := Query{}
		for range 2 * MaxPhrasings {
			q.Phrasings = append(q.Phrasings, text)
		}
		s := &search{Index: x, ctx: t.Context()}
		s.run(q)
		return s.steps
	}
	x := New(repeated(2000))
	for name, text := range long {
		t.Run(name, func(t *testing.T) {
			growth.AtMost(t, work(x, text(4000)), []int{1000, 8000, 100_000}, func(n int) int { return work(x, text(n)) })
			growth.Check(t, 500, func(n int) int { return 1 + work(New(repeated(n)), text(1300)) })
			growth.Check(t, 500, func(n int) int {
				x := New(repeated(n))
				return growth.Bytes(func() { find(t, x, Query{Phrasings: []string{text(1300), text(50)}}) })
			})
		})
	}
}

// fault H7
func TestSearchHeedsItsContext(t *testing.T) {
	x := New(repeated(5000))
	ctx, late := growth.EndsAfter(t, 2)
	r, err := x.Search(ctx, Query{Phrasings: []string{joined(60, func(i int) string { return "aaaa" + string(rune('d'+i%20)) }), "aaaa"}})
	if !errors.Is(err, context.Canceled) || len(r.Matches) > 0 || late() > 2 {
		t.Errorf("got %d matches and %v, and it looked %d times at a context that had ended", len(r.Matches), err, late())
	}
}

// The eight first of the required words are required, and those beyond count as words.
func TestRequiredWordsAreBounded(t *testing.T) {
	names := strings.Fields("one two three four five six seven eight nine")
	x := New([]Tool{tool("s", strings.Join(names, "_"), ""), tool("s", strings.Join(names[:8], "_"), ""), tool("s", "nine", "")})
	r := find(t, x, Query{Phrasings: []string{"+" + strings.Join(names, " +")}})
	if got := fullNames(r); len(got) != 2 || !strings.HasSuffix(got[0], "_nine") {
		t.Errorf("got %q, want the tools with the first eight words, the one with all before the other", got)
	}
}

// Tools are read in proportion to what is in them, whatever their servers wrote.
func TestIndexGrowsWithTheTools(t *testing.T) {
	filled := func(f func(n int) Tool) func(n int) int {
		return func(n int) int {
			tools := []Tool{f(n)}
			return growth.Bytes(func() { New(tools) })
		}
	}
	growth.Check(t, 500, func(n int) int {
		tools := repeated(n)
		return growth.Bytes(func() { New(tools) })
	})
	bound := 8 << 20
	for name, f := range map[string]func(n int) Tool{
		"a description":  func(n int) Tool { return tool("s", "x", strings.Repeat("word ", n)) },
		"without words":  func(n int) Tool { return tool("s", "x", strings.Repeat("! ", n)) },
		"no blanks":      func(n int) Tool { return tool("s", "x", strings.Repeat("文", n)) },
		"one word":       func(n int) Tool { return tool("s", "x", strings.Repeat("a", n)) },
		"parts of names": func(n int) Tool { return tool("s", "x", strings.Repeat("aB", n)) },
		"a hint":         func(n int) Tool { return Tool{FullName: "x", Name: "x", Hint: strings.Repeat("a1 ", n)} },
		"a name":         func(n int) Tool { return tool("s", strings.Repeat("a_", n), "") },
	} {
		t.Run(name, func(t *testing.T) { growth.AtMost(t, bound, []int{1000, 1_000_000}, filled(f)) })
	}
	params := Tool{FullName: "x", Name: "x"}
	for range 100 {
		params.Params = append(params.Params, Param{Name: "p", Description: strings.Repeat("word ", 10_000)})
	}
	growth.AtMost(t, bound, []int{1}, func(int) int { return growth.Bytes(func() { New([]Tool{params}) }) })
}

func TestSummaryAndParamsGrowWithTheTools(t *testing.T) {
	growth.Check(t, 1000, func(n int) int {
		tools := make([]Tool, n)
		for i := range tools {
			tools[i] = tool(fmt.Sprint("server", i), "x", "")
		}
		return growth.Bytes(func() { Summary(tools, 0) })
	})
	for name, schema := range map[string]func(n int) string{
		"properties": func(n int) string {
			return `{"properties":{` + strings.TrimSuffix(strings.Repeat(`"a":{},`, n), ",") + `}}`
		},
		"alternatives": func(n int) string {
			return `{"anyOf":[` + strings.TrimSuffix(strings.Repeat(`{"items":{}},`, n), ",") + `]}`
		},
		"levels": func(n int) string { return strings.Repeat(`{"items":`, n) + `{}` + strings.Repeat(`}`, n) },
		"an enum": func(n int) string {
			return `{"properties":{"a":{"enum":[` + strings.TrimSuffix(strings.Repeat(`"a",`, n), ",") + `]}}}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			growth.Check(t, 1000, func(n int) int {
				raw := []byte(schema(n))
				return growth.Bytes(func() { Params(raw) })
			})
		})
	}
}
