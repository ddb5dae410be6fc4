package toolschema

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/growth"
)

func many(n int, f func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = f(i)
	}
	return strings.Join(parts, ",")
}

func object1(members string) string { return `{"type":"object","properties":{` + members + `}}` }

// growing are schemas of size n that were made to be expensive, by the pass that they are for.
var growing = map[string]func(n int) string{
	"alternatives that refer to properties": func(n int) string {
		return object1(many(n, func(i int) string {
			return fmt.Sprintf(`"p%d":{"anyOf":[{"$ref":"#/properties/p%d"},{"type":"string"}]}`, i, (i+1)%n)
		}))
	},
	"references to places with one name": func(n int) string {
		return object1(many(n, func(i int) string {
			return fmt.Sprintf(`"p%d":{"properties":{"same":{"minLength":%d},"r":{"$ref":"#/properties/p%d/properties/same"}}}`, i, i, i)
		}))
	},
	"definitions with illegal names": func(n int) string {
		return `{"type":"object","properties":{"a":{"$ref":"#/$defs/d%5B0%5D"}},"$defs":{` + many(n, func(i int) string { return fmt.Sprintf(`"d[%d]":{"$ref":"#/$defs/d[%d]"}`, i, i+1) }) + `}}`
	},
	"definitions with names that look alike": func(n int) string {
		return `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{},` + many(n, func(i int) string {
			return fmt.Sprintf(`"%s":{}`, strings.Repeat("ä", 1+i%60)+strings.Repeat("é", i/60))
		}) + `}}`
	},
	"a chain of references": func(n int) string {
		return object1(`"a":{"$ref":"#/$defs/d0"}`)[:0] + `{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{` + many(n, func(i int) string { return fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"}`, i, i+1) }) + `}}`
	},
	"a circle of references": func(n int) string {
		return `{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{` + many(n, func(i int) string { return fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"}`, i, (i+1)%n) }) + `}}`
	},
	"definitions under other keywords": func(n int) string {
		return `{"type":"object","properties":{` + many(n, func(i int) string { return fmt.Sprintf(`"p%d":{"$ref":"#/x%d/y"}`, i, i) }) + `},` + many(n, func(i int) string { return fmt.Sprintf(`"x%d":{"y":{"type":"string"}}`, i) }) + `}`
	},
	"anchors below a long id": func(n int) string {
		return `{"$id":"https://example.com/` + strings.Repeat("a", n) + `","type":"object","properties":{` + many(64, func(i int) string { return fmt.Sprintf(`"p%d":{"$anchor":"a%d","$ref":"#a0"}`, i, i) }) + `}}`
	},
	"references that lead nowhere": func(n int) string {
		return object1(many(n, func(i int) string { return fmt.Sprintf(`"p%d":{"$ref":"#/nowhere/%d"}`, i, i) }))
	},
	"illegal keys": func(n int) string {
		return object1(many(n, func(i int) string { return fmt.Sprintf(`"k[%d]":{}`, i) }))
	},
	"keys that look alike": func(n int) string {
		return object1(many(n, func(i int) string { return fmt.Sprintf(`"%c%c":{}`, 0x4e00+i%5000, 0x4e00+i/5000) }))
	},
	"long keys": func(n int) string {
		return object1(many(16, func(i int) string { return fmt.Sprintf(`"%s%d":{}`, strings.Repeat("ü", n/16), i) }))
	},
	"required everywhere": func(n int) string {
		return object1(many(n, func(i int) string { return fmt.Sprintf(`"p%d":{"required":true}`, i) }))
	},
	"required, many": func(n int) string {
		return `{"type":"object","properties":{},"allOf":[{"required":[` + many(n, func(i int) string { return fmt.Sprintf(`"p%d"`, i) }) + `]}]}`
	},
	"dependent, none a list": func(n int) string {
		return `{"type":"object","properties":{},"dependentRequired":{` + many(n, func(i int) string { return fmt.Sprintf(`"p%d":{}`, i) }) + `}}`
	},
	"dependencies": func(n int) string {
		return `{"type":"object","properties":{},"dependencies":{` + many(n, func(i int) string { return fmt.Sprintf(`"p%d":["q%d"]`, i, i) }) + `}}`
	},
	"wrong keywords": func(n int) string {
		return object1(many(n, func(i int) string { return fmt.Sprintf(`"p%d":{"minLength":-1,"type":"strng","items":[{}]}`, i) }))
	},
	"an enum": func(n int) string {
		return object1(`"a":{"enum":[` + many(n, func(i int) string { return fmt.Sprint(i) }) + `]}`)
	},
	"a description": func(n int) string { return object1(`"a":{"description":"` + strings.Repeat("ü", n*10) + `"}`) },
	"a pattern":     func(n int) string { return object1(`"a":{"pattern":"` + strings.Repeat("(a", n*10) + `"}`) },
	"a type of many": func(n int) string {
		return object1(`"a":{"type":[` + many(n, func(i int) string { return `"str"` }) + `]}`)
	},
	"brackets": func(n int) string {
		return `{"type":"object","default":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	},
	"levels": func(n int) string {
		return strings.Repeat(`{"type":"object","properties":{"a":`, n) + `{}` + strings.Repeat(`}}`, n)
	},
	"unknown keywords": func(n int) string {
		return `{"type":"object","properties":{},"minLength":-1,"maxLength":-1,"minItems":-1,"maxItems":-1,` + many(n, func(i int) string { return fmt.Sprintf(`"x%d":1`, i) }) + `}`
	},
	"alternatives at the root": func(n int) string {
		return `{"oneOf":[` + many(n/8, func(i int) string {
			return fmt.Sprintf(`{"properties":{"p%d":{"type":"string"}},"required":["p%d"]}`, i, i)
		}) + `]}`
	},
	"constants at the root": func(n int) string {
		return `{"anyOf":[` + many(n/8, func(i int) string { return fmt.Sprintf(`{"properties":{"p":{"const":%d}},"required":["p"]}`, i) }) + `]}`
	},
	"a schema in a string": func(n int) string {
		b, _ := json.Marshal(object1(many(n, func(i int) string { return fmt.Sprintf(`"k[%d]":{}`, i) })))
		return string(b)
	},
}

// unlimited lets schemas be as large as they are, so that none is mended again with less of it.
var unlimited = &Options{MaxSchema: 64 << 20}

// steps is how many steps mending takes, and what came of it.
func steps(t testing.TB, schema string) (int, Model, *Quarantine) {
	work := &meter{ctx: t.Context(), budget: &Budget{}}
	m, q := mendTool(work, Tool{Name: "t", InputSchema: json.RawMessage(schema)}, unlimited.withDefaults())
	return work.spent, m, q
}

// Schemas that were made to be expensive are mended in proportion to their size, in steps and in memory. fault H2
func TestMendingGrowsWithTheSchema(t *testing.T) {
	for name, schema := range growing {
		t.Run(name, func(t *testing.T) {
			growth.Check(t, 1000, func(n int) int {
				spent, _, q := steps(t, schema(n))
				if q != nil && strings.Contains(q.Reason, "steps") {
					t.Errorf("at %d: %v", n, q)
				}
				return spent
			})
			growth.Check(t, 1000, func(n int) int {
				tool := Tool{Name: "t", InputSchema: json.RawMessage(schema(n))}
				return growth.Bytes(func() { ForModel(t.Context(), tool, unlimited) })
			})
		})
	}
}

// What would take too much work is left out with that reason, by itself and with the tools before it. fault H2
func TestMendingIsBounded(t *testing.T) {
	expensive := `{"type":"object","allOf":[` + many(1900, func(int) string { return `{"$ref":"#/$defs/d"}` }) + `],"$defs":{"d":{"properties":{` +
		many(20_000, func(i int) string { return fmt.Sprintf(`"p%d":{}`, i) }) + `}}}}`
	growth.AtMost(t, maxWork+1<<20, []int{1}, func(int) int {
		spent, _, q := steps(t, expensive)
		if q == nil || !strings.Contains(q.Reason, "more than the 2097152 steps that mending one may take") {
			t.Errorf("got %v, want a quarantine for the work", q)
		}
		return spent
	})
	budget := &Budget{}
	var reasons []string
	for range 30 {
		_, q := ForModel(t.Context(), Tool{Name: "t", InputSchema: json.RawMessage(expensive)}, &Options{Budget: budget})
		if q == nil {
			t.Fatal("was mended")
		}
		reasons = append(reasons, q.Reason)
	}
	if last := reasons[len(reasons)-1]; !strings.Contains(last, "those of one server may take") || budget.spent > defaultBudget+1<<22 {
		t.Errorf("30 tools took %d steps, the last reason is %q", budget.spent, last)
	}
	_, q := ForModel(t.Context(), Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
	if q != nil {
		t.Errorf("a tool with a budget of its own: %v", q)
	}
	chain := growing["a chain of references"](maxChain + 1)
	if _, _, q := steps(t, chain); q == nil || !strings.Contains(q.Reason, "a chain of more than 20000 references") {
		t.Errorf("a chain of %d: %v", maxChain+1, q)
	}
}

// fault H2
func TestMendingHeedsItsContext(t *testing.T) {
	schema := growing["alternatives that refer to properties"](5000)
	ctx, late := growth.EndsAfter(t, 3)
	_, q := ForModel(ctx, Tool{Name: "t", InputSchema: json.RawMessage(schema)}, nil)
	if q == nil || !strings.Contains(q.Reason, context.Canceled.Error()) || late() > 1 {
		t.Errorf("got %v, and looked %d times at a context that had ended", q, late())
	}
}

// Arguments go back in proportion to their size, however deep they are and however many schemas apply to them. fault H12
func TestRestoringGrowsWithTheArguments(t *testing.T) {
	mended := func(t *testing.T, schema string) Model {
		_, m, q := steps(t, schema)
		if q != nil || m.back == nil {
			t.Fatalf("got %v, %v", m, q)
		}
		return m
	}
	recursive := `{"type":"object","properties":{"a b":{"$ref":"#"},"c d":{}}}`
	wide := `{"type":"object","properties":{"a b":{"anyOf":[` + many(300, func(i int) string { return fmt.Sprintf(`{"properties":{"p%d":{"$ref":"#/properties/a%%20b"}}}`, i) }) + `]}}}`
	tests := []struct {
		name, schema string
		args         func(n int) string
	}{
		{"levels", recursive, func(n int) string { return strings.Repeat(`{"a_b":`, n) + `1` + strings.Repeat(`}`, n) }},
		{"levels with more behind them", recursive, func(n int) string {
			return strings.Repeat(`{"a_b":`, n) + `1` + strings.Repeat(`,"c_d":[1,{"x":"}"}]}`, n)
		}},
		{"keys", recursive, func(n int) string {
			return `{` + many(n, func(i int) string { return fmt.Sprintf(`"k%d":{"a_b":1}`, i) }) + `,"a_b":1}`
		}},
		{"elements", recursive, func(n int) string { return `{"a_b":[` + many(n, func(i int) string { return `{"a_b":{}}` }) + `]}` }},
		{"keys under many schemas", wide, func(n int) string {
			return `{"a_b":{` + many(n, func(i int) string { return fmt.Sprintf(`"p%d":{"a_b":{}}`, i) }) + `}}`
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := mended(t, tt.schema)
			growth.Check(t, 1000, func(n int) int {
				args := json.RawMessage(tt.args(n))
				return growth.Bytes(func() { m.RestoreArgs(args) })
			})
			growth.AtMost(t, maxRestore, []int{1000, 4000}, func(n int) int {
				args := json.RawMessage(tt.args(n))
				r := &restorer{back: m.back, data: args, left: maxRestore}
				r.value([]any{m.back.root})
				return maxRestore - r.left
			})
			if got := string(m.back.restore(json.RawMessage(tt.args(50)), 1)); strings.Contains(got, "a_b") {
				t.Errorf("without work left a mended key stays: %s", got)
			}
		})
	}
}
