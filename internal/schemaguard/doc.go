// Package schemaguard validates JSON against JSON Schemas from untrusted sources, with the library
// santhosh-tekuri/jsonschema.
//
//	s, err := schemaguard.New(rawSchema)
//	if err != nil { ... }
//	err = s.Validate(rawValue, schemaguard.Limits{})
//
// The library knows the dialects 2020-12, 2019-09 and draft-07, references and formats. It has no
// bounds: thirty definitions that refer to each other twice keep it busy for hours, and the number
// 1e9999999 makes it panic. This package adds them, and messages that a model can act on.
//
//   - Nothing is fetched and no file is read. Validation that reaches a reference out of the schema
//     fails with [ErrRemote]. The metaschemas of the dialects are built in. A schema may refer to
//     2,000 places in as many documents, or to a hundred anchors in as many.
//   - A schema has at most [MaxSchemaSize] bytes and [MaxSubschemas] subschemas. Subschemas nested
//     deeper than [MaxNesting] fail when validation reaches them.
//   - A value has at most [MaxValues] values in it. Depth is counted as validation descends into
//     the value ([Limits.Depth]), so a deep value under no subschema is valid.
//   - Numbers have at most 1,000 characters and exponents within ±1,000.
//   - The steps of a validation are bounded in proportion to the size of the value.
//   - Patterns are matched in linear time. A pattern that RE2 cannot express, such as a lookahead,
//     is not checked; [Schema.Unchecked] lists it.
//
// A [Schema] is safe for concurrent use.
package schemaguard
