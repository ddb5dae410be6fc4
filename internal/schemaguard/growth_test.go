package schemaguard

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/growth"
)

// joined is n texts, separated by commas.
func joined(n int, text func(i int) string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(text(i))
	}
	return b.String()
}

// Reading a schema that others wrote costs in proportion to its size.
//
// fault H2
func TestSchemasCostInProportion(t *testing.T) {
	for name, schema := range map[string]func(n int) string{
		"properties": func(n int) string {
			return `{"properties":{` + joined(n, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"string"}`, i) }) + `}}`
		},
		"references to one place": func(n int) string {
			return `{"$defs":{"a":{}},"anyOf":[` + joined(n, func(int) string { return `{"$ref":"#/$defs/a"}` }) + `]}`
		},
		"a chain of references": func(n int) string {
			return `{"$defs":{` + joined(n, func(i int) string { return fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"}`, i, min(i+1, n-1)) }) + `}}`
		},
		"anchors": func(n int) string {
			return `{"$defs":{` + joined(n, func(i int) string { return fmt.Sprintf(`"d%d":{"$anchor":"a%d"}`, i, i) }) + `},"$ref":"#a0"}`
		},
		"an enum": func(n int) string {
			return `{"enum":[` + joined(n, func(i int) string { return fmt.Sprint(i) }) + `]}`
		},
		"required": func(n int) string {
			return `{"required":[` + joined(n, func(i int) string { return fmt.Sprintf(`"r%d"`, i) }) + `]}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			growth.Check(t, 500, func(n int) int {
				raw := []byte(schema(n))
				return growth.Bytes(func() {
					s, err := New(raw)
					if err == nil {
						err = s.Compile()
					}
					if err != nil {
						t.Error(err)
					}
				})
			})
		})
	}
}

// steps is how many steps it takes to say what is wrong with a value.
func steps(t *testing.T, s *Schema, value string) int {
	t.Helper()
	p, err := s.program()
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := d.parse([]byte(value)); err != nil {
		t.Fatal(err)
	}
	r := run{p: p, d: &d, max: DefaultDepth, steps: budget(&d), report: &report{limit: DefaultFaults}}
	r.check(p.root, 0, nil)
	if r.stop != nil {
		t.Fatal(r.stop)
	}
	return int(budget(&d) - r.steps)
}

// The steps of validating a value are in proportion to its size.
//
// fault H12
func TestValidationCostsInProportion(t *testing.T) {
	for name, tt := range map[string]struct {
		schema string
		value  func(n int) string
	}{
		"items that are wrong": {
			`{"items":{"type":"string"}}`,
			func(n int) string { return `[` + joined(n, func(int) string { return "1" }) + `]` },
		},
		"members that are not known": {
			`{"properties":{"known":{}},"additionalProperties":false}`,
			func(n int) string {
				return `{` + joined(n, func(i int) string { return fmt.Sprintf(`"knwon%d":0`, i) }) + `}`
			},
		},
		"items that must differ": {
			`{"uniqueItems":true}`,
			func(n int) string {
				return `[` + joined(n, func(i int) string { return fmt.Sprintf(`{"a":[%d]}`, i) }) + `]`
			},
		},
		"members twice": {
			`{"properties":{"a":{"type":"string"}}}`,
			func(n int) string { return `{` + joined(n, func(int) string { return `"a":"x"` }) + `}` },
		},
		"alternatives": {
			`{"items":{"anyOf":[{"type":"string"},{"properties":{"a":{"const":1}},"required":["a"]},{"not":{}}]}}`,
			func(n int) string { return `[` + joined(n, func(int) string { return `{"a":2}` }) + `]` },
		},
		"what is not evaluated": {
			`{"anyOf":[{"properties":{"a":{}}},{"patternProperties":{"^p":{}}}],"unevaluatedProperties":false}`,
			func(n int) string {
				return `{` + joined(n, func(i int) string { return fmt.Sprintf(`"p%d":0`, i) }) + `}`
			},
		},
		"long numbers": {
			`{"items":{"multipleOf":0.1}}`,
			func(n int) string { return `[` + joined(n, func(int) string { return "1234567890.5" }) + `]` },
		},
		"text for a pattern": {
			`{"pattern":"^(a|a)*b$"}`,
			func(n int) string { return `"` + strings.Repeat("a", n) + `"` },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustNew(t, tt.schema)
			growth.Check(t, 1000, func(n int) int {
				return steps(t, s, tt.value(n))
			})
		})
	}
}

// What is said of faults is said of those that are listed only: a million names that
// the schema does not know, each like many that it does, cost no more than ten.
//
// fault H12
func TestFaultsBeyondTheLimitCostLittle(t *testing.T) {
	known := joined(500, func(i int) string { return fmt.Sprintf(`"property_%05d":{"type":"string"}`, i) })
	for name, tt := range map[string]struct {
		schema string
		member string // of the value, with a number
	}{
		"unknown names": {`{"properties":{` + known + `},"additionalProperties":false}`, `"qroperty_%05d":0`},
		"missing names": {`{"additionalProperties":{"required":["a","b"],"properties":{"a":{"description":"` + strings.Repeat("d", 100) + `"}}}}`, `"m%05d":{}`},
		"excluded":      {`{"additionalProperties":{"not":{"type":"object"}}}`, `"m%05d":{"a":{"b":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustNew(t, tt.schema)
			p, err := s.program()
			if err != nil {
				t.Fatal(err)
			}
			growth.AtMost(t, 256<<10, []int{10, 100, 10_000}, func(n int) int {
				var d document
				if err := d.parse([]byte(`{` + joined(n, func(i int) string { return fmt.Sprintf(tt.member, i) }) + `}`)); err != nil {
					t.Fatal(err)
				}
				r := run{p: p, d: &d, max: DefaultDepth, steps: budget(&d), report: &report{limit: DefaultFaults}}
				work := growth.Bytes(func() { r.check(p.root, 0, nil) })
				if len(r.report.faults) != DefaultFaults || n > 10 && !r.report.more {
					t.Errorf("%d faults, more %v", len(r.report.faults), r.report.more)
				}
				return work
			})
		})
	}
}

// The distance of names is what the whole table of edits says, up to 3.
func TestDistance(t *testing.T) {
	slow := func(a, b string) int {
		row := make([]int, len(b)+1)
		for j := range row {
			row[j] = j
		}
		for i := range len(a) {
			diagonal := row[0]
			row[0] = i + 1
			for j := range len(b) {
				cost := diagonal
				if a[i] != b[j] {
					cost++
				}
				diagonal = row[j+1]
				row[j+1] = min(cost, row[j]+1, row[j+1]+1)
			}
		}
		return min(row[len(b)], 3)
	}
	random := rand.New(rand.NewPCG(1, 0))
	name := func() string {
		text := make([]byte, 3+random.IntN(8))
		for i := range text {
			text[i] = "ab"[random.IntN(2)]
		}
		return string(text)
	}
	for range 20_000 {
		a, b := name(), name()
		if got, want := distance(a, b), slow(a, b); got != want {
			t.Fatalf("distance(%s, %s) = %d, want %d", a, b, got, want)
		}
	}
}
