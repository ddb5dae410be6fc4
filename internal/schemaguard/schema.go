package schemaguard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// The bounds on a schema.
const (
	MaxSchemaSize = 4 << 20
	MaxSubschemas = 10_000
	MaxNesting    = 128
)

// The defaults of [Limits].
const (
	DefaultDepth  = 50
	DefaultFaults = 10
)

// Limits bounds one validation. Zero means the default.
type Limits struct {
	// Depth is how many levels validation descends into a value: a member or
	// an item of the root is one level deep.
	Depth int
	// Faults is how many faults are reported.
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
	doc     any // for the library, until it is compiled
	program func() (*program, error)
}

// New checks a schema: it is JSON, it keeps the bounds, it names no dialect
// but the three, it is valid in its own, and local references lead somewhere. It
// is compiled at the first use, or by [Schema.Compile]. New keeps raw; the caller
// must not change it.
func New(raw json.RawMessage) (*Schema, error) { return NewWith(raw, nil) }

// NewWith is [New] with documents, by their URLs, to which references may lead.
// What is not among them is remote as ever.
func NewWith(raw json.RawMessage, known map[string]json.RawMessage) (*Schema, error) {
	s, err := prepare(raw, known)
	if err != nil {
		return nil, err
	}
	if err := s.checkShape(); err != nil {
		return nil, err
	}
	return s, nil
}

// Trusted is [New] for a schema that this program made itself and that is known
// to be valid in its dialect, which is not checked again.
func Trusted(raw json.RawMessage) (*Schema, error) { return prepare(raw, nil) }

func prepare(raw json.RawMessage, known map[string]json.RawMessage) (*Schema, error) {
	if len(raw) > MaxSchemaSize {
		return nil, fmt.Errorf("the schema has %d bytes, more than the limit of %d", len(raw), MaxSchemaSize)
	}
	doc, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	d, err := dialectOf(doc)
	if err != nil {
		return nil, err
	}
	w := surveyor{dialect: d}
	doc = w.schema(doc, 0)
	if err := errors.Join(append(w.errs, w.checkRefs(doc))...); err != nil {
		return nil, err
	}
	others := map[string]any{}
	for url, text := range known {
		if others[url], err = decode(text); err != nil {
			return nil, fmt.Errorf("document %s is not JSON: %w", url, err)
		}
	}
	s := &Schema{raw: raw, dialect: d, doc: doc}
	s.program = sync.OnceValues(func() (*program, error) {
		p, err := compile(s.doc, d, others)
		s.doc = nil
		return p, err
	})
	return s, nil
}

// decode reads JSON for the library: numbers keep their text.
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

// Raw returns the schema's text. The caller must not modify it.
func (s *Schema) Raw() json.RawMessage { return s.raw }

// Dialect returns the schema's dialect.
func (s *Schema) Dialect() Dialect { return s.dialect }

// Compile resolves the references. An error, such as a local reference that
// leads nowhere, is also what every [Schema.Validate] returns.
func (s *Schema) Compile() error {
	_, err := s.program()
	return err
}

// Unchecked lists the patterns that cannot be checked, sorted. It compiles the schema.
func (s *Schema) Unchecked() []string {
	p, err := s.program()
	if err != nil {
		return nil
	}
	return slices.Clone(p.unchecked)
}

// Validate checks a JSON text. It returns nil, a [*ValidationError] that lists
// the faults of the value, or an error that says why there is no verdict: the
// text is not JSON ([*SyntaxError]), a bound was reached ([*LimitError]), the
// schema is broken or leaves itself ([*SchemaError]).
func (s *Schema) Validate(data []byte, l Limits) error {
	p, err := s.program()
	if err != nil {
		return err
	}
	d := borrow()
	defer d.giveBack()
	if err := d.parse(data); err != nil {
		return &SyntaxError{Err: err}
	}
	return p.validate(d, l.withDefaults())
}

// checkShape validates the schema against the metaschema of its dialect.
func (s *Schema) checkShape() error {
	meta, err := metaProgram(s.dialect)
	if err != nil {
		return err
	}
	shape, err := json.Marshal(s.doc) // not s.raw: what lies too deep is cut
	if err != nil {
		return &SchemaError{Err: err}
	}
	d := borrow()
	defer d.giveBack()
	if err := d.parse(shape); err != nil {
		return &SchemaError{Err: err}
	}
	if err := meta.validate(d, Limits{Depth: 4 * MaxNesting, Faults: 3}); err != nil {
		var invalid *ValidationError
		if errors.As(err, &invalid) {
			return &SchemaError{Err: fmt.Errorf("it is not valid in dialect %s: %s", s.dialect, invalid.line())}
		}
		return &SchemaError{Err: err}
	}
	return nil
}

// documents keeps the memory of parsed values between validations.
var documents = sync.Pool{New: func() any { return new(document) }}

// maxKept is the most nodes that a document keeps for the next validation.
const maxKept = 4096

func borrow() *document {
	d, ok := documents.Get().(*document)
	if !ok {
		d = new(document)
	}
	return d
}

func (d *document) giveBack() {
	if cap(d.nodes) > maxKept {
		return
	}
	d.text = nil
	documents.Put(d)
}
