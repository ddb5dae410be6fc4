package schemaguard

import (
	"errors"
	"strings"
	"testing"
)

// R31
func TestMessages(t *testing.T) {
	const person = `{"type":"object","properties":{
		"name":{"type":"string","minLength":2,"description":"full name"},
		"age":{"type":"integer","minimum":0,"maximum":150},
		"unit":{"enum":["kg","lb"]},
		"when":{"type":"string","format":"date"},
		"tags":{"type":"array","items":{"type":"string","pattern":"^[a-z]+$"},"uniqueItems":true,"maxItems":3},
		"id":{"anyOf":[{"type":"string"},{"type":"integer"}]},
		"shape":{"oneOf":[
			{"type":"object","properties":{"kind":{"const":"circle"},"r":{"type":"number"}},"required":["kind","r"]},
			{"type":"object","properties":{"kind":{"const":"square"},"side":{"type":"number"}},"required":["kind","side"]}]},
		"a/b~c":{"type":"null"}},
		"required":["name"],"additionalProperties":false}`
	s := mustNew(t, person)
	tests := []struct {
		name, value string
		want        []string
	}{
		{"missing", `{}`, []string{`/name: required, but missing; expected a string (full name)`}},
		{"type", `{"name":"ab","age":"7"}`, []string{`/age: expected an integer, got the string "7"`}},
		{"fraction", `{"name":"ab","age":7.5}`, []string{`/age: expected an integer, got the number 7.5`}},
		{"bounds", `{"name":"a","age":151}`, []string{
			`/age: expected at most 150, got the number 151`, `/name: expected at least 2 characters, got the string "a"`,
		}},
		{"enum", `{"name":"ab","unit":"oz"}`, []string{`/unit: expected one of "kg", "lb", got the string "oz"`}},
		{"format", `{"name":"ab","when":"today"}`, []string{`/when: expected a date such as 2026-07-28, got the string "today"`}},
		{"items", `{"name":"ab","tags":["a","B",1]}`, []string{
			`/tags/1: expected a string that matches the regular expression ^[a-z]+$, got the string "B"`,
			`/tags/2: expected a string, got the number 1`,
		}},
		{"unique", `{"name":"ab","tags":["a","b","a"]}`, []string{`/tags: items 0 and 2 are equal, but all must differ`}},
		{"unknown", `{"name":"ab","agee":1}`, []string{`/agee: unknown property; did you mean "age"?`}},
		{"case", `{"Name":"ab"}`, []string{
			`/Name: unknown property; did you mean "name"?`, `/name: required, but missing; expected a string (full name)`,
		}},
		{"any types", `{"name":"ab","id":null}`, []string{`/id: expected a string or an integer, got null`}},
		{"alternatives", `{"name":"ab","shape":{"kind":"square","side":"2"}}`, []string{
			`/shape: matches none of the 2 allowed forms; the closest, form 2, has these faults`,
			`/shape/side: expected a number, got the string "2"`,
		}},
		{"pointer", `{"name":"ab","a/b~c":1}`, []string{`/a~1b~0c: expected null, got the number 1`}},
		{"root", `[]`, []string{`(root): expected an object, got the empty array []`}},
	}
	for _, tt := range tests {
		err := s.Validate([]byte(tt.value), Limits{})
		var invalid *ValidationError
		if !errors.As(err, &invalid) {
			t.Errorf("%s: got %v, want a ValidationError", tt.name, err)
			continue
		}
		var got []string
		for _, f := range invalid.Faults {
			got = append(got, f.String())
		}
		if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
}

func TestFaultsAreLimited(t *testing.T) {
	s := mustNew(t, `{"items":{"type":"string"}}`)
	err := s.Validate([]byte(`[1,2,3,4,5]`), Limits{Faults: 3})
	var invalid *ValidationError
	if !errors.As(err, &invalid) || len(invalid.Faults) != 3 || !invalid.More {
		t.Fatalf("got %v, want 3 faults and more", err)
	}
	if !strings.HasSuffix(err.Error(), "\n- and more") {
		t.Errorf("message %q does not say that there are more", err)
	}
}

func TestMessagesAreShort(t *testing.T) {
	s := mustNew(t, `{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false}`)
	long := strings.Repeat("ä", 100_000)
	err := s.Validate([]byte(`{"a":"`+long+`"}`), Limits{})
	if err == nil || len(err.Error()) > 500 {
		t.Errorf("message of %d bytes", len(err.Error()))
	}
	err = mustNew(t, `{"properties":{"a":{"const":"`+long+`"}}}`).Validate([]byte(`{"a":"x"}`), Limits{})
	if err == nil || len(err.Error()) > 500 {
		t.Errorf("message of %d bytes", len(err.Error()))
	}
}

// A fault names the keyword that is not satisfied.
func TestFaultsNameTheirKeyword(t *testing.T) {
	for schema, tt := range map[string]struct{ value, keyword string }{
		`{"unevaluatedItems":false}`:      {`[1]`, "unevaluatedItems"},
		`{"unevaluatedProperties":false}`: {`{"a":1}`, "unevaluatedProperties"},
		`{"not":{}}`:                      {`1`, "not"},
	} {
		var invalid *ValidationError
		if err := mustNew(t, schema).Validate([]byte(tt.value), Limits{}); !errors.As(err, &invalid) || len(invalid.Faults) != 1 || invalid.Faults[0].Keyword != tt.keyword {
			t.Errorf("%s: %+v", schema, err)
		}
	}
}

// The limits of what a message repeats, and names that differ in case alone.
func TestMessagesAtTheirLimits(t *testing.T) {
	name, wide := "somethingRatherLong", strings.Repeat("w", 58) // 60 bytes with its quotes
	s := mustNew(t, `{"properties":{"`+name+`":{}},"additionalProperties":false}`)
	want := "- /" + strings.ToUpper(name) + `: unknown property; did you mean "` + name + `"?`
	if err := s.Validate([]byte(`{"`+strings.ToUpper(name)+`":1}`), Limits{}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for value, shown := range map[string]string{`"` + wide + `"`: `"` + wide + `"`, `"` + wide + `x"`: `"` + wide + `x...`} {
		want := `- (root): expected ` + shown + `, got the number 1`
		if err := mustNew(t, `{"enum":[`+value+`]}`).Validate([]byte(`1`), Limits{}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A schema that is not valid in its dialect is an error with each fault, in one line.
func TestSchemasThatAreNotValid(t *testing.T) {
	const want = `it is not valid in dialect 2020-12: /minLength: expected an integer, got the string "x"; /required: expected an array, got the number 1`
	if _, err := New([]byte(`{"minLength":"x","required":1}`)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// Numbers out of all proportion are refused where they are compared, and only there.
func TestNumbersOutOfProportion(t *testing.T) {
	for schema, bad := range map[string]bool{
		`{"enum":[1,[{"a":1e9999999}]]}`: true, `{"const":{"a":[1e9999999]}}`: true, `{"minimum":1e9999999}`: true,
		`{"examples":[1e9999999]}`: false, `{"enum":[1e1000]}`: false,
	} {
		if _, err := New([]byte(schema)); (err != nil) != bad || bad && !strings.Contains(err.Error(), "too large an exponent") {
			t.Errorf("%s: %v", schema, err)
		}
	}
}
