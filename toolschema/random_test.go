package toolschema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// A wrecker writes random schemas: keywords with the values that they should have, and with any others.
type wrecker struct {
	r     *rand.Rand
	words []string // the keywords
}

func newWrecker(seed uint64) *wrecker {
	return &wrecker{
		r:     rand.New(rand.NewPCG(seed, 3)),
		words: append(slices.Sorted(maps.Keys(keywords)), "dependencies", "additionalItems", "nullable", "x-y", "id"),
	}
}

func (w *wrecker) pick(from ...string) string { return from[w.r.IntN(len(from))] }

func (w *wrecker) name() string {
	return w.pick("a", "b", "c d", "e[]", "", "ü", "type", "properties", "$ref", "$defs", "enum", strings.Repeat("k", 70))
}

func (w *wrecker) ref() string {
	return w.pick("#", "#/$defs/a", "#/$defs/b", "#/definitions/a", "#/properties/a", "#/properties/c d", "#/properties/c%20d", "#/oneOf/0", "#/allOf/0/properties/a",
		"#/items", "#/properties/a/items", "#/$defs/c d", "#/not", "#/x-y", "#/dependencies/a", "#gone", "https://example.com/x", "#/$defs/a/properties/b", "#/enum/0", "#/default", "")
}

func (w *wrecker) list(n int, f func() string) string {
	parts := make([]string, w.r.IntN(n+1))
	for i := range parts {
		parts[i] = f()
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func (w *wrecker) object(n int, f func() string) string {
	parts := make([]string, w.r.IntN(n+1))
	for i := range parts {
		key, _ := json.Marshal(w.name())
		parts[i] = string(key) + ":" + f()
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func (w *wrecker) any() string {
	return w.pick("null", "true", "false", "0", "-1", "1.5", "1e3", `"x"`, `"object"`, `"integer"`, `"INT"`, `""`, "[]", "{}", `["a"]`, `["a","a",1]`, `[{}]`, `{"a":1}`, `{"a":{"$ref":"#"}}`, `"\ud800"`)
}

func (w *wrecker) schema(depth int) string {
	if depth <= 0 || w.r.IntN(12) == 0 {
		return w.any()
	}
	sub := func() string { return w.schema(depth - 1) }
	parts := make([]string, w.r.IntN(6))
	for i := range parts {
		word := w.pick(w.words...)
		if w.r.IntN(3) == 0 {
			word = w.pick("type", "properties", "$ref", "anyOf", "oneOf", "allOf", "required", "$defs", "not", "if", "then")
		}
		v := w.any()
		if w.r.IntN(10) < 7 {
			switch keywords[word] {
			case isSchema:
				v = sub()
			case isSchemas:
				v = w.list(3, sub)
			case isSchemaMap:
				v = w.object(3, sub)
			case isNames:
				v = w.list(3, func() string { return fmt.Sprintf("%q", w.name()) })
			case isType:
				v = w.pick(`"object"`, `"object"`, `"string"`, `["object","null"]`, `"dict"`)
			case isRef:
				v = fmt.Sprintf("%q", w.ref())
			case isNamesMap:
				v = w.object(2, func() string { return w.list(2, func() string { return fmt.Sprintf("%q", w.name()) }) })
			}
			switch word {
			case "dependencies":
				v = w.object(2, sub)
			case "$id", "id":
				v = w.pick(`"https://example.com/x"`, `"y.json"`, `"#frag"`)
			case "$anchor", "$dynamicAnchor":
				v = `"gone"`
			case "$dynamicRef", "$recursiveRef":
				v = fmt.Sprintf("%q", w.ref())
			}
		}
		parts[i] = fmt.Sprintf("%q:%s", word, v)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// Whatever a server sends: the copy is acceptable, is not mended twice, is the same each time, and arguments stay JSON.
func TestRandomWrecks(t *testing.T) {
	mended := 0
	for seed := range uint64(1200) {
		w := newWrecker(seed)
		raw := json.RawMessage(w.schema(4))
		m, q := ForModel(t.Context(), Tool{Name: "t", InputSchema: raw}, nil)
		if q != nil {
			continue
		}
		if err := accepted(m); err != nil {
			t.Fatalf("seed %d: %s\nbecomes %s\n%v", seed, raw, m.InputSchema, err)
		}
		again, q := ForModel(t.Context(), Tool{Name: "t", InputSchema: m.InputSchema}, nil)
		if q != nil || string(again.InputSchema) != string(m.InputSchema) || len(again.Report) > 0 || again.Description != "" {
			t.Fatalf("seed %d: %s\nbecomes %s\nand then %s, %v, %v", seed, raw, m.InputSchema, again.InputSchema, again.Report, q)
		}
		same, _ := ForModel(t.Context(), Tool{Name: "t", InputSchema: raw}, nil)
		if string(same.InputSchema) != string(m.InputSchema) || same.Description != m.Description || fmt.Sprint(same.Report) != fmt.Sprint(m.Report) {
			t.Fatalf("seed %d: %s\nbecomes %s and %s", seed, raw, m.InputSchema, same.InputSchema)
		}
		if len(m.Report) > 0 {
			mended++
		}
		args := json.RawMessage(w.object(3, func() string { return w.object(2, w.any) }))
		if back := m.RestoreArgs(args); !json.Valid(back) {
			t.Fatalf("seed %d: %s\narguments %s become %s", seed, raw, args, back)
		}
	}
	if mended < 300 {
		t.Errorf("only %d schemas were mended", mended)
	}
}
