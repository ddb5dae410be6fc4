package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A HeaderParam is a property of a tool's arguments that HTTP clients mirror
// into a header, so that proxies can route by it (x-mcp-header).
type HeaderParam struct {
	// Name is the header's name without its prefix Mcp-Param-.
	Name string
	// Path is the chain of property names from the root of the arguments.
	Path []string
	// Type is string, integer or boolean.
	Type string
}

// HeaderParams lists the header parameters of a registered tool in the order of
// its schema; nil if it has none or there is no such tool. They are found once, at
// registration. The caller must not modify them.
func (s *Server) HeaderParams(tool string) []HeaderParam {
	if t := s.registry().tool(tool); t != nil {
		return t.headers
	}
	return nil
}

// HeaderParams lists the header parameters of an input schema: the properties
// with x-mcp-header that are reached from the root through properties alone.
// Elsewhere the keyword is ignored. Wrong are a name that is no HTTP token,
// one that is used twice (case does not count), and a property of any type but
// string, integer and boolean.
func HeaderParams(schema json.RawMessage) ([]HeaderParam, error) {
	params, _, err := headerParams(schema)
	return params, err
}

const headerKeyword = "x-mcp-header"

// headerParams also returns the places where the keyword is ignored.
func headerParams(schema json.RawMessage) (params []HeaderParam, ignored []string, err error) {
	if !json.Valid(schema) {
		return nil, nil, errors.New("the schema is not valid JSON")
	}
	if !bytes.Contains(schema, []byte(headerKeyword)) && !bytes.Contains(schema, []byte(`\u`)) {
		return nil, nil, nil
	}
	root, err := parseTree(schema)
	if err != nil {
		return nil, nil, err
	}
	h := headerFinder{seen: map[string]string{}}
	if err := h.schema(root, nil, "", true); err != nil {
		return nil, nil, err
	}
	return h.params, h.ignored, nil
}

type headerFinder struct {
	params  []HeaderParam
	ignored []string
	seen    map[string]string // name in lower case to its path
}

// schema visits a subschema. On a chain of properties path leads to it; place is
// its JSON pointer in the schema.
func (h *headerFinder) schema(s tree, path []string, place string, onChain bool) error {
	if header, ok := s.member(headerKeyword); ok {
		if !onChain || len(path) == 0 {
			if place == "" {
				place = "(root)"
			}
			h.ignored = append(h.ignored, place)
		} else if err := h.add(s, header, path); err != nil {
			return err
		}
	}
	for _, m := range s.members {
		here := place + "/" + m.name
		switch m.name {
		case "enum", "const", "default", "examples", headerKeyword:
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			for _, sub := range m.value.members {
				next, chain := path, onChain && m.name == "properties"
				if chain {
					next = append(slices.Clone(path), sub.name)
				}
				if err := h.schema(sub.value, next, here+"/"+sub.name, chain); err != nil {
					return err
				}
			}
		default:
			if err := h.elsewhere(m.value, here); err != nil {
				return err
			}
		}
	}
	return nil
}

// elsewhere visits the schemas in a value that is not on the chain.
func (h *headerFinder) elsewhere(v tree, place string) error {
	for i, item := range v.items {
		if err := h.elsewhere(item, place+"/"+strconv.Itoa(i)); err != nil {
			return err
		}
	}
	if v.members == nil {
		return nil
	}
	return h.schema(v, nil, place, false)
}

func (h *headerFinder) add(s, header tree, path []string) error {
	where := strings.Join(path, ".")
	typ, _ := s.member("type")
	switch typ.scalar {
	case "string", "integer", "boolean":
	default:
		return fmt.Errorf("property %q has x-mcp-header, which is for the types string, integer and boolean only", where)
	}
	name, ok := header.scalar.(string)
	if !ok || name == "" {
		return fmt.Errorf("property %q: x-mcp-header must be a string that is not empty", where)
	}
	for _, c := range name {
		if !isToken(c) {
			return fmt.Errorf("property %q: x-mcp-header %q has the character %q, which no HTTP header name may have", where, name, c)
		}
	}
	lower := strings.ToLower(name)
	if other, taken := h.seen[lower]; taken {
		return fmt.Errorf("properties %q and %q have the same x-mcp-header %q", other, where, name)
	}
	h.seen[lower] = where
	h.params = append(h.params, HeaderParam{Name: name, Path: path, Type: typ.scalar.(string)})
	return nil
}

// isToken reports whether c may stand in the name of an HTTP header (tchar of RFC 9110).
func isToken(c rune) bool {
	switch {
	case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z':
		return true
	}
	return c < 0x80 && strings.ContainsRune("!#$%&'*+-.^_`|~", c)
}
