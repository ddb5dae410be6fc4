package claudecode

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestLineType(t *testing.T) {
	for line, want := range map[string]string{
		`{"type":"assistant"}`:                                     "assistant",
		` { "a" : 1, "type" : "result" }`:                          "result",
		`{"message":{"type":"inner"},"x":["type"],"type":"outer"}`: "outer",
		`{"a":"type","b":"\"type\":\"no\"","type":"yes"}`:          "yes",
		`{"a":"\\","type":"after a backslash"}`:                    "after a backslash",
		`{"type":"é"}`:                                             "é",
		`{"type":"half","message":{"rol`:                           "half",
		`{"type":7}`:                                               "", `{"type":""}`: "", `{"type":null}`: "", `{"type"`: "", `{"type":`: "", `{"type":"x`: "", `{"a":{"type":"inner"}}`: "",
		`["type","x"]`: "", `"type"`: "", ``: "", `{`: "", `{}`: "", `warning: {"type":"x"}`: "", `{"a":"b`: "",
	} {
		got, ok := lineType([]byte(line))
		if got != want || ok != (want != "") {
			t.Errorf("%s: got %q, %t; want %q", line, got, ok, want)
		}
	}
}

// On what is valid, it says what encoding/json says.
func FuzzLineType(f *testing.F) {
	for _, seed := range []string{`{"type":"a"}`, `{"b":{"type":"x"},"type":"y"}`, `{"a":"\"","type":"\u0041"}`, `[]`, `{"type":null}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		got, ok := lineType([]byte(line))
		var all map[string]json.RawMessage
		if json.Unmarshal([]byte(line), &all) != nil || strings.Count(line, "type") > 1 || strings.ContainsAny(line, "\n") {
			return
		}
		var want string
		if json.Unmarshal(all["type"], &want) != nil {
			want = ""
		}
		if strings.Contains(line, `\`) && want == "" {
			return // a key may be written with escapes, which the CLI has no reason for
		}
		if strings.Contains(line, `"type"`) && (got != want || ok != (want != "")) {
			t.Errorf("%s: got %q, %t; want %q", line, got, ok, want)
		}
	})
}
