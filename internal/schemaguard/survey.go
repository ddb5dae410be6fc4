package schemaguard

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"strconv"
	"strings"
)

// The bounds on a number in a schema. The library would expand 1e1000000.
const (
	maxNumberSize = 1000
	maxNumberExp  = 1000
)

// A surveyor walks a schema before the library sees it: it counts, it finds what
// must be refused, and it cuts what lies too deep.
type surveyor struct {
	dialect    Dialect
	subschemas int
	refs       []string // local references
	anchors    map[string]bool
	embedded   bool // some subschema has an $id, so that a local reference is local to it
	errs       []error
}

// keywords says where a schema has subschemas: one, a list, or a map of them.
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

// schema surveys v, a subschema at the given nesting, and returns what to put in its place.
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
		if value, ok := value.(json.Number); ok {
			w.checkNumber(name, string(value))
		}
		if name == "enum" || name == "const" {
			w.checkNumbers(name, value)
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
	if w.anchors == nil {
		w.anchors = map[string]bool{}
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

// checkRefs reports a local reference that leads nowhere in doc. What embedded
// schemas mean by it is left to the library.
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
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch v := doc.(type) {
		case map[string]any:
			value, ok := v[token]
			if !ok {
				return false
			}
			doc = value
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v) {
				return false
			}
			doc = v[i]
		default:
			return false
		}
	}
	return true
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

// checkDialect refuses an embedded schema in a foreign dialect. A $schema
// without $id means nothing below the root.
func (w *surveyor) checkDialect(obj map[string]any, nesting int) {
	name, ok := obj["$schema"].(string)
	if _, embedded := obj["$id"]; !ok || !embedded || nesting == 0 {
		return
	}
	if _, ok := parseDialect(name); !ok {
		w.errs = append(w.errs, &DialectError{Pointer: "an embedded $schema", Schema: name})
	}
}

func (w *surveyor) checkNumbers(name string, v any) {
	switch v := v.(type) {
	case json.Number:
		w.checkNumber(name, string(v))
	case []any:
		for _, item := range v {
			w.checkNumbers(name, item)
		}
	case map[string]any:
		for _, item := range v {
			w.checkNumbers(name, item)
		}
	}
}

func (w *surveyor) checkNumber(name, number string) {
	_, exp, found := strings.Cut(strings.ToLower(number), "e")
	n, err := strconv.Atoi(exp)
	if len(number) <= maxNumberSize && (!found || err == nil && n <= maxNumberExp && n >= -maxNumberExp) {
		return
	}
	w.errs = append(w.errs, fmt.Errorf("%s has the number %s, which is out of all proportion", name, shorten(number, 40)))
}

// ratDecimal converts a number that the library read from a schema.
func ratDecimal(r *big.Rat) *decimal {
	if r == nil {
		return nil
	}
	prec, _ := r.FloatPrec() // exact: the number was a decimal in the text
	d := parseDecimal([]byte(r.FloatString(prec)))
	return &d
}
