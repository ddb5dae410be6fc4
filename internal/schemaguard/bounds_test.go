package schemaguard

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func mustNew(t testing.TB, schema string) *Schema {
	t.Helper()
	s, err := New(json.RawMessage(schema))
	if err != nil {
		t.Fatalf("New(%.200s): %v", schema, err)
	}
	return s
}

// nest returns a value n levels deep: {"child":{"child":...{}}}.
func nest(n int) []byte {
	return []byte(strings.Repeat(`{"child":`, n) + `{}` + strings.Repeat(`}`, n))
}

const recursive = `{"type":"object","properties":{"child":{"$ref":"#"}},"additionalProperties":false}`

// T14 T15 T16
func TestDepthCountsDescent(t *testing.T) {
	s := mustNew(t, recursive)
	for _, limit := range []int{0, 1, 10, 50, 200} {
		n := limit
		if n == 0 {
			n = 50 // the default
		}
		if err := s.Validate(nest(n), Limits{Depth: limit}); err != nil {
			t.Errorf("limit %d, value %d levels deep: %v", limit, n, err)
		}
		err := s.Validate(nest(n+1), Limits{Depth: limit})
		var deep *LimitError
		if !errors.As(err, &deep) || deep.Depth != n {
			t.Fatalf("limit %d, value %d levels deep: got %v, want a LimitError", limit, n+1, err)
		}
		if want := strings.Repeat("/child", n+1); deep.Pointer != want {
			t.Errorf("limit %d: pointer %q, want %q", limit, deep.Pointer, want)
		}
		if !strings.Contains(err.Error(), fmt.Sprint(n)) {
			t.Errorf("limit %d: message %q does not name it", limit, err)
		}
	}
}

// T16
func TestUnreachedDepthCostsNothing(t *testing.T) {
	for _, levels := range []int{60, 500, 3000} {
		deep := strings.Repeat(`{"properties":{"x":`, levels) + `{"type":"string"}` + strings.Repeat(`}}`, levels)
		s := mustNew(t, `{"type":"object","properties":{"near":{"type":"integer"},"far":`+deep+`}}`)
		if err := s.Validate([]byte(`{"near":1}`), Limits{}); err != nil {
			t.Errorf("%d levels: %v", levels, err)
		}
		if err := s.Validate([]byte(`{"near":"no"}`), Limits{}); err == nil {
			t.Errorf("%d levels: a wrong value is valid", levels)
		}
		if err := s.Validate([]byte(`{"far":{"x":{"x":7}}}`), Limits{}); err != nil && levels > 2 {
			t.Errorf("%d levels: %v", levels, err)
		}
	}
	// A value may be deep where no rule looks.
	s := mustNew(t, `{"type":"object"}`)
	if err := s.Validate(nest(5000), Limits{}); err != nil {
		t.Errorf("deep value under no rule: %v", err)
	}
}

// T16
func TestWhatIsWrittenTooDeepFailsWhereItIsReached(t *testing.T) {
	levels := MaxNesting + 10
	s := mustNew(t, strings.Repeat(`{"allOf":[`, levels)+`{"type":"string"}`+strings.Repeat(`]}`, levels))
	err := s.Validate([]byte(`1`), Limits{})
	var broken *SchemaError
	if !errors.As(err, &broken) || !strings.Contains(err.Error(), fmt.Sprint(MaxNesting)) {
		t.Errorf("got %v, want a SchemaError that names the limit", err)
	}
}

// Levels of the schema that apply to one value are no levels of depth. The bounds
// on a schema hold for them instead.
//
// # T16
//
// fault I8
func TestNestingInPlaceIsNoDepth(t *testing.T) {
	nested := func(n int) string {
		return strings.Repeat(`{"allOf":[`, n) + `{"properties":{"a":{"type":"integer"}}}` + strings.Repeat(`]}`, n)
	}
	chain := func(n int) string {
		var b strings.Builder
		for i := range n - 2 { // without the root and the last
			fmt.Fprintf(&b, `"%d":{"$ref":"#/$defs/%d"},`, i, i+1)
		}
		return fmt.Sprintf(`{"$ref":"#/$defs/0","$defs":{%s"%d":{"required":["a"]}}}`, b.String(), n-2)
	}
	choice := func(keyword string) string {
		return strings.Repeat(`{"`+keyword+`":[`, MaxNesting/2) + `{"required":["a"]}` + strings.Repeat(`]}`, MaxNesting/2)
	}
	for name, schema := range map[string]string{
		"allOf": nested(MaxNesting - 1), "references": chain(1000),
		"anyOf": choice("anyOf"), "oneOf": choice("oneOf"),
	} {
		s := mustNew(t, schema)
		if err := s.Validate([]byte(`{"a":1}`), Limits{Depth: 1}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wrong := `{}`
		if name == "allOf" {
			wrong = `{"a":"x"}`
		}
		var invalid *ValidationError
		if err := s.Validate([]byte(wrong), Limits{Depth: 1}); !errors.As(err, &invalid) {
			t.Errorf("%s: a wrong value: %v", name, err)
		}
	}
	if _, err := New([]byte(chain(MaxSubschemas + 1))); err == nil || !strings.Contains(err.Error(), "more than 10000 subschemas") {
		t.Errorf("a chain of too many: %v", err)
	}
}

func TestCyclesEnd(t *testing.T) {
	for _, schema := range []string{
		`{"$ref":"#"}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		`{"allOf":[{"$ref":"#"}]}`,
		`{"not":{"not":{"$ref":"#"}}}`,
		`{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"oneOf":[{"$ref":"#/$defs/a"}]}},"if":{"$ref":"#/$defs/a"},"then":false,"else":false}`,
		`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"$recursiveRef":"#"}`,
		`{"$dynamicAnchor":"x","$dynamicRef":"#x"}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#"}`,
	} {
		err := mustNew(t, schema).Validate([]byte(`{"a":[1,2]}`), Limits{})
		if err == nil {
			t.Errorf("%s: a value is valid", schema)
		}
	}
}

// A cycle in one alternative does not spoil another.
func TestCycleBesideAnAlternative(t *testing.T) {
	s := mustNew(t, `{"anyOf":[{"$ref":"#"},{"type":"string"}]}`)
	if err := s.Validate([]byte(`"x"`), Limits{}); err != nil {
		t.Error(err)
	}
}

// definitions that each refer to the next twice: 2^n ways through them.
func doubling(n int, keyword string) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{%q:[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, keyword, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d":{"type":"string"}}}`, n)
	return b.String()
}

func TestWorkIsBounded(t *testing.T) {
	var limit *LimitError
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		value := `"x"`
		if keyword == "anyOf" {
			value = `1` // must try all
		}
		err := mustNew(t, doubling(60, keyword)).Validate([]byte(value), Limits{})
		if keyword == "oneOf" { // two match at the bottom: decided early
			if err == nil {
				t.Errorf("%s: a value is valid", keyword)
			}
			continue
		}
		if !errors.As(err, &limit) || limit.Depth != 0 {
			t.Errorf("%s: got %v, want a LimitError on work", keyword, err)
		}
	}
	// The same, one value level for each doubling.
	s := mustNew(t, `{"allOf":[{"properties":{"child":{"$ref":"#"}}},{"properties":{"child":{"$ref":"#"}}}]}`)
	if err := s.Validate(nest(50), Limits{}); !errors.As(err, &limit) {
		t.Errorf("doubling by level: got %v, want a LimitError on work", err)
	}
}

func TestDeepValues(t *testing.T) {
	var syntax *SyntaxError
	var limit *LimitError
	s := mustNew(t, recursive)
	if err := s.Validate(nest(9_998), Limits{}); !errors.As(err, &limit) {
		t.Errorf("9,998 levels: got %v, want a LimitError", err)
	}
	if err := s.Validate(nest(9_998), Limits{Depth: 10_000}); err != nil {
		t.Errorf("9,998 levels with that limit: %v", err)
	}
	if err := s.Validate(nest(10_001), Limits{Depth: 100_000}); !errors.As(err, &syntax) {
		t.Errorf("10,001 levels: got %v, want what encoding/json says", err)
	}
	lists := strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999)
	for _, schema := range []string{`{"const":[[]]}`, `{"uniqueItems":true}`, `{"items":{"$ref":"#"}}`, `{"enum":[1,[[[]]]]}`} {
		_ = mustNew(t, schema).Validate([]byte(lists), Limits{Depth: 20_000}) // must return
	}
}

func TestDeepSchemas(t *testing.T) {
	deep := strings.Repeat(`{"properties":{"child":`, 10_000) + `{}` + strings.Repeat(`}}`, 10_000)
	if _, err := New(json.RawMessage(deep)); err == nil {
		t.Error("a schema of 20,000 JSON levels was taken; encoding/json refuses it")
	}
	deep = strings.Repeat(`{"properties":{"child":`, 4_000) + `{}` + strings.Repeat(`}}`, 4_000)
	var broken *SchemaError
	if err := mustNew(t, deep).Validate(nest(300), Limits{Depth: 1000}); !errors.As(err, &broken) {
		t.Errorf("got %v, want a SchemaError", err)
	}
}

func TestLargeValues(t *testing.T) {
	items := MaxValues - 1
	if underRace {
		items /= 5
	}
	numbers := []byte("[" + strings.Repeat("1,", items) + "1]")
	var invalid *ValidationError
	if err := mustNew(t, `{"items":{"type":"string"}}`).Validate(numbers, Limits{}); !errors.As(err, &invalid) || len(invalid.Faults) != 1 {
		t.Errorf("wrong items: got %.200v", err)
	}
	if err := mustNew(t, `{"items":{"type":"integer"}}`).Validate(numbers, Limits{}); err != nil {
		t.Errorf("right items: %v", err)
	}
	var limit *LimitError
	over := []byte("[" + strings.Repeat("1,", MaxValues) + "1]")
	if err := mustNew(t, `{}`).Validate(over, Limits{}); !errors.As(err, &limit) {
		t.Errorf("too many values: got %v, want a LimitError", err)
	}
	if err := mustNew(t, `{}`).Validate([]byte(`"`+strings.Repeat(`,\",`, MaxValues)+`"`), Limits{}); err != nil {
		t.Errorf("commas in a string: %v", err)
	}
	text := []byte(`"` + strings.Repeat("a", 1<<20) + `"`)
	for _, schema := range []string{
		`{"maxLength":5}`, `{"pattern":"^(a+)+$"}`, `{"pattern":"^(a|aa)+b"}`, `{"format":"email"}`, `{"const":"a"}`, `{"pattern":"^(a+)+b$","minLength":5}`,
	} {
		_ = mustNew(t, schema).Validate(text, Limits{}) // must return
	}
	if err := mustNew(t, `{"pattern":"(a{900}b?){1,1}$"}`).Validate(text, Limits{}); !errors.As(err, &limit) {
		t.Errorf("a large expression on a large text: got %v, want a LimitError", err)
	}
}

// The library would expand these numbers, or panic.
func TestNumbersBeyondTheBounds(t *testing.T) {
	for value, where := range map[string]string{
		`1e1001`: "(root)", `{"a":[1,-1e-999999999]}`: "/a/1", `0e999999999999999999999`: "(root)", `1` + strings.Repeat("0", 1000): "(root)",
	} {
		err := mustNew(t, `{"minimum":1}`).Validate([]byte(value), Limits{})
		var invalid *ValidationError
		if !errors.As(err, &invalid) || !strings.HasPrefix(err.Error(), "- "+where+": the number ") {
			t.Errorf("%.50s: got %.200v, want a fault at %s", value, err, where)
		}
	}
	for value, valid := range map[string]bool{`1e1000`: true, `1e-1000`: false, `12345678901234567890.5`: true, `1.0`: true} {
		if err := mustNew(t, `{"minimum":1}`).Validate([]byte(value), Limits{}); (err == nil) != valid {
			t.Errorf("%s: got %v, want valid %v", value, err, valid)
		}
	}
}

func TestSchemasOutOfProportion(t *testing.T) {
	many := `{"properties":{` + strings.Repeat(`"a":{},`, 10) + `"x":{"allOf":[{}` + strings.Repeat(`,{}`, MaxSubschemas) + `]}}}`
	for name, schema := range map[string]string{
		"exponent":   `{"minimum":1e1000000}`,
		"digits":     `{"const":1` + strings.Repeat("0", 2000) + `}`,
		"subschemas": many,
		"size":       `{"description":"` + strings.Repeat("x", MaxSchemaSize) + `"}`,
		"two values": `{} {}`,
		"not JSON":   `{`,
		"not schema": `"x"`,
		"bad type":   `{"type":"strnig"}`,
		"bad regex":  `{"pattern":"("}`,
		"negative":   `{"minLength":-1}`,
	} {
		if _, err := New(json.RawMessage(schema)); err == nil {
			t.Errorf("%s: the schema was taken", name)
		} else if len(err.Error()) > 500 {
			t.Errorf("%s: message of %d bytes", name, len(err.Error()))
		}
	}
}

func TestManyRequiredAndManyMembers(t *testing.T) {
	var required, members strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&required, `,"r%d"`, i)
		fmt.Fprintf(&members, `,"m%d":1`, i)
	}
	s := mustNew(t, `{"required":["r"`+required.String()+`],"dependentRequired":{"m":["x"`+required.String()+`]}}`)
	if err := s.Validate([]byte(`{"m":1`+members.String()+`}`), Limits{}); err == nil {
		t.Error("a value is valid")
	}
}
