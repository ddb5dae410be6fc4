// Package goschema derives JSON Schemas (2020-12) from Go types: a value matches the
// schema if encoding/json can decode it into the type.
//
//	schema, err := goschema.For(reflect.TypeFor[lookupIn](), goschema.Input)
//
// A schema has neither $schema nor $id. Types are written out where they are used,
// unless they are recursive or the schema would become too large. Properties keep the
// order of the fields. invopop/jsonschema provides the schema type and its encoding.
// Its reflection is not used: it overflows the stack on type T struct{ *T }, confuses
// types of one name from two packages, and ignores encoding.TextMarshaler and the rules
// of encoding/json for embedded fields.
//
// # Fields
//
// A field is optional if its json tag has omitempty or omitzero, if it has a default,
// or if it belongs to an embedded pointer. The tag jsonschema holds a plain
// description, which may have commas,
//
//	SKU string `json:"sku" jsonschema:"stock keeping unit, eight characters"`
//
// or keywords. After title, description, pattern, default and example a comma belongs
// to the value unless a keyword follows it. A backslash makes a comma part of any
// value:
//
//	Unit string `json:"unit" jsonschema:"description=unit, as on the label,enum=kg,enum=lb,default=kg"`
//
// The keywords are title, description, enum, default, example, format,
// pattern, minLength, maxLength, minimum, maximum, exclusiveMinimum,
// exclusiveMaximum, multipleOf, minItems, maxItems, uniqueItems,
// minProperties, maxProperties, deprecated, readOnly, writeOnly, required,
// optional, nullable and x-mcp-header. On a slice those for single values apply to its
// items. The tag jsonschema_description holds a description beside keywords. The tag -
// hides a field. A keyword that is unknown, repeated or for another JSON type is an
// error, and so is a value of the wrong type.
//
// # Types that describe themselves
//
// A method JSONSchema() json.RawMessage returns the schema of its type, a method
// JSONSchemaEnum() []any its values. Otherwise a type with MarshalText, or
// UnmarshalText for input, is a string, and one with MarshalJSON or UnmarshalJSON may
// be anything.
package goschema
