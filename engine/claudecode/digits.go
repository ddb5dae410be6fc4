package claudecode

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The CLI reads the model's arguments into JavaScript values, see [arguments]. Where a tool's schema
// leaves room for nothing that loses by that, the model's stream need not be read, which is three
// lines in four of what the CLI says.

const (
	// maxSafeInteger is the greatest integer that a double float tells from its neighbours.
	maxSafeInteger = 1<<53 - 1
	// schemaDepth bounds the nesting of schemas that are looked into.
	schemaDepth = 100
	// listWait is how long the start of the CLI waits for the tools of servers in this process.
	listWait = 50 * time.Millisecond
)

// needsStream reports whether the CLI is to repeat the model's stream: the program wants it, or a call
// that reaches this process, or the answer's structured form, may hold numbers that the CLI rounds.
// Servers whose tools are not known in time may. What the CLI does with its own tools and those of
// servers that it connects itself is told as the CLI does it.
func (s *session) needsStream(ctx context.Context) bool {
	if s.opts.IncludePartialMessages || s.opts.OutputSchema != nil && !keepsDigits(s.opts.OutputSchema) {
		return true
	}
	s.servers.attach(s.servers.withShared(s.servers.configs))
	return !s.servers.keepDigits(ctx)
}

// keepDigits reports whether all servers in this process are known to have no tool that takes numbers
// which the CLI would round. What it asks them is kept for their manifests.
func (v *servers) keepDigits(ctx context.Context) bool {
	v.early = v.inquire(v.askable())
	v.early.await(ctx, v.s.engine.listWait)
	v.mu.Lock()
	defer v.mu.Unlock()
	for name, a := range v.attached {
		if c, ok := v.early.got[name]; !ok || c.err != nil || a.out.toolsChanged() || !a.guest.keepsDigits() {
			return false
		}
	}
	return true
}

// keepsDigits reports whether no tool of the list that was offered last takes numbers that the CLI rounds.
func (g *guest) keepsDigits() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, o := range g.offered {
		// Both: mending may loosen a schema, and has "anything goes" look like "no arguments".
		if !keepsDigits(o.schema) || !keepsDigits(o.model.InputSchema) {
			return false
		}
	}
	return true
}

// keepsDigits reports whether values that match a schema are the same after a trip through double
// floats: a number is an integer below 2^53 by the schema's bounds, or one that it lists. It goes by
// what the schema says of its kinds and members, and says no where that takes more than a look.
// Members that an object allows without naming any are taken for what the model does not send.
func keepsDigits(schema json.RawMessage) bool {
	d := json.NewDecoder(bytes.NewReader(schema))
	d.UseNumber()
	var root any
	if d.Decode(&root) != nil {
		return false
	}
	w := digitWalk{root: root, refs: map[string]partsKind{}}
	return w.keeps(root, 0)
}

type digitWalk struct {
	root any
	// refs are references that were followed, each once: what a circle adds is nothing new, and one that
	// loses digits settles the matter.
	refs map[string]partsKind
}

// keeps looks at one schema.
func (w *digitWalk) keeps(schema any, depth int) bool {
	if depth > schemaDepth {
		return false
	}
	m, ok := schema.(map[string]any)
	if !ok {
		allows, isBool := schema.(bool)
		return isBool && !allows
	}
	if depth > 0 && m["$id"] != nil {
		return false // references in it are its own
	}
	if list, ok := m["enum"].([]any); ok {
		return sameInFloats(list)
	}
	if value, ok := m["const"]; ok {
		return sameInFloats(value)
	}
	parts, closed := w.parts(m, depth)
	if m["type"] != nil {
		return parts != lossy && w.kinds(m, depth)
	}
	return parts == exact && closed
}

// What a schema's parts say together.
type partsKind int

const (
	exact   partsKind = iota // each keeps the digits
	neutral                  // some say nothing of values, such as which members are required
	lossy
)

// parts looks at the schemas that are applied to the same value. closed is set if there are any that
// a value must match.
func (w *digitWalk) parts(m map[string]any, depth int) (kind partsKind, closed bool) {
	judge := func(schema any) { kind = max(kind, w.part(schema, depth)) }
	if ref, ok := m["$ref"].(string); ok {
		closed = true
		known, ok := w.refs[ref]
		if !ok {
			target, found := w.resolve(ref)
			if !found {
				return lossy, true
			}
			w.refs[ref] = exact
			known = w.part(target, depth)
			w.refs[ref] = known
		}
		kind = known
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, ok := m[key].([]any)
		closed = closed || ok && len(list) > 0
		for _, schema := range list {
			judge(schema)
		}
	}
	for _, key := range []string{"then", "else"} {
		if m[key] != nil {
			judge(m[key])
		}
	}
	for _, key := range []string{"$dynamicRef", "$recursiveRef", "dependentSchemas", "dependencies", "unevaluatedProperties", "unevaluatedItems"} {
		if v, ok := m[key]; ok && v != false {
			kind = lossy
		}
	}
	return kind, closed
}

func (w *digitWalk) part(schema any, depth int) partsKind {
	switch {
	case saysNothingOfValues(schema):
		return neutral
	case !w.keeps(schema, depth+1):
		return lossy
	}
	return exact
}

// saysNothingOfValues reports whether a schema has none of the keywords that allow values.
func saysNothingOfValues(schema any) bool {
	m, ok := schema.(map[string]any)
	if !ok {
		return false
	}
	for key := range m {
		switch key {
		case "required", "title", "description", "minProperties", "maxProperties", "not", "$comment":
		default:
			return false
		}
	}
	return true
}

// resolve follows a reference within the schema.
func (w *digitWalk) resolve(ref string) (any, bool) {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	path, err := url.PathUnescape(path)
	if err != nil {
		return nil, false
	}
	at := w.root
	if path == "" {
		return at, true
	}
	if path[0] != '/' {
		return nil, false // an anchor
	}
	for i, step := range strings.Split(path[1:], "/") {
		m, ok := at.(map[string]any)
		if !ok || i > 0 && m["$id"] != nil {
			return nil, false
		}
		if at, ok = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]; !ok {
			return nil, false
		}
	}
	return at, true
}

// kinds looks at a schema by its type.
func (w *digitWalk) kinds(m map[string]any, depth int) bool {
	names, ok := m["type"].([]any)
	if !ok {
		names = []any{m["type"]}
	}
	for _, name := range names {
		switch name {
		case "string", "boolean", "null":
		case "integer":
			if !isBounded(m) {
				return false
			}
		case "object":
			if !w.members(m, depth) {
				return false
			}
		case "array":
			if !w.items(m, depth) {
				return false
			}
		default:
			return false
		}
	}
	return len(names) > 0
}

// isBounded reports whether a schema's integers are all below 2^53.
func isBounded(m map[string]any) bool {
	within := func(keys ...string) bool {
		for _, key := range keys {
			if n, ok := m[key].(json.Number); ok {
				if f, err := n.Float64(); err == nil && -maxSafeInteger <= f && f <= maxSafeInteger {
					return true
				}
			}
		}
		return false
	}
	return within("minimum", "exclusiveMinimum") && within("maximum", "exclusiveMaximum")
}

func (w *digitWalk) members(m map[string]any, depth int) bool {
	named, ok := m["properties"].(map[string]any)
	if more, given := m["additionalProperties"]; given {
		if more != false && !w.keeps(more, depth+1) {
			return false
		}
	} else if !ok {
		return false // anything goes
	}
	byPattern, _ := m["patternProperties"].(map[string]any)
	for _, all := range []map[string]any{named, byPattern} {
		for _, schema := range all {
			if !w.keeps(schema, depth+1) {
				return false
			}
		}
	}
	return true
}

func (w *digitWalk) items(m map[string]any, depth int) bool {
	first, _ := m["prefixItems"].([]any)
	for _, schema := range first {
		if !w.keeps(schema, depth+1) {
			return false
		}
	}
	return w.keeps(m["items"], depth+1)
}

// sameInFloats reports whether a value is the same after a trip through double floats, and no other
// becomes it by one.
func sameInFloats(v any) bool {
	raw, err := json.Marshal(v)
	if err != nil || !lossless(raw) {
		return false
	}
	_, number := unsafeInteger(raw)
	return number == ""
}

// unsafeInteger finds in arguments that the CLI has read an integer that may have been another one
// when the model wrote it, and its place.
func unsafeInteger(args json.RawMessage) (path, number string) {
	if smallNumbers(args) {
		return "", ""
	}
	eachUnsafe(args, func(at *place, n json.Number) bool {
		path, number = at.String(), n.String()
		return false
	})
	return path, number
}

// eachUnsafe calls f with the integers beyond 2^53 in JSON and their places, until it returns false.
func eachUnsafe(raw json.RawMessage, f func(at *place, n json.Number) bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) == nil {
		walkUnsafe(v, nil, f)
	}
}

// A place is where a value is in another. Its text is made for those that are asked for: values may be nested deep.
type place struct {
	in   *place
	step string
}

func (p *place) String() string {
	var steps []string
	for ; p != nil; p = p.in {
		steps = append(steps, p.step)
	}
	slices.Reverse(steps)
	return strings.TrimPrefix(strings.Join(steps, ""), ".")
}

func walkUnsafe(v any, at *place, f func(at *place, n json.Number) bool) bool {
	switch v := v.(type) {
	case json.Number:
		if x, err := v.Float64(); err == nil && (x > maxSafeInteger || x < -maxSafeInteger) {
			return f(at, v)
		}
	case []any:
		for i, item := range v {
			if !walkUnsafe(item, &place{at, "[" + strconv.Itoa(i) + "]"}, f) {
				return false
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if !walkUnsafe(v[name], &place{at, "." + name}, f) {
				return false
			}
		}
	}
	return true
}

// handsOn reports whether new arguments have an integer that may have been rounded before the program
// was told of it: callbacks hand on what they are given.
func handsOn(by, told json.RawMessage) bool {
	given := map[string]bool{}
	eachUnsafe(told, func(_ *place, n json.Number) bool {
		given[exactValue(n)] = true
		if f, err := n.Float64(); err == nil { // as it reads in a program that takes it for a float
			given[new(big.Rat).SetFloat64(f).String()] = true
		}
		return true
	})
	found := false
	eachUnsafe(by, func(_ *place, n json.Number) bool {
		found = given[exactValue(n)]
		return !found
	})
	return found
}

// maxExact is the length from which numbers are not brought into one form, which takes more than their length.
const maxExact = 400

// exactValue is a number in one form, whatever it is written like.
func exactValue(n json.Number) string {
	if len(n) > maxExact {
		return n.String()
	}
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return n.String()
	}
	return r.String()
}
