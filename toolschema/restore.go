package toolschema

import (
	"bytes"
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
func (m Model) RestoreArgs(args json.RawMessage) json.RawMessage {
	if m.back == nil || !json.Valid(args) {
		return args
	}
	r := &restorer{back: m.back, data: args}
	r.value([]any{m.back.root})
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
		r.at, _ = stringEnd(r.data, r.at)
		var key string
		_ = json.Unmarshal(r.data[from:r.at], &key) // it is valid
		if original, ok := r.original[key]; ok && names(schemas, key) {
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
		r.value(members(schemas, key))
		if r.peek() == ',' {
			r.at++
		}
	}
	r.at++
}

// keys are the keys of the object that begins at an offset.
func (r *restorer) keys(start int) map[string]bool {
	out := map[string]bool{}
	var o map[string]json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(r.data[start:])).Decode(&o); err != nil {
		return out
	}
	for k := range o {
		out[k] = true
	}
	return out
}

func (r *restorer) array(schemas []*object) {
	r.at++
	for i := 0; r.peek() != ']'; i++ {
		r.value(elements(schemas, i))
		if r.peek() == ',' {
			r.at++
		}
	}
	r.at++
}

// closure are the schemas and all that apply to the same value through them.
func (r *restorer) closure(schemas []any) []*object {
	var out []*object
	seen := map[*object]bool{}
	var add func(v any)
	add = func(v any) {
		o, ok := v.(*object)
		if !ok || seen[o] {
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
func names(schemas []*object, key string) bool {
	return slices.ContainsFunc(schemas, func(o *object) bool {
		if props := o.object("properties"); props.find(key) >= 0 {
			return true
		}
		if deps := o.object("dependentRequired"); deps.find(key) >= 0 {
			return true
		}
		list, _ := o.list("required")
		return slices.Contains(list, any(key))
	})
}

// members are the schemas for the value of a property.
func members(schemas []*object, key string) []any {
	var out []any
	for _, o := range schemas {
		if sub, ok := o.object("properties").get(key); ok {
			out = append(out, sub)
			continue
		}
		if patterns := o.object("patternProperties"); patterns != nil {
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
func elements(schemas []*object, i int) []any {
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
