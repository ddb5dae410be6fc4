package mcphost

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// What is taken apart is what encoding/json takes apart.
func FuzzRawJSON(f *testing.F) {
	for _, s := range []string{`{}`, `[]`, `{"a":1,"b":[1,"]",{"c":"}"}],"\"d\\":null}`, ` [ 1 , "a\\" , {"x" : true } ] `, `{"a":"\\\"","b":2}`, `7`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if !json.Valid(in) || !utf8.Valid(in) {
			return
		}
		compact := func(raw json.RawMessage) string {
			var b bytes.Buffer
			if err := json.Compact(&b, raw); err != nil {
				t.Fatalf("%q is cut wrongly: %v", raw, err)
			}
			return b.String()
		}
		var want map[string]json.RawMessage
		if bytes.HasPrefix(bytes.TrimSpace(in), []byte("{")) && json.Unmarshal(in, &want) == nil {
			got, exp := map[string]string{}, map[string]string{}
			if !eachMember(in, func(k string, v json.RawMessage) { got[k] = compact(v) }) {
				t.Fatal("not taken for an object")
			}
			for k, v := range want {
				exp[k] = compact(v)
			}
			if diff := cmp.Diff(exp, got); diff != "" {
				t.Errorf("members (-want +got):\n%s", diff)
			}
		}
		var list []json.RawMessage
		if bytes.HasPrefix(bytes.TrimSpace(in), []byte("[")) && json.Unmarshal(in, &list) == nil {
			var got, exp []string
			if !eachElement(in, func(v json.RawMessage) { got = append(got, compact(v)) }) {
				t.Fatal("not taken for an array")
			}
			for _, v := range list {
				exp = append(exp, compact(v))
			}
			if diff := cmp.Diff(exp, got); diff != "" {
				t.Errorf("elements (-want +got):\n%s", diff)
			}
		}
	})
}

// What is not valid does not crash it either.
func FuzzRawJSONGarbage(f *testing.F) {
	f.Add([]byte(`{"a":[`))
	f.Add([]byte(`{"a`))
	f.Add([]byte(`{:`))
	f.Fuzz(func(_ *testing.T, in []byte) {
		eachMember(in, func(string, json.RawMessage) {})
		eachElement(in, func(json.RawMessage) {})
	})
}
