package schemaguard

import (
	"fmt"
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
