package mcpserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/tenon-sdk/tenon/internal/schemaguard"
)

// A checker validates values against one schema of a tool.
type checker struct {
	schema *schemaguard.Schema
	limits schemaguard.Limits
	first  func() // compiles the schema and logs its problems
}

// newChecker returns a checker for a schema of a tool or prompt. A derived schema
// is known to be valid. The schema is compiled at the first call; checkers of one
// server share equal schemas.
func (s *Server) newChecker(of string, raw json.RawMessage, derived bool, depth int) (*checker, error) {
	if depth == 0 {
		depth = s.opts.MaxSchemaDepth
	}
	if depth < 0 {
		return nil, fmt.Errorf("MaxSchemaDepth is %d, want 0 or more", depth)
	}
	schema := s.schemas.lookup(raw)
	if schema == nil {
		var err error
		if derived {
			schema, err = schemaguard.Trusted(raw)
		} else {
			schema, err = schemaguard.New(raw)
		}
		if err != nil {
			return nil, err
		}
		schema = s.schemas.keep(schema)
	}
	return &checker{schema, schemaguard.Limits{Depth: depth}, sync.OnceFunc(func() {
		if err := schema.Compile(); err != nil {
			s.logger.Warn("a schema cannot be used", "server", s.name, "of", of, "error", err)
		}
		if patterns := schema.Unchecked(); len(patterns) > 0 {
			s.logger.Warn("patterns that only ECMA-262 has are not checked", "server", s.name, "of", of, "patterns", patterns)
		}
	})}, nil
}

// validate checks a value. With fill it first sets defaults, and returns the value
// with them.
func (c *checker) validate(value json.RawMessage, fill bool) (json.RawMessage, error) {
	c.first()
	if fill {
		return c.schema.Fill(value, c.limits)
	}
	return value, c.schema.Validate(value, c.limits)
}

// inputSchema checks the form of a hand-written input schema and returns it as it
// is listed: null means any object, and a missing type is added.
func inputSchema(raw json.RawMessage) (json.RawMessage, error) {
	var root map[string]json.RawMessage
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage(`{"type":"object"}`), nil
	}
	if !json.Valid(raw) {
		return nil, errors.New("the input schema is not valid JSON")
	}
	if err := json.Unmarshal(raw, &root); err != nil || root == nil {
		return nil, errors.New("the input schema must be a JSON object")
	}
	typ, ok := root["type"]
	if !ok {
		return withType(raw), nil
	}
	if string(typ) != `"object"` {
		return nil, fmt.Errorf(`the input schema must have the type "object" at its root, and has %s`, typ)
	}
	return append(json.RawMessage(nil), raw...), nil
}

// withType returns a schema with the type object before its other members.
func withType(raw json.RawMessage) json.RawMessage {
	i := 0
	for raw[i] != '{' {
		i++
	}
	rest := raw[i+1:]
	out := json.RawMessage(`{"type":"object"`)
	for _, c := range rest {
		if c == ' ' || c == '\t' || c == '\r' || c == '\n' {
			continue
		}
		if c != '}' {
			out = append(out, ',')
		}
		break
	}
	return append(out, rest...)
}

var emptyObject = json.RawMessage("{}")
