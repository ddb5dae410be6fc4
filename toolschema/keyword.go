package toolschema

// A shape is the type of a keyword's value in draft 2020-12.
type shape int

const (
	isUnknown   shape = iota // not a keyword: kept as it is
	isAny                    // anything
	isSchema                 // a schema
	isSchemas                // a list of schemas that is not empty
	isSchemaMap              // an object of schemas
	isText                   // a string
	isFlag                   // a boolean
	isNumber                 // a number
	isCount                  // an integer that is not negative
	isPositive               // a number above zero
	isNames                  // a list of different strings
	isNamesMap               // an object of lists of different strings
	isList                   // a list of anything
	isType                   // a type, or a list of types
	isRef                    // a reference, resolved beforehand
	isDropped                // taken out: it means nothing to a model, or has been resolved
)

// keywords are those of draft 2020-12, and those of older drafts that still have a meaning there.
var keywords = map[string]shape{
	"type": isType, "enum": isList, "const": isAny,
	"multipleOf": isPositive, "maximum": isNumber, "minimum": isNumber, "exclusiveMaximum": isNumber, "exclusiveMinimum": isNumber,
	"maxLength": isCount, "minLength": isCount, "pattern": isText,
	"maxItems": isCount, "minItems": isCount, "uniqueItems": isFlag, "maxContains": isCount, "minContains": isCount,
	"maxProperties": isCount, "minProperties": isCount, "required": isNames, "dependentRequired": isNamesMap,

	"properties": isSchemaMap, "patternProperties": isSchemaMap, "additionalProperties": isSchema, "propertyNames": isSchema,
	"unevaluatedProperties": isSchema, "unevaluatedItems": isSchema,
	"items": isSchema, "prefixItems": isSchemas, "contains": isSchema,
	"allOf": isSchemas, "anyOf": isSchemas, "oneOf": isSchemas, "not": isSchema, "if": isSchema, "then": isSchema, "else": isSchema,
	"dependentSchemas": isSchemaMap, "$defs": isSchemaMap, "definitions": isSchemaMap,

	"title": isText, "description": isText, "format": isText, "contentEncoding": isText, "contentMediaType": isText, "contentSchema": isSchema,
	"deprecated": isFlag, "readOnly": isFlag, "writeOnly": isFlag, "examples": isList, "default": isAny,

	"$ref": isRef,
	"$id":  isDropped, "$anchor": isDropped, "$dynamicAnchor": isDropped, "$recursiveAnchor": isDropped,
	"$schema": isDropped, "$vocabulary": isDropped, "$comment": isDropped,
	"$dynamicRef": isDropped, "$recursiveRef": isDropped,
}

// inPlace are the keywords whose schemas apply to the same value.
var inPlace = map[string]bool{
	"allOf": true, "anyOf": true, "oneOf": true, "not": true, "if": true, "then": true, "else": true, "dependentSchemas": true,
}

// typeNames has the types of JSON Schema, and common mistakes for them.
var typeNames = map[string]string{
	"object": "object", "array": "array", "string": "string", "number": "number", "integer": "integer", "boolean": "boolean", "null": "null",
	"int": "integer", "int32": "integer", "int64": "integer", "long": "integer", "uint": "integer", "bigint": "integer",
	"float": "number", "double": "number", "decimal": "number", "numeric": "number", "real": "number",
	"str": "string", "text": "string", "char": "string", "date": "string", "datetime": "string", "date-time": "string", "time": "string",
	"uuid": "string", "email": "string", "url": "string", "uri": "string", "file": "string", "binary": "string", "bytes": "string", "password": "string",
	"bool": "boolean", "list": "array", "tuple": "array", "set": "array",
	"dict": "object", "map": "object", "json": "object", "struct": "object", "record": "object", "hash": "object",
	"none": "null", "nil": "null", "undefined": "null",
}

// children calls f for each subschema with its keyword, the name or index in that, or "", and the
// value, which may be anything.
func children(o *object, f func(key, name string, sub any)) {
	for _, m := range o.members {
		switch keywords[m.key] {
		case isSchema:
			f(m.key, "", m.value)
		case isSchemas:
			list, _ := m.value.([]any)
			for i, e := range list {
				f(m.key, index(i), e)
			}
		case isSchemaMap:
			if sub, ok := m.value.(*object); ok {
				for _, e := range sub.members {
					f(m.key, e.key, e.value)
				}
			}
		}
	}
	if list, ok := o.list("items"); ok { // the older form of prefixItems
		for i, e := range list {
			f("items", index(i), e)
		}
	}
	for _, key := range []string{"dependencies", "additionalItems"} { // older forms too
		switch v, _ := o.get(key); v := v.(type) {
		case *object:
			if key == "additionalItems" {
				f(key, "", v)
				continue
			}
			for _, e := range v.members {
				f("dependentSchemas", e.key, e.value)
			}
		}
	}
}

func (o *object) list(key string) ([]any, bool) {
	v, _ := o.get(key)
	list, ok := v.([]any)
	return list, ok
}
