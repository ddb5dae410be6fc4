package jsonscan

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// What the scanner reads must be what encoding/json reads.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"b":[{"c":null}],"a":"x"}`, `{}`, ` { "\u0061\"" : -0.5e+10 } `, `{"a":1}x`, `{"a":}`, `{"a" 1}`, `{"a":01}`, `[]`, `null`, ``,
		`{"a":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `,"b":1}`,
		"{\"a\xff\":1}", `{"a":tru}`, `{"a":"\x"}`, `{"a":{"b":[[],{}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !utf8.Valid(data) {
			return // names are not mended: see Object
		}
		got := map[string]string{}
		err := Object(data, func(key []byte, value json.RawMessage) { got[string(key)] = string(value) })
		var want map[string]json.RawMessage
		if wantErr := json.Unmarshal(data, &want); (wantErr == nil && want != nil) != (err == nil) {
			t.Fatalf("%v; encoding/json: %v", err, wantErr)
		}
		if err != nil {
			return
		}
		if len(got) != len(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		for name, value := range want {
			if got[name] != string(value) {
				t.Fatalf("%q is %s, want %s", name, got[name], value)
			}
		}
	})
}

func FuzzArray(f *testing.F) {
	for _, seed := range []string{`[1,"a",{"b":[]},null]`, `[]`, `[1,]`, `[1]2`, `{}`, `null`, ` [ ] `} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, want []json.RawMessage
		err := Array(data, func(value json.RawMessage) { got = append(got, value) })
		if wantErr := json.Unmarshal(data, &want); (wantErr == nil && want != nil) != (err == nil) {
			if strings.Count(string(data), "[")+strings.Count(string(data), "{") > 9000 {
				return
			}
			t.Fatalf("%v; encoding/json: %v", err, wantErr)
		}
		if err != nil {
			return
		}
		if len(got) != len(want) {
			t.Fatalf("got %s, want %s", got, want)
		}
		for i := range want {
			if string(got[i]) != string(want[i]) {
				t.Fatalf("element %d is %s, want %s", i, got[i], want[i])
			}
		}
	})
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{`"a"`, `""`, `"\u00e9\n"`, `"\ud800"`, "\"\xff\"", `"`, `1`, `null`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) || strings.TrimSpace(string(data)) != string(data) {
			return // a value that the scanner returned is neither
		}
		got, ok := Text(data)
		var want string
		wantOK := json.Unmarshal(data, &want) == nil && string(data) != "null"
		if got != want || ok != wantOK {
			t.Fatalf("got %q, %v; want %q, %v", got, ok, want, wantOK)
		}
	})
}
