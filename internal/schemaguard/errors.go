package schemaguard

import (
	"fmt"
	"strings"
)

// A Fault is one thing that is wrong with a value.
type Fault struct {
	// Pointer is the JSON pointer of the value, "" for the whole. For a member
	// that is missing or must not be there it is where that member is or would be.
	Pointer string
	// Keyword is the keyword of the schema that is not satisfied.
	Keyword string
	// Message says what was expected and what was found.
	Message string
	// Indent is 0, or more for a fault that explains the one before it.
	Indent int
}

func (f Fault) String() string {
	if f.Pointer == "" {
		return "(root): " + f.Message
	}
	return f.Pointer + ": " + f.Message
}

// A ValidationError says that a value does not match a schema.
type ValidationError struct {
	Faults []Fault
	// More reports that there are more faults than were asked for.
	More bool
}

func (e *ValidationError) Error() string {
	var b strings.Builder
	for i, f := range e.Faults {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strings.Repeat("  ", f.Indent))
		b.WriteString("- ")
		b.WriteString(f.String())
	}
	if e.More {
		b.WriteString("\n- and more")
	}
	return b.String()
}

// line is Error in one line.
func (e *ValidationError) line() string {
	var parts []string
	for _, f := range e.Faults {
		parts = append(parts, f.String())
	}
	return strings.Join(parts, "; ")
}

// A SyntaxError says that a text is not JSON.
type SyntaxError struct{ Err error }

func (e *SyntaxError) Error() string { return "not valid JSON: " + e.Err.Error() }
func (e *SyntaxError) Unwrap() error { return e.Err }

// A SchemaError says that a schema is broken, or that validation reached a part
// of it that cannot be evaluated.
type SchemaError struct {
	// Pointer is where the value was when that part was reached.
	Pointer string
	Err     error
}

func (e *SchemaError) Error() string {
	if e.Pointer != "" {
		return fmt.Sprintf("%s: the schema cannot be used: %v", e.Pointer, e.Err)
	}
	return fmt.Sprintf("the schema cannot be used: %v", e.Err)
}
func (e *SchemaError) Unwrap() error { return e.Err }

// A LimitError says that validation stopped at a bound and has no verdict.
type LimitError struct {
	// Pointer is where the value was.
	Pointer string
	// Depth is the bound on depth, or 0 when the work was too much.
	Depth int
}

func (e *LimitError) Error() string {
	if e.Depth > 0 {
		return fmt.Sprintf("%s: nested deeper than the limit of %d levels", e.Pointer, e.Depth)
	}
	return "validating this value against the schema takes too much work"
}

// errTooDeep marks what lies deeper than MaxNesting in a schema.
var errTooDeep = fmt.Errorf("it is written more than %d levels deep there", MaxNesting)

// A remoteError is the place that a remote reference leads to.
type remoteError struct{ url string }

func (e *remoteError) Error() string {
	return fmt.Sprintf("it refers to %s, and %v", e.url, ErrRemote)
}

func (e *remoteError) Is(target error) bool { return target == ErrRemote }
