package schemaguard

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A resource is a schema with an identity of its own: a whole document, or a
// subschema with $id. Dynamic references are resolved through the resources that
// evaluation has entered, outermost first.
type resource struct {
	root      *rule
	recursive bool             // $recursiveAnchor: true
	anchors   map[string]*rule // $dynamicAnchor
}

// link gives each rule its resource. The library keeps that to itself, but
// compiles any place of a document on request, and gives the same schema each time.
func (b *builder) link(c *jsonschema.Compiler, doc any) error {
	known := map[string]*resource{} // by document URL and pointer
	at := func(base, pointer string) (*rule, error) {
		s, err := c.Compile(base + "#" + escapePointer(pointer))
		if err != nil {
			return nil, err
		}
		return b.rule(s), nil
	}
	add := func(base, pointer string, obj map[string]any) error {
		root, err := at(base, pointer)
		if err != nil {
			return err
		}
		recursive, _ := obj["$recursiveAnchor"].(bool)
		known[base+"#"+pointer] = &resource{root: root, recursive: recursive, anchors: map[string]*rule{}}
		return nil
	}
	document := func(base string, doc any) (err error) {
		walk(doc, "", func(obj map[string]any, pointer string) {
			id, _ := obj["$id"].(string)
			if id, _, _ = strings.Cut(id, "#"); err == nil && (id != "" || pointer == "") {
				err = add(base, pointer, obj)
			}
		})
		walk(doc, "", func(obj map[string]any, pointer string) {
			name, ok := obj["$dynamicAnchor"].(string)
			if err != nil || !ok {
				return
			}
			var target *rule
			if target, err = at(base, pointer); err == nil {
				owner(known, base, pointer).anchors[name] = target
			}
		})
		return err
	}
	if err := document(rootURL, doc); err != nil {
		return err
	}
	// The metaschemas, if referred to: each document is one resource. Compiling
	// one place may bring in others, so the list grows while it is read.
	for i := 0; i < len(b.order); i++ {
		base, pointer, _ := strings.Cut(b.order[i].location, "#")
		if known[base+"#"] == nil {
			if err := document(base, b.outline(c, base)); err != nil {
				return err
			}
		}
		if decoded, err := url.PathUnescape(pointer); err == nil {
			pointer = decoded
		}
		b.order[i].resource = owner(known, base, pointer)
	}
	return nil
}

// outline returns a document that a reference led to, or as much as link needs
// of a metaschema, which is one resource.
func (b *builder) outline(c *jsonschema.Compiler, base string) any {
	if doc, ok := b.known[base]; ok {
		return doc
	}
	obj := map[string]any{}
	if s, err := c.Compile(base); err == nil {
		obj["$recursiveAnchor"] = s.RecursiveAnchor
		if s.DynamicAnchor != "" {
			obj["$dynamicAnchor"] = s.DynamicAnchor
		}
	}
	return obj
}

// owner finds the innermost resource that holds a place.
func owner(known map[string]*resource, base, pointer string) *resource {
	for {
		if r := known[base+"#"+pointer]; r != nil {
			return r
		}
		slash := strings.LastIndexByte(pointer, '/')
		if slash < 0 {
			return known[base+"#"]
		}
		pointer = pointer[:slash]
	}
}

// walk calls f for each subschema of v that is an object.
func walk(v any, pointer string, f func(obj map[string]any, pointer string)) {
	obj, ok := v.(map[string]any)
	if !ok {
		return
	}
	f(obj, pointer)
	for name, value := range obj {
		k := keywords[name]
		here := pointer + "/" + escapeToken(name)
		switch v := value.(type) {
		case []any:
			if k.list {
				for i := range v {
					walk(v[i], here+"/"+strconv.Itoa(i), f)
				}
			}
		case map[string]any:
			if k.named {
				for key := range v {
					walk(v[key], here+"/"+escapeToken(key), f)
				}
			} else if k.one {
				walk(v, here, f)
			}
		}
	}
}

func escapeToken(token string) string {
	if !strings.ContainsAny(token, "~/") {
		return token
	}
	return strings.ReplaceAll(strings.ReplaceAll(token, "~", "~0"), "/", "~1")
}

// escapePointer writes a JSON pointer as a URL fragment.
func escapePointer(pointer string) string {
	tokens := strings.Split(pointer, "/")
	for i, token := range tokens {
		tokens[i] = url.PathEscape(token)
	}
	return strings.Join(tokens, "/")
}
