package toolschema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func forModel(t testing.TB, schema string) Model {
	t.Helper()
	m, q := ForModel(t.Context(), Tool{Name: "t", InputSchema: json.RawMessage(schema)}, nil)
	if q != nil {
		t.Fatal(q)
	}
	if err := accepted(m); err != nil {
		t.Fatalf("%s: %v", m.InputSchema, err)
	}
	return m
}

// D97: what the model sends reaches the server as it is, save for mended keys, which go back to the server's.
func TestRestoreArgs(t *testing.T) {
	const filter = `{"type":"object","properties":{"filter[]":{"type":"array","items":{"type":"object","properties":{"a b":{}}}},"map":{"type":"object","additionalProperties":{"type":"object","properties":{"x!":{}}}}}}`
	tests := []struct{ name, schema, args, want string }{
		{"a key", filter, `{"filter__": []}`, `{"filter[]": []}`},
		{"the rest byte for byte", filter, ` { "z" : 1.0 ,"filter__":[ 1e2, "\u00e9", 123456789012345678901234567890 ] } `, ` { "z" : 1.0 ,"filter[]":[ 1e2, "\u00e9", 123456789012345678901234567890 ] } `},
		{"below an array", filter, `{"filter__":[{"a_b":1},{"a_b":2}]}`, `{"filter[]":[{"a b":1},{"a b":2}]}`},
		{"below free keys", filter, `{"map":{"filter__":{"x_":1},"k":{"x_":2}}}`, `{"map":{"filter__":{"x!":1},"k":{"x!":2}}}`},
		{"where the schema does not have it", filter, `{"other":{"filter__":1}}`, `{"other":{"filter__":1}}`},
		{"the server's own key is left", filter, `{"filter[]":1,"filter__":2}`, `{"filter[]":1,"filter__":2}`},
		{"an escaped key", filter, `{"filter\u005f_":1}`, `{"filter[]":1}`},
		{"no JSON", filter, `{"filter__":`, `{"filter__":`},
		{"nothing", filter, ``, ``},
		{"no object", filter, `["filter__"]`, `["filter__"]`},
		{"nothing mended", `{"type":"object","properties":{"a":{}}}`, `{"filter__":1}`, `{"filter__":1}`},
		{"through references", `{"type":"object","properties":{"n":{"$ref":"#/$defs/N"}},"$defs":{"N":{"type":"object","properties":{"next!":{"$ref":"#/$defs/N"}}}}}`, `{"n":{"next_":{"next_":{}}}}`, `{"n":{"next!":{"next!":{}}}}`},
		{"through the root", `{"type":"object","properties":{"c!":{"$ref":"#"}}}`, `{"c_":{"c_":{"c_":1}}}`, `{"c!":{"c!":{"c!":1}}}`},
		{"in alternatives", `{"type":"object","properties":{"v":{"anyOf":[{"type":"string"},{"type":"object","properties":{"a!":{}}},{"type":"array","items":{"properties":{"b!":{}}}}]}}}`, `{"v":[{"b_":1}]}`, `{"v":[{"b!":1}]}`},
		{"in alternatives at the root", `{"oneOf":[{"properties":{"a!":{}},"required":["a!"]},{"properties":{"b!":{"properties":{"c!":{}}}}}]}`, `{"a_":1,"b_":{"c_":2}}`, `{"a!":1,"b!":{"c!":2}}`},
		{"in a tuple", `{"type":"object","properties":{"t":{"type":"array","items":[{"properties":{"a!":{}}},{"properties":{"b!":{}}}]}}}`, `{"t":[{"a_":1,"b_":1},{"a_":2,"b_":2}]}`, `{"t":[{"a!":1,"b_":1},{"a_":2,"b!":2}]}`},
		{"under a condition", `{"type":"object","if":{"required":["k"]},"then":{"properties":{"t!":{}}},"else":{"properties":{"e!":{}}}}`, `{"t_":1,"e_":2}`, `{"t!":1,"e!":2}`},
		{"the empty key", `{"type":"object","properties":{"":{}}}`, `{"_":1}`, `{"":1}`},
		{"twins", `{"type":"object","properties":{"a[]":{},"a{}":{},"a__":{}}}`, `{"a___7fbf3a2b":1,"a___79b2fbec":2,"a__":3}`, `{"a[]":1,"a{}":2,"a__":3}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := forModel(t, tt.schema)
			args := json.RawMessage(tt.args)
			if got := m.RestoreArgs(args); string(got) != tt.want {
				t.Errorf("schema %s\ngot  %s\nwant %s", m.InputSchema, got, tt.want)
			}
			if string(args) != tt.args {
				t.Errorf("the model's arguments have changed to %s", args)
			}
		})
	}
}

// A maker makes random schemas and, along with them, arguments in the server's shape and in the model's.
type maker struct {
	r     *rand.Rand
	alias func(key string) string
	defs  []node
}

// A node is a schema and a way to make values for it: the server's and the model's.
type node struct {
	schema string
	value  func(depth int) (server, model string)
}

var serverKeys = []string{"a", "b.c", "x-y", "filter[]", "a b", "größe", "数量", "$top", "", "a__", "a[]", "a{}", "k/1", strings.Repeat("long", 20), strings.Repeat("long", 20) + "!"}

func (m *maker) keys() []string {
	keys := append([]string(nil), serverKeys...)
	m.r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys[:1+m.r.IntN(5)]
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func (m *maker) leaf() node {
	v := []string{`1.50`, `"x\u00e9y"`, `null`, `true`, `-0`, `""`}[m.r.IntN(6)]
	return node{`{"description":"leaf"}`, func(int) (string, string) { return v, v }}
}

func (m *maker) object(depth int) node {
	keys := m.keys()
	nodes := make([]node, len(keys))
	parts := make([]string, len(keys))
	for i, k := range keys {
		nodes[i] = m.node(depth - 1)
		parts[i] = quote(k) + ":" + nodes[i].schema
	}
	schema := fmt.Sprintf(`{"type":"object","properties":{%s},"required":[%s]}`, strings.Join(parts, ","), quote(keys[0]))
	return node{schema, func(depth int) (string, string) {
		var s, mo []string
		for i, k := range keys {
			if depth < -4 || m.r.IntN(4) == 0 {
				continue
			}
			sv, mv := nodes[i].value(depth - 1)
			s, mo = append(s, quote(k)+": "+sv), append(mo, quote(m.alias(k))+": "+mv)
		}
		if m.r.IntN(3) == 0 { // a key that no schema knows
			s, mo = append(s, `"unknown": {"a b": 1}`), append(mo, `"unknown": {"a b": 1}`)
		}
		return "{" + strings.Join(s, ", ") + "}", "{" + strings.Join(mo, ", ") + "}"
	}}
}

func (m *maker) list(depth int) node {
	e := m.node(depth - 1)
	return node{`{"type":"array","items":` + e.schema + `}`, func(depth int) (string, string) {
		s1, m1 := e.value(depth - 1)
		s2, m2 := e.value(depth - 1)
		return "[" + s1 + " ," + s2 + "]", "[" + m1 + " ," + m2 + "]"
	}}
}

// free is an object with keys of the caller's own, which are never mended.
func (m *maker) free(depth int) node {
	e := m.node(depth - 1)
	key := quote([]string{"filter[]", "any key", "k"}[m.r.IntN(3)])
	return node{`{"type":"object","additionalProperties":` + e.schema + `}`, func(depth int) (string, string) {
		s, mo := e.value(depth - 1)
		return "{" + key + ":" + s + "}", "{" + key + ":" + mo + "}"
	}}
}

// choice is one of several objects.
func (m *maker) choice(depth int) node {
	a, b := m.object(depth-1), m.object(depth-1)
	key := []string{"anyOf", "oneOf", "allOf"}[m.r.IntN(3)]
	return node{fmt.Sprintf(`{"%s":[%s,%s]}`, key, a.schema, b.schema), func(depth int) (string, string) {
		if m.r.IntN(2) == 0 {
			return a.value(depth)
		}
		return b.value(depth)
	}}
}

func (m *maker) ref() node {
	i := m.r.IntN(len(m.defs))
	return node{fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i), func(depth int) (string, string) { return m.defs[i].value(depth - 1) }}
}

func (m *maker) node(depth int) node {
	if depth <= 0 {
		return m.leaf()
	}
	switch m.r.IntN(7) {
	case 0, 1:
		return m.object(depth)
	case 2:
		return m.list(depth)
	case 3:
		return m.free(depth)
	case 4:
		return m.choice(depth)
	case 5:
		return m.ref()
	}
	return m.leaf()
}

// Arguments for a mended schema come back in the server's shape, whatever the schema: they are made in both shapes
// together, and must be equal byte for byte.
func TestRestoreArgsOfRandomSchemas(t *testing.T) {
	renamed := 0
	for seed := range uint64(400) {
		m := &maker{r: rand.New(rand.NewPCG(seed, 7))}
		m.defs = make([]node, 2)
		for i := range m.defs {
			// Definitions are objects, so that a reference to one never leads round in a circle for one value.
			m.defs[i] = m.object(2)
		}
		root := m.object(3)
		if seed%3 == 0 {
			root = m.choice(3)
		}
		schema := fmt.Sprintf(`%s,"$defs":{"d0":%s,"d1":%s}}`, root.schema[:len(root.schema)-1], m.defs[0].schema, m.defs[1].schema)
		model, q := ForModel(t.Context(), Tool{Name: "t", InputSchema: json.RawMessage(schema)}, nil)
		if q != nil {
			t.Fatal(q)
		}
		if err := accepted(model); seed%10 == 0 && err != nil {
			t.Fatalf("%s: %v", model.InputSchema, err)
		}
		aliases := map[string]string{}
		if model.back != nil {
			for alias, key := range model.back.original {
				aliases[key] = alias
			}
		}
		m.alias = func(k string) string {
			if a, ok := aliases[k]; ok {
				return a
			}
			return k
		}
		for range 3 {
			server, args := root.value(0)
			if server != args {
				renamed++
			}
			if got := model.RestoreArgs(json.RawMessage(args)); string(got) != server {
				t.Fatalf("seed %d\nschema %s\nfor the model %s\narguments %s\ngot  %s\nwant %s", seed, schema, model.InputSchema, args, got, server)
			}
		}
	}
	if renamed < 400 {
		t.Errorf("only %d of the arguments had mended keys", renamed)
	}
}
