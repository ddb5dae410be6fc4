package toolschema

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxEnum limits the values of an enumeration, maxEnumBytes their total size.
	maxEnum      = 500
	maxEnumBytes = 16 << 10
	// maxText limits a description within a schema, in characters.
	maxText = 4096
	// maxPattern limits a pattern, in bytes.
	maxPattern = 4096
)

// schema returns a valid schema for a value: a cleaned object, or a boolean.
func (m *mender) schema(v any) any {
	switch v := v.(type) {
	case *object:
		m.clean(v)
		return v
	case bool:
		return v
	case string:
		if t, ok := typeNames[strings.ToLower(v)]; ok {
			m.mend("", "shape", "the type %q alone is written as a schema", v)
			return newObject(member{"type", t})
		}
		m.loosen("", "shape", "a string is no schema; anything is accepted")
	case tooDeep:
		m.loosen("", "depth", "nested too deep; anything is accepted from here on")
	case nil:
		m.loosen("", "shape", "null is no schema; anything is accepted")
	default:
		m.loosen("", "shape", "this is no schema; anything is accepted")
	}
	return &object{}
}

// clean makes a schema and all its subschemas valid draft 2020-12, with property keys that the API
// accepts.
func (m *mender) clean(o *object) {
	m.spend(1 + 2*len(o.members))
	if m.loosened[o] {
		m.loose++
	}
	m.modernize(o)
	m.liftRequired(o)
	// A copy, since keywords are removed.
	for _, kw := range slices.Clone(o.members) {
		shape := keywords[kw.key]
		if shape == isUnknown && !(m.cut && hasTooDeep(kw.value)) {
			continue
		}
		before := m.loose
		v, ok := m.keyword(kw.key, shape, kw.value)
		switch {
		case !ok:
			o.remove(kw.key)
		case kw.key == "oneOf" && m.loose != before && o.find("anyOf") < 0:
			// More than one alternative may match now.
			m.mend(kw.key, "shape", "is written as anyOf, since not every alternative could be kept as it is")
			o.remove(kw.key)
			o.set("anyOf", v)
		default:
			o.set(kw.key, v)
		}
	}
	m.renameLists(o)
}

func isTooDeep(v any) bool { _, ok := v.(tooDeep); return ok }

// hasTooDeep reports whether part of a value was cut for its depth.
func hasTooDeep(v any) bool {
	switch v := v.(type) {
	case tooDeep:
		return true
	case []any:
		return slices.ContainsFunc(v, hasTooDeep)
	case *object:
		return slices.ContainsFunc(v.members, func(m member) bool { return hasTooDeep(m.value) })
	}
	return false
}

// keyword returns a valid value of a keyword. It reports false if the keyword must be removed.
func (m *mender) keyword(key string, s shape, v any) (out any, ok bool) {
	drop := func(format string, args ...any) (any, bool) {
		m.loosen(key, "keyword", format, args...)
		return nil, false
	}
	switch s {
	case isSchema:
		return m.subschema(key, v)
	case isSchemas:
		return m.schemas(key, v)
	case isSchemaMap:
		return m.schemaMap(key, v)
	case isText:
		return m.text(key, v)
	case isFlag:
		return m.flag(key, v)
	case isNumber, isCount, isPositive:
		return m.number(key, s, v)
	case isNames:
		return m.names(key, v)
	case isNamesMap:
		return m.namesMap(key, v)
	case isType:
		return m.types(key, v)
	case isList:
		return m.list(key, v)
	case isRef:
		_, isText := v.(string)
		return v, isText
	case isDropped:
		if key == "$schema" {
			if url, _ := v.(string); strings.Contains(url, "2020-12") {
				return nil, false
			}
			m.mend(key, "dialect", "the schema is written for another dialect than draft 2020-12")
			return nil, false
		}
		return nil, false
	}
	if m.cut && hasTooDeep(v) {
		return drop("its value is nested too deep and is taken out")
	}
	return v, true
}

// subschema cleans a schema in a keyword. It removes other values, and conditions and negations
// that would now accept less than the server.
func (m *mender) subschema(key string, v any) (any, bool) {
	switch v {
	case "true", "false":
		m.mend(key, "shape", "%s in quotation marks is written as a boolean", v)
		return v == "true", true
	}
	_, isName := typeNames[strings.ToLower(textOf(v))]
	if !isSchemaLike(v) && !isName {
		m.loosen(key, "keyword", "is no schema and is taken out")
		return nil, false
	}
	before := m.loose
	m.push(key, "")
	out := m.schema(v)
	m.pop(key, "")
	if m.loose != before && (key == "not" || key == "if") {
		m.loosen(key, "keyword", "could not be kept as it is, and is taken out")
		return nil, false
	}
	return out, true
}

func textOf(v any) string {
	s, _ := v.(string)
	return s
}

func (m *mender) schemas(key string, v any) (any, bool) {
	list, ok := v.([]any)
	switch {
	case ok:
	case isSchemaLike(v):
		m.mend(key, "shape", "one schema is written as a list of one")
		list = []any{v}
	default:
		m.loosen(key, "keyword", "is no list of schemas and is taken out")
		return nil, false
	}
	if len(list) == 0 {
		m.loosen(key, "keyword", "is empty and is taken out")
		return nil, false
	}
	m.spend(len(list))
	for i, e := range list {
		m.push(key, index(i))
		list[i] = m.schema(e)
		m.pop(key, index(i))
	}
	return list, true
}

func isSchemaLike(v any) bool {
	switch v.(type) {
	case *object, bool:
		return true
	}
	return false
}

func (m *mender) schemaMap(key string, v any) (any, bool) {
	o, ok := v.(*object)
	if !ok {
		m.loosen(key, "keyword", "is no object of schemas and is taken out")
		return nil, false
	}
	m.spend(len(o.members))
	for i := range o.members {
		e := &o.members[i]
		m.push(key, e.key)
		e.value = m.schema(e.value)
		m.pop(key, e.key)
	}
	if key == "properties" || key == "dependentSchemas" {
		m.renameKeys(o, key)
	}
	return o, true
}

func (m *mender) text(key string, v any) (any, bool) {
	switch v := v.(type) {
	case string:
		if key == "pattern" && len(v) > maxPattern {
			m.loosen(key, "size", "the pattern has %d bytes and is taken out", len(v))
			return nil, false
		}
		if cut, ok := truncate(v, maxText); ok {
			m.mend(key, "size", "cut to %d characters", maxText)
			return cut, true
		}
		return v, true
	case number:
		m.mend(key, "shape", "a number is written as a string")
		return string(v), true
	case []any:
		lines := make([]string, 0, len(v))
		for _, e := range v {
			if s, ok := e.(string); ok {
				lines = append(lines, s)
			}
		}
		if key == "description" && len(lines) > 0 {
			m.mend(key, "shape", "a list of lines is written as one string")
			return m.text(key, strings.Join(lines, "\n"))
		}
	}
	m.loosen(key, "keyword", "is no string and is taken out")
	return nil, false
}

func (m *mender) flag(key string, v any) (any, bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case string:
		if v == "true" || v == "false" {
			m.mend(key, "shape", "%q is written as a boolean", v)
			return v == "true", true
		}
	}
	m.loosen(key, "keyword", "is no boolean and is taken out")
	return nil, false
}

func (m *mender) number(key string, s shape, v any) (any, bool) {
	n, isNumber := v.(number)
	if text, ok := v.(string); ok && plainNumber(text) {
		m.mend(key, "shape", "a number in quotation marks is written as a number")
		n, isNumber = number(text), true
	}
	f, err := strconv.ParseFloat(string(n), 64)
	switch {
	case !isNumber:
		m.loosen(key, "keyword", "is no number and is taken out")
		return nil, false
	case err != nil || math.Abs(f) > 1e300:
		m.loosen(key, "keyword", "is out of range and is taken out")
		return nil, false
	case s == isPositive && f <= 0:
		m.loosen(key, "keyword", "is not above zero and is taken out")
		return nil, false
	case s == isCount && (f < 0 || f != math.Trunc(f) || f > math.MaxInt32):
		m.loosen(key, "keyword", "is no count and is taken out")
		return nil, false
	case s == isCount && strings.ContainsAny(string(n), ".eE-"):
		return number(strconv.FormatInt(int64(f), 10)), true
	}
	return n, true
}

// plainNumber reports whether s is a JSON number.
func plainNumber(s string) bool {
	v, _, err := parseJSON([]byte(s), 0)
	_, ok := v.(number)
	return err == nil && ok
}

// names returns a list of different strings. Its keys are still the server's.
func (m *mender) names(key string, v any) (any, bool) {
	list, ok := v.([]any)
	if s, isText := v.(string); isText {
		m.mend(key, "shape", "one name is written as a list of one")
		list, ok = []any{s}, true
	}
	if !ok {
		m.loosen(key, "keyword", "is no list of names and is taken out")
		return nil, false
	}
	m.spend(len(list))
	seen := make(map[string]bool, len(list))
	out := make([]any, 0, len(list))
	for _, e := range list {
		s, isText := e.(string)
		if isText && !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	if len(out) != len(list) {
		m.loosen(key, "shape", "names that stand twice, and what is no name, are taken out")
	}
	return out, true
}

func (m *mender) namesMap(key string, v any) (any, bool) {
	o, ok := v.(*object)
	if !ok {
		m.loosen(key, "keyword", "is no object of lists of names and is taken out")
		return nil, false
	}
	kept := o.members[:0]
	for _, e := range o.members {
		if list, ok := m.names(key, e.value); ok {
			kept = append(kept, member{e.key, list})
		}
	}
	clear(o.members[len(kept):])
	o.members = kept
	o.reindex()
	m.renameKeys(o, key)
	return o, true
}

func (m *mender) types(key string, v any) (any, bool) {
	switch v := v.(type) {
	case string:
		t, ok := typeNames[strings.ToLower(v)]
		switch {
		case !ok:
			m.loosen(key, "type", "%q is no type and is taken out", shorten(v))
			return nil, false
		case t != v:
			m.mend(key, "type", "%q is written as %q", shorten(v), t)
		}
		return t, true
	case []any:
		m.spend(len(v))
		var out []any
		for _, e := range v {
			s, _ := e.(string)
			if e == nil {
				s = "null"
			}
			if t, ok := typeNames[strings.ToLower(s)]; ok && !slices.Contains(out, any(t)) {
				out = append(out, t)
			}
		}
		if !slices.Equal(out, v) {
			m.loosen(key, "type", "what is no type, or stands twice, is taken out")
		}
		switch len(out) {
		case 0:
			return nil, false
		case 1:
			return out[0], true
		}
		return out, true
	}
	m.loosen(key, "type", "is no type and is taken out")
	return nil, false
}

// list cleans an enumeration or a list of examples.
func (m *mender) list(key string, v any) (any, bool) {
	list, ok := v.([]any)
	switch {
	case !ok && key == "examples" && !isTooDeep(v):
		m.mend(key, "shape", "one example is written as a list of one")
		list = []any{v}
	case !ok:
		m.loosen(key, "keyword", "is no list and is taken out")
		return nil, false
	case len(list) == 0:
		m.loosen(key, "keyword", "is empty and is taken out")
		return nil, false
	}
	m.spend(len(list))
	if m.cut && hasTooDeep(list) {
		m.loosen(key, "depth", "has values that are nested too deep and is taken out")
		return nil, false
	}
	if len(list) > maxEnum || len(m.json(list)) > maxEnumBytes {
		m.loosen(key, "size", "has %d values, too many for a model, and is taken out", len(list))
		return nil, false
	}
	return list, true
}

// truncate shortens text to a number of characters and marks it.
func truncate(s string, limit int) (string, bool) {
	if len(s) <= limit {
		return s, false
	}
	n := 0
	for i := range s {
		if n++; n > limit {
			return s[:i] + truncated, true
		}
	}
	return s, false
}

// truncated is the mark of shortened text.
const truncated = "… [truncated]"
