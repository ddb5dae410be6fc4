package schemaguard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// Bounds on schemas and values.
const (
	MaxSchemaSize = 4 << 20 // bytes
	MaxSubschemas = 10_000
	MaxNesting    = 128
	MaxValues     = 500_000
)

// The defaults of [Limits].
const (
	DefaultDepth  = 50
	DefaultFaults = 10
)

// Limits bounds one validation. Zero means the default.
type Limits struct {
	// Depth is the number of levels that validation descends into a value. Members and items of
	// the root are at level one.
	Depth int
	// Faults is the number of faults in a [ValidationError].
	Faults int
}

func (l Limits) withDefaults() Limits {
	if l.Depth <= 0 {
		l.Depth = DefaultDepth
	}
	if l.Faults <= 0 {
		l.Faults = DefaultFaults
	}
	return l
}

// A Schema is a schema that passed the checks of [New].
type Schema struct {
	raw     json.RawMessage
	dialect Dialect
	doc     any

	mu   sync.Mutex  // guards idle
	idle []*instance // compiled and not in use
}

// New checks and compiles a schema. It fails if the schema is not JSON, exceeds a bound, names
// another dialect, is not valid in its dialect, or has a local reference that leads nowhere. New
// keeps raw; the caller must not modify it.
func New(raw json.RawMessage) (*Schema, error) {
	s, err := Trusted(raw)
	if err != nil {
		return nil, err
	}
	return s, s.Compile()
}

// Trusted is like [New] for a schema that this program made. It compiles the schema at its first use.
func Trusted(raw json.RawMessage) (*Schema, error) {
	if len(raw) > MaxSchemaSize {
		return nil, fmt.Errorf("the schema has %d bytes, more than the limit of %d", len(raw), MaxSchemaSize)
	}
	if countValues(raw) > MaxValues {
		return nil, fmt.Errorf("the schema has more than %d values", MaxValues)
	}
	doc, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	d, err := dialectOf(doc)
	if err != nil {
		return nil, err
	}
	w := surveyor{anchors: map[string]bool{}}
	doc = w.schema(doc, 0)
	if err := errors.Join(append(w.errs, w.checkRefs(doc))...); err != nil {
		return nil, err
	}
	return &Schema{raw: raw, dialect: d, doc: doc}, nil
}

// decode reads JSON and keeps the digits of numbers.
func decode(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, errors.New("more than one value")
	}
	return doc, nil
}

// countValues returns the number of values in a JSON text, or somewhat less.
func countValues(text []byte) int {
	if n := bytes.Count(text, []byte(",")); n < MaxValues {
		return n + 1
	}
	n, inString := 1, false
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			inString = !inString
		case text[i] == '\\':
			i++
		case text[i] == ',' && !inString:
			n++
		}
	}
	return n
}

// Raw returns the schema's text. The caller must not modify it.
func (s *Schema) Raw() json.RawMessage { return s.raw }

// Dialect returns the schema's dialect.
func (s *Schema) Dialect() Dialect { return s.dialect }

// Compile compiles the schema. Its error is also that of [Schema.Validate].
func (s *Schema) Compile() error {
	in, err := s.acquire()
	if err == nil {
		s.release(in)
	}
	return err
}

// Unchecked returns the patterns that are not checked, sorted.
func (s *Schema) Unchecked() []string {
	in, err := s.acquire()
	if err != nil {
		return nil
	}
	defer s.release(in)
	return slices.Clone(in.unchecked)
}

// Validate checks a JSON text. It returns a [*ValidationError] with the faults of the value, or an
// error that says why there is no verdict: a [*SyntaxError] if the text is not JSON, a [*LimitError]
// if a bound was reached, a [*SchemaError] if the schema is broken or refers to another document.
func (s *Schema) Validate(data []byte, l Limits) error {
	in, err := s.acquire()
	if err != nil {
		return err
	}
	defer s.release(in)
	value, err := readValue(data)
	if err != nil {
		return err
	}
	return in.validate(value, len(data), l.withDefaults())
}

// readValue decodes a value within the bounds.
func readValue(data []byte) (any, error) {
	if countValues(data) > MaxValues {
		return nil, &LimitError{}
	}
	value, err := decode(data)
	if err != nil {
		return nil, &SyntaxError{Err: err}
	}
	if pointer, number, ok := unusableNumber(value); ok {
		return nil, &ValidationError{Faults: []Fault{{
			Pointer: pointer, Keyword: "type",
			Message: "the number " + shorten(number, 40) + " has too many digits or too large an exponent",
		}}}
	}
	return value, nil
}

// acquire returns a compiled instance for the caller's exclusive use until release.
func (s *Schema) acquire() (*instance, error) {
	s.mu.Lock()
	if n := len(s.idle); n > 0 {
		in := s.idle[n-1]
		s.idle = s.idle[:n-1]
		s.mu.Unlock()
		return in, nil
	}
	s.mu.Unlock()
	return compile(s.doc, s.dialect)
}

func (s *Schema) release(in *instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle) < runtime.GOMAXPROCS(0) { // no more validations than that run at once
		s.idle = append(s.idle, in)
	}
}
