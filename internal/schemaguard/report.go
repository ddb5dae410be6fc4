package schemaguard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// A reporter turns errors of the library into faults.
type reporter struct {
	value any
	byURL map[string]*jsonschema.Schema
}

// report returns the first faults of an error.
func (r *reporter) report(e *jsonschema.ValidationError, limit int) *ValidationError {
	faults := r.faults(e)
	more := len(faults) > limit
	return &ValidationError{Faults: slices.Clip(faults[:min(len(faults), limit)]), More: more}
}

// all returns the faults of several errors, sorted by their places in the value.
func (r *reporter) all(errs []*jsonschema.ValidationError) []Fault {
	groups := make([][]Fault, 0, len(errs))
	for _, e := range errs {
		groups = append(groups, r.faults(e))
	}
	slices.SortStableFunc(groups, func(a, b []Fault) int {
		if len(a) == 0 || len(b) == 0 {
			return len(b) - len(a)
		}
		return comparePlaces(a[0], b[0])
	})
	return slices.Concat(groups...)
}

// comparePlaces sorts items by their index.
func comparePlaces(a, b Fault) int {
	x, y := strings.Split(a.Pointer, "/"), strings.Split(b.Pointer, "/")
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
	return cmp.Or(len(x)-len(y), strings.Compare(a.Keyword, b.Keyword), strings.Compare(a.Message, b.Message))
}

// faults returns the faults of an error.
func (r *reporter) faults(e *jsonschema.ValidationError) []Fault {
	at := pointer(e.InstanceLocation)
	one := func(keyword, format string, args ...any) []Fault {
		return []Fault{{Pointer: at, Keyword: keyword, Message: fmt.Sprintf(format, args...)}}
	}
	got := func() string { return show(r.at(e.InstanceLocation)) }
	schema := r.byURL[e.SchemaURL]
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return one("type", "expected %s, got %s", either(articles(k.Want)), got())
	case *kind.Const:
		return one("const", "expected %s, got %s", literal(k.Want), got())
	case *kind.Enum:
		return one("enum", "expected %s, got %s", oneOf(k.Want), got())
	case *kind.Format:
		return one("format", "expected %s, got %s", formatName(k.Want), got())
	case *kind.MinProperties:
		return one("minProperties", "expected at least %s, got %d", count(k.Want, "property"), k.Got)
	case *kind.MaxProperties:
		return one("maxProperties", "expected at most %s, got %d", count(k.Want, "property"), k.Got)
	case *kind.MinItems:
		return one("minItems", "expected at least %s, got %d", count(k.Want, "item"), k.Got)
	case *kind.MaxItems:
		return one("maxItems", "expected at most %s, got %d", count(k.Want, "item"), k.Got)
	case *kind.AdditionalItems:
		return one("additionalItems", "the last %s must not be there", count(k.Count, "item"))
	case *kind.MinLength:
		return one("minLength", "expected at least %s, got %s", count(k.Want, "character"), got())
	case *kind.MaxLength:
		return one("maxLength", "expected at most %s, got %d", count(k.Want, "character"), k.Got)
	case *kind.Pattern:
		return one("pattern", "expected a string that matches the regular expression %s, got %s", k.Want, got())
	case *kind.Minimum:
		return one("minimum", "expected at least %s, got %s", decimal(k.Want), got())
	case *kind.Maximum:
		return one("maximum", "expected at most %s, got %s", decimal(k.Want), got())
	case *kind.ExclusiveMinimum:
		return one("exclusiveMinimum", "expected more than %s, got %s", decimal(k.Want), got())
	case *kind.ExclusiveMaximum:
		return one("exclusiveMaximum", "expected less than %s, got %s", decimal(k.Want), got())
	case *kind.MultipleOf:
		return one("multipleOf", "expected a multiple of %s, got %s", decimal(k.Want), got())
	case *kind.UniqueItems:
		return one("uniqueItems", "items %d and %d are equal, but all must differ", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return one("contains", "expected at least 1 item of the required form, got 0")
	case *kind.MinContains:
		return one("contains", "expected at least %s of the required form, got %d", count(k.Want, "item"), len(k.Got))
	case *kind.MaxContains:
		return one("maxContains", "expected at most %s of that form, got %d", count(k.Want, "item"), len(k.Got))
	case *kind.Not:
		return one("not", "the value is of a form that is excluded here, got %s", got())
	case *kind.RefCycle:
		return one("$ref", "the schema refers to itself without end here")
	case *kind.FalseSchema:
		return one(falseKeyword(e.SchemaURL))
	case *kind.Required:
		return missing(at, "required", k.Missing, schema)
	case *kind.DependentRequired:
		return missing(at, "dependentRequired", k.Missing, schema)
	case *kind.Dependency:
		return missing(at, "dependencies", k.Missing, schema)
	case *kind.AdditionalProperties:
		return unknown(at, k.Properties, schema)
	case *kind.PropertyNames:
		faults := r.nested(k.Property).all(e.Causes)
		for i := range faults {
			faults[i].Pointer = at + "/" + escapeToken(k.Property)
			faults[i].Keyword, faults[i].Message = "propertyNames", "the name is wrong: "+faults[i].Message
		}
		return faults
	case *kind.AnyOf:
		return r.noAlternative("anyOf", e)
	case *kind.OneOf:
		if k.Subschemas != nil {
			return one("oneOf", "matches alternatives %d and %d, but must match exactly one", k.Subschemas[0]+1, k.Subschemas[1]+1)
		}
		return r.noAlternative("oneOf", e)
	}
	if len(e.Causes) == 0 {
		return one("", "does not match the schema")
	}
	return r.all(e.Causes)
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

// missing reports members that must be present.
func missing(at, keyword string, names []string, s *jsonschema.Schema) []Fault {
	var faults []Fault
	for _, name := range names {
		message := "required, but missing"
		if s != nil {
			if want := expected(s.Properties[name]); want != "" {
				message += "; expected " + want
			}
		}
		faults = append(faults, Fault{Pointer: at + "/" + escapeToken(name), Keyword: keyword, Message: message})
	}
	return faults
}

// unknown reports members that must not be present, with the properties of the schema.
func unknown(at string, names []string, s *jsonschema.Schema) []Fault {
	var known []string
	if s != nil {
		for name := range s.Properties {
			known = append(known, name)
		}
		slices.Sort(known)
	}
	slices.Sort(names)
	var faults []Fault
	for i, name := range names {
		message := "unknown property"
		if i < DefaultFaults { // a value may have many, and each is compared with all properties
			message += allowed(name, known)
		}
		faults = append(faults, Fault{Pointer: at + "/" + escapeToken(name), Keyword: "additionalProperties", Message: message})
	}
	return faults
}

// allowed names the properties of the schema, only the likely one if there is one.
func allowed(name string, known []string) string {
	const many = 20
	best, least := "", 3
	for _, k := range known {
		d := distance(k, name)
		if strings.EqualFold(k, name) {
			d = 0
		}
		if d < least {
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

// distance is the number of edits between two short names, or 3 if there are more than 2.
func distance(a, b string) int {
	const far, most = 3, 64
	if len(a) > most || len(b) > most || len(a)-len(b) >= far || len(b)-len(a) >= far || len(a) < far || len(b) < far {
		return far
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return min(row[len(b)], far)
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
func (r *reporter) noAlternative(keyword string, e *jsonschema.ValidationError) []Fault {
	at := pointer(e.InstanceLocation)
	var types []string
	best, bestScore := -1, 0
	var closest []Fault
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
		if score := closeness(faults, at); best < 0 || score > bestScore {
			best, bestScore, closest = i, score, faults
		}
	}
	if best < 0 && len(types) > 0 {
		return []Fault{{Pointer: at, Keyword: keyword, Message: fmt.Sprintf("expected %s, got %s", either(articles(types)), show(r.at(e.InstanceLocation)))}}
	}
	faults := []Fault{{Pointer: at, Keyword: keyword, Message: fmt.Sprintf("matches none of the %d allowed forms; the closest, form %d, has these faults", len(e.Causes), best+1)}}
	for _, f := range closest {
		f.Indent++
		faults = append(faults, f)
	}
	return faults
}

// closeness scores an alternative: few faults and faults deep in the value are close, a wrong
// constant means another form.
func closeness(faults []Fault, at string) int {
	score := 1000 - 10*len(faults)
	for _, f := range faults {
		if f.Keyword == "const" || f.Keyword == "enum" {
			score -= 200
		}
		if f.Pointer == at && (f.Keyword == "type" || f.Keyword == "false") {
			score -= 500
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
