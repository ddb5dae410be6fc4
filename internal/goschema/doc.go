// Package goschema derives JSON Schemas (2020-12) from Go types, so that a value
// matches the schema exactly when encoding/json reads it into the type.
//
//	schema, err := goschema.For(reflect.TypeFor[lookupIn](), goschema.Input)
//
// A schema is one self-contained object: definitions are written out where they
// are used, unless a type is recursive or the whole would grow out of
// proportion; there is no $schema and no $id; properties keep the order of the
// fields. invopop/jsonschema provides the schema values and their encoding and
// is asked about types that describe themselves; its own walk is not used, as
// it overflows the stack on type T struct{ *T }, confuses types of one name
// from two packages, and knows neither encoding.TextMarshaler nor the rules by
// which encoding/json picks among embedded fields.
//
// # Fields
//
// A field is optional if its json tag says omitempty or omitzero, if it has a
// default, or if it comes by way of an embedded pointer. The tag jsonschema holds
// a plain description, commas and all,
//
//	SKU string `json:"sku" jsonschema:"stock keeping unit, eight characters"`
//
// or keywords. After one that takes prose (title, description, pattern, default,
// example) a comma belongs to the value unless something like a keyword follows it;
// a backslash before a comma makes it part of any value:
//
//	Unit string `json:"unit" jsonschema:"description=unit, as on the label,enum=kg,enum=lb,default=kg"`
//
// The keywords are title, description, enum, default, example, format,
// pattern, minLength, maxLength, minimum, maximum, exclusiveMinimum,
// exclusiveMaximum, multipleOf, minItems, maxItems, uniqueItems,
// minProperties, maxProperties, deprecated, readOnly, writeOnly, required,
// optional, nullable and x-mcp-header. On a slice those about single values
// are for its items. The tag jsonschema_description holds a description beside
// keywords. A tag - hides a field. A keyword that is unknown, given twice or for
// another JSON type, and a value of the wrong kind, is an error.
//
// # Types that describe themselves
//
// A type with a method JSONSchema() json.RawMessage gives its schema itself, one with
// JSONSchemaEnum() []any its values. Otherwise a type with MarshalText, or
// UnmarshalText for input, is a string, and one with MarshalJSON or UnmarshalJSON
// may be anything.
package goschema
