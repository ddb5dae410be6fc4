package schemaguard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/tenon-sdk/tenon/internal/editdistance"
)

// A reporter turns errors of the library into faults.
type reporter struct {
	value any
	byURL map[string]*jsonschema.Schema
}

// A pending is a fault that is not described yet. A value may have many faults, and few are listed.
type pending struct {
	pointer  string
	place    string // of the schema
	kind     jsonschema.ErrorKind
	indent   int
	describe func() (keyword, message string)
}

// report returns the first faults of an error.
func (r *reporter) report(e *jsonschema.ValidationError, limit int) *ValidationError {
	all := r.faults(e)
	listed := all[:min(len(all), limit)]
	err := &ValidationError{Faults: make([]Fault, len(listed)), More: len(all) > limit}
	for i, f := range listed {
		keyword, message := f.describe()
		err.Faults[i] = Fault{Pointer: f.pointer, Keyword: keyword, Message: message, Indent: f.indent}
	}
	return err
}

// all returns the faults of several errors, sorted by their places in the value.
func (r *reporter) all(errs []*jsonschema.ValidationError) []pending {
	groups := make([][]pending, 0, len(errs))
	for _, e := range errs {
		groups = append(groups, r.faults(e))
	}
	slices.SortStableFunc(groups, func(a, b []pending) int {
		if len(a) == 0 || len(b) == 0 {
			return len(b) - len(a)
		}
		return comparePlaces(a[0], b[0])
	})
	return slices.Concat(groups...)
}

// comparePlaces sorts items by their index.
func comparePlaces(a, b pending) int {
	x, y := strings.Split(a.pointer, "/"), strings.Split(b.pointer, "/")
	for i := range min(len(x), len(y)) {
		n, err := strconv.Atoi(x[i])
		m, err2 := strconv.Atoi(y[i])
		order := strings.Compare(x[i], y[i])
		if err == nil && err2 == nil {
			order = n - m
		}
		if order != 0 {
			return order
		}
	}
	return cmp.Or(len(x)-len(y), strings.Compare(a.place, b.place))
}

// faults returns the faults of an error.
func (r *reporter) faults(e *jsonschema.ValidationError) []pending {
	f := pending{pointer: pointer(e.InstanceLocation), place: e.SchemaURL, kind: e.ErrorKind}
	member := func(name string, describe func() (string, string)) pending {
		f.pointer, f.describe = pointer(e.InstanceLocation)+"/"+escapeToken(name), describe
		return f
	}
	missing := func(keyword string, names []string) []pending {
		var faults []pending
		for _, name := range names {
			faults = append(faults, member(name, func() (string, string) { return keyword, r.missing(e.SchemaURL, name) }))
		}
		return faults
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return missing("required", k.Missing)
	case *kind.DependentRequired:
		return missing("dependentRequired", k.Missing)
	case *kind.Dependency:
		return missing("dependencies", k.Missing)
	case *kind.AdditionalProperties:
		slices.Sort(k.Properties)
		var faults []pending
		for _, name := range k.Properties {
			faults = append(faults, member(name, func() (string, string) { return "additionalProperties", r.unknown(e.SchemaURL, name) }))
		}
		return faults
	case *kind.PropertyNames:
		faults := r.nested(k.Property).all(e.Causes)
		for i, inner := range faults {
			faults[i] = member(k.Property, func() (string, string) {
				_, message := inner.describe()
				return "propertyNames", "the name is wrong: " + message
			})
		}
		return faults
	case *kind.AnyOf:
		return r.noAlternative("anyOf", e, f)
	case *kind.OneOf:
		if k.Subschemas == nil {
			return r.noAlternative("oneOf", e, f)
		}
	case *kind.Contains, *kind.MinContains: // their causes are why single items do not match
	default:
		if len(e.Causes) > 0 {
			return r.all(e.Causes)
		}
	}
	f.describe = func() (string, string) { return r.describe(e) }
	return []pending{f}
}

// describe returns the keyword that an error is about, and its message.
func (r *reporter) describe(e *jsonschema.ValidationError) (keyword, message string) {
	got := func() string { return show(r.at(e.InstanceLocation)) }
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return "type", fmt.Sprintf("expected %s, got %s", either(articles(k.Want)), got())
	case *kind.Const:
		return "const", fmt.Sprintf("expected %s, got %s", literal(k.Want), got())
	case *kind.Enum:
		return "enum", fmt.Sprintf("expected %s, got %s", oneOf(k.Want), got())
	case *kind.Format:
		return "format", fmt.Sprintf("expected %s, got %s", formatName(k.Want), got())
	case *kind.MinProperties:
		return "minProperties", fmt.Sprintf("expected at least %s, got %d", count(k.Want, "property"), k.Got)
	case *kind.MaxProperties:
		return "maxProperties", fmt.Sprintf("expected at most %s, got %d", count(k.Want, "property"), k.Got)
	case *kind.MinItems:
		return "minItems", fmt.Sprintf("expected at least %s, got %d", count(k.Want, "item"), k.Got)
	case *kind.MaxItems:
		return "maxItems", fmt.Sprintf("expected at most %s, got %d", count(k.Want, "item"), k.Got)
	case *kind.AdditionalItems:
		return "additionalItems", fmt.Sprintf("the last %s must not be there", count(k.Count, "item"))
	case *kind.MinLength:
		return "minLength", fmt.Sprintf("expected at least %s, got %s", count(k.Want, "character"), got())
	case *kind.MaxLength:
		return "maxLength", fmt.Sprintf("expected at most %s, got %d", count(k.Want, "character"), k.Got)
	case *kind.Pattern:
		return "pattern", fmt.Sprintf("expected a string that matches the regular expression %s, got %s", k.Want, got())
	case *kind.Minimum:
		return "minimum", fmt.Sprintf("expected at least %s, got %s", decimal(k.Want), got())
	case *kind.Maximum:
		return "maximum", fmt.Sprintf("expected at most %s, got %s", decimal(k.Want), got())
	case *kind.ExclusiveMinimum:
		return "exclusiveMinimum", fmt.Sprintf("expected more than %s, got %s", decimal(k.Want), got())
	case *kind.ExclusiveMaximum:
		return "exclusiveMaximum", fmt.Sprintf("expected less than %s, got %s", decimal(k.Want), got())
	case *kind.MultipleOf:
		return "multipleOf", fmt.Sprintf("expected a multiple of %s, got %s", decimal(k.Want), got())
	case *kind.UniqueItems:
		return "uniqueItems", fmt.Sprintf("items %d and %d are equal, but all must differ", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return "contains", "expected at least 1 item of the required form, got 0"
	case *kind.MinContains:
		return "contains", fmt.Sprintf("expected at least %s of the required form, got %d", count(k.Want, "item"), len(k.Got))
	case *kind.MaxContains:
		return "maxContains", fmt.Sprintf("expected at most %s of that form, got %d", count(k.Want, "item"), len(k.Got))
	case *kind.Not:
		return "not", fmt.Sprintf("the value is of a form that is excluded here, got %s", got())
	case *kind.RefCycle:
		return "$ref", "the schema refers to itself without end here"
	case *kind.FalseSchema:
		return falseKeyword(e.SchemaURL)
	case *kind.OneOf:
		return "oneOf", fmt.Sprintf("matches alternatives %d and %d, but must match exactly one", k.Subschemas[0]+1, k.Subschemas[1]+1)
	}
	return "", "does not match the schema"
}

// nested is a reporter for a value of its own.
func (r *reporter) nested(value any) *reporter { return &reporter{value: value, byURL: r.byURL} }

// at returns the value at a place.
func (r *reporter) at(place []string) any {
	v := r.value
	for _, token := range place {
		v, _ = child(v, token) // present: the library was there
	}
	return v
}

func falseKeyword(url string) (keyword, message string) {
	switch last := url[strings.LastIndexByte(url, '/')+1:]; last {
	case "additionalProperties", "unevaluatedProperties":
		return last, "unknown property"
	case "items", "additionalItems", "unevaluatedItems":
		return last, "there must be no item here"
	}
	return "false", "nothing is allowed here"
}

// missing describes a member that must be present.
func (r *reporter) missing(place, name string) string {
	message := "required, but missing"
	if s := r.byURL[place]; s != nil {
		if want := expected(s.Properties[name]); want != "" {
			message += "; expected " + want
		}
	}
	return message
}

// unknown describes a member that must not be present, with the properties of the schema.
func (r *reporter) unknown(place, name string) string {
	var known []string
	if s := r.byURL[place]; s != nil {
		known = slices.Sorted(maps.Keys(s.Properties))
	}
	return "unknown property" + allowed(name, known)
}

// allowed names the properties of the schema, only the likely one if there is one.
func allowed(name string, known []string) string {
	const many = 20
	const longest = 64
	best, least := "", 3
	for _, k := range known {
		switch d := editdistance.Distance(k, name, 2); {
		case strings.EqualFold(k, name):
			best, least = k, 0
		case d < least && min(len(k), len(name)) > 2 && max(len(k), len(name)) <= longest:
			best, least = k, d
		}
	}
	switch {
	case best != "":
		return "; did you mean " + strconv.Quote(best) + "?"
	case len(known) == 0:
		return "; none is allowed here"
	case len(known) > many:
		return "; allowed are " + quoted(known[:many]) + " and more"
	}
	return "; allowed are " + quoted(known)
}

func quoted(names []string) string {
	var parts []string
	for _, n := range names {
		parts = append(parts, strconv.Quote(shorten(n, 60)))
	}
	return strings.Join(parts, ", ")
}

// expected describes in a few words what a schema asks for, or is "" if that takes more.
func expected(s *jsonschema.Schema) string {
	if s == nil || s.Bool != nil {
		return ""
	}
	description := s.Description
	for i := 0; i < 8 && s.Types == nil && s.Enum == nil && s.Const == nil && s.Ref != nil; i++ {
		s = s.Ref
	}
	if description == "" {
		description = s.Description
	}
	want := ""
	switch {
	case s.Const != nil:
		want = literal(*s.Const)
	case s.Enum != nil:
		want = oneOf(s.Enum.Values)
	case s.Types != nil:
		want = either(articles(s.Types.ToStrings()))
	}
	if want != "" && description != "" {
		want += " (" + shorten(description, 120) + ")"
	}
	return want
}

// noAlternative reports that a value matches none of several subschemas: by their types if all
// types are wrong, else by the faults of the alternative that comes closest.
func (r *reporter) noAlternative(keyword string, e *jsonschema.ValidationError, f pending) []pending {
	var types []string
	best, bestScore := -1, 0
	var closest []pending
	for i, cause := range e.Causes {
		for {
			if _, ok := cause.ErrorKind.(*kind.Reference); !ok || len(cause.Causes) != 1 {
				break
			}
			cause = cause.Causes[0]
		}
		if k, ok := cause.ErrorKind.(*kind.Type); ok && len(cause.InstanceLocation) == len(e.InstanceLocation) {
			for _, t := range k.Want {
				if !slices.Contains(types, t) {
					types = append(types, t)
				}
			}
			continue
		}
		faults := r.faults(cause)
		if score := closeness(faults, f.pointer); best < 0 || score > bestScore {
			best, bestScore, closest = i, score, faults
		}
	}
	if best < 0 && len(types) > 0 {
		f.describe = func() (string, string) {
			return keyword, fmt.Sprintf("expected %s, got %s", either(articles(types)), show(r.at(e.InstanceLocation)))
		}
		return []pending{f}
	}
	f.describe = func() (string, string) {
		return keyword, fmt.Sprintf("matches none of the %d allowed forms; the closest, form %d, has these faults", len(e.Causes), best+1)
	}
	faults := []pending{f}
	for _, inner := range closest {
		inner.indent++
		faults = append(faults, inner)
	}
	return faults
}

// closeness scores an alternative: few faults and faults deep in the value are close, a wrong
// constant means another form.
func closeness(faults []pending, at string) int {
	score := 1000 - 10*len(faults)
	for _, f := range faults {
		switch f.kind.(type) {
		case *kind.Const, *kind.Enum:
			score -= 200
		case *kind.Type, *kind.FalseSchema:
			if f.pointer == at {
				score -= 500
			}
		}
	}
	return score
}

func articles(types []string) []string {
	var words []string
	for _, t := range types {
		switch t {
		case "null":
			words = append(words, t)
		case "integer", "array", "object":
			words = append(words, "an "+t)
		default:
			words = append(words, "a "+t)
		}
	}
	return words
}

func either(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

func oneOf(values []any) string {
	const many = 20
	var parts []string
	for i, v := range values {
		if i == many {
			return "one of " + strings.Join(parts, ", ") + " and more"
		}
		parts = append(parts, literal(v))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "one of " + strings.Join(parts, ", ")
}

func count(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case noun == "property":
		return strconv.Itoa(n) + " properties"
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

func decimal(r *big.Rat) string {
	digits, _ := r.FloatPrec() // exact: the number was a decimal in the schema
	return shorten(r.FloatString(digits), 40)
}

// literal is a value of a schema as JSON.
func literal(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return shorten(string(text), 60)
}

// show describes a value for a message.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case map[string]any:
		if len(v) == 0 {
			return "the empty object {}"
		}
		return "an object"
	case []any:
		if len(v) == 0 {
			return "the empty array []"
		}
		return fmt.Sprintf("an array of %d", len(v))
	case json.Number:
		return "the number " + shorten(string(v), 60)
	case string:
		return "the string " + strconv.Quote(shorten(v, 60))
	}
	return fmt.Sprint(v)
}

// shorten cuts s after limit characters and adds three dots.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	i := 0
	for cut := range s {
		if i == limit {
			return s[:cut] + "..."
		}
		i++
	}
	return s
}

// formatName describes a format, with an example if that helps.
func formatName(name string) string {
	switch name {
	case "date-time":
		return "a date and time as in RFC 3339, such as 2026-07-28T09:30:00Z"
	case "date":
		return "a date such as 2026-07-28"
	case "time":
		return "a time such as 09:30:00Z"
	case "duration":
		return "an ISO 8601 duration such as PT15M"
	case "email":
		return "an e-mail address"
	case "uri":
		return "an absolute URI"
	case "regex":
		return "a regular expression"
	}
	return "a string in the format " + name
}
