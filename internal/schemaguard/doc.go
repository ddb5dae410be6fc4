// Package schemaguard validates JSON against JSON Schemas that nobody vouches
// for: dialects 2020-12, 2019-09 and draft-07, exact numbers, messages that a
// model can act on, and a bound on everything.
//
//	s, err := schemaguard.New(rawSchema) // dialect, size and shape are checked here
//	if err != nil { ... }
//	err = s.Validate(rawValue, schemaguard.Limits{})
//
// # Who does what
//
// The library santhosh-tekuri/jsonschema reads a schema: dialects, $id, anchors,
// references, the metaschemas, formats. Its compiled form is evaluated here and
// not by its Validate method, because that has no bound: thirty definitions
// that refer to each other twice keep it busy for hours, ten megabytes of wrong
// items make a gigabyte of errors, and the number 1e9999999 under a minimum is
// a panic. The verdicts are the library's; a fuzz test compares them.
//
// # Bounds
//
//   - Nothing is fetched and no file is read. A reference that leaves the schema
//     resolves to a place that fails with [ErrRemote] when validation reaches
//     it. The metaschemas of the dialects are built in and may be referred to.
//   - Depth is counted as validation descends into the value ([Limits.Depth]).
//     What a value does not reach costs nothing.
//   - A schema has at most [MaxSchemaSize] bytes, [MaxSubschemas] subschemas, and
//     numbers of at most 1,000 digits and exponents of at most 1,000. It is read
//     to a nesting of [MaxNesting] subschemas; what lies deeper fails when it
//     is reached.
//   - Validation takes a number of steps that is linear in the size of the value.
//   - A pattern is matched in linear time. One that RE2 cannot express, such as a
//     lookahead, is not checked; [Schema.Unchecked] lists it.
//
// A [Schema] is immutable and safe for concurrent use. It is compiled once, at its first use.
package schemaguard
