package modeltest

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestCheckJSON(t *testing.T) {
	tests := []struct {
		name, in, want string
		at             int
	}{
		{"object", `{"a": [1, -2.5e+3, true, false, null, "é😀"], "b": {}}`, "", 0},
		{"paired surrogates", `"\ud83d\ude00"`, "", 0},
		{"lone high surrogate", `{"a":"x\ud83d"}`, "no low surrogate in string", 7},
		{"high surrogate before another escape", `"\ud83d\u0041"`, "no low surrogate in string", 1},
		{"lone low surrogate", `"\ude00"`, "no high surrogate in string", 1},
		{"high surrogate at the end", `"\ud83d`, "no low surrogate in string", 1},
		{"raw invalid UTF-8", "{\"a\":\"\xff\"}", "str is not valid UTF-8: surrogates not allowed", 6},
		{"encoded surrogate", "\"\xed\xa0\x80\"", "str is not valid UTF-8: surrogates not allowed", 1},
		{"byte order mark", "\ufeff{}", "unexpected character", 0},
		{"empty", "", "unexpected end of data", 0},
		{"cut", `{"a":`, "unexpected end of data", 5},
		{"cut string", `{"a":"b`, "unexpected end of data", 7},
		{"trailing comma", `[1,]`, "unexpected character", 3},
		{"two documents", `{} {}`, "unexpected content after document", 3},
		{"leading zero", `01`, "unexpected content after document", 1},
		{"bare minus", `-`, "no digit after minus sign", 1},
		{"no fraction", `1.`, "no digit after decimal point", 2},
		{"no exponent", `1e`, "no digit after exponent sign", 2},
		{"NaN", `NaN`, "unexpected character", 0},
		{"line break in a string", "\"a\nb\"", `control character (\u0000-\u001F) found while parsing a string`, 2},
		{"bad escape", `"\x"`, "invalid escaped character in string", 1},
		{"bad unicode escape", `"\u12g4"`, "invalid escaped sequence in string", 1},
		{"number as a key", `{1:2}`, "object key is not a string", 1},
		{"no colon", `{"a" 2}`, "unexpected character, expecting a colon", 5},
		{"no comma", `[1 2]`, `unexpected character, expecting a comma or ']'`, 3},
		{"deepest", strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth), "", 0},
		{"too deep", strings.Repeat("[", 1<<20), "recursion limit exceeded", maxDepth},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got string
			var at int
			if err := checkJSON([]byte(tt.in)); err != nil {
				got, at = err.msg, err.at
			}
			if got != tt.want || at != tt.at {
				t.Errorf("got %q at %d, want %q at %d", got, at, tt.want, tt.at)
			}
		})
	}
}

// FuzzJSON checks that what passes is JSON and reads the same as by encoding/json.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,{"b":"\\\""},"\u00e9"],"a":null}`, `"\ud83d\ude00"`, `[[],{}, -0.5e-7 ,"x"]`, `{"":{"":[]}}`, `"\ud800"`, "\"\xff\"",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if checkJSON(data) != nil {
			return
		}
		var want any
		if err := json.Unmarshal(data, &want); err != nil {
			// The one thing that encoding/json refuses besides syntax.
			if !strings.Contains(err.Error(), "cannot unmarshal number") {
				t.Fatalf("accepted %q, which encoding/json does not: %v", data, err)
			}
			return
		}
		from := skipSpace(data, 0)
		if got := rebuild(t, data[from:valueEnd(data, from)]); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: read %#v, want %#v", data, got, want)
		}
	})
}

// rebuild decodes a value by way of eachField and eachItem.
func rebuild(t *testing.T, value json.RawMessage) any {
	switch kindOf(value) {
	case '{':
		m := map[string]any{}
		eachField(value, func(k string, v json.RawMessage) { m[k] = rebuild(t, v) })
		return m
	case '[':
		a := []any{}
		eachItem(value, func(_ int, v json.RawMessage) { a = append(a, rebuild(t, v)) })
		return a
	case '"':
		s := unquote(value)
		var back string
		if err := json.Unmarshal(appendString(nil, s), &back); err != nil || back != s {
			t.Fatalf("appendString(%q) decodes as %q, %v", s, back, err)
		}
		return s
	}
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAppendStringReplacesInvalidUTF8(t *testing.T) {
	if got, want := string(appendString(nil, "a\xff\x01\n\"\\")), `"a`+"\uFFFD"+`\u0001\n\"\\"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
