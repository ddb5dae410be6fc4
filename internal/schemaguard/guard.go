package schemaguard

import (
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// An instance is a compiled schema. The library's hooks know nothing about the validation that calls
// them, so an instance runs one validation at a time.
type instance struct {
	root      *jsonschema.Schema
	negation  *jsonschema.Schema            // not root
	byURL     map[string]*jsonschema.Schema // subschemas by location
	unchecked []string

	steps int64 // left to this validation
	depth int   // the limit of this validation
}

// Steps of a validation: a constant, and more for each byte of the value. A step takes some 200 ns.
const (
	baseSteps    = 200_000
	stepsPerByte = 50
	maxSteps     = 20_000_000
)

// maxListed is the number of values in a value up to which its faults are listed. The library
// builds an error for every fault there is.
const maxListed = 50_000

// stopped is the panic of a hook that ends a validation.
type stopped struct{ err error }

// validate validates a value that was read from size bytes.
func (in *instance) validate(value any, size int, l Limits) (err error) {
	defer func() {
		if r := recover(); r != nil {
			stop, ok := r.(stopped)
			if err = stop.err; !ok {
				err = &SchemaError{Err: fmt.Errorf("validation panicked: %v", r)}
			}
		}
	}()
	in.depth = l.Depth
	in.steps = min(baseSteps+stepsPerByte*int64(size), maxSteps)
	if countOf(value, maxListed) >= maxListed {
		if in.negation.Validate(value) != nil { // the library builds no errors under "not"
			return nil
		}
		return &ValidationError{Faults: []Fault{{Message: "does not match the schema; the value is too large to list its faults"}}}
	}
	err = in.root.Validate(value)
	if err == nil {
		return nil
	}
	//nolint:errorlint // the library returns nothing else
	faults, ok := err.(*jsonschema.ValidationError)
	if !ok {
		return &SchemaError{Err: err}
	}
	r := reporter{value: value, byURL: in.byURL}
	return r.report(faults, l.Faults)
}

func (in *instance) spend(n int64) {
	if in.steps -= n; in.steps < 0 {
		panic(stopped{&LimitError{}})
	}
}

// countOf counts values up to a limit.
func countOf(v any, limit int) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if n += countOf(item, limit-n); n >= limit {
				return n
			}
		}
	case map[string]any:
		for _, item := range v {
			if n += countOf(item, limit-n); n >= limit {
				return n
			}
		}
	}
	return n
}

// A guard bounds the evaluation of one subschema.
type guard struct {
	in     *instance
	schema *jsonschema.Schema
	stub   error // the subschema is not part of the schema
}

// Validate is called by the library after the subschema was evaluated.
func (g *guard) Validate(ctx *jsonschema.ValidatorContext, _ any) {
	at := ctx.ValueLocation()
	if g.stub != nil {
		panic(stopped{&SchemaError{Pointer: pointer(at), Err: g.stub}})
	}
	if len(at) > g.in.depth {
		panic(stopped{&LimitError{Pointer: pointer(at), Depth: g.in.depth}})
	}
}

// attach completes the guard when the whole schema is compiled. The library checks the format of a
// value before it descends, so that is where steps are counted.
func (g *guard) attach(stubs map[string]bool, chains map[*jsonschema.Schema]int64) {
	s := g.schema
	g.in.byURL[s.Location] = s
	switch base, _, _ := strings.Cut(s.Location, "#"); {
	case base == tooDeepURL:
		g.stub = errTooDeep
	case stubs[base]:
		g.stub = &remoteError{base}
	}
	if s.DraftVersion < 2019 && s.Ref != nil {
		s.Const = nil // draft-07 ignores it beside $ref, and the library does not
	}
	cost := newCost(s, chains)
	format := s.Format
	s.Format = &jsonschema.Format{Validate: func(v any) error {
		g.in.spend(cost.of(v))
		if format == nil {
			return nil
		}
		return format.Validate(v)
	}}
	if format != nil {
		s.Format.Name = format.Name
	}
}
