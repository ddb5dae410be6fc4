package mcpserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A HeaderParam is a property of a tool's arguments that HTTP clients repeat in a
// header, so that proxies can route by it (x-mcp-header).
type HeaderParam struct {
	// Name is the header's name without its prefix Mcp-Param-.
	Name string
	// Path is the chain of property names from the root of the arguments.
	Path []string
	// Type is string, integer or boolean.
	Type string
}

// HeaderParams returns the header parameters of a registered tool, nil if it has
// none or there is no such tool. They are found once, at registration. The caller
// must not modify them.
func (s *Server) HeaderParams(tool string) []HeaderParam {
	if t := s.registry().tool(tool); t != nil {
		return t.headers
	}
	return nil
}

// HeaderParams returns the header parameters of an input schema, in its order: the
// properties with x-mcp-header that are reached from the root through properties
// alone. Elsewhere the keyword is ignored. It is an error if the name is not an
// HTTP token or is used twice (case does not matter), if the type of the property
// is not string, integer or boolean, or if there are more than 100 parameters.
func HeaderParams(schema json.RawMessage) ([]HeaderParam, error) {
	h, err := findHeaders(schema, true)
	if err != nil {
		return nil, err
	}
	return h.params, nil
}

const (
	headerKeyword = "x-mcp-header"
	// maxHeaderParams is the number of header parameters that a tool may have.
	// Servers and proxies accept hardly more headers in one request.
	maxHeaderParams = 100
	// maxIgnoredHeaders is the number of ignored keywords that are logged each.
	maxIgnoredHeaders = 100
)

// A headerFinder reads a schema in one pass.
type headerFinder struct {
	dec     *jsontext.Decoder
	strict  bool     // an error where the keyword would be ignored for its type
	path    []string // of properties, to the current schema
	params  []HeaderParam
	seen    map[string]string // name in lower case to its path
	ignored []ignoredHeader   // at most maxIgnoredHeaders
	places  int               // that are ignored
	cuts    []cut             // the members that are ignored
}

// A cut is a part of the text of a schema: a member with the comma before it.
type cut struct{ from, to int64 }

// An ignoredHeader is a keyword that the protocol does not allow.
type ignoredHeader struct{ place, why string }

func findHeaders(schema json.RawMessage, strict bool) (*headerFinder, error) {
	if !json.Valid(schema) {
		return nil, errors.New("the schema is not valid JSON")
	}
	h := &headerFinder{strict: strict, seen: map[string]string{}}
	if !bytes.Contains(schema, []byte(headerKeyword)) && !bytes.Contains(schema, []byte(`\u`)) {
		return h, nil
	}
	h.dec = jsontext.NewDecoder(bytes.NewReader(schema), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return h, h.visit(true)
}

// visit reads a schema, or any other value that may contain schemas. If properties
// alone lead to it, onPath is set and h.path holds their names.
func (h *headerFinder) visit(onPath bool) error {
	switch h.dec.PeekKind() {
	case '{':
		return h.object(onPath)
	case '[':
		return h.each(']', func() error { return h.visit(false) })
	}
	return h.dec.SkipValue()
}

// each reads an object or array and calls read for each member or item.
func (h *headerFinder) each(end jsontext.Kind, read func() error) error {
	if _, err := h.dec.ReadToken(); err != nil {
		return err
	}
	for h.dec.PeekKind() != end {
		if err := read(); err != nil {
			return err
		}
	}
	_, err := h.dec.ReadToken()
	return err
}

func (h *headerFinder) object(onPath bool) error {
	var header, typ jsontext.Value
	var cuts []cut
	err := h.each('}', func() error {
		from := h.dec.InputOffset() // behind the brace or the previous member
		token, err := h.dec.ReadToken()
		if err != nil {
			return err
		}
		switch name := token.String(); name {
		case headerKeyword:
			value, err := h.dec.ReadValue()
			header = value.Clone()
			cuts = append(cuts, cut{from, h.dec.InputOffset()})
			return err
		case "type":
			value, err := h.dec.ReadValue()
			typ = value.Clone()
			return err
		case "enum", "const", "default", "examples":
			return h.dec.SkipValue()
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			return h.members(onPath && name == "properties")
		}
		return h.visit(false)
	})
	if err != nil || header == nil {
		return err
	}
	why := "the protocol allows it only on properties that are reached through properties alone"
	if onPath && len(h.path) > 0 {
		fault := h.add(header, typ)
		if fault == nil {
			return nil
		}
		if h.strict || !fault.tolerable {
			return fault
		}
		why = fault.why
	}
	h.places++
	h.cuts = append(h.cuts, cuts...)
	if len(h.ignored) < maxIgnoredHeaders {
		place := string(h.dec.StackPointer())
		if place == "" {
			place = "(root)"
		}
		h.ignored = append(h.ignored, ignoredHeader{place, why})
	}
	return nil
}

// members reads an object whose members are schemas.
func (h *headerFinder) members(onPath bool) error {
	if h.dec.PeekKind() != '{' {
		return h.dec.SkipValue()
	}
	return h.each('}', func() error {
		token, err := h.dec.ReadToken()
		if err != nil {
			return err
		}
		if onPath {
			h.path = append(h.path, token.String())
			defer func() { h.path = h.path[:len(h.path)-1] }()
		}
		return h.visit(onPath)
	})
}

// A headerFault says why a property with x-mcp-header is not a header parameter.
type headerFault struct {
	why string
	// tolerable is set if the author may well have meant it: then the keyword is
	// ignored, and the tool stays.
	tolerable bool
}

func (f *headerFault) Error() string { return f.why }

func fatalHeader(format string, args ...any) *headerFault {
	return &headerFault{why: fmt.Sprintf(format, args...)}
}

// add adds the property at h.path.
func (h *headerFinder) add(header, typ jsontext.Value) *headerFault {
	if len(h.params) == maxHeaderParams {
		return fatalHeader("the schema has more than %d properties with x-mcp-header", maxHeaderParams)
	}
	where := strings.Join(h.path, ".")
	kind := string(bytes.Trim(typ, `"`))
	switch kind {
	case "string", "integer", "boolean":
	default:
		return &headerFault{fmt.Sprintf("property %q has x-mcp-header, which is for the types string, integer and boolean only", where), isPrimitive(typ)}
	}
	var name string
	if json.Unmarshal(header, &name) != nil || name == "" {
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
	h.params = append(h.params, HeaderParam{Name: name, Path: slices.Clone(h.path), Type: kind})
	return nil
}

// isPrimitive reports whether a type keyword allows strings, numbers, booleans and
// null only.
func isPrimitive(typ jsontext.Value) bool {
	var types []string
	if json.Unmarshal(typ, &types) != nil {
		types = []string{string(bytes.Trim(typ, `"`))}
	}
	return len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool {
		return !slices.Contains([]string{"string", "integer", "number", "boolean", "null"}, t)
	})
}

// usableHeaders returns the header parameters of a tool's schema, and the schema
// as it is listed: without the keywords that the protocol does not allow, for
// which clients leave a tool out. Each is logged.
func (s *Server) usableHeaders(tool string, schema json.RawMessage) ([]HeaderParam, json.RawMessage, error) {
	h, err := findHeaders(schema, false)
	if err != nil {
		return nil, nil, err
	}
	if h.places == 0 {
		return h.params, schema, nil
	}
	for _, x := range h.ignored {
		s.logger.Warn("ignoring x-mcp-header where the protocol does not allow it", "server", s.name, "tool", tool, "reason", x.why, "place", x.place)
	}
	if more := h.places - len(h.ignored); more > 0 {
		s.logger.Warn("ignoring x-mcp-header at more places", "server", s.name, "tool", tool, "places", more)
	}
	return h.params, h.without(schema), nil
}

// without returns the schema without the keywords that are ignored.
func (h *headerFinder) without(schema json.RawMessage) json.RawMessage {
	slices.SortFunc(h.cuts, func(a, b cut) int { return cmp.Compare(a.from, b.from) })
	var out json.RawMessage
	from := int64(0)
	for _, c := range h.cuts {
		out = append(out, schema[from:c.from]...)
		from = c.to
		if out[len(out)-1] == '{' { // the first member: the comma is behind it
			rest := bytes.TrimLeft(schema[from:], " \t\r\n")
			from = int64(len(schema) - len(bytes.TrimPrefix(rest, []byte(","))))
		}
	}
	return append(out, schema[from:]...)
}

// isToken reports whether the name of an HTTP header may contain c (tchar of RFC 9110).
func isToken(c rune) bool {
	switch {
	case c >= '0' && c <= '9', c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z':
		return true
	}
	return strings.ContainsRune("!#$%&'*+-.^_`|~", c)
}
