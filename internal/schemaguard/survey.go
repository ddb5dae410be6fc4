package schemaguard

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Bounds on a number. The library would expand 1e1000000.
const (
	maxNumberSize = 1000
	maxNumberExp  = 1000
)

// A surveyor walks a schema before the library reads it. It counts subschemas, finds what must be
// refused, and cuts what is nested too deep.
type surveyor struct {
	subschemas int
	refs       []string // local references
	anchors    map[string]bool
	embedded   bool // a subschema has an $id, so a local reference is local to that
	errs       []error
}

// keywords lists where a schema has subschemas: one, a list, or a map of them.
var keywords = map[string]struct{ one, list, named bool }{
	"additionalItems":       {one: true},
	"additionalProperties":  {one: true},
	"allOf":                 {list: true},
	"anyOf":                 {list: true},
	"contains":              {one: true},
	"contentSchema":         {one: true},
	"definitions":           {named: true},
	"$defs":                 {named: true},
	"dependencies":          {named: true},
	"dependentSchemas":      {named: true},
	"else":                  {one: true},
	"if":                    {one: true},
	"items":                 {one: true, list: true},
	"not":                   {one: true},
	"oneOf":                 {list: true},
	"patternProperties":     {named: true},
	"prefixItems":           {list: true},
	"properties":            {named: true},
	"propertyNames":         {one: true},
	"then":                  {one: true},
	"unevaluatedItems":      {one: true},
	"unevaluatedProperties": {one: true},
}

// schema surveys v, a subschema at the given nesting, and returns its replacement.
func (w *surveyor) schema(v any, nesting int) any {
	obj, ok := v.(map[string]any)
	if !ok || len(w.errs) > 0 {
		return v
	}
	if nesting > MaxNesting {
		return map[string]any{"$ref": tooDeepURL}
	}
	if w.subschemas++; w.subschemas > MaxSubschemas {
		w.errs = append(w.errs, fmt.Errorf("the schema has more than %d subschemas", MaxSubschemas))
		return v
	}
	w.checkDialect(obj, nesting)
	w.note(obj)
	for name, value := range obj {
		if _, ok := value.(json.Number); ok || name == "enum" || name == "const" {
			if _, number, bad := unusableNumber(value); bad {
				w.errs = append(w.errs, fmt.Errorf("%s has the number %s, which has too many digits or too large an exponent", name, shorten(number, 40)))
			}
		}
		obj[name] = w.keyword(name, value, nesting)
	}
	return obj
}

// note collects references and what they may lead to.
func (w *surveyor) note(obj map[string]any) {
	for _, name := range [...]string{"$ref", "$dynamicRef"} {
		if ref, ok := obj[name].(string); ok && strings.HasPrefix(ref, "#") {
			w.refs = append(w.refs, ref[1:])
		}
	}
	for _, name := range [...]string{"$anchor", "$dynamicAnchor", "$id"} {
		anchor, ok := obj[name].(string)
		if !ok {
			continue
		}
		if name == "$id" {
			base, fragment, _ := strings.Cut(anchor, "#")
			w.embedded = w.embedded || base != ""
			anchor = fragment
		}
		w.anchors[anchor] = true
	}
}

// checkRefs reports a local reference that leads nowhere in doc. With embedded schemas only the
// library can tell.
func (w *surveyor) checkRefs(doc any) error {
	if w.embedded {
		return nil
	}
	for _, ref := range w.refs {
		target, err := url.PathUnescape(ref)
		if err == nil && (target == "" || w.anchors[target] || strings.HasPrefix(target, "/") && leads(doc, target)) {
			continue
		}
		return fmt.Errorf("the reference #%s leads nowhere", shorten(ref, 100))
	}
	return nil
}

// leads reports whether a JSON pointer leads to a value of doc.
func leads(doc any, pointer string) bool {
	for _, token := range strings.Split(pointer, "/")[1:] {
		var ok bool
		if doc, ok = child(doc, unescapeToken(token)); !ok {
			return false
		}
	}
	return true
}

// child returns the member or item of v that a token of a JSON pointer names.
func child(v any, token string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		value, ok := v[token]
		return value, ok
	case []any:
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(v) {
			return v[i], true
		}
	}
	return nil, false
}

func (w *surveyor) keyword(name string, value any, nesting int) any {
	k := keywords[name]
	switch v := value.(type) {
	case []any:
		if k.list {
			for i := range v {
				v[i] = w.schema(v[i], nesting+1)
			}
		}
	case map[string]any:
		if k.named {
			for key := range v {
				v[key] = w.schema(v[key], nesting+1)
			}
		} else if k.one {
			return w.schema(v, nesting+1)
		}
	}
	return value
}

// checkDialect refuses an embedded schema in another dialect. A $schema without $id means nothing
// below the root.
func (w *surveyor) checkDialect(obj map[string]any, nesting int) {
	name, ok := obj["$schema"].(string)
	if _, embedded := obj["$id"]; !ok || !embedded || nesting == 0 {
		return
	}
	if _, ok := parseDialect(name); !ok {
		w.errs = append(w.errs, &DialectError{Pointer: "an embedded $schema", Schema: name})
	}
}

// unusableNumber finds a number in v that is beyond the bounds, with its JSON pointer.
func unusableNumber(v any) (pointer, number string, found bool) {
	switch v := v.(type) {
	case json.Number:
		_, exp, hasExp := strings.Cut(strings.ToLower(string(v)), "e")
		n, err := strconv.Atoi(exp)
		return "", string(v), len(v) > maxNumberSize || hasExp && (err != nil || n > maxNumberExp || n < -maxNumberExp)
	case []any:
		for i, item := range v {
			if pointer, number, found = unusableNumber(item); found {
				return "/" + strconv.Itoa(i) + pointer, number, true
			}
		}
	case map[string]any:
		for name, item := range v {
			if pointer, number, found = unusableNumber(item); found {
				return "/" + escapeToken(name) + pointer, number, true
			}
		}
	}
	return "", "", false
}
