package schemaguard

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// verdict is what the library's own validator says.
func verdict(t *testing.T, schema, value any) (valid, known bool) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			known = false // it panics on some numbers
		}
	}()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.UseRegexpEngine(new(patterns).compile)
	c.UseLoader(stubLoader{})
	if err := c.AddResource(rootURL, schema); err != nil {
		return false, false
	}
	s, err := c.Compile(rootURL)
	if err != nil {
		return false, false
	}
	return s.Validate(value) == nil, true
}

// A maker makes random schemas and values that have something to do with each other.
type maker struct {
	*rand.Rand
	dialect Dialect
}

var names = []string{"a", "b", "c", "d/e", "f~g", "ä"}

func (m *maker) name() string { return names[m.IntN(len(names))] }

func (m *maker) scalar() any {
	switch m.IntN(9) {
	case 0:
		return nil
	case 1:
		return m.IntN(2) == 0
	case 2:
		return json.Number(fmt.Sprint(m.IntN(7) - 2))
	case 3:
		return json.Number([]string{"1.0", "1.5", "0.1", "1e1", "-0", "12345678901234567890", "2.50"}[m.IntN(7)])
	case 4:
		return []string{"", "a", "aa", "ab1", "ää", "2020-01-01", "x@y.z", "\u0000"}[m.IntN(8)]
	default:
		return m.name()
	}
}

func (m *maker) value(depth int) any {
	if depth == 0 {
		return m.scalar()
	}
	switch m.IntN(4) {
	case 0:
		list := make([]any, m.IntN(4))
		for i := range list {
			list[i] = m.value(depth - 1)
		}
		return list
	case 1, 2:
		obj := map[string]any{}
		for range m.IntN(4) {
			obj[m.name()] = m.value(depth - 1)
		}
		return obj
	}
	return m.scalar()
}

func (m *maker) count() json.Number { return json.Number(fmt.Sprint(m.IntN(4))) }

func (m *maker) list(depth int) []any {
	subs := make([]any, 1+m.IntN(3))
	for i := range subs {
		subs[i] = m.schema(depth - 1)
	}
	return subs
}

func (m *maker) named(depth int) map[string]any {
	subs := map[string]any{}
	for range m.IntN(4) {
		subs[m.name()] = m.schema(depth - 1)
	}
	return subs
}

func (m *maker) strings() []any {
	found := map[string]bool{}
	list := []any{}
	for range m.IntN(3) {
		if n := m.name(); !found[n] {
			found[n] = true
			list = append(list, n)
		}
	}
	return list
}

var typeWords = []string{"null", "boolean", "number", "integer", "string", "array", "object"}

func (m *maker) schema(depth int) any {
	if depth == 0 || m.IntN(8) == 0 {
		return []any{true, false, map[string]any{}, map[string]any{"type": typeWords[m.IntN(7)]}}[m.IntN(4)]
	}
	s := map[string]any{}
	for range 1 + m.IntN(4) {
		m.keyword(s, depth)
	}
	if ref := s["$ref"]; ref != nil && m.dialect == Draft07 {
		return map[string]any{"$ref": ref} // siblings do not count; the library counts const
	}
	return s
}

func (m *maker) keyword(s map[string]any, depth int) {
	switch m.IntN(36) {
	case 0, 1:
		s["type"] = typeWords[m.IntN(7)]
	case 2:
		s["type"] = []any{"object", typeWords[m.IntN(6)]}
	case 3:
		s["enum"] = []any{m.value(1), m.value(2), m.scalar()}
	case 4:
		s["const"] = m.value(1)
	case 5:
		s["minimum"] = m.count()
	case 6:
		s["exclusiveMaximum"] = json.Number("3.5")
	case 7:
		s["multipleOf"] = json.Number([]string{"2", "0.5", "1e-1", "3"}[m.IntN(4)])
	case 8:
		s["minLength"] = m.count()
	case 9:
		s["maxLength"] = m.count()
	case 10:
		s["pattern"] = []string{"^a", "b$", `\d`, "(?=a)"}[m.IntN(4)]
	case 11:
		s["format"] = []string{"date", "email", "regex", "ipv4", "nosuch"}[m.IntN(5)]
	case 12:
		s["minItems"] = m.count()
	case 13:
		s["maxItems"] = m.count()
	case 14:
		s["uniqueItems"] = true
	case 15, 16:
		s["items"] = m.schema(depth - 1)
	case 17:
		if m.dialect == Draft202012 {
			s["prefixItems"] = m.list(depth)
		} else {
			s["items"], s["additionalItems"] = m.list(depth), m.schema(depth-1)
		}
	case 18:
		s["contains"] = m.schema(depth - 1)
	case 19:
		s["contains"], s["minContains"], s["maxContains"] = m.schema(depth-1), m.count(), m.count()
	case 20, 21:
		s["properties"] = m.named(depth)
	case 22:
		s["patternProperties"] = map[string]any{"^[a-c]$": m.schema(depth - 1), "ä": m.schema(depth - 1)}
	case 23:
		s["additionalProperties"] = m.schema(depth - 1)
	case 24:
		s["required"] = m.strings()
	case 25:
		s["propertyNames"] = m.schema(depth - 1)
	case 26:
		s["minProperties"], s["maxProperties"] = m.count(), json.Number("3")
	case 27:
		if m.dialect == Draft07 {
			s["dependencies"] = map[string]any{m.name(): m.strings(), m.name() + "x": m.schema(depth - 1), "a": m.schema(depth - 1)}
		} else {
			s["dependentRequired"] = map[string]any{m.name(): m.strings()}
			s["dependentSchemas"] = m.named(depth)
		}
	case 28:
		s["not"] = m.schema(depth - 1)
	case 29:
		s["allOf"] = m.list(depth)
	case 30:
		s["anyOf"] = m.list(depth)
	case 31:
		s["oneOf"] = m.list(depth)
	case 32:
		s["if"], s["then"], s["else"] = m.schema(depth-1), m.schema(depth-1), m.schema(depth-1)
	case 33:
		if m.dialect != Draft07 {
			s["unevaluatedProperties"] = m.schema(depth - 1)
		}
	case 34:
		if m.dialect != Draft07 {
			s["unevaluatedItems"] = m.schema(depth - 1)
		}
	case 35:
		ref := map[string]any{"$ref": []string{"#", "#/$defs/x", "#/$defs/y"}[m.IntN(3)]}
		s["$ref"] = ref["$ref"]
	}
}

// agree compares both validators on what one seed makes, and counts the values
// on which there are two verdicts.
func agree(t *testing.T, seed uint64, d Dialect) (agreed, undecided int) {
	m := &maker{rand.New(rand.NewPCG(seed, uint64(d))), d}
	root, ok := m.schema(3).(map[string]any)
	if !ok || d == Draft07 && root["$ref"] != nil {
		return 0, 0
	}
	root["$schema"] = d.URL()
	root["$defs"] = map[string]any{"x": m.schema(2), "y": m.schema(2)}
	raw, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(raw)
	if err != nil {
		if _, known := verdict(t, root, nil); known {
			t.Fatalf("seed %d: schema %s: refused, but the library takes it: %v", seed, raw, err)
		}
		return 0, 0
	}
	for range 6 {
		value := m.value(3)
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		want, known := verdict(t, doc, value)
		err = s.Validate(text, Limits{})
		var invalid *ValidationError
		if !known || err != nil && !errors.As(err, &invalid) {
			undecided++
			continue
		}
		if got := err == nil; got != want {
			t.Fatalf("seed %d: schema %s\nvalue %s\nvalid: got %v, want %v\n%v", seed, raw, text, got, want, err)
		}
		agreed++
	}
	return agreed, undecided
}

// T02 T03
func TestAgreesWithTheLibrary(t *testing.T) {
	agreed, undecided := 0, 0
	seeds, least := uint64(300), 3000
	if underRace {
		seeds, least = 40, 300
	}
	for seed := range seeds {
		for _, d := range []Dialect{Draft202012, Draft201909, Draft07} {
			a, u := agree(t, seed, d)
			agreed, undecided = agreed+a, undecided+u
		}
	}
	t.Logf("agreed on %d values, %d undecided", agreed, undecided)
	if agreed < least || undecided > agreed/10 {
		t.Errorf("agreed on %d values only, %d undecided", agreed, undecided)
	}
}

// FuzzAgrees looks for a schema and a value on which the library's validator
// and ours differ.
func FuzzAgrees(f *testing.F) {
	f.Add(uint64(66), byte(2))
	f.Fuzz(func(t *testing.T, seed uint64, d byte) { agree(t, seed, Dialect(d%3)) })
}
