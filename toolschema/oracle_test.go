package toolschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

var (
	apiName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	apiKey  = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
)

// accepted holds a model's tool against what the Messages API accepts.
func accepted(m Model) error {
	if !apiName.MatchString(m.Name) {
		return fmt.Errorf("name %q", m.Name)
	}
	if !utf8.ValidString(m.Description) {
		return errors.New("the description is not valid UTF-8")
	}
	if !utf8.Valid(m.InputSchema) {
		return errors.New("the schema is not valid UTF-8")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(m.InputSchema))
	if err != nil {
		return err
	}
	root, ok := doc.(map[string]any)
	if !ok {
		return errors.New("the schema is no object")
	}
	if root["type"] != "object" {
		return fmt.Errorf("the type of the root is %v", root["type"])
	}
	if _, ok := root["properties"].(map[string]any); !ok {
		return errors.New("the root has no properties")
	}
	for _, k := range []string{"oneOf", "anyOf", "allOf", "not", "if", "then", "else", "$ref"} {
		if _, has := root[k]; has {
			return fmt.Errorf("the root has %s", k)
		}
	}
	if depth := nestingOf(m.InputSchema); depth > 128 {
		return fmt.Errorf("nested %d levels deep", depth)
	}
	v, _, err := parseJSON(m.InputSchema, 1000)
	if err != nil {
		return err
	}
	if endless(v.(*object)) {
		return errors.New("its references lead round in a circle")
	}
	if err := legalKeys(doc); err != nil {
		return err
	}
	return compiles(doc)
}

func nestingOf(raw json.RawMessage) int {
	depth, deepest := 0, 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			end, _ := stringEnd(raw, i)
			i = end - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// legalKeys looks at the property keys of a schema and of all schemas in it.
func legalKeys(v any) error {
	o, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	if props, ok := o["properties"].(map[string]any); ok {
		for k := range props {
			if !apiKey.MatchString(k) {
				return fmt.Errorf("property key %q", k)
			}
		}
	}
	for k, v := range o {
		switch k {
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			subs, _ := v.(map[string]any)
			for _, s := range subs {
				if err := legalKeys(s); err != nil {
					return err
				}
			}
		case "allOf", "anyOf", "oneOf", "prefixItems":
			subs, _ := v.([]any)
			for _, s := range subs {
				if err := legalKeys(s); err != nil {
					return err
				}
			}
		case "additionalProperties", "items", "not", "if", "then", "else", "contains", "propertyNames",
			"unevaluatedItems", "unevaluatedProperties", "contentSchema":
			if err := legalKeys(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// compiles compiles a schema as draft 2020-12 by another implementation. Patterns are taken as they are, since they follow ECMA 262.
func compiles(doc any) error {
	const url = "tenon:///schema"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(func(s string) (jsonschema.Regexp, error) { return anyPattern(s), nil })
	if err := c.AddResource(url, doc); err != nil {
		return err
	}
	_, err := c.Compile(url)
	return err
}

type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errors.New("nothing is loaded from elsewhere") }

type anyPattern string

func (anyPattern) MatchString(string) bool { return true }
func (p anyPattern) String() string        { return strings.Clone(string(p)) }

// endless reports whether somebody who follows references for one value never comes to an end.
func endless(root *object) bool {
	active, done := map[*object]bool{}, map[*object]bool{}
	var visit func(o *object) bool
	visit = func(o *object) bool {
		if active[o] || done[o] {
			return active[o]
		}
		active[o] = true
		found := false
		if ref := o.text("$ref"); ref != "" {
			target, _ := (&flattener{root: root}).lookup(ref).(*object)
			found = target != nil && visit(target)
		}
		children(o, func(key, _ string, sub any) {
			if s, ok := sub.(*object); ok && inPlace[key] {
				found = found || visit(s)
			}
		})
		active[o], done[o] = false, true
		return found
	}
	var walk func(o *object) bool
	walk = func(o *object) bool {
		found := visit(o)
		children(o, func(_, _ string, sub any) {
			if s, ok := sub.(*object); ok {
				found = found || walk(s)
			}
		})
		return found
	}
	return walk(root)
}
