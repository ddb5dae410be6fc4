package toolschema

import (
	"encoding/json"
	"slices"
)

// A back reverses the aliases of property keys.
type back struct {
	// root is the corrected schema, which does not change any more.
	root *object
	// original has the server's keys by alias.
	original map[string]string
}

// RestoreArgs restores the server's property keys in arguments that the model wrote for the
// corrected schema, at every depth where the schema has them. Everything else comes back unchanged,
// byte for byte, and so do arguments that are not JSON.
//
// The work is limited. In arguments beyond the limit every alias is replaced, wherever it is.
func (m Model) RestoreArgs(args json.RawMessage) json.RawMessage {
	if m.back == nil || !json.Valid(args) {
		return args
	}
	return m.back.restore(args, maxRestore)
}

// maxRestore limits the schemas visited for the arguments of one call.
const maxRestore = 2 << 20

func (b *back) restore(args json.RawMessage, work int) json.RawMessage {
	r := &restorer{back: b, data: args, left: work}
	r.value([]any{b.root})
	if r.done == 0 {
		return args
	}
	return append(r.out, args[r.done:]...)
}

// A restorer copies valid JSON and restores keys.
type restorer struct {
	*back
	data []byte
	at   int
	// out is the result for data[:done].
	out  []byte
	done int
	// left is the number of schemas that may still be visited. At zero keys are not compared with
	// the schemas any more.
	left int
	// ends has the ends of objects and arrays by their start; made when needed.
	ends map[int]int
}

// spend counts visited schemas and reports whether more may be visited.
func (r *restorer) spend(n int) bool {
	r.left = max(r.left-n, 0)
	return r.left > 0
}

// value copies a value to which the schemas apply.
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

// key reads the current string, which is valid.
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

// keys returns the keys of the object at an offset, without reading the values.
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

// endOf returns the end of the object or array at an offset. It finds all ends at once.
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

// closure returns the schemas and those that apply to the same value through them.
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

// names reports whether one of the schemas has a property.
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

// members returns the schemas for the value of a property.
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

// elements returns the schemas for an element of an array.
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
