package toolschema

import (
	"encoding/json"
	"slices"
)

// A back is the way back from the model's keys to the server's.
type back struct {
	// root is the mended schema, which is not changed any more.
	root *object
	// original are the server's keys, by the alias that the model sees.
	original map[string]string
}

// RestoreArgs turns arguments that the model wrote for the mended schema into the server's own
// shape: mended keys become what they were, at every depth, where the schema has them. All else comes back
// byte for byte: numbers, order, spaces, keys that the schema does not know, and arguments that are no JSON.
//
// The work is bounded. Arguments that would take more, because many schemas apply to many of their values, get
// every mended key back from there on, wherever it stands.
func (m Model) RestoreArgs(args json.RawMessage) json.RawMessage {
	if m.back == nil || !json.Valid(args) {
		return args
	}
	return m.back.restore(args, maxRestore)
}

// maxRestore bounds the schemas that are looked at for the values of one call's arguments.
const maxRestore = 2 << 20

func (b *back) restore(args json.RawMessage, work int) json.RawMessage {
	r := &restorer{back: b, data: args, left: work}
	r.value([]any{b.root})
	if r.done == 0 {
		return args
	}
	return append(r.out, args[r.done:]...)
}

// A restorer copies arguments and puts keys back on the way. It reads valid JSON only.
type restorer struct {
	*back
	data []byte
	at   int
	// out holds what data[:done] has become.
	out  []byte
	done int
	// left is how many more schemas may be looked at. Without any, no key is held against the schemas any more.
	left int
	// ends are where objects and arrays end, by where they begin; made when somebody asks.
	ends map[int]int
}

// spend counts schemas that are looked at and reports whether there may be more.
func (r *restorer) spend(n int) bool {
	r.left = max(r.left-n, 0)
	return r.left > 0
}

// value passes over a value that the schemas are about.
func (r *restorer) value(schemas []any) {
	switch r.peek() {
	case '{':
		r.object(r.closure(schemas))
	case '[':
		r.array(r.closure(schemas))
	case '"':
		r.at, _ = stringEnd(r.data, r.at)
	default:
		for r.at < len(r.data) && r.data[r.at] != ',' && r.data[r.at] != '}' && r.data[r.at] != ']' {
			r.at++
		}
	}
}

func (r *restorer) peek() byte {
	for r.data[r.at] == ' ' || r.data[r.at] == '\n' || r.data[r.at] == '\t' || r.data[r.at] == '\r' {
		r.at++
	}
	return r.data[r.at]
}

func (r *restorer) object(schemas []*object) {
	var present map[string]bool // the keys of this object, once somebody asks
	start := r.at
	r.at++
	for r.peek() != '}' {
		from := r.at
		key := r.key()
		if original, ok := r.original[key]; ok && r.names(schemas, key) {
			if present == nil {
				present = r.keys(start)
			}
			if !present[original] { // the model may have written the server's key as well; that one counts then
				r.out = appendString(append(r.out, r.data[r.done:from]...), original)
				r.done = r.at
			}
		}
		r.peek()
		r.at++ // the colon
		r.value(r.members(schemas, key))
		if r.peek() == ',' {
			r.at++
		}
	}
	r.at++
}

// key reads the string at hand. It is valid.
func (r *restorer) key() string {
	from := r.at
	end, escaped := stringEnd(r.data, r.at)
	r.at = end
	if !escaped {
		return string(r.data[from+1 : end-1])
	}
	var key string
	_ = json.Unmarshal(r.data[from:end], &key)
	return key
}

// keys are the keys of the object that begins at an offset. It passes over the values without reading them.
func (r *restorer) keys(start int) map[string]bool {
	out := map[string]bool{}
	back := r.at
	defer func() { r.at = back }()
	r.at = start + 1
	for r.peek() != '}' {
		out[r.key()] = true
		r.peek()
		r.at++ // the colon
		if c := r.peek(); c == '{' || c == '[' {
			r.at = r.endOf(r.at)
		} else {
			r.value(nil)
		}
		if r.peek() == ',' {
			r.at++
		}
	}
	return out
}

// endOf is where the object or array that begins at an offset ends. All are looked for at once.
func (r *restorer) endOf(start int) int {
	if r.ends == nil {
		r.ends = map[int]int{}
		var open []int
		for i := 0; i < len(r.data); i++ {
			switch r.data[i] {
			case '"':
				end, _ := stringEnd(r.data, i)
				i = end - 1
			case '{', '[':
				open = append(open, i)
			case '}', ']':
				r.ends[open[len(open)-1]] = i + 1
				open = open[:len(open)-1]
			}
		}
	}
	return r.ends[start]
}

func (r *restorer) array(schemas []*object) {
	r.at++
	for i := 0; r.peek() != ']'; i++ {
		r.value(r.elements(schemas, i))
		if r.peek() == ',' {
			r.at++
		}
	}
	r.at++
}

// closure are the schemas and all that apply to the same value through them.
func (r *restorer) closure(schemas []any) []*object {
	if len(schemas) == 0 {
		return nil
	}
	var out []*object
	seen := map[*object]bool{}
	var add func(v any)
	add = func(v any) {
		o, ok := v.(*object)
		if !ok || seen[o] || !r.spend(1+len(o.members)) {
			return
		}
		seen[o] = true
		out = append(out, o)
		if ref := o.text("$ref"); ref != "" {
			add((&flattener{root: r.root}).lookup(ref))
		}
		children(o, func(key, _ string, sub any) {
			if inPlace[key] {
				add(sub)
			}
		})
	}
	for _, s := range schemas {
		add(s)
	}
	return out
}

// names reports whether one of the schemas speaks of a property.
func (r *restorer) names(schemas []*object, key string) bool {
	if !r.spend(len(schemas)) {
		return true
	}
	return slices.ContainsFunc(schemas, func(o *object) bool {
		if props := o.object("properties"); props.find(key) >= 0 {
			return true
		}
		if deps := o.object("dependentRequired"); deps.find(key) >= 0 {
			return true
		}
		list, _ := o.list("required")
		r.spend(len(list))
		return slices.Contains(list, any(key))
	})
}

// members are the schemas for the value of a property.
func (r *restorer) members(schemas []*object, key string) []any {
	if !r.spend(len(schemas)) {
		return nil
	}
	var out []any
	for _, o := range schemas {
		if sub, ok := o.object("properties").get(key); ok {
			out = append(out, sub)
			continue
		}
		if patterns := o.object("patternProperties"); patterns != nil && r.spend(len(patterns.members)) {
			for _, p := range patterns.members {
				out = append(out, p.value)
			}
		}
		for _, k := range []string{"additionalProperties", "unevaluatedProperties"} {
			if sub, ok := o.get(k); ok {
				out = append(out, sub)
			}
		}
	}
	return out
}

// elements are the schemas for an element of an array.
func (r *restorer) elements(schemas []*object, i int) []any {
	if !r.spend(len(schemas)) {
		return nil
	}
	var out []any
	for _, o := range schemas {
		if list, ok := o.list("prefixItems"); ok && i < len(list) {
			out = append(out, list[i])
		} else if sub, ok := o.get("items"); ok {
			out = append(out, sub)
		}
		for _, k := range []string{"contains", "unevaluatedItems"} {
			if sub, ok := o.get(k); ok {
				out = append(out, sub)
			}
		}
	}
	return out
}
