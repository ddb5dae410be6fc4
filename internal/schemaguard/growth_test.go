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
