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
// one that is used twice (case does not count), a property of any type but
// string, integer and boolean, and more than 100 parameters.
func HeaderParams(schema json.RawMessage) ([]HeaderParam, error) {
	h, err := findHeaders(schema, true)
	if err != nil {
		return nil, err
	}
	return h.params, nil
}

const headerKeyword = "x-mcp-header"

// maxHeaderParams is how many header parameters a tool may have; servers and
// proxies accept hardly more headers in one request.
const maxHeaderParams = 100

// findHeaders visits a schema. Unless strict, what is wrong but bearable is ignored.
func findHeaders(schema json.RawMessage, strict bool) (*headerFinder, error) {
	if !json.Valid(schema) {
		return nil, errors.New("the schema is not valid JSON")
	}
	h := &headerFinder{strict: strict, seen: map[string]string{}}
	if !bytes.Contains(schema, []byte(headerKeyword)) && !bytes.Contains(schema, []byte(`\u`)) {
		return h, nil
	}
	root, err := parseTree(schema)
	if err != nil {
		return nil, err
	}
	if err := h.visit(&root, nil, nil, true); err != nil {
		return nil, err
	}
	h.root = root
	return h, nil
}

type headerFinder struct {
	strict  bool
	params  []HeaderParam
	ignored []ignoredHeader
	left    int               // ignored ones beyond those
	seen    map[string]string // name in lower case to its path
	root    tree              // the schema, without what is ignored
}

// An ignoredHeader is an annotation that the protocol does not allow.
type ignoredHeader struct {
	place string // its JSON pointer in the schema
	why   string
}

// maxIgnoredHeaders is how many ignored annotations of one schema are named.
const maxIgnoredHeaders = 100

// A step is one name on the way from the root of a schema; nil is the root.
type step struct {
	parent *step
	name   string
}

// names are those on the way, the first at the root.
func (s *step) names() []string {
	var names []string
	for ; s != nil; s = s.parent {
		names = append(names, s.name)
	}
	slices.Reverse(names)
	return names
}

// pointer is the way as a JSON pointer without escapes.
func (s *step) pointer() string {
	if s == nil {
		return "(root)"
	}
	return "/" + strings.Join(s.names(), "/")
}

// visit visits a subschema at place. On a chain of properties path leads to it.
func (h *headerFinder) visit(s *tree, path, place *step, onChain bool) error {
	if header, ok := s.member(headerKeyword); ok {
		why := "the protocol allows it only on properties that are reached through properties alone"
		if onChain && path != nil {
			fault := h.add(s, header, path)
			if fault != nil && (h.strict || !fault.bearable) {
				return fault
			}
			if why = ""; fault != nil {
				why = fault.why
			}
		}
		if why != "" {
			h.ignore(s, place, why)
		}
	}
	for i := range s.members {
		m := &s.members[i]
		here := &step{place, m.name}
		switch m.name {
		case "enum", "const", "default", "examples", headerKeyword:
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			for i := range m.value.members {
				sub := &m.value.members[i]
				next, chain := path, onChain && m.name == "properties"
				if chain {
					next = &step{path, sub.name}
				}
				if err := h.visit(&sub.value, next, &step{here, sub.name}, chain); err != nil {
					return err
				}
			}
		default:
			if err := h.elsewhere(&m.value, here); err != nil {
				return err
			}
		}
	}
	return nil
}

// elsewhere visits the schemas in a value that is not on the chain.
func (h *headerFinder) elsewhere(v *tree, place *step) error {
	for i := range v.items {
		if err := h.elsewhere(&v.items[i], &step{place, strconv.Itoa(i)}); err != nil {
			return err
		}
	}
	if v.kind != '{' {
		return nil
	}
	return h.visit(v, nil, place, false)
}

// ignore takes an annotation out of the schema and notes its place.
func (h *headerFinder) ignore(s *tree, place *step, why string) {
	s.members = slices.DeleteFunc(s.members, func(m treeMember) bool { return m.name == headerKeyword })
	if len(h.ignored) == maxIgnoredHeaders {
		h.left++
		return
	}
	h.ignored = append(h.ignored, ignoredHeader{place.pointer(), why})
}

// A headerFault says why a property with x-mcp-header is no header parameter.
type headerFault struct {
	why string
	// bearable says that it is what its author may well have meant, but the
	// protocol does not allow: then the annotation is ignored, and the tool stays.
	bearable bool
}

func (f *headerFault) Error() string { return f.why }

func fatalHeader(format string, args ...any) *headerFault {
	return &headerFault{why: fmt.Sprintf(format, args...)}
}

// add adds the parameter at path.
func (h *headerFinder) add(s *tree, header tree, path *step) *headerFault {
	if len(h.params) == maxHeaderParams {
		return fatalHeader("the schema has more than %d properties with x-mcp-header", maxHeaderParams)
	}
	names := path.names()
	where := strings.Join(names, ".")
	typ, _ := s.member("type")
	kind, _ := typ.scalar.(string)
	switch kind {
	case "string", "integer", "boolean":
	default:
		return &headerFault{fmt.Sprintf("property %q has x-mcp-header, which is for the types string, integer and boolean only", where), isPrimitive(typ)}
	}
	name, ok := header.scalar.(string)
	if !ok || name == "" {
		return fatalHeader("property %q: x-mcp-header must be a string that is not empty", where)
	}
	for _, c := range name {
		if !isToken(c) {
			return fatalHeader("property %q: x-mcp-header %q has the character %q, which no HTTP header name may have", where, name, c)
		}
	}
	lower := strings.ToLower(name)
	if other, taken := h.seen[lower]; taken {
		return fatalHeader("properties %q and %q have the same x-mcp-header %q", other, where, name)
	}
	h.seen[lower] = where
	h.params = append(h.params, HeaderParam{Name: name, Path: names, Type: kind})
	return nil
}

// isPrimitive reports whether a type keyword allows but strings, numbers, booleans and null.
func isPrimitive(typ tree) bool {
	if typ.kind == '[' {
		return len(typ.items) > 0 && !slices.ContainsFunc(typ.items, func(t tree) bool { return !isPrimitive(t) })
	}
	switch typ.scalar {
	case "string", "integer", "number", "boolean", "null":
		return true
	}
	return false
}

// usableHeaders returns the header parameters of a tool's own schema, and the
// schema as it is listed: without the annotations that the protocol does not
// allow, for which clients leave a tool out. Each is logged.
func (s *Server) usableHeaders(tool string, schema json.RawMessage) ([]HeaderParam, json.RawMessage, error) {
	h, err := findHeaders(schema, false)
	if err != nil || len(h.ignored) == 0 {
		return h.paramsOf(), schema, err
	}
	for _, x := range h.ignored {
		s.logger.Warn("ignoring x-mcp-header where the protocol does not allow it", "server", s.name, "tool", tool, "reason", x.why, "place", x.place)
	}
	if h.left > 0 {
		s.logger.Warn("ignoring x-mcp-header at more places", "server", s.name, "tool", tool, "places", h.left)
	}
	listed, err := h.root.append(nil)
	return h.params, listed, err
}

func (h *headerFinder) paramsOf() []HeaderParam {
	if h == nil {
		return nil
	}
	return h.params
}

// isToken reports whether c may stand in the name of an HTTP header (tchar of RFC 9110).
func isToken(c rune) bool {
	switch {
	case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z':
		return true
	}
	return strings.ContainsRune("!#$%&'*+-.^_`|~", c)
}
