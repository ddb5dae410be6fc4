package schemaguard

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tenon-sdk/tenon/internal/growth"
)

// joined joins n texts with commas.
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

// fault H2
func TestNewGrowsWithTheSchema(t *testing.T) {
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
		"references to other documents": func(n int) string {
			return `{"anyOf":[` + joined(n, func(i int) string { return fmt.Sprintf(`{"$ref":"http://x.example/%d#/a%d"}`, i, i) }) + `]}`
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
					if _, err := New(raw); err != nil {
						t.Error(err)
					}
				})
			})
		})
	}
}

// steps validates a value and returns the steps taken.
func steps(t *testing.T, s *Schema, value string) int {
	t.Helper()
	in, err := s.acquire()
	if err != nil {
		t.Fatal(err)
	}
	defer s.release(in)
	v, err := readValue([]byte(value))
	if err != nil {
		t.Fatal(err)
	}
	_ = in.validate(v, len(value), Limits{}.withDefaults()) // valid or not
	taken := min(baseSteps+stepsPerByte*len(value), maxSteps) - int(in.steps)
	if in.steps < 0 {
		t.Fatal("the steps are used up")
	}
	return taken
}

// fault H12
func TestStepsGrowWithTheValue(t *testing.T) {
	for name, tt := range map[string]struct {
		schema string
		value  func(n int) string
	}{
		"items of the wrong type": {
			`{"items":{"type":"string"}}`,
			func(n int) string { return `[` + joined(n, func(int) string { return "1" }) + `]` },
		},
		"unknown members": {
			`{"properties":{"known":{}},"additionalProperties":false}`,
			func(n int) string {
				return `{` + joined(n, func(i int) string { return fmt.Sprintf(`"knwon%d":0`, i) }) + `}`
			},
		},
		"unique items": {
			`{"uniqueItems":true}`,
			func(n int) string {
				return `[` + joined(n, func(i int) string { return fmt.Sprintf(`{"a":[%d]}`, i) }) + `]`
			},
		},
		"alternatives": {
			`{"items":{"anyOf":[{"type":"string"},{"properties":{"a":{"const":1}},"required":["a"]},{"not":{}}]}}`,
			func(n int) string { return `[` + joined(n, func(int) string { return `{"a":2}` }) + `]` },
		},
		"unevaluated members": {
			`{"anyOf":[{"properties":{"a":{}}},{"patternProperties":{"^p":{}}}],"unevaluatedProperties":false}`,
			func(n int) string {
				return `{` + joined(n, func(i int) string { return fmt.Sprintf(`"p%d":0`, i) }) + `}`
			},
		},
		"text for a pattern": {
			`{"pattern":"^(a|a)*b$"}`,
			func(n int) string { return `"` + strings.Repeat("a", n) + `"` },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustNew(t, tt.schema)
			growth.Check(t, 1000, func(n int) int { return steps(t, s, tt.value(n)) })
		})
	}
}

// Work that no evaluation of a subschema shows is counted beforehand.
//
// fault H12
func TestHiddenWorkIsBounded(t *testing.T) {
	numbers := "[" + joined(50_000, func(i int) string { return fmt.Sprint(i) }) + "]"
	for name, tt := range map[string]struct{ schema, value string }{
		"alternatives by type": {`{"items":{"anyOf":[` + joined(5000, func(int) string { return `{"type":"string"}` }) + `]}}`, numbers},
		"constants":            {`{"items":{"enum":[` + joined(9000, func(i int) string { return fmt.Sprint(-1 - i) }) + `]}}`, numbers},
		"a chain of references": {
			`{"items":{"$ref":"#/$defs/d0"},"$defs":{` + joined(3000, func(i int) string { return fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"}`, i, i+1) }) + `,"d3000":{}}}`,
			"[" + joined(200, func(i int) string { return fmt.Sprint(i) }) + "]",
		},
		"patterns for names": {
			`{"patternProperties":{` + joined(2000, func(i int) string { return fmt.Sprintf(`"(a|b){200}%d$":{}`, i) }) + `}}`,
			`{` + joined(2000, func(i int) string { return fmt.Sprintf(`"%s%d":0`, strings.Repeat("ab", 100), i) }) + `}`,
		},
	} {
		var limit *LimitError
		if err := mustNew(t, tt.schema).Validate([]byte(tt.value), Limits{}); !errors.As(err, &limit) {
			t.Errorf("%s: got %.200v, want a LimitError", name, err)
		}
	}
}

// Faults that are not listed cost no comparison of names: each listed name is compared with all
// properties of the schema.
//
// fault H12
func TestFaultsBeyondTheLimitCostLittle(t *testing.T) {
	known := joined(500, func(i int) string { return fmt.Sprintf(`"property_%05d":{"type":"string"}`, i) })
	for name, tt := range map[string]struct{ schema, item string }{
		"unknown names": {`{"items":{"properties":{` + known + `},"additionalProperties":false}}`, `{"qroperty_%05d":0}`},
		"missing names": {`{"items":{"required":["a"],"properties":{"a":{"type":"string","description":"` + strings.Repeat("d", 100) + `"}}}}`, `{"m%05d":0}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustNew(t, tt.schema)
			growth.AtMost(t, 24<<20, []int{10, 100, 5000}, func(n int) int {
				value := []byte(`[` + joined(n, func(i int) string { return fmt.Sprintf(tt.item, i) }) + `]`)
				return growth.Bytes(func() {
					var invalid *ValidationError
					if err := s.Validate(value, Limits{}); !errors.As(err, &invalid) || len(invalid.Faults) != DefaultFaults {
						t.Errorf("got %.200v", err)
					}
				})
			})
		})
	}
}

// The library reads a document for each URL, with all places that references lead to.
//
// fault H2
func TestReferencesToOtherDocumentsAreBounded(t *testing.T) {
	for _, ref := range []string{`{"$ref":"http://x.example/%d#/a%d"}`, `{"$ref":"http://x.example/%d#a%d"}`} {
		growth.AtMost(t, 512<<20, []int{100, 4000, 9000}, func(n int) int {
			raw := []byte(`{"anyOf":[` + joined(n, func(i int) string { return fmt.Sprintf(ref, i, i) }) + `]}`)
			return growth.Bytes(func() {
				_, err := New(raw)
				if bad := err != nil && strings.Contains(err.Error(), "too many references to other documents"); bad != (n > 100) {
					t.Errorf("%d of %s: %v", n, ref, err)
				}
			})
		})
	}
}
